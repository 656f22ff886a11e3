"""The page of a grid in a browser, for a table and for a figure of the papers."""

import json
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from clutrr_jax.report.tables import format_fraction
from experiments import figure5, table2, workshop_table1
from experiments.grid import definition, report
from experiments.published.clutrr import MODELS_2018
from tests.report.conftest import EVIL, check_self_contained, find, select, table

pytestmark = pytest.mark.browser
FAILED, MISSING = 3, 5  # indices of runs


def write_run(folder: Path, cell: definition.Cell, rng: np.random.Generator) -> None:
    """Writes the files of a run that the report of its grid reads, with random accuracies."""
    tests = sorted({test for tests in cell.tests_by_cell.values() for test in tests})
    rows = [{"model": model, "task": test, "count": 10, "ceiling": 0.95,
             "story_variance": 0.21, "correct": [int(rng.binomial(10, 0.7))]}
            for model, test in tests]  # fmt: skip
    folder.mkdir(parents=True)
    results = {"rows": rows, "device": "2 cores", "wall_seconds": 1.0}
    (folder / "results.json").write_text(json.dumps(results))
    (folder / "report.html").write_text("<!DOCTYPE html><title>one run</title>")


def write_grid(experiment, models: str, workdir: Path, without: tuple[int, ...] = ()) -> Path:
    """Writes a grid and its report. The first run in `without` failed, the others were not run."""
    config = experiment.get_config()
    config.update({"scale": "laptop", "models": models})
    config.train.replicas = 1
    cells, rng = definition.cells(config), np.random.default_rng(0)
    for index, cell in enumerate(cells):
        if index not in without:
            write_run(workdir / cell.name, cell, rng)
        elif index == without[0]:
            (workdir / cell.name).mkdir(parents=True)
            (workdir / cell.name / report.ERROR).write_text(EVIL + "\n")
    report.write(config, cells, workdir)
    return workdir


@pytest.fixture(scope="module")
def robustness(tmp_path_factory) -> Path:
    workdir = tmp_path_factory.mktemp("table2")
    return write_grid(table2, "gat,bilstm_mean,gcn", workdir, (FAILED, MISSING))


@pytest.fixture(scope="module")
def curves(tmp_path_factory) -> Path:
    models = "bilstm_2018,gnn_2018_mean"
    return write_grid(workshop_table1, models, tmp_path_factory.mktemp("figure2"))


def read_results(workdir: Path) -> dict:
    return json.loads((workdir / "results.json").read_text())


def test_heat_maps_switch_between_measured_published_and_difference(open_page, robustness) -> None:
    page = open_page(robustness)
    assert not page.find_element(By.ID, "curves").is_displayed()  # noise types are not numbers
    rows = read_results(robustness)["rows"]
    row_of = {(row["model"], row["train"], row["test"]): row for row in rows}

    def expected(row: dict, choice: str) -> str:
        if choice != "difference":
            return format_fraction(row[choice]["mean"]) if row[choice] else ""
        if "difference" not in row:
            return ""
        sign = "-" if row["difference"] < 0 else "+"
        mark = "*" if row["intervals_disjoint"] else ""
        return sign + format_fraction(abs(row["difference"])) + mark

    for option in ("measured accuracy", "published accuracy", "difference"):
        select(page, "shown", option)
        assert table(page, "#heat-body") == [
            [train, *(expected(row_of[model, train, t], option.split()[0]) for t in table2.NOISE)]
            for model in ("gat", "bilstm_mean", "gcn")
            for train in table2.NOISE
        ]
    negative = find(page, "#heat-body td.below")
    assert len(negative) == sum(row.get("difference", 0) < 0 for row in rows) > 0
    assert all(cell.text.startswith("-") for cell in negative)


def test_a_column_of_differences_is_sorted_by_value(open_page, robustness) -> None:
    page = open_page(robustness)
    header = find(page, "#table-body th")
    column = next(i for i, cell in enumerate(header) if cell.text.startswith("difference"))
    header[column].find_element(By.TAG_NAME, "button").click()
    cells = [row[column] for row in table(page, "#table-body")]
    values = [float(cell.rstrip("*")) for cell in cells if cell]
    assert values == sorted(values, reverse=True) and values[0] > 0 > values[-1]


def test_claims_errors_and_links_to_finished_runs_are_shown(open_page, robustness) -> None:
    page = open_page(robustness)
    check_self_contained(robustness)
    results = read_results(robustness)
    (verdicts,) = results["claims"].values()
    assert table(page, "#claims-body") == [
        [verdict, claim] for verdict, claims in verdicts.items() for claim in claims
    ]
    links, cells = find(page, "#runs-body a"), results["cells"]
    assert [cell["state"] for cell in cells].count("finished") == len(links) == len(cells) - 2
    for link in links:
        assert Path(unquote(urlparse(link.get_attribute("href")).path)).is_file()
    (failed,) = find(page, "#failed li")
    assert failed.text == f"{cells[FAILED]['name']}: {EVIL}"
    assert len(find(page, "#runs-body .wrong")) == len(find(page, "#runs-body span.note")) == 1
    links[0].click()
    assert page.title == "one run"


def test_charts_share_a_legend_and_show_details_of_points(open_page, curves) -> None:
    page = open_page(curves)
    assert [chart.get_attribute("aria-label") for chart in find(page, "#charts .chart")] == [
        f"train k: {panel}" for panel in (3, 4, 5, 6, "mean")
    ]
    assert len(find(page, "#charts .mark")) == 2 * 2 * 4 * 5
    button = page.find_element(By.XPATH, "//div[@id='legend']/button[.='bilstm_2018, published']")
    assert len(find(page, "#charts g.c0 .hollow")) == 4 * 5
    button.click()
    assert not find(page, "#charts g.c0 .hollow")
    assert len(find(page, "#charts g.c0 .mark")) == 4 * 5
    button.send_keys(Keys.ENTER)
    assert len(find(page, "#charts g.c0 .hollow")) == 4 * 5

    *_, last, mean = find(page, "#charts .chart")
    measured = {
        (row["train k"], row["k"]): row["measured"]["mean"]
        for row in read_results(curves)["rows"]
        if row["model"] == "bilstm_2018"
    }
    last.send_keys(Keys.ARROW_RIGHT)
    last.send_keys(Keys.ARROW_RIGHT)
    tip = last.find_element(By.CLASS_NAME, "tip")
    first_lines = ["bilstm_2018, k = 4", f"measured {format_fraction(measured[6, 4])}"]
    assert tip.text.splitlines()[:2] == first_lines
    mean.send_keys(Keys.ARROW_RIGHT)
    average = format_fraction(np.mean([measured[panel, 3] for panel in (3, 4, 5, 6)]))
    text = mean.find_element(By.CLASS_NAME, "tip").text
    assert f"measured {average}\npublished .43\n" in text and "interval" not in text
    assert not tip.is_displayed()


def test_references_can_be_switched_on_and_have_sources(open_page, tmp_path: Path) -> None:
    page = open_page(write_grid(figure5, "gat,gcn", tmp_path))
    pressed = {
        button.text: button.get_attribute("aria-pressed") == "true"
        for button in find(page, "#references-legend button")
    }
    references = figure5.references()
    assert pressed == {reference.row.label: reference.shown for reference in references}
    assert [button.text for button in find(page, "#legend button")] == ["gat", "gcn", "ceiling"]
    assert len(find(page, "#charts .hollow")) == sum(len(r.row.by_k) for r in references if r.shown)

    def click(name: str) -> None:
        page.find_element(By.XPATH, f"//div[@id='references-legend']/button[.='{name}']").click()

    for name in {r.row.label for r in references if r.shown}:
        click(name)
    assert not find(page, "#charts .hollow")
    click("gat, published (NCRL)")
    assert len(find(page, "#charts g.c0 .hollow")) == 7 + 6  # the color of the measured gat
    _, right = find(page, "#charts .chart")
    right.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_UP)
    tip = right.find_element(By.CLASS_NAME, "tip").text.splitlines()
    assert tip[0] == "gat, published (NCRL), k = 5" and tip[1] == "published .99"
    assert tip[2].startswith("Cheng et al. 2023") and tip[2].endswith("table 3 (k = 2, 3, 4)")
    assert [item.text for item in find(page, "#sources-body li")] == report.sources(
        figure5.get_config().grid
    )
    names = [row[1] for row in table(page, "#table-body") if row[0] == "2,3,4"]
    expected = ["gat", "gat, published (NCRL)", "gcn", "gcn, published (NCRL)"]
    assert names[:4] == expected and names[-2:] == ["ceiling", "stories"]


@pytest.mark.parametrize("experiment", [table2, workshop_table1, figure5])
def test_a_grid_without_finished_runs_shows_published_values(
    open_page, experiment, tmp_path: Path
) -> None:
    page = open_page(write_grid(experiment, "", tmp_path, tuple(range(1000))))
    assert len(find(page, "#failed li")) == 1 and not find(page, "#runs-body a")
    assert not find(page, "#charts .mark:not(.hollow)")
    has_lines = experiment is workshop_table1
    lines = [f"{model}, published" for model in MODELS_2018 if has_lines]
    assert [button.text for button in find(page, "#legend button")] == lines
    for section in ("references", "sources"):
        assert page.find_element(By.ID, section).is_displayed() == (experiment is figure5)
