import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.banks import load_bank, parse_clause, read_bank
from generator.blocks import block
from generator.config import Config, Task
from generator.errors import InputError
from generator.kinship import FEMALE, MALE, RELATION_ID, RELATIONS
from generator.names import bracketed
from generator.story import Bank, clause_name, texts

PLAIN = Config(language="synthetic")
SON, BROTHER = RELATION_ID["son"], RELATION_ID["brother"]


def numbered(length, clause):
    """A template that tells which facts it states."""
    return "(" + ",".join(f"{{{i}}}" for i in range(length + 1)) + f":{clause})"


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["1.2", "1.3", "1.6", "5.3", "6.2", "7.4"]), st.integers(0, 99))
def test_paraphrases_cover_each_walk_once(task, seed):
    stories, _ = block(PLAIN, "train", Task(*map(int, task.split("."))), 0)
    stories = stories.select(slice(60))
    plain = load_bank(PLAIN).templates
    walks = [
        (gender, tuple(relations[at : at + length]))
        for nodes, relation in zip(stories.nodes, stories.relations, strict=True)
        for length in (1, 2, 3)
        for at in range(relation.shape[1] - length + 1)
        for gender in (MALE, FEMALE)
        for relations in relation.tolist()
    ]
    templates = {key: (numbered(len(key[1]), "-".join(map(str, key[1]))),) for key in walks}
    templates |= {key: (numbered(1, key[1][0]),) for key in plain}
    bank = Bank("numbered", {k: v for k, v in templates.items() if min(k[1]) >= 0})
    names = bracketed(stories.gender, stories.name)
    told = list(texts(stories, names, bank, np.random.default_rng(seed)))
    lengths = set()
    for b, (story, clean, stated) in enumerate(told):
        facts = Counter()
        for people, relations in re.findall(r"\(([^:()]*):([^()]*)\)", story):
            walk, types = people.split(","), list(map(int, relations.split("-")))
            assert len(walk) == len(types) + 1 == len(set(walk))
            lengths.add(len(types))
            facts.update(zip(walk, types, walk[1:], strict=False))
        expected = Counter(
            (names[b][x], r, names[b][y])
            for (x, y), r in zip(stories.edges()[b], stories.edge_relations()[b], strict=True)
            if r >= 0
        )
        assert facts == expected
        path = [names[b][i] for i in stories.nodes[0][b]]
        pieces = re.findall(r"\(([^:()]*):", clean)
        joined = [path[0]] + [name for piece in pieces for name in piece.split(",")[1:]]
        assert joined == path
        assert Counter(story.split()) >= Counter(clean.split())
        assert stated == f"({path[0]},{path[-1]}:{stories.target[b]})"
    assert lengths == set(range(1, min(3, stories.task.k) + 1))


def test_order_of_paraphrases_is_random():
    stories, rng = block(PLAIN, "train", Task(1, 3), 0)
    told = list(texts(stories, bracketed(stories.gender, stories.name), load_bank(PLAIN), rng))
    kept = np.mean([story == clean for story, clean, _ in told])
    assert 0.12 < kept < 0.22  # one order in 3!


@given(st.integers(0, 50), st.sampled_from([0.1, 0.2, 0.5]))
def test_split_of_a_bank(seed, fraction):
    config = replace(PLAIN, seed=seed, paraphrase_fraction=fraction)
    bank = load_bank(config)
    train, test, held = bank.split(config)
    for key, templates in bank.templates.items():
        assert len(templates) >= 3
        assert sorted(train.templates[key] + test.templates[key]) == sorted(templates)
        assert len(test.templates[key]) == max(round(fraction * len(templates)), 1)
        assert [templates[i] for i in held[clause_name(key)]] == list(test.templates[key])
        other = (1 - key[0], key[1])
        assert train.templates[other] == train.templates[key]  # the words do not depend on {0}
    free = replace(config, hold_out=("clauses",))
    assert bank.split(free) == (bank, bank, {})


def test_banks_that_are_of_no_use():
    with pytest.raises(InputError, match="empty"):
        Bank("b", {}).split(PLAIN)
    for text in ("{0} only", "{0} {1} {2}", "{0} {1} {", "{0} {1.x}", "{0!r} {1}"):
        with pytest.raises(InputError, match=r"male:son: .*placeholders \{0\}, \{1\}"):
            Bank("b", {(MALE, (SON,)): (text,)})
    plain = load_bank(PLAIN).templates
    without = Bank("b", {key: texts for key, texts in plain.items() if key != (MALE, (SON,))})
    with pytest.raises(InputError, match="no paraphrase for clause male:son "):
        without.split(PLAIN)
    single = Bank("b", {key: texts[:1] for key, texts in plain.items()})
    with pytest.raises(InputError, match="in tests"):
        single.split(PLAIN)
    assert single.split(replace(PLAIN, hold_out=()))[0] is single


def test_reading_a_bank(tmp_path):
    path = tmp_path / "bank.json"
    clauses = {"male:son-brother": ["[{0}] {1} {2}"], "female:father-in-law": ["{1} {0}"]}
    for content in (clauses, {"templates": clauses, "name": "any"}):
        path.write_text(json.dumps(content))
        assert read_bank(path).templates == {
            (MALE, (SON, BROTHER)): ("[{0}] {1} {2}",),
            (FEMALE, (RELATION_ID["father-in-law"],)): ("{1} {0}",),
        }
    for text, message in (
        ("{", "not a JSON file"),
        ("[]", "expected an object"),
        ('{"male:cousin": ["{0} {1}"]}', "male:son-brother"),
        ('{"son": ["{0} {1}"]}', "male:son-brother"),
        ('{"male:son": "{0} {1}"}', "list of texts"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_bank(path)


@given(st.lists(st.sampled_from(RELATIONS), min_size=1, max_size=10))
def test_clause_names_can_be_read(relations):
    assert [RELATIONS[r] for r in parse_clause("-".join(relations))] == relations
