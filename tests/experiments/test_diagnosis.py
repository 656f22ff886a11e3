"""The tests of the diagnosis experiment."""

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import tasks
from clutrr_jax.experiment import runs
from experiments import diagnosis
from generator.paraphrases.load import load_bank
from generator.relations.kinship import RELATIONS
from generator.stories.config import Config
from generator.stories.hold_out import split_bank
from generator.stories.text import Bank
from tests.generator.test_write import read

ROWS = 30
NAME = re.compile(r"\[[^\]]*\]|\{\d\}")
KEYS = list(product(diagnosis.KINDS, diagnosis.TESTS))  # ((clauses, words), k)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    config, folder = diagnosis.get_config(), tmp_path_factory.mktemp("diagnosis")
    generate = runs(config)[0].config.generate.to_dict()
    settings = generate | {"seed": 0, "train_rows": 300, "test_rows": ROWS}
    diagnosis.write_stories(settings, folder)
    return folder


def sentences(text: str) -> set[str]:
    """The sentences of a text with names replaced."""
    return {NAME.sub("_", part) for part in re.split(r"(?<=[.!?])\s+", text.strip())}


def bank_sentences(bank: Bank) -> set[str]:
    return {part for pool in bank.templates.values() for text in pool for part in sentences(text)}


def test_tests_have_the_stated_clauses_and_paraphrases(folder: Path) -> None:
    notes = json.loads((folder / "config.json").read_text())
    new_clauses = set(notes["held_out"]["clauses"]["3"])
    assert len(new_clauses) > 10
    config = Config.from_json(notes["settings"])
    banks = split_bank(load_bank(config), config)
    words = {"seen": bank_sentences(banks.train), "new": bank_sentences(banks.test)}
    for language in ("synthetic", "plain"):
        words[language] = bank_sentences(load_bank(replace(config, language=language)))
    seen = words["seen"]
    for row in read(folder / "1.2,1.3_train.csv"):
        assert sentences(row["story"]) <= seen and row["f_comb"] not in new_clauses
    data = load(folder).test
    found = dict(tasks(data))
    used, has_new_sentence = set(), {name: [] for name in words}
    for (clauses, name), k in KEYS:
        for test in diagnosis.tests((clauses, name), k):
            used.add(test)
            assert len(found[test]) == ROWS
            for story in found[test]:
                told = sentences(data.stories[story])
                assert told <= words[name]
                has_new_sentence[name].append(not told <= seen)
                start = data.edge_start[story]
                clause = "-".join(RELATIONS[r] for r in data.relations[start : start + k])
                assert k != 3 or (clause in new_clauses) == (clauses == "new")
    # A held-out paraphrase of several facts may consist of sentences seen in training.
    assert not any(has_new_sentence["seen"]) and np.mean(has_new_sentence["new"]) > 0.9
    assert all(has_new_sentence["synthetic"]) and all(has_new_sentence["plain"])
    assert used == set(found) and len(data) == ROWS * len(used)


def test_all_kinds_of_words_tell_the_same_stories(folder: Path) -> None:
    data = load(folder).test
    found = dict(tasks(data))
    pairs = [("1", "8"), ("1", "11"), ("1", "12"), ("9", "10"), ("9", "13"), ("9", "14")]
    for (one, other), k in product(pairs, range(2, 11)):
        if f"{one}.{k}" in found:
            a, b = (data.select(found[f"{t}.{k}"]) for t in (one, other))
            np.testing.assert_array_equal(a.relations, b.relations)
            np.testing.assert_array_equal(a.target, b.target)
            assert a.names == b.names and a.stories != b.stories


def test_writing_resumes(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "8.4_test.csv").unlink()
    diagnosis.write_stories(json.loads(before["config.json"])["settings"], folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
