"""Experiments: the runs of each table and figure, their settings and their data."""

import hashlib
import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from ml_collections import ConfigDict

from clutrr_jax.experiment import SCALES, runs, select
from clutrr_jax.models import MODELS
from clutrr_jax.report.results import with_series
from clutrr_jax.run import identity
from generator.benchmark.release import CONFIGS as RELEASE
from generator.errors import InputError
from generator.paraphrases.bank import bank
from generator.stories.config import Config, parse_tasks
from tests.command_line import ROOT, launch

FILES = [path.stem for path in sorted((ROOT / "experiments").glob("*.py"))]
NO_EXPERIMENTS = {"__init__", "claims", "paper", "render", "views"}
CONFIGS = {
    name: import_module(f"experiments.{name}").get_config()
    for name in FILES
    if name not in NO_EXPERIMENTS
}
WITH_SCALES = [name for name in CONFIGS if "experiment" in CONFIGS[name]]
WITH_PUBLISHED_TABLE = {"table2", "table4", "workshop_table1"}  # the others are figures, or new


def with_scale(name: str, scale: str, /, **changes: object) -> ConfigDict:
    config = CONFIGS[name].copy_and_resolve_references()
    config.update({"scale": scale} | changes)
    return config


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", WITH_SCALES)
def test_runs_fill_the_table(name: str, scale: str) -> None:
    config = with_scale(name, scale)
    found, definition = runs(config), config.experiment
    assert len({run.name for run in found}) == len(found)
    for run in found:
        train = run.config.train
        assert train.replicas == 1 and (train.epochs or train.steps) >= 1
        assert train.selection == ("dev_accuracy" if scale == "paper" else "last")
        tests = {test for tests in run.training.tests_by_cell.values() for test in tests}
        if name == "workshop_table1":
            assert tests == {f"1.{k}" for k in run.config.generate.test.split(",")}
        elif name == "star":
            assert tests == {f"b{test}" for test in run.config.generate.test.split(",")}
        elif name != "diagnosis":  # see test_diagnosis.py
            assert tests == set(map(str, parse_tasks(run.config.generate.test)))
        if scale == "paper":
            sets_steps = "steps" in MODELS[run.model].train
            assert train.epochs == (None if sets_steps else 100)
        else:
            assert train.epochs == (1 if scale == "smoke" else None)
        assert run.dataset == f"{run.training.name}/{run.config.generate.seed}"
    keys = {with_series(key, run.model) for run in found for key in run.training.tests_by_cell}
    assert bool(definition.published) == (name in WITH_PUBLISHED_TABLE)
    if name in WITH_PUBLISHED_TABLE:
        assert keys <= set(definition.published)
    if scale == "paper":
        assert len(found) == 10 * len(definition.trainings) * len(definition.models)
        assert set(definition.published) in (keys, set())


def test_released_data_are_one_run_of_all_replicas(tmp_path: Path) -> None:
    paths = [tmp_path / "data_089907f8.zip", tmp_path / "data_db9b8f04"]
    with pytest.raises(InputError, match=r"no released data_089907f8\.zip in it"):
        runs(with_scale("figure5", "laptop", data=str(paths[0])))
    for path in paths:
        path.touch()
    found = runs(with_scale("figure5", "laptop", data=str(tmp_path), models="gat"))
    assert [run.name for run in found] == ["k23/gat", "k234/gat"]
    assert [run.config.data for run in found] == list(map(str, paths))
    assert [run.config.train.replicas for run in found] == [10, 10]
    # A single data set selects the training that uses it.
    for path, name in zip(paths, ("k23/gat", "k234/gat"), strict=True):
        (run,) = runs(with_scale("figure5", "laptop", data=str(path), models="gat"))
        assert (run.name, run.config.data) == (name, str(path))
    with pytest.raises(InputError, match="no released data for supporting"):
        runs(with_scale("table4", "smoke", data=str(tmp_path)))


def test_given_settings_override_the_scale() -> None:
    config = with_scale("figure5", "smoke", models="gat,prover,gat")
    config.train.replicas, config.gat.train.replicas, config.train.epochs = 2, 3, 7
    config.prover.train.epochs = 5
    config.generate.ambiguous = "keep"
    found = runs(config)
    assert len(found) == 2 * (3 + 2)
    assert {(run.model, run.config.train.epochs) for run in found} == {("gat", 7), ("prover", 5)}
    assert all(run.config.generate.train_rows == 60 for run in found)
    assert all(run.config.generate.ambiguous == "keep" for run in found)


@pytest.mark.parametrize(
    ("scale", "setting", "value", "gat", "bilstm"),
    [
        ("paper", "seed", 0, (100, 10_000, 1_000), (None, 20_000, 3_000)),
        ("paper", "train.epochs", 7, (7, 10_000, 1_000), (7, 20_000, 3_000)),
        ("paper", "gat.train.steps", 9, (None, 9, 1_000), (None, 20_000, 3_000)),
        ("paper", "bilstm_mean.train.epochs", 5, (100, 10_000, 1_000), (5, 20_000, 3_000)),
        ("smoke", "gat.train.patience", 9, (None, 10_000, 9), (1, 20_000, 3_000)),
        ("laptop", "train.steps", 9, (None, 9, 1_000), (None, 9, 3_000)),
    ],
)
def test_epochs_steps_and_patience_of_a_run(
    scale: str, setting: str, value: int, gat: tuple, bilstm: tuple
) -> None:
    config = with_scale("figure5", scale, models="gat,bilstm_mean")
    config.update_from_flattened_dict({setting: value})
    for run in runs(config):
        train = run.config.train
        expected = gat if run.model == "gat" else bilstm
        assert (train.epochs, train.steps, train.patience) == expected


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("table2", {"scale": "huge"}, 'scale "huge": expected one of paper, laptop, smoke'),
        ("table2", {"only": "nothing*"}, 'only "nothing*": no such run'),
        ("table4", {"generate.bank": "b.json"}, "or the language paraphrase instead of"),
    ],
)
def test_wrong_setting_is_an_error(name: str, changes: dict, expected: str) -> None:
    config = with_scale(name, "laptop")
    config.update_from_flattened_dict(changes)
    with pytest.raises(InputError, match=re.escape(expected)):
        select(config.only, runs(config))


# Digests of the names, settings, released data and cells of all runs: folders can be resumed.
DIGESTS = {
    "diagnosis": "9ce76862", "figure5": "b9bb0957", "figure6": "f30d2b49", "figure7": "59967efe",
    "robustness": "06523a1c", "scaling": "957aa511", "star": "fd473880", "table2": "0ea5a6db",
    "table4": "5f2f1685", "wordings": "a1ec051a", "workshop_table1": "1558c5f4",
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_SCALES)
def test_runs_are_those_of_version_0_2_0(name: str) -> None:
    about = [
        [run.name, identity(run), run.training.release, str(run.training.tests_by_cell)]
        for run in runs(with_scale(name, "laptop"))
    ]
    text = json.dumps(about, sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:8] == DIGESTS[name]


@pytest.mark.parametrize("name", ["table1", "workshop_table2"])
def test_counts_are_reported_with_the_papers(name: str, tmp_path: Path) -> None:
    done = launch(f"--workdir={tmp_path}", config=name)
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert done.code == 0 and len({row["name"] for row in rows}) == len(rows) > 5
    if name == "workshop_table2":
        assert "2,814" in done.out and all(row["measured"] == row["published"] for row in rows)


def test_figure6_has_the_same_paraphrases_in_training_and_tests(tmp_path: Path) -> None:
    """A fifth of all paraphrases. Clauses of k = 3 are still held out."""
    write_stories = CONFIGS["figure6"].experiment.write_stories
    settings = Config(train_rows=20, test_rows=20).to_json()
    write_stories(settings, tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    assert not written["held_out"]["paraphrases"] and written["held_out"]["clauses"]["3"]
    used = json.loads((tmp_path / "bank.json").read_text())["templates"]
    fraction = sum(map(len, used.values())) / sum(map(len, bank().templates.values()))
    assert 0.15 < fraction < 0.25
    write_stories(settings, tmp_path.rename(tmp_path.with_name("moved")))  # resumes


def test_workshop_training_has_stories_of_one_length(tmp_path: Path) -> None:
    run = runs(with_scale("workshop_table1", "smoke"))[0]
    CONFIGS["workshop_table1"].experiment.write_stories(run.config.generate.to_dict(), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"config.json", "M3_train.csv", *(f"M{k}_test.csv" for k in range(3, 7))}


def test_the_leaderboard_trains_on_the_benchmark_release() -> None:
    config = CONFIGS["leaderboard"]
    assert Config.from_json(config.generate.to_dict()) == RELEASE["gen23"]
    assert len(runs(config)) == 12
