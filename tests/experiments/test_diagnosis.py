"""Reading error and reasoning error apart: what the tests hold, and how the table is filled."""

import csv
import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import tasks
from clutrr_jax.evaluation.metrics import score
from clutrr_jax.evaluation.predictions import Predictions, prediction_file, write_predictions
from clutrr_jax.models import MODELS
from experiments import diagnosis
from experiments.grid import definition, report
from generator.config import Config
from generator.hold_out import split_bank
from generator.kinship import RELATIONS
from generator.paraphrases.load import load_bank
from generator.text import Bank

ROWS = 30
NAME = re.compile(r"\[[^\]]*\]|\{\d\}")


@pytest.fixture(scope="module")
def cells():
    config = diagnosis.get_config()
    config.models = "reader_prover,mac"
    config.update({"scale": "smoke"})
    return config, definition.cells(config)


@pytest.fixture(scope="module")
def folder(cells, tmp_path_factory) -> Path:
    found = tmp_path_factory.mktemp("diagnosis")
    settings = cells[1][0].config.generate.to_dict() | {"train_rows": 300, "test_rows": ROWS}
    diagnosis.write(settings, found)
    return found


def shape_of(text: str) -> set[str]:
    """Its sentences without names."""
    return {NAME.sub("_", part) for part in re.split(r"(?<=[.!?])\s+", text.strip())}


def bank_shapes(bank: Bank) -> set[str]:
    return {part for pool in bank.templates.values() for text in pool for part in shape_of(text)}


def test_tests_show_and_hold_out_what_they_say(cells, folder: Path) -> None:
    """Of every story of every test: its clause and its sentences, by the names of the cells."""
    notes = json.loads((folder / "config.json").read_text())
    held_clauses = set(notes["held_out"]["clauses"]["3"])
    assert len(held_clauses) > 10
    config = Config.from_json(notes["settings"])
    banks = split_bank(load_bank(config), config)
    shown, held = bank_shapes(banks.train), bank_shapes(banks.test)
    with (folder / "1.2,1.3_train.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            assert shape_of(row["story"]) <= shown and row["f_comb"] not in held_clauses
    data = load(folder).test
    found = dict(tasks(data))
    seen, fresh = set(), {}
    for (clauses, paraphrases), k in product(diagnosis.KINDS, diagnosis.TESTS):
        for test in diagnosis.tests((clauses, paraphrases), k):
            seen.add(test)
            assert len(found[test]) == ROWS
            for story in found[test]:
                part = shape_of(data.stories[story])
                assert part <= (shown if paraphrases == "seen" else held)
                fresh.setdefault(paraphrases, []).append(not part <= shown)
                start = data.edge_start[story]
                clause = "-".join(RELATIONS[r] for r in data.relations[start : start + k])
                if k == 3:
                    assert (clause in held_clauses) == (clauses == "new")
    # A held-out paraphrase of several facts may consist of sentences that are shown.
    assert not any(fresh["seen"]) and np.mean(fresh["new"]) > 0.9
    assert seen == set(found)
    assert len(data) == ROWS * len(seen)


def test_the_same_stories_are_told_in_both_kinds_of_paraphrases(folder: Path) -> None:
    data = load(folder).test
    found = dict(tasks(data))
    for one, other in [("1", "8"), ("9", "10")]:
        for k in range(2, 11):
            if f"{one}.{k}" in found:
                a, b = (data.select(found[f"{t}.{k}"]) for t in (one, other))
                np.testing.assert_array_equal(a.relations, b.relations)
                np.testing.assert_array_equal(a.target, b.target)
                assert a.names == b.names and a.stories != b.stories


def test_writing_goes_on_where_it_ended(cells, folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "8.4_test.csv").unlink()
    settings = json.loads((folder / "config.json").read_text())["settings"]
    diagnosis.write(settings, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_table_is_that_of_the_answers_and_adds_up(cells, folder, tmp_path: Path) -> None:
    """A model is right on as many stories of each cell as its place among the cells; the counts of
    the cells are those of the tests, and each story of the data set is in one cell."""
    config, runs = cells
    data = load(folder).test
    found = dict(tasks(data))
    keys = [(kind, k) for kind, k in product(diagnosis.KINDS, diagnosis.TESTS)]
    right = {key: number % (ROWS + 1) for number, key in enumerate(keys)}
    series = {}
    for run in runs:
        rows = []
        names = ["", *MODELS[run.model].variants]
        assert len(names) == (4 if run.model == "reader_prover" else 1)
        for shift, variant in enumerate(names):
            said = (data.target + 1) % len(RELATIONS)
            for (kind, k), count in right.items():
                for test in diagnosis.tests(kind, k):
                    some = found[test][: (count + shift) % (ROWS + 1)]
                    said[some] = data.target[some]
            predictions = Predictions(said[None], said[None], np.ones((1, len(data))))
            place = tmp_path / run.name / run.model
            place.mkdir(parents=True, exist_ok=True)
            write_predictions(place / prediction_file(variant), predictions, data)
            name = f"{run.model}: {variant}" if variant else run.model
            series[name] = shift
            rows += [row.__dict__ for row in score(name, predictions, data)]
        results = {"rows": rows, "device": "a device", "wall_seconds": 1.0}
        (tmp_path / run.name / "results.json").write_text(json.dumps(results))
        (tmp_path / run.name / "report.html").write_text("")
    results, table = report.write(config, runs, tmp_path)
    measured = {
        tuple(row[h] for h in config.grid.heads): row["measured"] for row in results["rows"]
    }
    assert len(measured) == len(keys) * 5
    for name, shift in series.items():
        stories = 0
        for kind, k in keys:
            cell = measured[diagnosis.panel(kind), k, name]
            if not diagnosis.tests(kind, k):
                assert cell is None
                continue
            stories += cell["stories"]
            assert cell["mean"] * ROWS == pytest.approx((right[kind, k] + shift) % (ROWS + 1))
        assert stories == len(data)
    assert (tmp_path / "curve.png").stat().st_size > 10_000
    text = (tmp_path / "results.md").read_text()
    assert "every clause of k > 3 is new" in text and "paper" not in text
    assert table[0] == ["tests", "model", *(f"k = {k}" for k in range(2, 11))]
    lines = {(line[0], line[1]): line[2:] for line in table[1:]}
    assert lines["seen clauses, new words", "mac"][2:] == [""] * 7
    assert "" not in lines["new clauses, new words", "reader_prover: gold graph"][1:]
    assert lines["new clauses, seen words", "stories"] == ["", *[str(ROWS)] * 8]
