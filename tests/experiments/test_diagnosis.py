"""The diagnosis experiment: its tests and its table."""

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
from clutrr_jax.models import MODELS
from clutrr_jax.report.results import collect
from experiments import diagnosis
from generator.paraphrases.load import load_bank
from generator.relations.kinship import RELATIONS
from generator.stories.config import Config
from generator.stories.hold_out import split_bank
from generator.stories.text import Bank
from tests.experiments.finished import finish
from tests.generator.test_write import read
from tests.report.rows import score_of

ROWS = 30
NAME = re.compile(r"\[[^\]]*\]|\{\d\}")
KEYS = list(product(diagnosis.KINDS, diagnosis.TESTS))  # ((clauses, words), k)


@pytest.fixture(scope="module")
def experiment():
    config = diagnosis.get_config()
    config.update({"scale": "smoke", "models": "reader_prover,mac"})
    return config, runs(config)


@pytest.fixture(scope="module")
def folder(experiment, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("diagnosis")
    settings = experiment[1][0].config.generate.to_dict() | {"train_rows": 300, "test_rows": ROWS}
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


def test_table_holds_the_accuracy_of_every_cell(experiment, tmp_path: Path) -> None:
    """Each model is right on another number of stories in each cell; each story is in one cell."""
    config, all_runs = experiment
    offsets = {}
    for run in all_runs:
        tests = []
        for offset, variant in enumerate(["", *MODELS[run.model].variants]):
            name = f"{run.model}: {variant}" if variant else run.model
            offsets[name] = offset
            for i, key in enumerate(KEYS):
                right = [(i + offset) % (ROWS + 1)]
                tests += [score_of(name, test, ROWS, right, 0.2, 1.0)
                          for test in diagnosis.tests(*key)]  # fmt: skip
        finish(tmp_path, run, tests)
    results, _ = collect(config, all_runs, tmp_path)
    columns = config.experiment.column_names
    measured = {tuple(row[name] for name in columns): row for row in results["rows"]}
    assert len(offsets) == 5 and len(measured) == len(KEYS) * 5
    for name, offset in offsets.items():
        stories = 0
        for i, (kind, k) in enumerate(KEYS):
            row = measured[diagnosis.panel(kind), k, name]
            assert (row["accuracy"] is not None) == bool(diagnosis.tests(kind, k))
            if row["accuracy"] is not None:
                stories += row["count"]
                assert row["accuracy"] * ROWS == pytest.approx((i + offset) % (ROWS + 1))
        assert stories == ROWS * sum(len(lengths) for _, lengths in diagnosis.KINDS.values())
