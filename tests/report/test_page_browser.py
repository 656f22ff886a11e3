"""The report page in a browser, for content by hand."""

import itertools
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from clutrr_jax.report.page import render
from clutrr_jax.report.tables import format_fraction
from tests.report import page_content
from tests.report.conftest import EVIL, check_self_contained, find, select, table
from tests.report.page_content import NOISE, RELATIONS, REPLICAS, WITH_ERRORS, correct

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def content() -> dict[str, Any]:
    return page_content.content()


@pytest.fixture(scope="module")
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


def search(page, text: str, expected: int) -> None:
    page.find_element(By.ID, "search").send_keys(text)
    wait_for_count(page, expected)


def open_story(page, id: str) -> None:
    search(page, id, 1)
    find(page, "#list tbody button")[0].click()


def buttons(page, id: str) -> dict[str, bool]:
    """Names of the buttons of a legend, and whether they are pressed."""
    found = find(page, f"#{id} button")
    return {button.text: button.get_attribute("aria-pressed") == "true" for button in found}


def press(page, name: str):
    button = page.find_element(By.XPATH, f"//div[contains(@id, 'legend')]/button[.='{name}']")
    button.click()
    return button


def of_series(content, name: str) -> dict[tuple[str, int], dict[str, Any]]:
    rows = [row for row in content["rows"] + content["averages"] if row["model"] == name]
    return {(row["noise"], row["k"]): row for row in rows}


def test_the_page_is_one_file_with_all_sections(page, tmp_path) -> None:
    check_self_contained(tmp_path)
    assert page.title == page.find_element(By.ID, "title").text == "<b>test</b>"
    assert "Replica 2 of gat diverged" in page.find_element(By.ID, "summary").text
    headings = [heading.text for heading in find(page, "section h2")]
    assert headings == [link.text for link in find(page, "nav a")] == [
        "Accuracy curves", "Heat maps", "Claims", "Accuracy table", "Paired tests", "Runs",
        "Training curves", "Confusion matrix", "Story groups", "Extracted facts", "Stories",
    ]  # fmt: skip
    for link, section in zip(find(page, "nav a"), find(page, "section"), strict=True):
        assert link.get_attribute("href").endswith(f"#{section.get_attribute('id')}")
        assert section.accessible_name == link.text


def test_sections_without_content_are_absent(open_content) -> None:
    content = page_content.content()
    content["rows"] = [row for row in content["rows"] if row["noise"] == "clean"]
    for row in content["rows"]:
        row |= {"published": None, "difference": None}
    content |= {"averages": [], "claims": {}, "references": [], "sources": [], "runs": []}
    content["runs"] = [page_content.content()["runs"][0]]
    content["sets"] = content["sets"][1:]
    content["paired"] = {}
    del content["sets"][0]["models"]["gat"]["curves"]
    page = open_content(content)
    names = [link.text for link in find(page, "nav a")]
    assert names == [
        "Accuracy curves", "Accuracy table", "Confusion matrix", "Story groups", "Stories",
    ]  # fmt: skip
    assert len(find(page, "#charts .chart")) == 1
    for id in ("markers", "references", "sources", "set-line"):
        assert not page.find_element(By.ID, id).is_displayed()
    content |= {"sets": [], "settings": content["settings"][:1], "series": content["series"][:2]}
    page = open_content(content)
    assert [link.text for link in find(page, "nav a")] == names[:2]
    assert not page.find_element(By.ID, "settings").is_displayed()
    assert "majority" not in page.find_element(By.ID, "table").text.partition("model")[0]


def test_charts_share_a_legend_and_show_details_of_points(page, content) -> None:
    charts = find(page, "#charts .chart")
    names = [f"noise: {panel}" for panel in (*NOISE.values(), "mean")]
    assert [chart.get_attribute("aria-label") for chart in charts] == names
    assert buttons(page, "legend") == {
        "gat": True, "reader": True, "gat, published": True, "given rules": False,
        "majority label": True, "ceiling": True,
    }  # fmt: skip
    assert len(find(page, "#charts .mark:not(.hollow)")) == 2 * (4 + 1)
    button = press(page, "gat")
    assert not find(page, "#charts g.c0 .mark:not(.hollow)")
    assert button.get_attribute("aria-pressed") == "false"
    button.send_keys(Keys.ENTER)
    assert len(find(page, "#charts g.c0 .mark:not(.hollow)")) == 4 + 1

    clean, _, mean = charts
    rows = of_series(content, "gat")
    row = rows["clean", 2]
    clean.send_keys(Keys.ARROW_RIGHT)
    tip = clean.find_element(By.CLASS_NAME, "tip")
    error, low, high = (format_fraction(row[name]) for name in ("stderr", "low", "high"))
    assert tip.text.splitlines() == [
        "gat, k = 2", f"measured {format_fraction(row['accuracy'])} ± {error}",
        f"95 % interval {low} to {high}", "20 stories, 3 replicas", "published .80 ± .01",
        f"difference {format_fraction(row['difference'], '+')}",
    ]  # fmt: skip
    clean.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert tip.text.startswith("reader, k = 3")
    clean.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()
    mean.send_keys(Keys.ARROW_RIGHT)
    average = format_fraction(rows["mean", 3]["accuracy"])
    tip = mean.find_element(By.CLASS_NAME, "tip")
    assert tip.text == f"gat, k = 3\nmeasured {average}"


def test_bands_are_intervals_and_baselines_are_plain_lines(page, content) -> None:
    """The lowest and highest point of a band, as accuracies between the lines of the grid."""
    script = """return [...document.querySelectorAll('#charts .chart')].map(chart => {
      const lines = [...chart.querySelectorAll('.grid')].map(line => line.y1.baseVal.value);
      const accuracy = y => (lines[0] - y) / (lines[0] - lines.at(-1));
      return [...chart.querySelectorAll('.band')].map(band => {
        const { y, height } = band.getBBox();
        return [accuracy(y + height), accuracy(y)];
      });
    })"""
    expected = []
    for panel in NOISE.values():
        rows = [
            [row for (noise, _), row in of_series(content, model).items() if noise == panel]
            for model in REPLICAS
        ]
        expected += [[min(r["low"] for r in of), max(r["high"] for r in of)] for of in rows]
    clean, supporting, mean = page.execute_script(script)
    np.testing.assert_allclose([*clean, *supporting], np.minimum(expected, 1), atol=1e-3)
    assert not mean
    press(page, "given rules")
    assert len(find(page, "#charts g.plain path.line")) == 2 * 3
    assert not find(page, "#charts g.plain .mark")


def test_replicas_are_faint_points_and_one_point_has_a_bar(open_content) -> None:
    """The GAT has three replicas at each of four tests; the average has none."""
    content = page_content.content()
    page = open_content(content)
    assert len(find(page, "#charts .replica")) == len(find(page, "#charts .c0 .replica")) == 3 * 4
    panels = page.execute_script(
        "return [...document.querySelectorAll('#charts .chart')]"
        ".map(chart => chart.querySelectorAll('.bar').length)"
    )
    assert panels == [0, len(REPLICAS), 0]  # of noise type 2, only k = 3 is tested


def test_published_values_are_hollow_and_can_be_switched(page) -> None:
    def hollow(style: str = "") -> int:
        return len(find(page, f"#charts {style} .mark.hollow"))

    assert buttons(page, "references-legend") == {"gat, published (Doe)": True, "other": False}
    assert hollow() == hollow("g.c0") == 3 + 3  # the color of the measured gat
    press(page, "gat, published")
    assert hollow() == 3
    press(page, "other")
    assert hollow() == 4 and hollow("g.c0") == 3
    clean = find(page, "#charts .chart")[0]
    clean.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_UP)
    tip = clean.find_element(By.CLASS_NAME, "tip").text.splitlines()
    assert tip == ["other, k = 2", "published .60", page_content.SOURCE]
    assert [item.text for item in find(page, "#sources-body li")] == [f"gat: {page_content.SOURCE}"]


def test_a_point_near_the_pointer_has_a_tooltip(page) -> None:
    script = """const chart = document.querySelector('.chart');
      chart.scrollIntoView();
      const { x, y, width, height } = chart.querySelector('g.c1 .mark').getBoundingClientRect();
      const clientX = x + width / 2, clientY = y + height / 2;
      chart.dispatchEvent(new PointerEvent('pointermove', { clientX, clientY }));"""
    page.execute_script(script)
    tip = find(page, "#charts .tip")[0]
    assert tip.text.startswith("reader, k = 2")
    page.execute_script("document.querySelector('.chart').dispatchEvent(new Event('pointerleave'))")
    assert not tip.is_displayed()


def test_heat_maps_switch_between_measured_published_and_difference(page, content) -> None:
    def expected(row: dict | None, choice: str) -> str:
        if choice == "published":
            return format_fraction(row["published"]["mean"]) if row and row["published"] else ""
        value = row and row["accuracy" if choice == "measured" else "difference"]
        if value is None:
            return ""
        if choice == "measured":
            return format_fraction(value)
        return format_fraction(value, "+") + ("*" if row["intervals_disjoint"] else "")

    for option in ("measured accuracy", "published accuracy", "difference"):
        select(page, "shown", option)
        assert table(page, "#heat-body") == [
            [panel, *(expected(rows.get((panel, k)), option.split()[0]) for k in (2, 3, 4))]
            for name in (*REPLICAS, *page_content.BASELINES)
            for rows in [of_series(content, name)]
            for panel in (*NOISE.values(), "mean")
        ]
    negative = find(page, "#heat-body td.below")
    assert negative and all(cell.text.startswith("-") for cell in negative)


def test_x_values_that_are_no_numbers_have_heat_maps_and_no_curves(open_content) -> None:
    content = page_content.content()
    for row in content["rows"] + content["averages"]:
        row["k"] = f"k={row['k']}"
    page = open_content(content)
    assert not find(page, "#curves")
    assert [cell.text for cell in find(page, "#heat-body th[scope=col]")][:4] == [
        "noise ↓ k →", "k=2", "k=3", "k=4",
    ]  # fmt: skip


def test_without_measured_values_the_published_ones_are_shown(open_content) -> None:
    content = page_content.content()
    content["rows"] = [row for row in content["rows"] if row["model"] == "gat"]
    missing = dict.fromkeys(
        ("accuracy", "stderr", "low", "high", "count", "ceiling", "difference"), None
    )
    for row in content["rows"]:
        row |= missing
    page = open_content(content | {"averages": [], "sets": []})
    assert not find(page, "#charts .mark:not(.hollow)")
    assert list(buttons(page, "legend")) == ["gat, published"]


def test_claims_and_states_of_runs_are_shown(page, content) -> None:
    (verdicts,) = content["claims"].values()
    assert table(page, "#claims-body") == [
        [verdict, claim] for verdict, claims in verdicts.items() for claim in claims
    ]
    names = [mark.get_attribute("aria-label") for mark in find(page, "#runs-body [role=img]")]
    assert sorted(names) == sorted(f"{run['name']}: {run['state']}" for run in content["runs"])
    assert table(page, "#runs-body") == [["k23", "0 1 ", "0 "], ["k234", "0 ", "0 1 "]]
    assert len(find(page, "#runs-body .wrong")) == len(find(page, "#runs-body .note")) == 1
    (failed,) = find(page, "#failed li")
    assert failed.text == f"k234/0/reader: {EVIL}"


def test_the_accuracy_table_is_sorted_by_a_column(page, content) -> None:
    before = table(page, "#table-body")
    assert before == content["table"][1:]
    header = "#table-body th:nth-child(3) button"
    page.find_element(By.CSS_SELECTOR, header).click()
    after = table(page, "#table-body")
    assert sorted(after) == sorted(before) != after
    # Models and baselines by accuracy; indented rows stay below theirs; the last rows stay last.
    values = [float(row[2]) for row in after[:-2] if not row[0].startswith(" ")]
    assert values == sorted(values, reverse=True)
    follower = {row[0]: following for row, following in itertools.pairwise(before)}
    for row, following in itertools.pairwise(after):
        if following[0].startswith(" "):
            assert follower[row[0]] == following
    assert after[-2:] == before[-2:]
    page.find_element(By.CSS_SELECTOR, header).click()
    page.find_element(By.CSS_SELECTOR, header).click()
    assert table(page, "#table-body") == before
    page.find_element(By.CSS_SELECTOR, "#table-body th:last-child button").click()
    cells = [row[-1] for row in table(page, "#table-body") if row[-1]]
    assert cells == ["+.02", "-.12*"]
    assert table(page, "#settings-body") == content["settings"][1:]


@pytest.mark.parametrize("form", page_content.COPIES)
def test_tables_are_copied(page, form: str) -> None:
    """That of accuracies, and the paired tests of the selected model."""
    select(page, "compared-model", "reader")
    of_reader = page_content.PAIRED["reader"]["copies"]
    for id, copies in (("table", page_content.COPIES), ("compared", of_reader)):
        buttons = page.find_element(By.ID, f"{id}-copies")
        button = buttons.find_element(By.XPATH, f"button[.='Copy as {form}']")
        button.send_keys(Keys.ENTER)
        assert buttons.find_element(By.CSS_SELECTOR, "[role=status]").text == f"Copied as {form}."
        field = page.find_element(By.ID, "search")
        field.clear()
        field.send_keys(Keys.CONTROL, "v")
        assert field.get_attribute("value") == copies[form]


def test_paired_tests_of_a_model_are_shown_from_its_side(page) -> None:
    header = [cell.text for cell in find(page, "#compared-body thead th")]
    assert header == ["against", "1.2", "1.3"]
    assert table(page, "#compared-body") == [["reader", "+.13 (.031)", "-.25 (<.001)"]]
    select(page, "compared-model", "reader")
    assert table(page, "#compared-body") == [["gat", "-.13 (.031)", "+.25 (<.001)"]]


def test_the_result_and_the_first_chart_stand_on_the_first_screen(page) -> None:
    """Of a phone of 400 by 700 pixels, with the result above the chart."""
    size = {"width": 400, "height": 700, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    headline, chart = page.find_element(By.ID, "headline"), find(page, "#charts .chart")[0]
    assert headline.text.replace("\u00a0", " ") == "gat is best: .70 at k = 4."
    svg = chart.find_element(By.TAG_NAME, "svg")
    assert 0 < headline.rect["y"] < svg.rect["y"] and svg.rect["y"] + svg.rect["height"] < 700
    assert chart.rect["height"] == svg.rect["height"] > 250


def test_a_table_of_nine_tests_is_not_cut_off(open_content) -> None:
    """At 1280 pixels, with long names: intervals stand below their accuracies. On a phone its first
    column stays when it is scrolled."""
    content = page_content.content()
    words = [
        "meta-llama_3.1_405B_instruct (10 replicas)",
        "predicates and genders, words for relations",
    ]
    cells = [".95 (.91-1.00)"] * 9
    content["table"] = [["model", "given", *(f"k={k}" for k in range(2, 11))], [*words, *cells],
                        ["  last epoch", "", *cells]]  # fmt: skip
    content["paired"]["gat"]["table"] = [["model", "against", *content["table"][0][2:]],
                                         ["gat", words[0], *["+.05 (1.000)"] * 9]]  # fmt: skip
    page = open_content(content)
    cut = "const d = document.getElementById(arguments[0]); return d.scrollWidth - d.clientWidth"
    for id in ("table-body", "compared-body"):
        assert page.execute_script(cut, id) == 0
    size = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    body, (first, *_) = page.find_element(By.ID, "table-body"), find(page, "#table-body tbody th")
    assert page.execute_script(cut, "table-body") > 300
    page.execute_script("arguments[0].scrollLeft = 300", body)
    assert first.rect["x"] == body.rect["x"] and first.rect["width"] <= 160


def test_training_curves_are_losses_and_accuracies_by_epoch(page) -> None:
    """The axis ends at the loss 4; epochs are as far apart as their numbers."""
    loss, accuracy = find(page, "#training-charts .chart")
    assert [loss.accessible_name, accuracy.accessible_name] == ["loss", "dev accuracy"]
    script = """const grid = [...arguments[0].querySelectorAll('.grid')];
      const lines = grid.map(line => line.y1.baseVal.value);
      return [...arguments[0].querySelectorAll('path.line')].map(path => {
        const [start, ...others] = path.getAttribute('d').slice(1).split(/[LmMh]/);
        return [start, ...others].map(point => point.split(' ').map(Number))
          .map(([x, y]) => [x, (lines[0] - y) / (lines[0] - lines.at(-1))]);
      })"""
    for chart, name, most in ((loss, "loss", 4), (accuracy, "dev accuracy", 1)):
        gat, *_ = page.execute_script(script, chart)
        curve = page_content.CURVES["gat"]
        x, y = np.array(gat).T
        np.testing.assert_allclose(y * most, [point[name] for point in curve], atol=1e-3)
        np.testing.assert_allclose((x - x[0]) / (x[1] - x[0]), [0, 1, 2, 8], atol=1e-3)
        assert not find(page, "#training-charts .mark")
    loss.send_keys(Keys.ARROW_RIGHT)
    assert loss.find_element(By.CLASS_NAME, "tip").text == "gat, epoch = 1\nloss 3.40"
    find(page, "#training-legend button")[1].send_keys(Keys.ENTER)
    assert len(find(loss, "path.line")) == len(find(accuracy, "path.line")) == 1


def test_an_added_model_has_answers_without_a_relation_and_stories_without_an_answer(
    open_content,
) -> None:
    """The letter after those of the relations, and "-". Of the stories, the first five are asked,
    and two answers state no relation."""
    content = page_content.content()
    first = content["sets"][0]
    target, count = first["stories"]["target"], len(first["stories"]["target"])
    none = chr(ord("a") + len(RELATIONS))
    answers = target[:3] + none * 2 + "-" * (count - 5)
    first["models"]["added"] = {"predictions": [answers]}
    page = open_content(content)
    select(page, "model", "added")
    wait_for_count(page, 5)
    select(page, "prediction", "no relation")
    wait_for_count(page, 2)
    find(page, "#list tbody button")[0].click()
    assert table(page, "#story .predictions")[-1] == ["added", "no relation", "1 of 1", ""]
    select(page, "confusion-model", "added")
    matrix = table(page, "#confusion-body")
    assert sum(int(line[-1]) for line in matrix) == 5
    header = [cell.text for cell in find(page, "#confusion-body thead th")]
    assert header[-2:] == ["no relation", "predictions"]
    select(page, "group-by", "number of people")
    groups = {line[0]: line[-1] for line in table(page, "#groups-body")}
    assert groups == {"3": ".60", "4": "", "5": ""}


def test_a_data_set_is_chosen_and_stays_chosen(page) -> None:
    assert [option.text for option in find(page, "#model option")] == list(REPLICAS)
    select(page, "set-choice", "stories of k234")
    WebDriverWait(page, 5).until(lambda _: page.current_url.endswith("?set=1#confusion"))
    WebDriverWait(page, 5).until(lambda _: len(find(page, "#model option")) == 1)
    assert page.find_element(By.ID, "set-choice").get_attribute("value") == "1"
    top = "return document.getElementById('confusion').getBoundingClientRect().top"
    WebDriverWait(page, 5).until(lambda _: 0 <= page.execute_script(top) < 300)
    assert not find(page, "#extraction") and not find(page, "#story .graphs figure")
    open_story(page, "1.2/3")
    assert page.current_url.endswith("?set=1#story=1.2/3")
    page.refresh()
    assert page.find_element(By.CSS_SELECTOR, "#story h3").text == "Story 1.2/3"
    assert len(find(page, "#model option")) == 1


def test_filters_select_stories(page, content, stories) -> None:
    wait_for_count(page, len(stories["text"]))
    wrong = ~correct(content["sets"][0], "reader")[0]
    labels = np.array(list(stories["target"]))
    select(page, "model", "reader")
    select(page, "outcome", "wrong")
    wait_for_count(page, wrong.sum())
    ((label, count),) = Counter(labels[wrong]).most_common(1)
    select(page, "target", RELATIONS[ord(label) - ord("a")])
    wait_for_count(page, count)
    search(page, "words that no story has", 0)
    assert not find(page, "#list td")


def test_replicas_that_differ_are_found(page, content) -> None:
    predicted = content["sets"][0]["models"]["gat"]["predictions"]
    select(page, "outcome", "different between replicas")
    wait_for_count(page, sum(len(set(of)) > 1 for of in zip(*predicted, strict=True)))


def test_the_list_has_pages_and_leads_to_the_next_story(page, stories) -> None:
    count = page.find_element(By.ID, "count")
    assert count.text == f"1 to 50 of {len(stories['text'])} stories"
    page.find_element(By.ID, "next").click()
    assert count.text == f"51 to {len(stories['text'])} of {len(stories['text'])} stories"
    find(page, "#list tbody button")[-1].click()
    previous, following = find(page, "#story .pager button")
    assert not following.is_enabled()
    previous.click()
    assert page.find_element(By.CSS_SELECTOR, "#story h3").text == "Story 2.3/19"


def test_facts_of_other_relations_than_kinship_are_read_from_x_to_y(open_content) -> None:
    content = page_content.content()
    content["sets"][0] |= {"isKinship": False, "shown": 20}
    stories = content["sets"][0]["stories"]
    page = open_content(content)
    open_story(page, "2.3/2")
    story, index = page.find_element(By.ID, "story"), 61
    names, facts = stories["names"][index], stories["facts"][index]
    stated, _ = find(story, "ol.steps")[:2]
    assert [item.text for item in find(stated, "li")] == [
        f"{names[x]} {RELATIONS[relation]} {names[y]}" for x, relation, y in facts
    ]
    x, y = (names[person] for person in stories["query"][index])
    assert f"how is {x} related to {y}?" in story.text
    assert f"{x} to {y}" in [cell.text for cell in find(page, "#list tbody td")]
    assert "the first 20 stories" in page.find_element(By.ID, "first-stories").text


def test_an_open_story_shows_markup_as_text(page, stories) -> None:
    search(page, "</script>", sum(EVIL in text for text in stories["text"]))
    button = find(page, "#list tbody button")[-1]
    assert button.text == "2.3/1"
    index = 60
    button.send_keys(Keys.ENTER)
    story = page.find_element(By.ID, "story")
    assert story.find_element(By.TAG_NAME, "h3").text == "Story 2.3/1"
    assert EVIL in story.find_element(By.CLASS_NAME, "text").text
    assert not page.find_elements(By.TAG_NAME, "img")
    assert page.current_url.endswith("#story=2.3/1")
    graph = story.find_element(By.CLASS_NAME, "graph")
    facts, names = stories["facts"][index], stories["names"][index]
    assert len(find(graph, ".edge")) == len(facts) + 1  # and the query
    assert len(find(graph, ".node")) == len(names)
    assert len(find(graph, ".node[rx='15']")) == stories["genders"][index].count("1")
    stated, proof = find(story, "ol.steps")[:2]
    assert [item.text for item in find(stated, "li")] == [
        f"{names[y]} is the {RELATIONS[relation]} of {names[x]}{noise}"
        for (x, relation, y), noise in zip(facts, ["", "", "", " noise"], strict=True)
    ]
    steps = [
        f"{names[y]} is the {RELATIONS[r]} of {names[x]}" for x, r, y, *_ in stories["proof"][index]
    ]
    assert [item.text for item in find(proof, "li")] == [
        f"{steps[0]}, from fact 1 and fact 2", f"{steps[1]}, from step 1 and fact 3",
    ]  # fmt: skip
    assert "The rules allow 2 answers" in story.text


def test_all_models_are_compared_on_a_story(page, content, stories) -> None:
    """The most frequent prediction of each model, its number of replicas, and the other ones."""
    expected = []
    for model, replicas in REPLICAS.items():
        letters = [replica[0] for replica in content["sets"][0]["models"][model]["predictions"]]
        ((best, votes), *others) = Counter(letters).most_common()
        name = {letter: RELATIONS[ord(letter) - ord("a")] for letter in letters}
        rest = ", ".join(f"{name[letter]} {count}" for letter, count in others)
        expected.append([model, name[best], f"{votes} of {replicas}", rest])
        style = "right" if best == stories["target"][0] else "wrong"
        (cell,) = find(page, f"#story .predictions tr:nth-child({len(expected)}) td:first-of-type")
        assert style in cell.get_attribute("class")
    assert table(page, "#story .predictions") == expected


def test_attention_shades_words_and_widens_arrows(page, content, stories) -> None:
    select(page, "attention", "reader, over words")
    shades = page.execute_script(
        "return [...document.querySelectorAll('#story .text .word')]"
        ".map(word => [word.textContent, parseInt(word.style.getPropertyValue('--v'))])"
    )
    text = stories["text"][0]
    words = [text[a:b].strip() for a, b in itertools.pairwise([*stories["words"][0], len(text)])]
    models = content["sets"][0]["models"]
    digits = [int(digit) for digit in models["reader"]["attention"][0]]
    assert [word for word, _ in shades] == [word.strip("[]") for word in words]
    assert [shade for _, shade in shades] == [int(50 * digit / 9 + 0.5) for digit in digits]
    select(page, "attention", "gat, over facts")
    widths = page.execute_script(
        "return [...document.querySelectorAll('.graphs > .graph .edge:not(.query)')]"
        ".map(edge => parseFloat(edge.style.strokeWidth))"
    )
    digits = [int(digit) for digit in models["gat"]["attention"][0]]
    np.testing.assert_allclose(widths, 0.75 + 7 * np.array(digits) / 9, 1e-3)


def test_extracted_graphs_are_compared_with_the_stated_ones(page, content) -> None:
    graphs = find(page, "#story .graphs svg")
    positions = [
        [[node.get_attribute(name) for name in ("x", "y")] for node in find(graph, ".node")]
        for graph in graphs
    ]
    assert len(graphs) == 2 and positions[0] == positions[1] != []
    open_story(page, "1.3/1")
    extracted = find(page, "#story .graphs svg")[1]
    labels = [label.text.split()[0] for label in find(extracted, ".label:not(.query)")]
    assert sorted(labels) == sorted(["✓", "✓", "∴", "✗", "missing:"])
    for kind in ("follows", "wrong", "missing"):
        assert len(find(extracted, f".edge.extracted-{kind}")) == 1
    assert "probability .40" in page.find_element(By.ID, "story").text  # of the proof
    listed = [item.text for item in find(page, "#story > ol:nth-last-of-type(2) li")]
    assert [re.findall(r"(\S+) (\d+) %$", text) for text in listed] == [
        [("missing", "40")], [("✓", "100")], [("✓", "100")], [("∴", "71")], [("✗", "51")],
    ]  # fmt: skip
    assert table(page, "#extraction-body") == page_content.EXTRACTION[1:]


def test_sentences_show_the_words_that_state_facts(page, stories) -> None:
    assert not find(page, "#story .sentences .word")  # the first story
    open_story(page, "1.3/1")
    text = stories["text"][WITH_ERRORS]
    in_sentence = find(page, "#story .sentences > li")
    shown = [item.find_element(By.CLASS_NAME, "text").text for item in in_sentence]
    assert " ".join(shown) == re.sub(r"[\[\]]", "", text) and len(shown) == 3
    marked = find(page, "#story .sentences .word")
    assert [word.text for word in marked] == ["Ann", "the", "."]
    kinds = ["states-right", "states-follows", "states-wrong"]
    assert [word.get_attribute("class").split()[1] for word in marked] == kinds
    relation = RELATIONS[stories["facts"][WITH_ERRORS][0][1]]
    facts = [item.text for item in find(page, "#story .sentences ul li:not(.note)")]
    assert facts == [
        f"Ann: Ann is the {relation} of {EVIL} ✓ 93 %",
        f"the: {EVIL} is the father of Ann ∴ 50 %",
        f".: {EVIL} is the brother of Bob ✗ 10 %",
    ]
    assert all(fact in in_sentence[0].text for fact in facts[:2])
    assert facts[2] in in_sentence[-1].text


def test_the_table_of_wordings_is_sorted_by_a_column(page) -> None:
    lines = table(page, "#wordings-body")
    assert lines == page_content.WORDINGS[1:]
    header = "#wordings-body th:nth-child(3) button"
    for reverse in (True, False):
        page.find_element(By.CSS_SELECTOR, header).click()
        cells = [int(line[2]) for line in table(page, "#wordings-body")]
        assert cells == sorted(cells, reverse=reverse)
    page.find_element(By.CSS_SELECTOR, header).click()
    assert table(page, "#wordings-body") == lines


def test_outputs_of_a_model_that_are_absent_are_not_shown(open_content) -> None:
    content = page_content.content()
    first = content["sets"][0]
    first["wordings"] = {}
    for name in ("wordFacts", "attention", "attentionOver"):
        del first["models"]["reader"][name]
    first["models"]["reader"]["proofs"] = None
    page = open_content(content)
    assert page.find_element(By.ID, "extraction-body").is_displayed()
    assert not page.find_element(By.ID, "wordings").is_displayed()
    assert len(find(page, "#story .graph svg")) == 2 and not find(page, "#story .sentences")
    assert "no rules to prove" in page.find_element(By.ID, "story").text
    del first["models"]["gat"]["attentionOver"]
    assert not open_content(content).find_element(By.ID, "attention-label").is_displayed()


def test_cells_of_the_confusion_matrix_lead_to_their_stories(page, content, stories) -> None:
    replicas = content["sets"][0]["models"]["gat"]["predictions"]
    expected = Counter(
        pair for replica in replicas for pair in zip(stories["target"], replica, strict=True)
    )
    found = {}
    cells = find(page, "#confusion-body td.heat button")
    for cell in cells:
        pattern = r"(\S+) predicted as (\S+): (\d+) of (\d+)"
        label, prediction, count, _ = re.fullmatch(
            pattern, cell.get_attribute("aria-label")
        ).groups()
        pair = tuple(chr(ord("a") + RELATIONS.index(name)) for name in (label, prediction))
        found[pair] = int(count)
    assert found == expected
    label, prediction = next(iter(found))
    cells[0].send_keys(Keys.ENTER)
    predicted = [set(of) for of in zip(*replicas, strict=True)]
    matching = [
        t == label and prediction in of for t, of in zip(stories["target"], predicted, strict=True)
    ]
    wait_for_count(page, sum(matching))


def test_groups_have_the_accuracy_of_their_stories(page, content, stories) -> None:
    select(page, "group-by", "number of people")
    people = np.array([len(names) for names in stories["names"]])
    lines = table(page, "#groups-body")
    assert len(lines) == len(set(people.tolist()))
    for name, count, *cells in lines:
        members = people == int(name)
        assert int(count) == members.sum()
        expected = [correct(content["sets"][0], model)[:, members].mean() for model in REPLICAS]
        np.testing.assert_allclose([float(cell) for cell in cells], expected, atol=0.005001)
    find(page, "#groups-body .sort")[0].click()
    names = [int(line[0]) for line in table(page, "#groups-body")]
    assert names == sorted(names, reverse=True)


def test_a_long_table_is_short_until_all_rows_are_asked_for(page, stories) -> None:
    short = table(page, "#groups-body")
    (button,) = find(page, "#groups-body > button")
    count = int(button.text.removeprefix("Show all "))
    button.click()
    lines = table(page, "#groups-body")
    assert lines[:20] == short and len(lines) == count > 20 == len(short)
    assert Counter({line[0]: int(line[1]) for line in lines}) == Counter(stories["clause"])
    assert not find(page, "#groups-body > button")
