"""The report page in a browser: that of `run_folder`, with a few sections by hand."""

import copy
import itertools
import json
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from clutrr_jax.report.accuracy import format_fraction
from clutrr_jax.report.page import render
from tests.report.conftest import EVIL, MODELS, check_self_contained, find, select, table
from tests.report.rows import paper

pytestmark = pytest.mark.browser

CURVE = [{"epoch": e, "loss": 3.4 / e, "dev accuracy": e / 10} for e in (1, 2, 3, 9)]


@pytest.fixture(scope="module")
def experiment(run_folder) -> dict[str, Any]:
    """The content of the page, and by hand: a training curve, a published value, claims, a failed
    run, and a second data set, of which a model has answered the first five stories, two of them
    without a relation."""
    text = (run_folder / "report.html").read_text()
    found = json.loads(text.split('id="data">')[1].split("</script>")[0])
    (own,) = found["sets"]
    own["models"]["gat"]["curves"] = CURVE
    found["rows"][0] |= {"low": 0.1, "high": 0.8}  # does not meet the published interval
    columns, doe = tuple(found["columns"]), "gat (Doe)"
    found["rows"] += [
        paper(columns, ("clean", 2, "gat"), "gat", 0.9, 0.01),
        paper(columns, ("clean", 3, doe), doe, 0.8, of="gat", source="Doe", shown=True),
    ]
    found["claims"] = {"Noise": {"supported": ["b > a"], "not supported": [EVIL]}}
    failed = {"name": "b/gat", "dataset": "b", "model": "gat", "state": "failed", "error": EVIL}
    found["runs"].append(failed)
    target = own["stories"]["target"]
    none = chr(ord("a") + len(own["relations"]))
    answers = target[:3] + none * 2 + "-" * (len(target) - 5)
    other = {"title": "other", "models": {"added": {"predictions": [answers]}}}
    found["sets"].append(own | other | {"extraction": {}, "wordings": {}})
    return found


@pytest.fixture
def content(experiment) -> dict[str, Any]:
    return copy.deepcopy(experiment)


@pytest.fixture
def stories(content) -> dict[str, Any]:
    return content["sets"][0]["stories"]


@pytest.fixture
def open_content(open_page, tmp_path):
    """Opens the page of a content."""

    def get(content: dict[str, Any]):
        (tmp_path / "report.html").write_text(render(content))
        return open_page(tmp_path)

    return get


@pytest.fixture
def page(open_content, content):
    return open_content(content)


def wait_for_count(page, expected: int) -> None:
    """Waits until the filters match the expected number of stories."""
    text = f" of {expected} stor" if expected else "No matching story"
    count = page.find_element(By.ID, "count")
    WebDriverWait(page, 5).until(lambda _: text in count.text)


def relation_names(content) -> dict[str, str]:
    """Names by letter."""
    return {chr(ord("a") + i): name for i, name in enumerate(content["sets"][0]["relations"])}


def by_key(content) -> dict[tuple[str, str, int], dict[str, Any]]:
    return {(row["model"], row["noise"], row["k"]): row for row in content["rows"]
            if row["kind"] != "published"}  # fmt: skip


def test_the_page_is_one_file_with_all_sections(page, tmp_path) -> None:
    check_self_contained(tmp_path)
    assert page.title == page.find_element(By.ID, "title").text != ""
    assert "Replica 2 of gat diverged" in page.find_element(By.ID, "summary").text
    assert [link.text for link in find(page, "nav a")] == [
        "Accuracy curves", "Heat maps", "Claims", "Accuracy table", "Paired tests", "Runs",
        "Training curves", "Confusion matrix", "Story groups", "Extracted facts", "Stories",
    ]  # fmt: skip
    for link, section in zip(find(page, "nav a"), find(page, "section"), strict=True):
        assert link.get_attribute("href").endswith(f"#{section.get_attribute('id')}")
        assert section.accessible_name == link.text
    assert table(page, "#claims-body") == [["supported", "b > a"], ["not supported", EVIL]]
    assert [item.text for item in find(page, "#failed li")] == [f"b/gat: {EVIL}"]


def test_sections_without_content_are_absent(open_content, content) -> None:
    content |= {"claims": {}, "paired": {}, "runs": content["runs"][:1]}
    content["rows"] = [row for key, row in by_key(content).items() if key[1] == "clean"]
    page = open_content(content | {"sets": content["sets"][1:]})
    names = [link.text for link in find(page, "nav a")]
    assert names == [
        "Accuracy curves", "Accuracy table", "Confusion matrix", "Story groups", "Stories",
    ]  # fmt: skip
    for id in ("references", "sources", "set-line", "attention-label"):
        assert not page.find_element(By.ID, id).is_displayed()
    page = open_content(content | {"sets": []})
    assert [link.text for link in find(page, "nav a")] == names[:2]


def test_charts_share_a_legend_and_show_details_of_points(page, content) -> None:
    clean, supporting = find(page, "#charts .chart")
    assert clean.accessible_name == "noise: clean"
    buttons = {button.text: button for button in find(page, "#legend button")}
    assert list(buttons) == [
        "gat", "bilstm_mean", "gat, published", "given rules", "induced rules", "majority label",
    ]  # fmt: skip
    assert len(find(clean, "g.c0 .mark:not(.hollow)")) == len(find(clean, ".c0 .replica")) / 3 == 3
    assert len(find(clean, "g.c0 .mark.hollow")) == 2  # of the row, and of the reference
    assert len(find(supporting, ".bar")) == len(MODELS)  # one test has no curve
    buttons["gat"].send_keys(Keys.ENTER)
    assert buttons["gat"].get_attribute("aria-pressed") == "false"
    assert not find(page, "#charts g.c0 .mark:not(.hollow)")
    buttons["gat"].send_keys(Keys.ENTER)

    row = by_key(content)["gat", "clean", 2]
    clean.send_keys(Keys.ARROW_RIGHT)
    tip = clean.find_element(By.CLASS_NAME, "tip")
    error, low, high = (format_fraction(row[name]) for name in ("stderr", "low", "high"))
    assert tip.text.splitlines() == [
        "gat, k = 2", f"measured {format_fraction(row['accuracy'])} ± {error}",
        f"95 % interval {low} to {high}",
        f"{row['clauses']} clauses, 20 stories, 3 replicas", "published .90 ± .01",
        f"difference {format_fraction(row['accuracy'] - 0.9, '+')}*",
    ]  # fmt: skip
    clean.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert tip.text.startswith("bilstm_mean, k = 3")
    clean.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()


# For each chart, its shapes of a selector as values between the lines of the grid.
HEIGHTS = """return [...document.querySelectorAll(arguments[0])].map(chart => {
  const lines = [...chart.querySelectorAll('.grid')].map(line => line.y1.baseVal.value);
  return [...chart.querySelectorAll(arguments[1])].map(shape => {
    const { y, height } = shape.getBBox();
    return [y + height, y].map(y => (lines[0] - y) / (lines[0] - lines.at(-1)));
  });
})"""


def test_bands_are_intervals(page, content) -> None:
    """The lowest and highest point of a band, or of a training curve."""
    rows = by_key(content)
    expected = [
        [min(row["low"] for row in line), max(row["high"] for row in line)]
        for noise in ("clean", "supporting")
        for model in MODELS
        for line in [[row for key, row in rows.items() if key[:2] == (model, noise)]]
    ]
    clean, supporting = page.execute_script(HEIGHTS, "#charts .chart", ".band")
    np.testing.assert_allclose([*clean, *supporting], np.minimum(expected, 1), atol=1e-3)
    ((loss,), (accuracy,)) = page.execute_script(
        HEIGHTS, "#training-charts .chart", "path.line"
    )  # the axis of the loss ends at 4
    np.testing.assert_allclose(loss, [3.4 / 9 / 4, 3.4 / 4], atol=1e-3)
    np.testing.assert_allclose(accuracy, [0.1, 0.9], atol=1e-3)


@pytest.mark.parametrize("shown", ["measured accuracy", "published accuracy", "difference"])
def test_heat_maps(shown: str, page, content) -> None:
    rows = by_key(content)

    def expected(series: str, noise: str, k: int) -> str:
        row = rows.get((series, noise, k))
        if shown == "measured accuracy":
            return format_fraction(row["accuracy"]) if row else ""
        if (series, noise, k) != ("gat", "clean", 2):
            return ""
        return ".90" if shown[0] == "p" else format_fraction(row["accuracy"] - 0.9, "+") + "*"

    select(page, "shown", shown)
    assert table(page, "#heat-body") == [
        [noise, *(expected(series, noise, k) for k in (2, 3, 4, 5))]
        for series in dict.fromkeys(key[0] for key in rows)
        for noise in ("clean", "supporting")
    ]


def test_the_accuracy_table_is_sorted_by_a_column(page, content) -> None:
    """Rows of one series stay together: sorted by the accuracy with k = 3."""
    before = table(page, "#table-body")
    assert before == [line["cells"] for line in content["tables"][0]["lines"]]
    column = content["tables"][0]["columns"].index("k=3")
    header = f"#table-body th:nth-child({column + 1}) button"
    page.find_element(By.CSS_SELECTOR, header).click()
    after = table(page, "#table-body")
    assert sorted(after) == sorted(before) != after
    values = [float(row[column].split()[0]) for row in after
              if row[column] and row[0] != "stories"
              and not row[1].startswith((" ", "stories"))]  # fmt: skip
    assert values == sorted(values, reverse=True)
    for _ in range(2):
        page.find_element(By.CSS_SELECTOR, header).click()
    assert table(page, "#table-body") == before


def test_tables_are_copied(page, content) -> None:
    """That of accuracies, and the paired tests from the side of the selected model."""
    select(page, "compared-model", "bilstm_mean")
    paired = content["paired"]["bilstm_mean"]
    assert table(page, "#compared-body") == [paired["table"][1][1:]]
    select(page, "metric", "macro accuracy")
    tables = {"table": content["tables"][1]["copies"], "compared": paired["copies"]}
    for id, form in itertools.product(tables, ("LaTeX", "Markdown", "CSV")):
        buttons = page.find_element(By.ID, f"{id}-copies")
        buttons.find_element(By.XPATH, f"button[.='Copy as {form}']").send_keys(Keys.ENTER)
        field = page.find_element(By.ID, "search")
        field.clear()
        field.send_keys(Keys.CONTROL, "v")
        assert field.get_attribute("value").split() == tables[id][form].split()


def test_a_wide_table_is_not_cut_off(open_content, content) -> None:
    """At 1280 pixels. On a phone its first column stays when it is scrolled, and the first chart
    ends on the first screen."""
    cells = ["a_long_name_405B (10 replicas)", "predicates and genders", *[".95 (.91-1.00)"] * 9]
    content["tables"][0] |= {
        "columns": ["model", "given", *(f"k={k}" for k in range(2, 11))],
        "lines": [{"cells": cells, "kind": "model", "part": False}],
    }
    page = open_content(content)
    cut = "const d = document.getElementById(arguments[0]); return d.scrollWidth - d.clientWidth"
    assert page.execute_script(cut, "table-body") == 0
    size = {"width": 400, "height": 700, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert page.execute_script(cut, "table-body") > 300
    page.execute_script("document.getElementById('table-body').scrollLeft = 300")
    body, (first, *_) = page.find_element(By.ID, "table-body"), find(page, "#table-body tbody th")
    assert first.rect["x"] == body.rect["x"]
    chart = find(page, "#charts .chart svg")[0].rect
    assert page.find_element(By.ID, "headline").rect["y"] < chart["y"] < 700 - chart["height"]


def test_a_data_set_is_chosen_and_stays_chosen(page) -> None:
    """That of a model with answers without a relation and stories without an answer."""
    select(page, "set-choice", "other")
    WebDriverWait(page, 5).until(lambda _: page.current_url.endswith("?set=1#confusion"))
    WebDriverWait(page, 5).until(lambda _: len(find(page, "#model option")) == 1)
    wait_for_count(page, 5)
    assert sum(int(line[-1]) for line in table(page, "#confusion-body")) == 5
    select(page, "prediction", "no relation")
    wait_for_count(page, 2)
    find(page, "#list tbody button")[0].click()
    assert table(page, "#story .predictions") == [["added", "no relation", "1 of 1", ""]]
    assert page.current_url.endswith("?set=1#story=1.2/4")
    page.refresh()
    assert page.find_element(By.CSS_SELECTOR, "#story h3").text == "Story 1.2/4"


def test_filters_select_stories(page, content, stories) -> None:
    predicted = content["sets"][0]["models"]["bilstm_mean"]["predictions"][0]
    target, names = stories["target"], relation_names(content)
    count = page.find_element(By.ID, "count")
    assert count.text == "1 to 50 of 80 stories"
    page.find_element(By.ID, "next").click()
    assert count.text == "51 to 80 of 80 stories"
    select(page, "model", "bilstm_mean")
    select(page, "outcome", "wrong")
    wrong = [t for t, p in zip(target, predicted, strict=True) if t != p]
    wait_for_count(page, len(wrong))
    ((label, number),) = Counter(wrong).most_common(1)
    select(page, "target", names[label])
    wait_for_count(page, number)
    page.find_element(By.ID, "search").send_keys("words that no story has")
    wait_for_count(page, 0)


def test_an_open_story_shows_markup_as_text(page, content, stories) -> None:
    """The first story, with its facts, the steps of its proof and the predictions of all models."""
    names, facts = stories["names"][0], stories["facts"][0]
    relations = content["sets"][0]["relations"]
    page.find_element(By.ID, "search").send_keys("1.2/1")
    wait_for_count(page, 1)
    find(page, "#list tbody button")[0].send_keys(Keys.ENTER)
    story = page.find_element(By.ID, "story")
    assert EVIL in story.find_element(By.CLASS_NAME, "text").text
    assert not page.find_elements(By.TAG_NAME, "img")
    graph = story.find_element(By.CLASS_NAME, "graph")
    assert len(find(graph, ".edge")) == len(facts) + 1  # and the query
    assert len(find(graph, ".node[rx='15']")) == stories["genders"][0].count("1")
    stated, proof = find(story, "ol.steps:not(.sentences)")[:2]
    for shown, of_story in ((stated, facts), (proof, stories["proof"][0])):
        assert [item.text.partition(",")[0] for item in find(shown, "li")] == [
            f"{names[y]} is the {relations[r]} of {names[x]}" for x, r, y, *_ in of_story
        ]
    for model, *cells in table(page, "#story .predictions"):
        letters = [replica[0] for replica in content["sets"][0]["models"][model]["predictions"]]
        ((best, votes), *_) = Counter(letters).most_common()
        assert cells[:2] == [relation_names(content)[best], f"{votes} of {len(letters)}"]


def test_extracted_facts_are_compared_with_the_stated_ones(page, content, stories) -> None:
    """In the graph, and in the sentences whose words state them, of the story with errors."""
    page.find_element(By.ID, "search").send_keys("1.3/1")
    wait_for_count(page, 1)
    find(page, "#list tbody button")[0].click()
    graph, extracted = find(page, "#story .graphs svg")
    places = [[[node.get_attribute(name) for name in ("x", "y")] for node in find(one, ".node")]
              for one in (graph, extracted)]  # fmt: skip
    assert places[0] == places[1] != []
    for kind in ("follows", "wrong", "missing"):
        assert len(find(extracted, f".edge.extracted-{kind}")) == 1
    kinds = [word.get_attribute("class").split()[1] for word in find(page, ".sentences .word")]
    assert kinds == ["states-right", "states-follows", "states-wrong"]
    shown = [text.text for text in find(page, "#story .sentences > li > .text")]
    assert " ".join(shown) == re.sub(r"[\[\]]", "", stories["text"][20])
    assert len(find(page, "#story .sentences li li:not(.note)")) == 3


def test_cells_of_the_confusion_matrix_lead_to_their_stories(page, content, stories) -> None:
    replicas = content["sets"][0]["models"]["gat"]["predictions"]
    names = relation_names(content)
    expected = Counter(
        (names[t], names[p])
        for replica in replicas
        for t, p in zip(stories["target"], replica, strict=True)
    )
    cells = find(page, "#confusion-body td.heat button")
    pattern = r"(\S+) predicted as (\S+): (\d+) of \d+"
    labels = [re.fullmatch(pattern, c.get_attribute("aria-label")).groups() for c in cells]
    assert {(label, found): int(count) for label, found, count in labels} == expected
    cells[0].send_keys(Keys.ENTER)
    label, prediction, _ = labels[0]
    predicted = [{names[letter] for letter in of} for of in zip(*replicas, strict=True)]
    pairs = zip(stories["target"], predicted, strict=True)
    wait_for_count(page, sum(names[t] == label and prediction in of for t, of in pairs))


def test_groups_have_the_accuracy_of_their_stories(page, content, stories) -> None:
    select(page, "group-by", "number of people")
    people = np.array([len(names) for names in stories["names"]])
    lines = table(page, "#groups-body")
    assert len(lines) == len(set(people.tolist()))
    for name, count, *cells in lines:
        members = people == int(name)
        assert int(count) == members.sum()
        expected = [
            np.mean([np.array([*map(str.__eq__, replica, stories["target"])])[members]
                     for replica in content["sets"][0]["models"][model]["predictions"]])
            for model in MODELS
        ]  # fmt: skip
        np.testing.assert_allclose([float(cell) for cell in cells], expected, atol=0.005001)
