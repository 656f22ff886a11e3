import itertools
import os
import re
import subprocess
import sys
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.paraphrases.bank import PER_CLAUSE, ClauseWriter, PlacedFrame, bank, is_plausible
from generator.paraphrases.frames import AGES, Frame, Name, Noun, Slot, frames, parse, words
from generator.relations.kinship import (
    FEMALE,
    GENDER_OF,
    INVERSE,
    MALE,
    PREDICATE_ID,
    PREDICATE_OF,
    RELATION_ID,
    RELATION_OF,
    RELATIONS,
    RULES,
    path_heads,
)

EVERYDAY = {"mom": "mother", "dad": "father", "grandma": "grandmother", "grandpa": "grandfather"}
TEMPLATES = [(key, text) for key, texts in bank().templates.items() for text in texts]


def heads(predicates):
    """The predicates that remain after rule applications in any order."""
    if len(predicates) == 1:
        return {PREDICATE_ID[predicates[0]]}
    steps = [
        (*predicates[:i], head, *predicates[i + 2 :])
        for i in range(len(predicates) - 1)
        if (head := RULES.get(predicates[i : i + 2]))
    ]
    return set().union(*map(heads, steps))


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_path_heads(length):
    for predicates in itertools.product(PREDICATE_ID, repeat=length):
        clause = tuple(PREDICATE_ID[p] for p in predicates)
        assert path_heads(clause) == heads(predicates)


def genders_agree(gender, relations):
    genders = [gender, *(GENDER_OF[r] for r in relations)]
    return all(
        PREDICATE_OF[r] != PREDICATE_ID["SO"] or a != b
        for r, (a, b) in zip(relations, itertools.pairwise(genders), strict=True)
    )


@pytest.mark.parametrize("length", [1, 2, 3])
def test_every_provable_clause_has_paraphrases(length):
    in_rules = [p for p in PREDICATE_ID if p != "sibling-in-law"]
    expected = {
        (gender, relations)
        for predicates in itertools.product(in_rules, repeat=length)
        if heads(predicates)
        for relations in itertools.product(
            *(RELATION_OF[PREDICATE_ID[p]].tolist() for p in predicates)
        )
        for gender in (MALE, FEMALE)
        if genders_agree(gender, relations)
    }
    found = {key: texts for key, texts in bank().templates.items() if len(key[1]) == length}
    assert set(found) == expected
    assert {len(set(texts)) for texts in found.values()} == {PER_CLAUSE[length]}


@cache
def nouns(key):
    """The relation and the inverse relation of each fact of a clause."""
    gender, relations = key
    genders = [gender, *(GENDER_OF[r] for r in relations)]
    return [
        {RELATIONS[r], RELATIONS[RELATION_OF[INVERSE[PREDICATE_OF[r]], genders[i]]]}
        for i, r in enumerate(relations)
    ]


def kinship_words(text):
    found = (EVERYDAY.get(word, word) for word in re.findall(r"[a-z]+(?:-[a-z]+)*", text.lower()))
    return {word for word in found if word in RELATION_ID}


def test_paraphrases_name_the_relations_of_neighbors_only():
    married = re.compile(r"marr|tied the knot|I do|eloped|Newlyweds")
    for key, text in TEMPLATES:
        found = kinship_words(text)
        assert found <= set().union(*nouns(key)), text
        for pair, relation in zip(nouns(key), key[1], strict=True):
            is_couple = PREDICATE_OF[relation] == PREDICATE_ID["SO"]
            assert found & pair or (is_couple and married.search(text)), text


def test_paraphrases_are_well_formed_text():
    for key, text in TEMPLATES:
        assert set(re.findall(r"\{(\d)\}", text)) == {str(i) for i in range(len(key[1]) + 1)}
        assert re.match(r'["A-Z{]', text) and re.search(r'[.!?]"?$', text), text
        assert not re.search(
            r"  | [.,;]|<|>|\b[PQRSqrspmn]\b(?<!'s)|\b(hir|z?x?em|z?x?ir|xyr)\b", text
        )
        assert not re.search(r"\ban (?!hour|honor)[^aeiou]|\ba [aeio]", text, re.IGNORECASE), text
        assert text.count('"') % 2 == 0


def test_frames_name_their_people_and_state_their_facts():
    for frame in frames():
        assert {p.person for p in frame.parts if isinstance(p, Name)} == set(frame.chain)
        stated = {frozenset(p) for p in frame.parts if isinstance(p, Noun)}
        facts = {frozenset(pair) for pair in itertools.pairwise(frame.chain)}
        assert stated == facts or frame.predicates == {PREDICATE_ID["SO"]}
        assert all(p.words in words() for p in frame.parts if isinstance(p, Slot))


def test_frames_and_words_are_unique():
    assert len({frame.parts for frame in frames()}) == len(frames())
    for slot, entries in words().items():
        assert slot in RELATION_ID or len(set(entries)) == len(entries), slot


def test_the_bank_is_the_same_in_every_process():
    code = "from generator.paraphrases.bank import bank; print(bank())"
    other = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == str(bank())


@settings(max_examples=30)
@given(
    st.sampled_from(["child", "inv-grand", "SO", "un"]),
    st.sampled_from(sorted(AGES)),
    st.sampled_from(sorted(AGES)),
)
def test_plausibility_does_not_depend_on_the_direction(predicate, first, second):
    there = PREDICATE_ID[predicate]
    ages = AGES[first], AGES[second]
    back = int(INVERSE[there])
    assert is_plausible((there,), (0, ages)) == is_plausible((back,), (0, ages[::-1]))


@pytest.mark.parametrize(
    ("text", "first", "expected"),
    [
        # All are men: the second "his" could refer to {0}.
        (
            "P met Q, his q. Then R, his r, came.",
            MALE,
            "{1} met {0}, his brother. Then {2}, {1}'s brother, came.",
        ),
        (
            "P met Q, his q. Then R, his r, came.",
            FEMALE,
            "{1} met {0}, his sister. Then {2}, his brother, came.",
        ),
        # "His" refers to the subject of the grammatical clause.
        ("P met his q Q and his r R.", MALE, "{1} met his brother {0} and his brother {2}."),
        (
            "His q Q met P with R, his r.",
            MALE,
            "His brother {0} met {1} with {2}, {1}'s brother.",
        ),
    ],
)
def test_possessive_pronouns_are_unambiguous(text, first, expected):
    siblings = (PREDICATE_ID["sibling"],) * 2
    frame = Frame("QPR", frozenset(), (AGES["adult"],) * 3, parse(text), ())
    writer = ClauseWriter(siblings, (first, MALE, MALE), Random(0))
    assert writer.write([PlacedFrame(frame, 0, frame.chain, frame.ages)]) == expected
