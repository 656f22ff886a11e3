"""The settings that reach the runs of an experiment, and the tests of its table, by hand."""

from pathlib import Path

import pytest

from clutrr_jax.experiment import MODEL, Run, runs
from clutrr_jax.settings import train_settings
from tests.experiments.test_experiments import with_scale

LENGTHS = (2, 3, 4, 5, 6, 7, 8, 9, 10)
USUAL = {
    "train": "1.2,1.3", "test": "1.2,1.3,1.4,1.5,1.6,1.7,1.8,1.9,1.10", "train_rows": 5000,
    "test_rows": 100, "language": "paraphrase", "hold_out": "clauses,paraphrases",
    "entities": "redrawn",
}  # fmt: skip
LONG_TRAIN = {"train": "1.2,1.3,1.4"}
ALL_NOISE = {"test": "1.2,1.3,2.2,2.3,3.2,3.3,4.2,4.3"}
BABI = ALL_NOISE | {"language": "synthetic"}
LARGE = {"test": "1.4,1.7,1.10", "test_rows": 200}
EVERY_TEST = {
    "test": "1.2,1.3,1.4,1.5,1.6,1.7,1.8,1.9,1.10,2.2,2.3,2.4,2.5,2.6,2.7,2.8,2.9,2.10,"
    "3.2,3.3,3.4,3.5,3.6,3.7,3.8,3.9,3.10,4.2,4.3,4.4,4.5,4.6,4.7,4.8,4.9,4.10,"
    "5.2,5.3,5.4,5.5,5.6,5.7,5.8,5.9,5.10"
}

# (experiment, training, its released data set, settings that are not the usual ones)
RUNS = [
    ("figure5", "k23", "data_089907f8", {}),
    ("figure5", "k234", "data_db9b8f04", LONG_TRAIN),
    ("figure6", "k23", "", {}),
    ("figure6", "k234", "", LONG_TRAIN),
    ("figure7", "fixed", "data_089907f8", {"entities": "fixed"}),
    ("figure7", "redrawn", "data_089907f8", {"entities": "redrawn"}),
    ("figure7", "learned", "data_089907f8", {"entities": "learned"}),
    ("table2", "clean", "data_7c5b0e70", ALL_NOISE | {"train": "1.2,1.3"}),
    ("table2", "supporting", "data_06b8f2a1", ALL_NOISE | {"train": "2.2,2.3"}),
    ("table2", "irrelevant", "data_523348e6", ALL_NOISE | {"train": "3.2,3.3"}),
    ("table2", "disconnected", "data_d83ecc3e", ALL_NOISE | {"train": "4.2,4.3"}),
    ("table4", "supporting", "", BABI | {"train": "2.2,2.3"}),
    ("table4", "irrelevant", "", BABI | {"train": "3.2,3.3"}),
    ("table4", "disconnected", "", BABI | {"train": "4.2,4.3"}),
    ("scaling", "1000", "", LARGE | {"train_rows": 500}),
    ("scaling", "10000", "", LARGE | {"train_rows": 5_000}),
    ("scaling", "100000", "", LARGE | {"train_rows": 50_000}),
    ("robustness", "500", "", EVERY_TEST | {"train_rows": 500}),
    ("robustness", "2500", "", EVERY_TEST | {"train_rows": 2_500}),
    ("robustness", "10000", "", EVERY_TEST | {"train_rows": 10_000}),
]


def the_run(experiment: str, training: str) -> Run:
    """The only run of a GAT on this training."""
    config = with_scale(experiment, "laptop", models="gat")
    config.train.replicas = 1
    (run,) = (run for run in runs(config) if run.name == f"{training}/0/gat")
    return run


@pytest.mark.parametrize(("experiment", "training", "_", "changed"), RUNS)
def test_settings_of_a_run(experiment: str, training: str, _, changed: dict) -> None:
    config = the_run(experiment, training).config
    found = config.generate.to_dict() | {"entities": train_settings(config, "gat").entities}
    assert {name: found[name] for name in USUAL} == USUAL | changed


def test_the_runs_above_are_all() -> None:
    for experiment in {run[0] for run in RUNS}:
        trainings = with_scale(experiment, "laptop").experiment.trainings
        names = [training.name for training in trainings]
        assert names == [name for found, name, *_ in RUNS if found == experiment]


@pytest.mark.parametrize(("experiment", "training", "release", "_"), [r for r in RUNS if r[2]])
def test_released_data_set_of_a_run(
    experiment: str, training: str, release: str, _, tmp_path: Path
) -> None:
    for run in RUNS:
        (tmp_path / f"{run[2]}.zip").touch()
    found = runs(with_scale(experiment, "laptop", models="gat", data=str(tmp_path)))
    data = {run.name: run.config.data for run in found}
    assert data[f"{training}/gat"] == str(tmp_path / f"{release}.zip")


def test_other_trainings_have_no_released_data() -> None:
    for experiment in ("figure6", "table4", "scaling", "robustness"):
        trainings = with_scale(experiment, "laptop").experiment.trainings
        assert {training.release for training in trainings} == {""}


def of_lengths(panel: str) -> dict:
    return {(panel, k, MODEL): (f"1.{k}",) for k in LENGTHS}


def of_noises(train: str) -> dict:
    return {
        (train, "clean", MODEL): ("1.2", "1.3"),
        (train, "supporting", MODEL): ("2.2", "2.3"),
        (train, "irrelevant", MODEL): ("3.2", "3.3"),
        (train, "disconnected", MODEL): ("4.2", "4.3"),
    }


def of_rows(rows: str) -> dict:
    noises = {"clean": 1, "supporting": 2, "irrelevant": 3, "disconnected": 4, "all three": 5}
    return {
        (f"{rows}, {noise}", k, MODEL): (f"{t}.{k}",)
        for noise, t in noises.items()
        for k in LENGTHS
    }


@pytest.mark.parametrize(
    ("experiment", "training", "expected"),
    [
        ("figure5", "k23", of_lengths("2,3")),
        ("figure5", "k234", of_lengths("2,3,4")),
        ("figure6", "k23", of_lengths("2,3")),
        ("figure6", "k234", of_lengths("2,3,4")),
        ("figure7", "learned", {(MODEL, k, "learned"): (f"1.{k}",) for k in LENGTHS}),
        ("table2", "clean", of_noises("clean")),
        ("table2", "irrelevant", of_noises("irrelevant")),
        ("table4", "supporting", of_noises("supporting")),
        ("scaling", "1000", {(k, 1_000, MODEL): (f"1.{k}",) for k in (4, 7, 10)}),
        ("robustness", "500", of_rows("1,000")),
        ("robustness", "10000", of_rows("20,000")),
    ],
)
def test_tests_that_fill_the_table(experiment: str, training: str, expected: dict) -> None:
    assert the_run(experiment, training).training.tests_by_cell == expected
