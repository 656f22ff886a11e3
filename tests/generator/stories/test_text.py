import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.errors import InputError
from generator.paraphrases.load import load_bank, parse_clause, read_bank
from generator.relations.kinship import (
    FEMALE,
    INVERSE,
    MALE,
    PREDICATE_OF,
    RELATION_ID,
    RELATION_OF,
    RELATIONS,
)
from generator.stories.blocks import block
from generator.stories.config import Config, Task
from generator.stories.names import names_of
from generator.stories.text import Bank, clause_name, texts

SYNTHETIC = Config(language="synthetic")
SON, BROTHER = RELATION_ID["son"], RELATION_ID["brother"]


def listing(length, clause):
    """A template that lists the people and relations of its facts."""
    return "(" + ",".join(f"{{{i}}}" for i in range(length + 1)) + f":{clause})"


@settings(max_examples=20)
@given(st.sampled_from(["1.2", "1.3", "1.6", "5.3", "6.2", "7.4"]), st.integers(0, 99))
def test_paraphrases_state_each_fact_once(task, seed):
    stories, _ = block(SYNTHETIC, "train", Task(*map(int, task.split("."))), 0)
    stories = stories.select(slice(60))
    single = load_bank(SYNTHETIC).templates
    walks = [
        (gender, tuple(relations[at : at + length]))
        for nodes, relation in zip(stories.nodes, stories.relations, strict=True)
        for length in (1, 2, 3)
        for at in range(relation.shape[1] - length + 1)
        for gender in (MALE, FEMALE)
        for relations in relation.tolist()
    ]
    templates = {key: (listing(len(key[1]), "-".join(map(str, key[1]))),) for key in walks}
    templates |= {key: (listing(1, key[1][0]),) for key in single}
    bank = Bank("listing", {k: v for k, v in templates.items() if min(k[1]) >= 0})
    people = names_of(stories.gender, stories.name)
    names = [[f"[{name}]" for name in row] for row in people]
    lengths = set()
    generated = texts(stories, people, bank, np.random.default_rng(seed))
    for b, (story, clean, stated) in enumerate(generated):
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
        assert stated == [f"({path[0]},{path[-1]}:{stories.target[b]})"]
    assert lengths == set(range(1, min(3, stories.task.k) + 1))


def test_order_of_paraphrases_is_random():
    stories, rng = block(SYNTHETIC, "train", Task(1, 3), 0)
    names = names_of(stories.gender, stories.name)
    in_order = [
        story == clean for story, clean, _ in texts(stories, names, load_bank(SYNTHETIC), rng)
    ]
    assert 0.12 < np.mean(in_order) < 0.22  # one of 3! orders


READ_PLAIN = [  # (pattern, roles): the relation word is about the first or the second person
    (r"(\w+) has an? ([\w-]+) named (\w+)", "xry"),
    (r"(\w+) is an? ([\w-]+) of (\w+)", "yrx"),
]


@pytest.mark.parametrize("task", ["1.2", "1.5", "5.3"])
def test_plain_sentences_can_be_read_by_two_patterns(task):
    """ "X has a r named Y" and "Y is a r of X" are all there is; where the relation of X to Y is
    named, the gender of Y makes it the relation of Y to X."""
    config = Config(language="plain")
    bank = load_bank(config)
    stories, rng = block(config, "train", Task(*map(int, task.split("."))), 0, bank.expressible())
    stories = stories.select(slice(200))
    people = names_of(stories.gender, stories.name)
    inverse_words = 0
    for b, (story, _, _) in enumerate(texts(stories, people, bank, rng)):
        expected = {
            (people[b][x], RELATIONS[r], people[b][y])
            for (x, y), r in zip(stories.edges()[b], stories.edge_relations()[b], strict=True)
            if r >= 0
        }
        story = re.sub(r"[\[\]]", "", story)
        gender = dict(re.findall(r"(\w+), (?:who is )?a (man|woman)\b", story))
        # ", who is" and ", a woman who" continue with a fact about the person before them.
        text = re.sub(r",? (?:who is )?an? (?:man|woman)(?=[ .,])", "", story).replace(",", "")
        text = re.sub(r"(\w+) who (is|has)", r"\1. \1 \2", text)
        text = re.sub(r"(\w+) (is an? \S+ of \w+) and has", r"\1 \2. \1 has", text)
        facts = set()
        for pattern, roles in READ_PLAIN:
            for words in re.findall(pattern, text):
                x, r, y = (words[roles.index(role)] for role in "xry")
                if (x, r, y) not in expected:
                    inverse = RELATION_OF[
                        INVERSE[PREDICATE_OF[RELATION_ID[r]]], int(gender[x] == "woman")
                    ]
                    x, r, y = y, RELATIONS[inverse], x
                    inverse_words += 1
                facts.add((x, r, y))
        assert facts == expected, story
    assert inverse_words > 50


def test_errors_for_incomplete_banks():
    with pytest.raises(InputError, match="empty"):
        Bank("b", {}).check(SYNTHETIC)
    for text in ("{0} only", "{0} {1} {2}", "{0} {1} {", "{0} {1.x}", "{0!r} {1}"):
        with pytest.raises(InputError, match=r"male:son: .*placeholders \{0\}, \{1\}"):
            Bank("b", {(MALE, (SON,)): (text,)})
    templates = load_bank(SYNTHETIC).templates
    without = Bank("b", {key: texts for key, texts in templates.items() if key != (MALE, (SON,))})
    with pytest.raises(InputError, match="no paraphrase for clause male:son;"):
        without.check(SYNTHETIC)
    body = [key for key in templates if RELATIONS[key[1][0]] not in ("uncle", "nephew")]
    partial = Bank("b", {key: templates[key] for key in body})
    assert not partial.expressible().all()
    with pytest.raises(InputError, match="male:uncle"):  # some rule has an uncle in its body
        partial.check(SYNTHETIC)
    path = {
        key: templates[key] for key in templates if RELATIONS[key[1][0]] not in ("nephew", "niece")
    }
    Bank("b", path).check(SYNTHETIC)
    with pytest.raises(InputError, match="male:nephew"):  # task 6 states answers, such as nephew
        Bank("b", path).check(replace(SYNTHETIC, test=(Task(6, 2),)))


def test_noise_facts_are_expressible():
    templates = load_bank(SYNTHETIC).templates
    bank = Bank("b", {key: v for key, v in templates.items() if "in-law" not in clause_name(key)})
    stories, rng = block(SYNTHETIC, "train", Task(4, 2), 0, bank.expressible())
    noise = stories.relations[1].ravel()
    assert not {r for r in noise if "in-law" in RELATIONS[r]}
    assert {r for r in stories.target if "in-law" in RELATIONS[r]}
    assert list(texts(stories, names_of(stories.gender, stories.name), bank, rng))


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
        ('{"male:cousin": ["{0} {1}"]}', "male:son-brother"),
        ('{"son": ["{0} {1}"]}', "male:son-brother"),
        ('{"male:son": "{0} {1}"}', "male:son: expected list"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_bank(path)


@given(st.lists(st.sampled_from(RELATIONS), min_size=1, max_size=10))
def test_parse_clause_inverts_clause_names(relations):
    assert [RELATIONS[r] for r in parse_clause("-".join(relations))] == relations
