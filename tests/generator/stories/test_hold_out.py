from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.errors import InputError
from generator.paraphrases.load import load_bank
from generator.relations.kinship import MALE, RELATION_ID
from generator.stories.config import Config
from generator.stories.hold_out import split_bank
from generator.stories.text import Bank, clause_name

SYNTHETIC = Config(language="synthetic")
SON, SISTER = RELATION_ID["son"], RELATION_ID["sister"]


@settings(max_examples=30)
@given(st.integers(0, 50), st.sampled_from([0.1, 0.2, 0.5]))
def test_fraction_of_the_paraphrases_of_each_clause_is_held_out(seed, fraction):
    config = replace(SYNTHETIC, seed=seed, paraphrase_fraction=fraction)
    bank = load_bank(config)
    split = split_bank(bank, config)
    for key, templates in bank.templates.items():
        train, test = split.train.templates[key], split.test.templates[key]
        assert len(templates) >= 3
        assert sorted(train + test) == sorted(templates)
        assert len(test) == max(round(fraction * len(templates)), 1)
        assert [templates[i] for i in split.held_out[clause_name(key)]] == list(test)
        # A text is on the same side for all clauses, here for both genders of {0}.
        assert split.train.templates[1 - key[0], key[1]] == train
    assert split.of("train") is split.of("dev") is split.train and split.of("test") is split.test


def test_without_hold_out_all_splits_use_all_paraphrases():
    bank = load_bank(SYNTHETIC)
    split = split_bank(bank, replace(SYNTHETIC, hold_out=("clauses",)))
    assert split.train is split.test is bank and not split.held_out


@settings(max_examples=30)
@given(st.integers(0, 50))
def test_train_paraphrases_do_not_contain_held_out_ones(seed):
    templates = load_bank(SYNTHETIC).templates

    def second(text):  # the same text about the second and third person
        return " " + text.replace("{1}", "{2}").replace("{0}", "{1}")

    son, both, sister = (MALE, (SON,)), (MALE, (SON, SISTER)), (MALE, (SISTER,))
    joined = {a + second(b): (a, b) for a in templates[son] for b in templates[sister]}
    bank = Bank("b", templates | {both: tuple(joined)})
    split = split_bank(bank, replace(SYNTHETIC, seed=seed))
    for text in split.train.templates[both]:
        a, b = joined[text]
        assert a in split.train.templates[son] and b in split.train.templates[sister]
    assert len(split.test.templates[both]) == round(0.2 * len(joined))
    assert len(split.left_out[clause_name(both)]) > 0


def test_errors_for_banks_that_are_too_small():
    single = Bank("b", {key: texts[:1] for key, texts in load_bank(SYNTHETIC).templates.items()})
    with pytest.raises(InputError, match="in tests"):
        split_bank(single, SYNTHETIC)
    assert split_bank(single, replace(SYNTHETIC, hold_out=())).train is single
    with pytest.raises(InputError, match="empty"):
        split_bank(Bank("b", {}), SYNTHETIC)
