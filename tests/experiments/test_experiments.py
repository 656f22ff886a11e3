"""Tables and figures of the papers: their runs and their reports."""

import json
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from ml_collections import ConfigDict

from clutrr_jax.models import MODELS
from clutrr_jax.training.settings import train_settings
from experiments.grid import claims, definition, report
from experiments.grid.measured import (
    Measured,
    Result,
    Table,
    intervals_disjoint,
    measure,
    published_interval,
)
from experiments.published.accuracy import Accuracy
from experiments.published.clutrr import TABLE_2, TABLE_3, TABLE_4, WORKSHOP_TABLE_1
from generator.config import Config, parse_tasks
from generator.errors import InputError
from generator.paraphrases.bank import bank
from generator.write import write_dataset
from tests.command_line import ROOT, Done, error_of, launch
from tests.experiments.test_published import WRONG_AVERAGES

FILES = [path.stem for path in sorted((ROOT / "experiments").glob("*.py"))]
NO_EXPERIMENTS = {"__init__", "base", "loader"}
CONFIGS = {
    name: import_module(f"experiments.{name}").get_config()
    for name in FILES
    if name not in NO_EXPERIMENTS
}
GRIDS = [name for name in CONFIGS if "grid" in CONFIGS[name]]
ALIASES = {"table3", "workshop_figure2"}


def with_scale(name: str, scale: str, /, **changes: object) -> ConfigDict:
    config = CONFIGS[name].copy_and_resolve_references()
    config.update({"scale": scale} | changes)
    return config


def test_every_table_and_figure_has_a_file() -> None:
    assert set(GRIDS) == ALIASES | {
        "figure5", "figure6", "figure7", "scaling", "table2", "table4", "workshop_table1",
        "diagnosis", "robustness",
    }  # fmt: skip
    assert set(CONFIGS) - set(GRIDS) == {"table1", "workshop_table2", "single", "demo"}


@pytest.mark.parametrize("scale", definition.SCALES)
@pytest.mark.parametrize("name", sorted(set(GRIDS) - ALIASES))
def test_cells_are_runs_that_fill_the_table(name: str, scale: str) -> None:
    config = with_scale(name, scale)
    cells = definition.cells(config)
    grid = config.grid
    assert len({cell.name for cell in cells}) == len(cells)
    for cell in cells:
        assert cell.model in MODELS and cell.config.models == cell.model
        assert not {"grid", "scale", "only"} & set(cell.config)
        train = train_settings(cell.config, cell.model)
        assert train.replicas == 1 and (train.epochs or train.steps) >= 1
        assert train.selection == ("dev_accuracy" if scale == "paper" else "dev_loss")
        tests = {test for tests in cell.tests_by_cell.values() for test in tests}
        if name != "diagnosis":  # see test_diagnosis.py
            generated = cell.config.generate.test
            is_2018 = name == "workshop_table1"
            assert tests == (
                {f"1.{k}" for k in generated.split(",")}
                if is_2018
                else set(map(str, parse_tasks(generated)))
            )
        if scale == "paper":
            sets_steps = "steps" in MODELS[cell.model].config.get("train", {})
            assert train.epochs == (None if sets_steps else 100)
        else:
            assert train.epochs == (1 if scale == "smoke" else None)
    seeds = {(cell.name.rpartition("/")[0], cell.config.generate.seed) for cell in cells}
    assert len(seeds) == len(cells)
    keys = {key for cell in cells for key in cell.tests_by_cell}
    assert keys <= set(grid.published) or not grid.published
    if scale == "paper":
        assert len(cells) == 10 * len(grid.trainings) * len(grid.models)
        assert keys == set(grid.published) or not grid.published


def test_released_data_are_one_run_of_all_replicas(tmp_path: Path) -> None:
    paths = [tmp_path / "data_089907f8.zip", tmp_path / "data_db9b8f04"]
    with pytest.raises(InputError, match="cannot be read"):
        definition.cells(with_scale("figure5", "laptop", data=str(paths[0])))
    for path in paths:
        path.touch()
    cells = definition.cells(with_scale("figure5", "laptop", data=str(tmp_path), models="gat"))
    assert [cell.name for cell in cells] == ["k23/gat", "k234/gat"]
    assert [cell.config.data for cell in cells] == list(map(str, paths))
    assert [train_settings(cell.config, "gat").replicas for cell in cells] == [10, 10]
    # A single data set selects the training that uses it.
    for path, name in zip(paths, ("k23/gat", "k234/gat"), strict=True):
        (cell,) = definition.cells(with_scale("figure5", "laptop", data=str(path), models="gat"))
        assert (cell.name, cell.config.data) == (name, str(path))
    with pytest.raises(InputError, match="no released data for supporting"):
        definition.cells(with_scale("table4", "smoke", data=str(tmp_path)))


def test_given_settings_override_the_scale() -> None:
    config = with_scale("figure5", "smoke", models="gat,prover,gat")
    config.train.replicas, config.gat.train.replicas, config.train.epochs = 2, 3, 7
    config.prover.train.epochs = own = 5
    config.generate.ambiguous = "keep"
    cells = definition.cells(config)
    assert len(cells) == 2 * (3 + 2)
    assert {(c.model, train_settings(c.config, c.model).epochs) for c in cells} == {
        ("gat", 7), ("prover", own),
    }  # fmt: skip
    assert all(cell.config.generate.train_rows == 60 for cell in cells)
    assert all(cell.config.generate.ambiguous == "keep" for cell in cells)
    config = with_scale("scaling", "laptop", models="gat,prover")
    config.gat.train.epochs = config.prover.train.epochs = own
    assert {train_settings(c.config, c.model).epochs for c in definition.cells(config)} == {own}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"scale": "huge"}, 'scale "huge": expected one of paper, laptop, smoke'),
        ({"models": "gta"}, 'no model "gta"'),
        ({"only": "nothing*"}, r'only "nothing\*": no such run'),
        ({"data": "nowhere"}, "nowhere: no data_7c5b0e70.zip in it"),
    ],
)
def test_wrong_setting_is_an_error(changes: dict[str, str], expected: str) -> None:
    config = with_scale("table2", "smoke", **changes)
    with pytest.raises(InputError, match=expected):
        definition.select(config, definition.cells(config))


@pytest.mark.parametrize(
    ("name", "scale", "setting", "value", "default"),
    [
        ("table2", "laptop", "generate.seed", 77, "0"),
        ("table2", "laptop", "generate.test", "1.2", "1.2,1.3"),
        ("scaling", "laptop", "generate.train_rows", 50, "5000"),
        ("figure5", "smoke", "generate.train_rows", 500, "5000"),
        ("workshop_table1", "smoke", "generate.train_rows", 500, "4000"),
        ("workshop_table1", "laptop", "generate.max_child", 5, "4"),
    ],
)
def test_settings_that_the_grid_decides_are_refused(name, scale, setting, value, default) -> None:
    config = with_scale(name, scale)
    config.update_from_flattened_dict({setting: value})
    with pytest.raises(InputError) as error:
        definition.cells(config)
    assert str(error.value).startswith(f'{setting} "{value}": expected to be left at "{default}')


def test_the_length_of_training_is_reported_for_each_model() -> None:
    config = with_scale("scaling", "laptop", models="gat,epignn")
    config.gat.train.epochs = 12
    models = report.collect(config, definition.cells(config), Table(), Path("nowhere"))["models"]
    assert models["gat"] == {"replicas": 1, "length": "12 epochs"}
    assert models["epignn"] == {"replicas": 1, "length": "at most 2000 steps"}


@pytest.mark.parametrize("name", ["table1", "workshop_table2"])
def test_counts_are_reported_with_the_papers(name: str, tmp_path: Path) -> None:
    done = launch(f"--workdir={tmp_path}", config=name)
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert done.code == 0 and len({row["name"] for row in rows}) == len(rows) > 5
    if name == "workshop_table2":
        assert "2,814" in done.out and all(row["measured"] == row["published"] for row in rows)


def test_figure6_has_the_same_paraphrases_in_training_and_tests(tmp_path: Path) -> None:
    """A fifth of all paraphrases. Clauses of k = 3 are still held out."""
    write_stories = CONFIGS["figure6"].grid.write_stories
    settings = Config(train_rows=20, test_rows=20).to_json()
    write_stories(settings, tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    assert not written["held_out"]["paraphrases"] and written["held_out"]["clauses"]["3"]
    used = json.loads((tmp_path / "bank.json").read_text())["templates"]
    fraction = sum(map(len, used.values())) / sum(map(len, bank().templates.values()))
    assert 0.15 < fraction < 0.25
    write_stories(settings, tmp_path.rename(tmp_path.with_name("moved")))  # resumes


def test_workshop_training_has_stories_of_one_length(tmp_path: Path) -> None:
    cell = definition.cells(with_scale("workshop_table1", "smoke"))[0]
    CONFIGS["workshop_table1"].grid.write_stories(cell.config.generate.to_dict(), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"M3_train.csv", *(f"M{k}_test.csv" for k in range(3, 7))}


# The measured table


def test_one_run_of_many_replicas_equals_many_runs_of_one() -> None:
    correct = np.array([8, 9, 7])
    one = measure([Result(correct, 10, 0.9)])
    many = measure([Result(correct[i : i + 1], 10, 0.9) for i in range(3)])
    assert one == many
    assert (one.mean, one.replicas, one.stories) == (pytest.approx(0.8), 3, 10)
    assert one.low < 0.8 < one.high


def cell(mean: float, error: float | None = 0.0) -> Measured:
    low, high = published_interval(Accuracy(mean, error))
    return Measured(mean, error, low, high, 200, 10, 1.0)


@pytest.mark.parametrize(
    ("mean", "error", "disjoint"),
    [(0.5, 0, False), (0.52, 0, True), (0.52, 0.02, False), (0.52, None, True), (0.509, None, 0)],
)
def test_disjoint_intervals(mean: float, error: float | None, disjoint: bool) -> None:
    """Compares a measured accuracy with a published .50 with this error."""
    assert intervals_disjoint(cell(mean), Accuracy(0.5, error)) == disjoint


def table_of(published: dict) -> Table:
    return Table({key: cell(share.mean, share.error or 0) for key, share in published.items()})


def opposite(published: dict) -> dict:
    return {key: Accuracy(1 - share.mean, share.error) for key, share in published.items()}


@pytest.mark.parametrize(
    ("published", "contrary", "stated"),
    [
        (TABLE_2 | TABLE_3, opposite(TABLE_2 | TABLE_3), claims.TABLE_2),
        (TABLE_4, TABLE_3, claims.TABLE_4),
        (WORKSHOP_TABLE_1, opposite(WORKSHOP_TABLE_1), claims.WORKSHOP_TABLE_1),
    ],
)
def test_published_numbers_support_the_claims(published: dict, contrary: dict, stated) -> None:
    for verdict in claims.verdicts(stated, table_of(published)).values():
        assert not verdict["not supported"] and not verdict["not measured"]
    for verdict in claims.verdicts(stated, table_of(contrary)).values():
        assert len(verdict["not supported"]) > 2 * len(verdict["supported"])
    for verdict in claims.verdicts(stated, Table()).values():
        assert not verdict["supported"] and not verdict["not supported"]


def curve(level: float, slope: float, long: float | None = None) -> Callable[[str, int], float]:
    """Accuracy that falls by `slope` per k beyond training, by `long` after k = 2, 3, 4."""

    def accuracy(train: str, k: int) -> float:
        longest = int(train[-1])
        fall = slope if longest == 3 or long is None else long
        return level - fall * max(0, k - longest)

    return accuracy


def figure5(**models: Callable[[str, int], float]) -> Table:
    return Table({
        (train, k, model): cell(accuracy(train, k))
        for model, accuracy in models.items()
        for train in claims.TRAINS
        for k in claims.LENGTHS
    })  # fmt: skip


PAPER = {"gat": curve(1.0, 0.08), "bilstm_mean": curve(0.6, 0.05)}


@pytest.mark.parametrize(
    ("claim", "models"),
    [
        (claims.gat_near_perfect, PAPER | {"gat": curve(0.9, 0.08)}),
        (claims.text_models_below_gat, PAPER | {"bilstm_mean": curve(1.0, 0.08)}),
        (claims.monotonic, PAPER | {"gat": lambda train, k: 1.0 - 0.5 * (k == 6)}),
        (claims.monotonic, PAPER | {"gat": curve(1.0, 0.0)}),
        (claims.all_gain, PAPER | {"bilstm_mean": curve(0.6, 0.02, 0.08)}),
        (claims.gat_gains_most, PAPER | {"bilstm_mean": curve(0.6, 0.05, 0.01)}),
        (claims.gat_generalises_better, PAPER | {"gat": curve(0.55, 0.08)}),
    ],
)
def test_claims_of_figure5_hold_in_the_paper_and_can_fail(claim, models: dict) -> None:
    assert claim(figure5(**PAPER)) and not claim(figure5(**models))
    with pytest.raises(KeyError):
        claim(Table())


def test_claims_of_figures_6_and_7_can_hold_and_fail() -> None:
    near = {"gat": curve(0.9, 0.05), "bilstm_mean": curve(0.85, 0.05)}
    assert claims.text_models_competitive(figure5(**near))
    assert not claims.text_models_competitive(figure5(**PAPER))
    means = {("gat", "fixed"): 0.8, ("gat", "redrawn"): 0.81, ("gat", "learned"): 0.79,
             ("rn", "fixed"): 0.6, ("rn", "redrawn"): 0.58, ("rn", "learned"): 0.55}  # fmt: skip
    for change, holds in (({}, True), ({("rn", "learned"): 0.7, ("gat", "fixed"): 0.9}, False)):
        table = Table({
            (model, k, policy): cell(mean)
            for (model, policy), mean in (means | change).items()
            for k in claims.LENGTHS
        })  # fmt: skip
        assert claims.fixed_best_for_text_models(table) == holds
        assert claims.no_difference_to_gat(table) == holds


@pytest.mark.parametrize("name", ["table2", "table4", "workshop_table1"])
def test_averages_of_published_numbers_are_the_published_averages(name: str) -> None:
    grid = CONFIGS[name].grid
    series = [*grid.models, "gcn"]
    rows = report.averages(grid, series, table_of(grid.published))
    assert len(rows) == len(grid.averages) * len(series)
    for row in rows:
        if row["model"] == "gcn":  # neither published nor measured
            assert row["measured"] is row["published"] is None
        else:
            wrong = (row[grid.column_names[1]], row["model"]) in WRONG_AVERAGES
            assert abs(row["difference"]) < (0.055 if wrong else 0.0051)
            assert row["difference"] == row["measured"]["mean"] - row["published"]["mean"]


def test_average_needs_all_of_its_cells() -> None:
    grid = CONFIGS["table2"].grid
    table = table_of(grid.published)
    del table["clean", "irrelevant", "gat"]  # not a cell of table 3
    rows = {(row["test"], row["model"]): row for row in report.averages(grid, ["gat", "rn"], table)}
    assert rows["table 2", "gat"]["measured"] is None and "difference" not in rows["table 2", "gat"]
    assert rows["table 2", "gat"]["published"]["mean"] == 0.77
    assert rows["table 3", "gat"]["measured"] and rows["table 2", "rn"]["measured"]


# Through launch.py


def run_table2(workdir: Path, data: Path, *arguments: str) -> Done:
    return launch(
        f"--workdir={workdir}", f"--config.data={data}", "--config.scale=smoke",
        "--config.models=gat", "--config.gat.node=4", "--config.gat.heads=2",
        "--config.gat.rounds=1", "--config.gat.steps=1", "--config.gat.readout=4",
        "--config.train.replicas=2", *arguments, config="table2",
    )  # fmt: skip


def states(workdir: Path) -> dict[str, str]:
    cells = json.loads((workdir / "results.json").read_text())["cells"]
    return {cell["name"]: cell["state"] for cell in cells}


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
    """A grid of four runs, one of which has failed."""
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
    rows = {(row["train"], row["test"]): row for row in results["rows"]}
    assert len(rows) == 16
    for (train, _), row in rows.items():
        assert (row["measured"] is None) == (train == "supporting")
    clean = rows["clean", "clean"]
    assert clean["measured"]["stories"] == 20 and clean["measured"]["replicas"] == 2
    assert clean["published"] == {"mean": 1.0, "error": 0.0}
    single = json.loads((workdir / "clean" / "gat" / "results.json").read_text())["rows"]
    mean = np.mean([row["accuracy"] for row in single if row["model"] == "gat"][:2])
    assert clean["measured"]["mean"] == pytest.approx(mean)
    assert clean["difference"] == pytest.approx(mean - 1)
    text = (workdir / "results.md").read_text()
    assert "scale smoke" in text and "3 of 4 runs are finished, 1 failed" in text
    assert "- supporting/gat: " in text and "| train | test | gat | paper | difference |" in text
    assert (workdir / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_smoke_scale_judges_no_claims(partial, tmp_path: Path) -> None:
    workdir, done = partial
    assert json.loads((workdir / "results.json").read_text())["claims"] == {}
    for text in (done.out, (workdir / "results.md").read_text()):
        assert text.count("no claims are judged") == 1 and "supported" not in text
    config = with_scale("table2", "laptop", models="gat")
    report.write(config, definition.cells(config), tmp_path)
    assert "*not measured*: the GAT outperforms" in (tmp_path / "results.md").read_text()


def test_grid_resumes(partial, releases_like) -> None:
    workdir, _ = partial
    data = releases_like[0].parent
    only_report = run_table2(workdir, data, "--config.only=none")
    assert only_report.code == 0 and "[1/" not in only_report.out
    assert states(workdir)["supporting/gat"] == "failed"
    finished = workdir / "clean" / "gat" / "report.html"
    before = finished.stat().st_mtime_ns
    shutil.copy(releases_like[0] / "1.3_test.csv", releases_like[1] / "1.3_test.csv")
    job = run_table2(workdir, data, "--launcher=job", "--config.only", "supporting/gat")
    assert job.code == 0 and states(workdir)["supporting/gat"] == "failed"  # no new report
    done = run_table2(workdir, data, "--config.only=supp*")
    assert done.code == 0 and "[1/" not in done.out
    assert set(states(workdir).values()) == {"finished"}
    assert finished.stat().st_mtime_ns == before
    changed = error_of(run_table2(workdir, data, "--config.gat.node=8"))
    assert 'another configuration: gat.node was "4", now "8"' in changed
