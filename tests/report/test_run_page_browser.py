"""The page of a run in a browser."""

import itertools
import json
import re
import shutil

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from clutrr_jax.data.records import tasks
from clutrr_jax.data.vocabulary import sentences, spans
from clutrr_jax.evaluation.attention import read_attention
from clutrr_jax.language_models.submissions import read_predictions
from clutrr_jax.report.__main__ import main
from clutrr_jax.report.tables import format_fraction
from generator.kinship import RELATION_ID, RELATIONS
from tests.report.conftest import EVIL, find, select, table

pytestmark = pytest.mark.browser


@pytest.fixture
def page(open_page, run_folder):
    return open_page(run_folder)


@pytest.fixture(scope="module")
def rows(run_folder) -> list[dict]:
    return json.loads((run_folder / "results.json").read_text())["rows"]


def wait_for_count(page, expected: int) -> None:
    """Waits until the filters match the expected number of stories."""
    text = f" of {expected} stor" if expected else "No matching story"
    count = page.find_element(By.ID, "count")
    WebDriverWait(page, 5).until(lambda _: text in count.text)


def search(page, text: str, expected: int) -> None:
    page.find_element(By.ID, "search").send_keys(text)
    wait_for_count(page, expected)


def test_the_chart_shows_lines_and_details_of_points(page, rows) -> None:
    assert page.title == "<b>test</b> on generated stories"
    assert page.find_element(By.ID, "title").text == page.title
    assert "Replica 2 of gat diverged" in page.find_element(By.ID, "summary").text
    assert len(find(page, "#chart .mark")) == 2 * 4
    button = page.find_element(By.XPATH, "//div[@id='legend']/button[.='gat']")
    assert find(page, "#chart g.c0")
    button.send_keys(Keys.ENTER)
    assert button.get_attribute("aria-pressed") == "false" and not find(page, "#chart g.c0")
    button.click()
    assert find(page, "#chart g.c0")
    chart = page.find_element(By.ID, "chart")
    chart.send_keys(Keys.ARROW_RIGHT)
    (tip,) = find(page, "#chart .tip")
    for text in ("gat", format_fraction(rows[0]["accuracy"]), "20 stories", "3 replicas"):
        assert text in tip.text
    chart.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()


def test_accuracy_by_noise_type_is_the_mean_over_tests(page, rows) -> None:
    of = {row["task"]: row["accuracy"] for row in rows if row["model"] == "gat"}
    clean = format_fraction(np.mean([of["1.2"], of["1.3"], of["1.5"]]))  # of 20 stories each
    other = format_fraction(of["2.4"])
    assert table(page, "#noise-body")[0] == ["gat", clean, other]
    select(page, "noise-k", "k=4")
    assert table(page, "#noise-body")[0] == ["gat", "", other]


def test_filters_select_stories(page, run_folder, test_records) -> None:
    wait_for_count(page, len(test_records))
    best = read_predictions(run_folder / "bilstm_mean" / "predictions.csv", test_records).relation[
        0
    ]
    wrong = best != test_records.target
    select(page, "model", "bilstm_mean")
    select(page, "outcome", "wrong")
    wait_for_count(page, wrong.sum())
    label = int(np.bincount(test_records.target[wrong]).argmax())
    select(page, "target", RELATIONS[label])
    wait_for_count(page, (wrong & (test_records.target == label)).sum())
    search(page, "words that no story has", 0)
    assert not find(page, "#list td")


def test_an_open_story_shows_markup_as_text(page, test_records) -> None:
    search(page, "</script>", sum(EVIL in story for story in test_records.stories))
    first = find(page, "#list tbody button")[0]
    story_id = first.text
    first.send_keys(Keys.ENTER)
    story = page.find_element(By.ID, "story")
    assert story.find_element(By.TAG_NAME, "h3").text == f"Story {story_id}"
    assert EVIL in story.find_element(By.CLASS_NAME, "text").text
    assert not page.find_elements(By.TAG_NAME, "img")
    assert page.current_url.endswith(f"#story={story_id}")
    test, row = story_id.split("/")
    index = dict(tasks(test_records))[test][int(row) - 1]
    edges, people = np.diff(test_records.edge_start), np.diff(test_records.node_start)
    graph = story.find_element(By.CLASS_NAME, "graph")
    assert len(find(graph, ".edge")) == edges[index] + 1  # and the query
    assert len(find(graph, ".node")) == people[index]
    noise = edges[index] - test_records.clause_length[index]
    assert len(find(story.find_element(By.CLASS_NAME, "steps"), ".badge")) == noise


def test_attention_shades_words_and_widens_arrows(page, run_folder, test_records) -> None:
    story = int(dict(tasks(test_records))["1.2"][0])  # open at first
    select(page, "attention", "bilstm_mean, over words")
    shades = page.execute_script(
        "return [...document.querySelectorAll('#story .word')]"
        ".map(word => [word.textContent, parseInt(word.style.getPropertyValue('--v'))])"
    )
    text = test_records.stories[story]
    words = [text[a:b] for a, b in spans(text)]
    names = test_records.names[: test_records.node_start[-1]]
    assert [word for word, _ in shades] == [
        w[1:-1] if w[0] == "[" and w[1:-1] in names else w for w in words
    ]
    weights = read_attention(run_folder / "bilstm_mean", test_records).weights[story]
    assert shades[int(weights.argmax())][1] == 50 == max(shade for _, shade in shades)
    select(page, "attention", "gat, over facts")
    widths = page.execute_script(
        "return [...document.querySelectorAll('.graphs > .graph .edge:not(.query)')]"
        ".map(edge => parseFloat(edge.style.strokeWidth))"
    )
    weights = read_attention(run_folder / "gat", test_records).weights[story]
    np.testing.assert_allclose(widths, 0.75 + 7 * np.rint(9 * weights / weights.max()) / 9, 1e-3)


def test_extracted_graphs_are_compared_with_the_stated_ones(page, test_records) -> None:
    graphs = find(page, "#story .graphs svg")
    positions = [
        [[node.get_attribute(name) for name in ("cx", "x", "y")] for node in find(graph, ".node")]
        for graph in graphs
    ]
    assert len(graphs) == 2 and positions[0] == positions[1] != []
    search(page, "1.3/1", 1)
    find(page, "#list tbody button")[0].click()
    extracted = find(page, "#story .graphs svg")[1]
    labels = [label.text.split()[0] for label in find(extracted, ".label:not(.query)")]
    stated = np.diff(test_records.edge_start)[dict(tasks(test_records))["1.3"][0]]
    assert sorted(labels) == sorted(["✓"] * (stated - 1) + ["∴", "✗", "missing:"])
    for kind in ("follows", "wrong", "missing"):
        assert len(find(extracted, f".edge.extracted-{kind}")) == 1

    lines = table(page, "#extraction-body")
    assert [line[0] for line in lines[:5]] == ["all", "k = 2", "k = 3", "k = 4", "k = 5"]
    assert lines[0][1] == str(len(test_records)) and lines[0][5:8] == ["1", "1", "1"]


def test_sentences_show_the_words_that_state_facts(page, test_records) -> None:
    assert not find(page, "#story .sentences .word")  # the first story
    search(page, "1.3/1", 1)
    find(page, "#list tbody button")[0].click()
    index = int(dict(tasks(test_records))["1.3"][0])
    text = test_records.stories[index]
    words = [text[start:end] for start, end in spans(text)]
    in_sentence = find(page, "#story .sentences > li")
    assert [item.find_element(By.CLASS_NAME, "text").text for item in in_sentence] == [
        re.sub(r"[\[\]]", "", text[part[0][0] : part[-1][1]]) for part in sentences(text)
    ]
    marked = find(page, "#story .sentences .word")
    carrying = [words[0], words[1], words[-1]]
    assert [word.text for word in marked] == [word.strip("[]") for word in carrying]
    kinds = ["states-right", "states-follows", "states-wrong"]
    assert [word.get_attribute("class").split()[1] for word in marked] == kinds
    story = test_records.story(index)
    (x, relation, y), (_, _, other) = story.facts[:2]
    facts = [item.text for item in find(page, "#story .sentences ul li:not(.note)")]
    assert facts[0] == f"{marked[0].text}: {y} is the {relation} of {x} ✓ 93 %"
    assert f" of {y} ∴ 50 %" in facts[1] and f"{x} is the " in facts[1]
    assert facts[2].endswith(f" of {other} ✗ 10 %") and len(facts) == 3
    assert all(fact in in_sentence[0].text for fact in facts[:2])
    assert facts[2] in in_sentence[-1].text


def test_the_table_of_wordings_is_sorted_by_a_column(page) -> None:
    lines = table(page, "#wordings-body")
    assert lines[0][:2] == ["wording of a training story", "yes"]
    value = {"yes": 2, "no": 1, "": 0}
    orders = set()
    for column in (1, 3, 10):
        header = f"#wordings-body th:nth-child({column + 1}) button"
        page.find_element(By.CSS_SELECTOR, header).click()
        cells = [line[column] for line in table(page, "#wordings-body")]
        values = [value[cell] if cell in value else float(cell) for cell in cells]
        assert values == sorted(values, reverse=True)
        orders.add(str(table(page, "#wordings-body")))
        page.find_element(By.CSS_SELECTOR, header).click()
        rising = [line[column] for line in table(page, "#wordings-body")]
        assert rising == cells[::-1]
        page.find_element(By.CSS_SELECTOR, header).click()
        assert table(page, "#wordings-body") == lines
    assert len(orders | {str(lines)}) > 1


def test_without_extracted_graphs_there_is_no_such_section(open_page, run_folder, tmp_path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run_folder, copy)
    (copy / "bilstm_mean" / "extracted.npz").unlink()
    main([str(copy)])
    page = open_page(copy)
    assert not page.find_element(By.ID, "extraction").is_displayed()
    assert len(find(page, "#story .graph svg")) == 1


def test_without_facts_of_words_only_their_list_is_absent(open_page, run_folder, tmp_path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run_folder, copy)
    path = copy / "bilstm_mean" / "extracted.npz"
    with np.load(path) as file:
        arrays = {name: file[name] for name in ("relation", "chance", "rules")}
    np.savez(path, **arrays)
    (copy / "bilstm_mean" / "attention.npz").unlink()
    main([str(copy)])
    page = open_page(copy)
    assert page.find_element(By.ID, "wordings-body").is_displayed()
    assert len(find(page, "#story .graph svg")) == 2 and not find(page, "#story .sentences")


def test_cells_of_the_confusion_matrix_lead_to_their_stories(
    page, run_folder, test_records
) -> None:
    best = read_predictions(run_folder / "gat" / "predictions.csv", test_records).relation
    cells = find(page, "#confusion-body td.heat button")
    found = {}
    for cell in cells:
        pattern = r"(\S+) predicted as (\S+): (\d+) of (\d+)"
        match = re.fullmatch(pattern, cell.get_attribute("aria-label"))
        label, prediction, count, _ = match.groups()
        found[RELATION_ID[label], RELATION_ID[prediction]] = int(count)
    for (label, prediction), count in found.items():
        assert (best[:, test_records.target == label] == prediction).sum() == count
    assert sum(found.values()) == best.size
    label, prediction = next(iter(found))
    cells[0].send_keys(Keys.ENTER)
    matching = (test_records.target == label) & (best == prediction).any(axis=0)
    wait_for_count(page, matching.sum())


def test_groups_have_the_accuracy_of_their_stories(page, run_folder, test_records) -> None:
    best = read_predictions(run_folder / "gat" / "predictions.csv", test_records).relation
    correct = (best == test_records.target).mean(axis=0)
    select(page, "group-by", "number of people")
    people = np.diff(test_records.node_start)
    lines = table(page, "#groups-body")
    assert len(lines) == len(set(people.tolist()))
    for name, stories, gat, _ in lines:
        members = people == int(name)
        assert (int(stories), gat) == (members.sum(), format_fraction(correct[members].mean()))
    find(page, "#groups-body .sort")[0].click()
    names = [int(line[0]) for line in table(page, "#groups-body")]
    assert names == sorted(names, reverse=True)


def test_a_long_table_is_short_until_all_rows_are_asked_for(page, test_records) -> None:
    short = table(page, "#groups-body")
    (button,) = find(page, "#groups-body > button")
    count = int(button.text.removeprefix("Show all "))
    button.click()
    lines = table(page, "#groups-body")
    assert lines[:20] == short and len(lines) == count > 20 == len(short)
    assert sum(int(line[1]) for line in lines) == len(test_records)
    assert not find(page, "#groups-body > button")


def test_the_settings_of_each_model_are_listed(page) -> None:
    gat, bilstm = table(page, "#settings-body")
    assert gat == ["gat", "", "10000", "1000", "100", "0.5", "train.ema_decay 0.9"]
    assert bilstm[0] == "bilstm_mean"


def test_the_accuracy_table_is_sorted_by_a_column(page) -> None:
    before = table(page, "#table-body")
    header = "#table-body th:nth-child(4) button"
    page.find_element(By.CSS_SELECTOR, header).click()
    after = table(page, "#table-body")
    assert sorted(after) == sorted(before) != after
    # Models and baselines by accuracy; indented rows stay below theirs; the last rows stay last.
    values = [float(row[3].split()[0]) for row in after[:-2] if not row[0].startswith(" ")]
    assert values == sorted(values, reverse=True)
    follower = {row[0]: following for row, following in itertools.pairwise(before)}
    for row, following in itertools.pairwise(after):
        if following[0].startswith(" "):
            assert follower[row[0]] == following
    assert after[-2:] == before[-2:]
    page.find_element(By.CSS_SELECTOR, header).click()
    page.find_element(By.CSS_SELECTOR, header).click()
    assert table(page, "#table-body") == before
