import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.blocks import block
from generator.config import Config, Task
from generator.errors import InputError
from generator.generate import generate
from generator.kinship import FEMALE, MALE, RELATION_ID, RELATIONS
from generator.names import bracketed
from generator.paraphrases.load import load_bank, parse_clause, read_bank
from generator.text import Bank, clause_name, texts

PLAIN = Config(language="synthetic")
SON, BROTHER = RELATION_ID["son"], RELATION_ID["brother"]


def numbered(length, clause):
    """A template that tells which facts it states."""
    return "(" + ",".join(f"{{{i}}}" for i in range(length + 1)) + f":{clause})"


@settings(max_examples=20)
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
        assert stated == [f"({path[0]},{path[-1]}:{stories.target[b]})"]
    assert lengths == set(range(1, min(3, stories.task.k) + 1))


def test_order_of_paraphrases_is_random():
    stories, rng = block(PLAIN, "train", Task(1, 3), 0)
    told = list(texts(stories, bracketed(stories.gender, stories.name), load_bank(PLAIN), rng))
    kept = np.mean([story == clean for story, clean, _ in told])
    assert 0.12 < kept < 0.22  # one order in 3!


def test_banks_that_are_of_no_use():
    with pytest.raises(InputError, match="empty"):
        Bank("b", {}).check(PLAIN)
    for text in ("{0} only", "{0} {1} {2}", "{0} {1} {", "{0} {1.x}", "{0!r} {1}"):
        with pytest.raises(InputError, match=r"male:son: .*placeholders \{0\}, \{1\}"):
            Bank("b", {(MALE, (SON,)): (text,)})
    plain = load_bank(PLAIN).templates
    without = Bank("b", {key: texts for key, texts in plain.items() if key != (MALE, (SON,))})
    with pytest.raises(InputError, match="no paraphrase for clause male:son;"):
        without.check(PLAIN)
    body = [key for key in plain if RELATIONS[key[1][0]] not in ("uncle", "nephew")]
    partly = Bank("b", {key: plain[key] for key in body})
    assert not partly.tellable().all()
    with pytest.raises(InputError, match="male:uncle"):  # some rules have uncles in their body
        partly.check(PLAIN)
    path = {key: plain[key] for key in plain if RELATIONS[key[1][0]] not in ("nephew", "niece")}
    Bank("b", path).check(PLAIN)
    with pytest.raises(InputError, match="male:nephew"):  # but the answer of task 6 may be one
        Bank("b", path).check(replace(PLAIN, test=(Task(6, 2),)))


def test_noise_keeps_to_what_a_bank_can_tell(tmp_path):
    plain = load_bank(PLAIN).templates
    clauses = {clause_name(k): v for k, v in plain.items() if "in-law" not in clause_name(k)}
    (tmp_path / "bank.json").write_text(json.dumps(clauses))
    config = Config(train=(Task(4, 2),), bank=str(tmp_path / "bank.json"))
    data = generate(config, rows=300)
    assert not {r for r in data.relations[:, 2:].ravel() if "in-law" in RELATIONS[r]}
    assert {r for r in data.target if "in-law" in RELATIONS[r]}


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
        ("{", "bank.json: damaged, not the expected JSON"),
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
