"""The results of an experiment: its table, and the states of its runs."""

import json
import shutil
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from ml_collections import ConfigDict

from clutrr_jax.data.prepare import Prepared
from clutrr_jax.evaluation.scores import Kind, Score, Series, measure
from clutrr_jax.experiment import MODEL, SINGLE, Experiment, Training, runs
from clutrr_jax.report.accuracy import accuracy_table, difference
from clutrr_jax.report.results import averages, cell_row, collect, compared, table
from clutrr_jax.report.write import write_report
from experiments.figure5 import RELEASES
from experiments.published.ledger import CTP, ROWS
from generator.stories.config import Config
from generator.write import write_dataset
from tests.command_line import Done, error_of, launch
from tests.experiments.finished import finish
from tests.experiments.test_claims import cell, table_of
from tests.experiments.test_experiments import CONFIGS, with_scale
from tests.report.rows import paper, score_of

# Printed averages that are not the mean of their column.
WRONG_AVERAGES = {("table 2", "mac"), ("table 2", "bert"), ("table 4", "bert")}


def counts(count: int, *correct: int, task: str = "1.2", **about: int) -> Score:
    return score_of("gat", task, count, [*correct], **about)


def test_two_tests_of_a_cell_count_as_one() -> None:
    """The replicas answer 8, 9 and 7 of 10 stories, three of which not all of them."""
    found = measure([[counts(6, 6, 6, 5, clauses=3), counts(4, 2, 3, 2, ambiguous=2, clauses=2)]])
    assert (found.accuracy, found.replicas, found.count) == (pytest.approx(0.8), 3, 10)
    assert (found.ambiguous, found.clauses) == (2, 5)
    assert found.low < 0.8 < found.high and found.stderr == pytest.approx(0.1 / 3**0.5)


def test_replicas_with_own_data_sets_count_equally() -> None:
    """Also if their tests differ in size: accuracies .5 and .9, and 4 and 2 stories with several
    answers. Numbers are unknown if a file of version 0.2.0 is among them."""
    found = measure([[counts(10, 5, ambiguous=4)], [counts(30, 27, ambiguous=2)]])
    assert (found.accuracy, found.ambiguous) == (pytest.approx(0.7), 3)
    assert (found.count, found.replicas) == (20, 2)
    old = replace(counts(30, 27), ambiguous=None, clauses=None, weight=None)
    with_old = measure([[counts(10, 5, ambiguous=4)], [old]])
    assert (with_old.ambiguous, with_old.clauses) == (None, None)
    assert found.stderr == pytest.approx(0.2)  # standard deviation .4 / sqrt(2), over sqrt(2)


def test_a_row_names_the_tests_that_were_counted() -> None:
    """Released test files lack some of those of the table; a cell without a test names them all."""
    experiment = with_scale("table2", "laptop", models="gat").experiment
    (train,) = (one for one in experiment.trainings if one.name == "clean")
    tests = [counts(10, 9, task=task) for task in ("1.2", "1.3", "2.3")]
    rows = table(experiment, [("", train, tests)])["rows"]
    measured = [row for row in rows if row["kind"] == "model" and not row["average"]]
    assert {row["test"]: row["task"] for row in measured if row["train"] == "clean"} == {
        "clean": "1.2,1.3", "supporting": "2.3", "irrelevant": "3.2,3.3",
        "disconnected": "4.2,4.3",
    }  # fmt: skip


def test_cells_are_compared_on_the_lengths_that_all_have() -> None:
    """Only the diagonal has tests of k = 2. Cells by k have no length in common."""
    tests = [counts(10, n, task=task) for task, n in (("1.2", 9), ("1.3", 5), ("2.3", 6))]
    pooled = {("clean", "clean", MODEL): ("1.2", "1.3"), ("clean", "sup", MODEL): ("2.2", "2.3")}
    by_k = {("clean", k, MODEL): (f"1.{k}",) for k in (2, 3)}
    for tests_by_cell, expected in ((pooled, [0.5, 0.6]), (by_k, [0.9, 0.5])):
        training = Training("a", {}, tests_by_cell)
        found = compared([("", training, tests)])
        assert [one.accuracy for one in found.values()] == expected


def test_seeds_are_those_of_all_tests_of_a_series() -> None:
    """A cell with one replica has the deviation of the others; a model with one in all of them has
    the interval of this training."""
    tests = [counts(100, 60, 80, task="1.2"), counts(100, 70, task="1.3")]
    rows = table(SINGLE, [("", SINGLE.trainings[0], tests)])["rows"]
    assert [row["replicas"] for row in rows] == [2, 1]
    assert rows[0]["seeds"] == rows[1]["seeds"] > 0.2
    alone = table(SINGLE, [("", SINGLE.trainings[0], tests[1:])])
    (row,) = alone["rows"]
    assert row["seeds"] is None and row["high"] - row["low"] < rows[1]["high"] - rows[1]["low"]
    assert "95 % interval (this training)" in str(accuracy_table(alone, intervals=True).texts())


@pytest.mark.parametrize(
    ("mean", "error", "disjoint"),
    [(0.5, 0, False), (0.52, 0, True), (0.52, 0.02, False), (0.52, None, True), (0.509, None, 0)],
)
def test_disjoint_intervals(mean: float, error: float | None, disjoint: bool) -> None:
    """Compares a measured accuracy with a published .50 with this error."""
    published = paper((), (), "gat", 0.5, error)
    assert difference(asdict(cell(mean)), published) == (mean - 0.5, disjoint)


def means_of(experiment: Experiment, *without: tuple) -> dict[tuple, dict]:
    """Averages by key, where published accuracies are the measured ones, without some cells."""
    columns = experiment.column_names
    series = [Series(name) for name in (*experiment.models, "gcn")]
    measured = [
        cell_row(columns, key, Series(key[2])) | asdict(cell)
        for key, cell in table_of(experiment.published).items()
        if key not in without
    ]
    rows = averages(experiment, series, measured)
    assert len(rows) == len(experiment.averages) * len(series)
    return {tuple(row[name] for name in columns): row for row in rows}


@pytest.mark.parametrize("name", ["table2", "table4", "workshop_table1"])
def test_averages_of_published_numbers_are_the_published_averages(name: str) -> None:
    experiment = CONFIGS[name].experiment
    for (panel, x, model), row in means_of(experiment).items():
        published = experiment.averages[panel, x].published
        if model == "gcn":  # neither published nor measured
            assert row["accuracy"] is None and model not in published
        else:
            is_wrong = (x, model) in WRONG_AVERAGES
            assert (abs(row["accuracy"] - published[model]) > 0.0051) == is_wrong


def test_average_needs_all_of_its_cells() -> None:
    """A cell of table 2 that is none of table 3 is missing."""
    found = means_of(CONFIGS["table2"].experiment, ("clean", "irrelevant", "gat"))
    rows = {(x, model): row for (_, x, model), row in found.items()}
    assert rows["table 2", "gat"]["accuracy"] is None
    assert rows["table 3", "gat"]["accuracy"] and rows["table 2", "rn"]["accuracy"]


def no_data(config: ConfigDict, folder: Path) -> Prepared:
    raise AssertionError("no run is finished")


def test_figure5_shows_published_rows_below_their_models(tmp_path: Path) -> None:
    config = with_scale("figure5", "laptop", models="gat,edge_lstm")
    references = config.experiment.references
    assert [r.row for r in references if r.shown] == list(CTP)
    results = write_report(config, runs(config), tmp_path, no_data)
    table = accuracy_table(results).texts()
    for train, release in RELEASES.items():
        rows = [r for r in ROWS if r.data.name == release and r.by_k and not r.differs]
        own, others = [], [row for row in rows if row.model not in ("gat", "edge_lstm")]
        for model in ("gat", "edge_lstm"):
            own += [model, *(row.label for row in rows if row.model == model)]
        labels = [line[1] for line in table if line[0] == train]
        assert labels == [*own, *dict.fromkeys(r.label for r in others)]
    text, page = ((tmp_path / name).read_text() for name in ("results.md", "report.html"))
    for reference in references:
        source = str(reference.row.source)
        assert source in text and json.dumps(source)[1:-1] in page


def write(config: ConfigDict, workdir: Path) -> tuple[dict, list[list[str]]]:
    """Returns the results and the table of finished runs."""
    results, _ = collect(config, runs(config), workdir)
    return results, accuracy_table(results).texts()


def test_row_of_a_published_table_has_error_and_stories(tmp_path: Path) -> None:
    """Two of three replicas have finished: .8 and .9 of 10 + 30 stories of their own."""
    config = with_scale("table2", "laptop", models="gat")
    config.train.replicas = 3
    first, second, *_ = runs(config)
    finish(tmp_path, first, [counts(10, 6, task="1.2"), counts(30, 26, task="1.3", ambiguous=6)])
    finish(tmp_path, second, [counts(10, 9, task="1.2"), counts(30, 27, task="1.3")])
    results, table = write(config, tmp_path)
    of_tests = ["stories", "clauses", "several answers"]
    assert table[0] == ["train", "test", "gat", "paper", "difference", *of_tests]
    assert table[1] == ["clean", "clean", ".85 ±.05", "1.00 ±.00", "-.15", "40", "40", "3"]
    row = results["rows"][0]
    assert row["replicas"] == 2 and row["count"] == 40
    assert row["ambiguous"] == 3
    assert row["stderr"] == pytest.approx(0.05)
    # Variance between the replicas .005, less that over 40 clauses: p (1 - p) is .24 and .1156 in
    # 10 and 30 stories, and .09. With one degree of freedom nothing is certain: there is no `*`.
    over_clauses = ((0.24 + 3 * 26 * 4 / 900) / 4 + 0.09) / 2 / 40
    assert row["seeds"] == pytest.approx(((0.005 - over_clauses) / 0.1275**2) ** 0.5)
    assert row["low"] < 0.5 and row["high"] > 0.98
    assert results["models"]["gat"]["replicas"] == 2


def test_models_stand_in_the_order_of_their_runs() -> None:
    """With their ensembles behind them, which models of one replica lack; baselines are last."""
    names = ("gat", "gat (ensemble of 2)", "rn", "given rules")
    kinds: tuple[Kind, ...] = ("model", "ensemble", "model", "baseline")
    series = [Series(name, kind, name.partition(" (")[0])
              for name, kind in zip(names, kinds, strict=True)]  # fmt: skip
    scores = [replace(counts(10, 5), series=series[i]) for i in (3, 1, 2, 0)]
    found = table(SINGLE, [("", SINGLE.trainings[0], scores)], [series[0], series[2]])
    assert [row["name"] for row in found["rows"]] == list(names)


def test_row_of_a_figure_has_errors_and_stories(tmp_path: Path) -> None:
    """Accuracies .7 and .9 at k = 2, and of one replica at k = 3."""
    config = with_scale("figure6", "laptop", models="gat")
    first, second, *_ = runs(config)
    finish(tmp_path, first, [counts(20, 14, task="1.2"), counts(10, 6, task="1.3", ambiguous=6)])
    finish(tmp_path, second, [counts(20, 18, task="1.2", ambiguous=8)])
    _, table = write(config, tmp_path)
    lines = {tuple(line[:2]): line[3:5] for line in table}
    assert lines["train k", "model"] == ["k=2", "k=3"]
    assert lines["2,3", "gat"] == [".80 ±.10", ".60"]
    assert lines["2,3", "several answers"] == ["4", "6"]
    assert lines["2,3", "stories"] == ["20", "10"]
    assert lines["2,3,4", "gat"] == ["", ""] and ("2,3,4", "several answers") not in lines


# Through launch.py


def run_table2(workdir: Path, data: Path, *arguments: str) -> Done:
    return launch(
        f"--workdir={workdir}", f"--config.data={data}", "--config.scale=smoke",
        "--config.models=gat", "--config.gat.node=4", "--config.gat.heads=2",
        "--config.gat.rounds=1", "--config.gat.steps=1", "--config.gat.readout=4",
        "--config.train.replicas=2", *arguments, config="table2",
    )  # fmt: skip


def states(workdir: Path) -> dict[str, str]:
    found = json.loads((workdir / "results.json").read_text())["runs"]
    return {run["name"]: run["state"] for run in found}


@pytest.fixture(scope="module")
def releases_like(tmp_path_factory) -> list[Path]:
    """Four small data sets named like the released ones. The second is damaged."""
    folder = tmp_path_factory.mktemp("releases")
    first, *others = (folder / name for name in import_module("experiments.table2").RELEASES)
    tests = "1.2,1.3,2.3,3.3,4.3"
    settings = {"train": "1.2,1.3", "test": tests, "train_rows": 50, "test_rows": 10}
    write_dataset(Config.from_json(settings), first)
    for other in others:
        shutil.copytree(first, other)
    (others[0] / "1.3_test.csv").write_text("damaged")
    return [first, *others]


@pytest.fixture(scope="module")
def partial(releases_like, tmp_path_factory) -> tuple[Path, Done]:
    """An experiment of four runs, one of which has failed."""
    workdir = tmp_path_factory.mktemp("grid")
    return workdir, run_table2(workdir, releases_like[0].parent)


def test_failed_run_is_reported_and_the_others_run(partial) -> None:
    workdir, done = partial
    assert done.code == 1 and "Traceback" not in done.err
    last = done.err.splitlines()[-1]
    assert last.startswith("failed: supporting/gat: ") and "1.3_test.csv" in last
    finished = {f"{noise}/gat": "finished" for noise in ("clean", "irrelevant", "disconnected")}
    assert states(workdir) == {"supporting/gat": "failed"} | finished
    results = json.loads((workdir / "results.json").read_text())
    rows = {(row["train"], row["test"]): row for row in results["rows"]
            if row["kind"] == "model" and not row["average"]}  # fmt: skip
    assert len(rows) == 16
    for (train, _), row in rows.items():
        assert (row["accuracy"] is None) == (train == "supporting")
    clean = rows["clean", "clean"]
    assert clean["count"] == 20 and clean["replicas"] == 2
    tests = json.loads((workdir / "clean" / "gat" / "model.json").read_text())["tests"]
    mean = np.mean([test["metrics"]["accuracy"]["replicas"] for test in tests[:2]])
    assert clean["accuracy"] == pytest.approx(mean)
    assert "3 of 4 runs are finished, 1 failed" in (workdir / "results.md").read_text()


def test_smoke_scale_judges_no_claims(partial, tmp_path: Path) -> None:
    workdir, done = partial
    assert json.loads((workdir / "results.json").read_text())["claims"] == {}
    for text in (done.out, (workdir / "results.md").read_text()):
        assert text.count("no claims are judged") == 1 and "supported" not in text
    config = with_scale("table2", "laptop", models="gat")
    write_report(config, runs(config), tmp_path, no_data)
    assert "*not measured*: the GAT outperforms" in (tmp_path / "results.md").read_text()


def test_experiment_resumes(partial, releases_like) -> None:
    workdir, _ = partial
    data = releases_like[0].parent
    only_report = run_table2(workdir, data, "--config.only=none")
    assert only_report.code == 0 and "Read" not in only_report.out
    assert states(workdir)["supporting/gat"] == "failed"
    finished = workdir / "clean" / "gat" / "predictions.csv"
    before = finished.stat().st_mtime_ns
    shutil.copy(releases_like[0] / "1.3_test.csv", releases_like[1] / "1.3_test.csv")
    job = run_table2(workdir, data, "--launcher=job", "--config.only", "supporting/gat")
    assert job.code == 0 and states(workdir)["supporting/gat"] == "failed"  # no new report
    done = run_table2(workdir, data, "--config.only=supp*")
    assert done.code == 0 and "supporting/gat: trained before" in done.out
    assert set(states(workdir).values()) == {"finished"}
    assert finished.stat().st_mtime_ns == before
    changed = error_of(run_table2(workdir, data, "--config.gat.node=8"))
    assert 'another configuration: gat.node was "4", now "8"' in changed
