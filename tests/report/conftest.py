"""A finished experiment without training, and pages in a browser."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from clutrr_jax.data.prepare import Prepared, prepare_run
from clutrr_jax.data.records import Records, tasks
from clutrr_jax.data.vocabulary import spans
from clutrr_jax.evaluation.ground_truth import FOLLOWS, WRONG, GroundTruth
from clutrr_jax.evaluation.predictions import Predictions, write_predictions
from clutrr_jax.evaluation.scores import score_run, series_of
from clutrr_jax.experiment import DATA, runs
from clutrr_jax.report.write import write_report
from clutrr_jax.run import describe, identity
from clutrr_jax.settings import default_settings
from generator.files import write_text
from tests.evaluation.test_extraction import perfect
from tests.experiments.finished import finish

EVIL = "</script><script>document.title = 1</script><img src=x onerror=fail()>"
MODELS = {"gat": 3, "bilstm_mean": 1}  # name -> number of replicas


def write_graphs(folder: Path, test: Records) -> None:
    """Writes extracted graphs without errors, except for the first story of k = 3: one fact is
    missing, one is extracted for its inverse, and one is wrong.

    In that story, the first word states the first fact, the second one its inverse, and the last
    one a wrong fact, with probabilities 0.93, 0.5 and 0.1; the third one a fact with less than 0.1.
    """
    relation, probability, rules, verdict, *_ = perfect(test)
    story = dict(tasks(test))["1.3"][0]
    edges = slice(test.edge_start[story], test.edge_start[story + 1])
    (a, b, *_), (c, d, *_) = test.senders[edges], test.receivers[edges]
    for x, y, p in ((a, c, 0.4), (c, a, 0.7), (d, b, 0.502)):
        probability[story][x, y] = p
    relation[story][c, a] = (verdict[story][c, a] == FOLLOWS).argmax()
    relation[story][d, b] = (verdict[story][d, b] == WRONG).argmax()
    words = np.array([len(spans(text)) for text in test.stories])
    fact, chance = np.zeros((words.sum(), 3), np.uint16), np.zeros(words.sum(), np.float16)
    first, last = words[:story].sum(), words[: story + 1].sum() - 1
    fact[first] = fact[first + 2] = a, test.relations[edges][0], c
    fact[first + 1] = c, relation[story][c, a], a
    fact[last] = d, relation[story][d, b], b
    chance[[first, first + 1, first + 2, last]] = 0.93, 0.5, 0.09, 0.1001
    np.savez(
        folder / "extracted.npz",
        relation=np.concatenate([r.ravel() for r in relation]).astype(np.uint8),
        chance=np.concatenate([p.ravel() for p in probability]).astype(np.float16),
        rules=rules.astype(np.float16),
        word_fact=fact,
        word_chance=chance,
    )


@pytest.fixture(scope="session")
def run_folder(small_folder, tmp_path_factory) -> Path:
    """An experiment with random predictions, two thirds of which are correct.

    The GAT has attention over facts and a diverged replica; the BiLSTM has attention over words and
    extracted graphs. In each test file the name of the first person is markup.
    """
    folder = tmp_path_factory.mktemp("page")
    shutil.copytree(small_folder, folder / "data")
    for path in (folder / "data").glob("*_test.csv"):
        text = path.read_text()
        name = re.search(r"\[(\w+)\]", text)[1]
        path.write_text(re.sub(rf"\b{name}\b", EVIL, text))
    config = default_settings("<b>test</b>", ",".join(MODELS))
    config.train.update({"learning_rate": 0.5, "ema_decay": 0.9})
    data = prepare(config, folder / "data")
    test, rng = data.test, np.random.default_rng(0)
    truth = GroundTruth(test, data.train)
    words = sum(len(spans(story)) for story in test.stories)
    for run in runs(config):
        replicas = MODELS[run.model]
        shape = (replicas, len(test))
        best = np.where(rng.random(shape) < 0.7, test.target, rng.integers(22, size=shape))
        predictions = Predictions(best, best, np.ones(shape), np.eye(22, dtype=np.float32)[best])
        series = series_of(run.model, run.config[run.model])[:1]
        scores = score_run(series, {run.model: predictions._replace(probabilities=None)}, truth)
        finish(folder, run, scores, replicas=replicas,
               diverged_epochs=[0, 0, 7][:replicas])  # fmt: skip
        write_predictions(folder / run.model / "predictions.npz", predictions, test)
        write_text(folder / run.model / "config.json", json.dumps(identity(run)))
        over, size = ("facts", len(test.relations)) if run.model == "gat" else ("words", words)
        np.savez(folder / run.model / "attention.npz", over=over, weights=rng.random(size))
    write_graphs(folder / "bilstm_mean", test)
    write_text(folder / DATA, json.dumps(describe(data, truth)))
    write_report(config, runs(config), folder, prepare)
    return folder


def prepare(config: Any, folder: Path) -> Prepared:
    return prepare_run(config.data, folder)


@pytest.fixture(scope="session")
def test_records(run_folder) -> Records:
    return prepare_run("", run_folder / "data").test


@pytest.fixture
def open_page(browser) -> Callable[[Path], WebDriver]:
    """Opens the report of a folder, which must fit into a wide and a narrow window.

    At the end of the test the browser must not have logged an error.
    """

    def get(folder: Path) -> WebDriver:
        browser.get("about:blank")
        browser.get((folder / "report.html").as_uri())
        for width in (400, 1280):
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            too_wide = "const d = document.documentElement; return d.scrollWidth - d.clientWidth"
            assert browser.execute_script(too_wide) == 0
        return browser

    yield get
    assert browser.get_log("browser") == []


def find(node: WebDriver | WebElement, selector: str) -> list[WebElement]:
    return node.find_elements(By.CSS_SELECTOR, selector)


def table(page: WebDriver, selector: str) -> list[list[str]]:
    """Texts of the cells in the body of a table."""
    script = ("return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
              ".map(row => [...row.cells].map(cell => cell.textContent))")  # fmt: skip
    return page.execute_script(script, selector)


def select(page: WebDriver, id: str, text: str) -> None:
    Select(page.find_element(By.ID, id)).select_by_visible_text(text)


def check_self_contained(folder: Path) -> None:
    """Asserts that no text of a page is markup, and that the page makes no network request."""
    text = (folder / "report.html").read_text()
    assert text.count("<script") == text.count("</script>") == 2
    assert "<img" not in text and "<b>" not in text
    assert "https:" not in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
