"""The page of a grid: what a browser makes of a table and of a figure of the papers."""

import csv
import json
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from experiments import figure5, table2, workshop_figure2
from experiments.grid import definition, report

EVIL = "</script><script>document.title = 1</script><img src=x onerror=fail()>"
FAILED, MISSING = 3, 5  # runs, by number


def finished(folder: Path, cell: definition.Cell, rng: np.random.Generator) -> None:
    """What a report of the grid reads of a run, without training."""
    tests = sorted({test for some in cell.reads.values() for test in some})
    rows = [{"model": cell.model, "task": t, "replicas": 1, "count": 10, "ceiling": 0.95}
            for t in tests]  # fmt: skip
    (folder / cell.model).mkdir(parents=True)
    with (folder / cell.model / "predictions.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["task", "replica", "prediction", "target"])
        for test in tests:
            right = rng.random(10) < 0.7
            table.writerows([test, 0, "son" if r else "aunt", "son"] for r in right)
    results = {"rows": rows, "device": "2 cores", "wall_seconds": 1.0}
    (folder / "results.json").write_text(json.dumps(results))
    (folder / "report.html").write_text("<!DOCTYPE html><title>one run</title>")


def reported(experiment, models: str, workdir: Path, without: tuple[int, ...] = ()) -> Path:
    """The folder of a grid; of the runs in `without` the first has failed, the rest are missing."""
    config = experiment.get_config()
    config.update({"scale": "smoke", "models": models})
    cells, rng = definition.cells(config), np.random.default_rng(0)
    for number, cell in enumerate(cells):
        if number not in without:
            finished(workdir / cell.name, cell, rng)
        elif number == without[0]:
            (workdir / cell.name).mkdir(parents=True)
            (workdir / cell.name / report.ERROR).write_text(EVIL + "\n")
    report.write(config, cells, workdir)
    return workdir


@pytest.fixture(scope="module")
def robustness(tmp_path_factory) -> Path:
    workdir = tmp_path_factory.mktemp("table2")
    return reported(table2, "gat,bilstm_mean,gcn", workdir, (FAILED, MISSING))


@pytest.fixture(scope="module")
def curves(tmp_path_factory) -> Path:
    models = "bilstm_2018,gnn_2018_mean"
    return reported(workshop_figure2, models, tmp_path_factory.mktemp("figure2"))


def results(workdir: Path) -> dict:
    return json.loads((workdir / "results.json").read_text())


@pytest.fixture
def opened(browser):
    """Opens the page of a grid; at the end the browser has complained of nothing."""

    def get(workdir: Path):
        browser.get("about:blank")
        browser.get((workdir / "report.html").as_uri())
        return browser

    yield get
    assert browser.get_log("browser") == []


def two(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def heat(opened, model: str) -> list[list[str]]:
    (table,) = opened.find_elements(By.XPATH, f"//div[@id='heat-body']/div[h3[.='{model}']]/table")
    return [
        [cell.text for cell in row.find_elements(By.TAG_NAME, "td")]
        for row in table.find_elements(By.CSS_SELECTOR, "tbody tr")
    ]


def test_heat_maps_switch_between_measured_published_and_difference(opened, robustness) -> None:
    page = opened(robustness)
    assert not page.find_element(By.ID, "curves").is_displayed()  # kinds of noise are no curve
    rows = results(robustness)["rows"]
    of = {(row["train"], row["test"], row["model"]): row for row in rows}
    kinds = table2.NOISE

    def expected(model: str, text) -> list[list[str]]:
        return [[text(of[train, test, model]) for test in kinds] for train in kinds]

    def mean(which: str):
        return lambda row: two(row[which]["mean"]) if row[which] else ""

    def difference(row: dict) -> str:
        if "difference" not in row:
            return ""
        sign = "-" if row["difference"] < 0 else "+"
        return sign + two(abs(row["difference"])) + ("*" if row["apart"] else "")

    shown = Select(page.find_element(By.ID, "shown"))
    for model in ("gat", "bilstm_mean", "gcn"):
        for choice, text in (
            ("measured", mean("measured")),
            ("published", mean("published")),
            ("difference", difference),
        ):
            shown.select_by_visible_text(choice)
            assert heat(page, model) == expected(model, text)
    below = page.find_elements(By.CSS_SELECTOR, "#heat-body td.below")
    assert len(below) == sum(row.get("difference", 0) < 0 for row in rows) > 0
    assert all(cell.text.startswith("-") for cell in below)


def test_runs_lead_to_their_reports_and_failures_are_told(opened, robustness) -> None:
    page = opened(robustness)
    links = page.find_elements(By.CSS_SELECTOR, "#runs-body a")
    cells = results(robustness)["cells"]
    assert [cell["state"] for cell in cells].count("finished") == len(links) == len(cells) - 2
    for link in links:
        assert Path(unquote(urlparse(link.get_attribute("href")).path)).is_file()
    (failed,) = page.find_elements(By.CSS_SELECTOR, "#failed li")
    assert failed.text == f"{cells[FAILED]['name']}: {EVIL}"
    assert len(page.find_elements(By.CSS_SELECTOR, "#runs-body .wrong")) == 1
    assert len(page.find_elements(By.CSS_SELECTOR, "#runs-body span.quiet")) == 1
    links[0].click()
    assert page.title == "one run"


def test_the_table_has_an_average_where_all_of_its_cells_are_measured(opened, robustness) -> None:
    page = opened(robustness)
    rows = [
        [cell.text for cell in row.find_elements(By.XPATH, "./*")]
        for row in page.find_elements(By.CSS_SELECTOR, "#table-body tbody tr")
    ]
    last = {tuple(row[:2]): row[2:] for row in rows if row[0] == "average"}
    measured = {
        (row["train"], row["test"]): row["measured"]["mean"]
        for row in results(robustness)["rows"]
        if row["model"] == "bilstm_mean" and row["measured"]
    }
    names = [cell["name"] for cell in results(robustness)["cells"]]
    assert [names[n] for n in (FAILED, MISSING)] == ["supporting/gat/0", "supporting/gcn/0"]
    for name, table in (("table 2", table2.TABLE_2), ("table 3", table2.TABLE_3)):
        mean = np.mean([measured[key[:2]] for key in table if key[2] == "bilstm_mean"])
        paper = table2.AVERAGES[name]
        gat, text, gcn = (last["average", name][i : i + 3] for i in (0, 3, 6))
        assert gat == ["", two(paper["gat"]), ""] and gcn == ["", "", ""]
        assert text[:2] == [two(mean), two(paper["bilstm_mean"])] and text[2][0] in "+-"


def test_claims_stand_with_their_verdicts(opened, robustness) -> None:
    page = opened(robustness)
    rows = page.find_elements(By.CSS_SELECTOR, "#claims-body tr")
    (verdicts,) = results(robustness)["claims"].values()
    assert [row.text for row in rows] == [
        f"{verdict} {claim}" for verdict, some in verdicts.items() for claim in some
    ]


def test_curves_are_switched_in_all_panels(opened, curves) -> None:
    page = opened(curves)
    charts = page.find_elements(By.CSS_SELECTOR, "#charts .chart")
    assert [chart.get_attribute("aria-label") for chart in charts] == [
        f"train k: {panel}" for panel in (3, 4, 5, 6, "mean")
    ]
    assert len(page.find_elements(By.CSS_SELECTOR, "#charts .mark")) == 2 * 2 * 4 * 5
    button = page.find_element(By.XPATH, "//div[@id='legend']/button[.='bilstm_2018, published']")
    hollow = "#charts g.c0 .hollow"
    assert len(page.find_elements(By.CSS_SELECTOR, hollow)) == 4 * 5
    button.click()
    assert not page.find_elements(By.CSS_SELECTOR, hollow)
    assert len(page.find_elements(By.CSS_SELECTOR, "#charts g.c0 .mark")) == 4 * 5
    button.send_keys(Keys.ENTER)
    assert len(page.find_elements(By.CSS_SELECTOR, hollow)) == 4 * 5


def test_a_panel_tells_its_points(opened, curves) -> None:
    page = opened(curves)
    *_, last, mean = page.find_elements(By.CSS_SELECTOR, "#charts .chart")
    found = results(curves)
    (row,) = [
        r for r in found["rows"] if (r["train k"], r["k"], r["model"]) == (6, 4, "bilstm_2018")
    ]
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_RIGHT):
        last.send_keys(key)
    assert last.find_element(By.CLASS_NAME, "tip").text.splitlines()[:2] == [
        "bilstm_2018, k = 4", f"measured {two(row['measured']['mean'])}",
    ]  # fmt: skip
    mean.send_keys(Keys.ARROW_RIGHT)
    of = [
        r["measured"]["mean"] for r in found["rows"] if r["k"] == 3 and r["model"] == "bilstm_2018"
    ]
    told = mean.find_element(By.CLASS_NAME, "tip").text
    assert f"measured {two(np.mean(of))}\npublished .43\n" in told and "interval" not in told
    assert not last.find_element(By.CLASS_NAME, "tip").is_displayed()


@pytest.mark.parametrize(
    ("experiment", "lines"),
    [
        (table2, []),
        (workshop_figure2, ["bilstm_2018, published"]),
        (figure5, ["people, limited time", "CTP"]),
    ],
)
def test_a_grid_without_a_finished_run_opens(opened, experiment, lines, tmp_path: Path) -> None:
    """With the figures of others alone."""
    page = opened(reported(experiment, "", tmp_path, tuple(range(1000))))
    assert len(page.find_elements(By.CSS_SELECTOR, "#failed li")) == 1
    assert not page.find_elements(By.CSS_SELECTOR, "#runs-body a")
    assert not page.find_elements(By.CSS_SELECTOR, "#charts .mark:not(.hollow)")
    legend = page.find_elements(By.CSS_SELECTOR, "#legend button")
    assert [button.text for button in legend] == lines


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", ["robustness", "curves"])
def test_the_page_fits(opened, request, name: str, width: int) -> None:
    page = opened(request.getfixturevalue(name))
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    too_wide = "const page = document.documentElement; return page.scrollWidth - page.clientWidth"
    assert page.execute_script(too_wide) == 0
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_nothing_is_markup_and_nothing_is_fetched(robustness) -> None:
    text = (robustness / "report.html").read_text()
    assert text.count("<script") == text.count("</script>") == 2 and "<img" not in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "") and "https:" not in text
    assert "default-src 'none'" in text
