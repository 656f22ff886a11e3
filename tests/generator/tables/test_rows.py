"""The fewest columns that a data set needs: `story` or `facts`, `query`, `target`."""

import json

import numpy as np
import pytest

import clutrr_jax
from clutrr_jax.data.records import columns
from clutrr_jax.evaluation.ground_truth import GroundTruth
from generator.errors import InputError
from generator.relations.kinship import FEMALE, MALE, UNKNOWN_GENDER
from generator.tables import dialects
from generator.tables.dialects import Dialect
from generator.tables.rows import NO_TARGET, parse_rows

STORY = "[Ann] and her son [Bob] went out. [Bob]'s sister is [Cy]."
FACTS = [("Ann", "son", "Bob"), ("Bob", "sister", "Cy")]
TEXT = {"story": STORY, "query": ("Ann", "Cy"), "target": "daughter"}
GRAPH = {"facts": FACTS, "query": ("Ann", "Cy"), "target": "daughter", "k": 2}


def load(*rows: dict) -> clutrr_jax.Dataset:
    return clutrr_jax.load({"test": list(rows)})


def first(row: dict) -> clutrr_jax.Story:
    return load(row).test.story(0)


def test_text_needs_a_story_a_query_and_a_target() -> None:
    story = first(TEXT)
    assert story.text == STORY and story.people == ("Ann", "Bob", "Cy")
    assert story.facts == () and story.query == ("Ann", "Cy") and story.target == "daughter"
    assert first({**TEXT, "story": STORY.replace("[", "").replace("]", ""),
                  "names": ["Ann", "Bob", "Cy"]}) == story  # fmt: skip


def test_a_graph_needs_facts_a_query_and_a_target() -> None:
    data = load(GRAPH)
    story = data.test.story(0)
    assert story.text == "" and story.facts == tuple(FACTS) and story.k == 2
    # Nobody says whether Ann is a mother or a father.
    assert data.test.genders.tolist() == [UNKNOWN_GENDER, MALE, FEMALE]


@pytest.mark.parametrize(
    ("facts", "query"),
    [
        (str(FACTS), "('Ann', 'Cy')"),
        ('[["Ann", "son", "Bob"], ["Bob", "Sister", "Cy"]]', '["Ann", "Cy"]'),
        (np.array(FACTS), "Ann,Cy"),
        ([list(fact) for fact in FACTS], np.array(["Ann", "Cy"])),
        ([(f" {x}", r, f"{y} ") for x, r, y in FACTS], (" Ann", "Cy ")),
    ],
)
def test_facts_and_query_have_several_forms(facts, query) -> None:
    assert first({**GRAPH, "facts": facts, "query": query}) == first(GRAPH)


@pytest.mark.parametrize("missing", [None, float("nan"), "", " "])
def test_rows_of_one_table_may_state_their_people_and_facts_in_different_columns(missing) -> None:
    parts = {"story": "", "facts": FACTS}, {"story": STORY, "facts": missing}
    empty = {"names": missing, "genders": missing, "query": "Ann, Cy", "target": "daughter"}
    test = load(*({**row, **empty} for row in parts)).test
    assert test.story(0) == first({**GRAPH, "k": None}) and test.story(1) == first(TEXT)


def test_the_least_columns_say_the_same_as_the_published_ones() -> None:
    test = clutrr_jax.generate(
        train="1.2", test="1.2,1.4,3.3", train_rows=3, test_rows=5, language="synthetic", seed=3
    ).test
    stories = [test.story(i) for i in range(len(test))]
    rows = [
        {"story": s.text, "facts": s.facts, "names": list(s.people), "query": s.query,
         "target": s.target, "k": s.k}
        for s in stories
    ]  # fmt: skip
    same = load(*rows).test
    assert [same.story(i)._replace(id="") for i in range(len(same))] == [
        s._replace(id="") for s in stories
    ]
    assert set(same.task) == {0}
    known = same.genders != UNKNOWN_GENDER
    np.testing.assert_array_equal(same.genders[known], test.genders[known])
    truth, published = GroundTruth(same), GroundTruth(test)
    np.testing.assert_array_equal(truth.possible_answers, published.possible_answers)
    np.testing.assert_array_equal(
        truth.baselines["given rules"].relation, published.baselines["given rules"].relation
    )


@pytest.mark.parametrize("row", [TEXT, GRAPH, {**TEXT, **GRAPH}])
def test_records_are_read_as_they_were_written(row, tmp_path) -> None:
    data = load(row)
    data.to_parquet(tmp_path)
    again = clutrr_jax.load(tmp_path)
    assert again.test.story(0) == data.test.story(0)
    assert columns(again.test) == columns(data.test)


def test_rows_of_several_kinds_are_read_as_they_were_written(tmp_path) -> None:
    """Some with facts, some with text, and the noise of some is known; after data of RCC-8."""
    regions = {"facts": [("a", "PO", "b"), ("b", "EQ", "c")], "query": ("a", "c"), "target": "PO"}
    clutrr_jax.load({"test": [regions]}).to_parquet(tmp_path)
    all_columns = dict.fromkeys([*GRAPH, *TEXT, "task_name"])
    rows = [GRAPH | TEXT | {"task_name": "task_2.2"}, TEXT, TEXT | {"task_name": "task_1.2"}, GRAPH]
    data = load(*(all_columns | row for row in rows))
    data.to_parquet(tmp_path)
    again = clutrr_jax.load(tmp_path)
    assert [again.test.story(i) for i in range(4)] == [data.test.story(i) for i in range(4)]
    assert again.test.task.tolist() == data.test.task.tolist() == [2, 0, 1, 0]
    assert again.test.clause_length.tolist() == data.test.clause_length.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 9, "task_name": "task_1.2"}, '"k": 9, but task_name'),
        ({"names": ["X", "Y"], "genders": "Ann:female,Bob:male,Cy:female"}, "other people than"),
        ({"target_text": "aunt"}, 'but target_text is "aunt"'),
        ({"story_edges": "[(0, 1)]", "edge_types": "['father']", "query_edge": "(0, 2)",
          "genders": "Ann:female,Bob:male,Cy:female"}, "other facts than story_edges"),
    ],
)  # fmt: skip
def test_two_columns_that_contradict_each_other_are_reported(change: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(GRAPH | change)


def test_a_key_twice_in_a_line_of_json_is_reported(tmp_path) -> None:
    line = json.dumps(GRAPH)[:-1] + ', "target": "aunt"}'
    (tmp_path / "test.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match=r'row 1: .*"target" twice'):
        clutrr_jax.load(tmp_path / "test.jsonl")


def test_rows_of_unknown_k_have_a_column_of_their_own() -> None:
    rows = [{**GRAPH, "k": 2}] * 3 + [{**GRAPH, "k": None}] * 2
    answers = ["daughter"] * 3 + ["son"] * 2
    table = clutrr_jax.evaluate({"own": answers}, load(*rows)).tables()[0]
    assert table[0] == ["model", "given", "no k", "k=2"]
    assert table[1] == ["own (1 replica)", "", ".00", "1.00"]


def test_without_k_there_is_one_column_and_without_facts_no_rule() -> None:
    table = clutrr_jax.evaluate({"own": ["daughter", "son"]}, load(TEXT, TEXT)).tables()[0]
    assert table[0] == ["model", "given", "no k"]
    assert not any("rules" in row[0] for row in table)


def test_a_data_set_without_targets_is_not_evaluated() -> None:
    row = {name: cell for name, cell in TEXT.items() if name != "target"}
    data = load(row)
    assert data.test.target.tolist() == [NO_TARGET] and data.test.story(0).target == ""
    with pytest.raises(InputError, match="no target in test row 2, expected one in each"):
        clutrr_jax.evaluate({"own": ["son", "son"]}, load(TEXT, {**TEXT, "target": None}))
    with pytest.raises(InputError, match="no target in train row 1, expected one in each"):
        clutrr_jax.train("bilstm_mean", clutrr_jax.load({"train": [row], "test": [TEXT]}))


BAD_CELLS = {
    "facts": [{"facts": [], "story": " "}] + [
        {"facts": bad} for bad in
        ("Ann son Bob", [("Ann", "son")], [("Ann", 3, "Bob")], "[" * 4000, ("Ann", "son", "Bob"),
         [("Ann", "pal", "Bob")], [("Ann", "son", "Ann")], FACTS * 600)
    ] + [{"names": ["Ann", "Bob"]}],
    "names": [{"names": "[Ann, Bob, Cy]"}, {"names": ["Ann", "Ann"]}],
    "query": [{"query": bad} for bad in ("", "Ann", "Ann,Ann", "Ann,Zed", "ann,Cy")],
    "k": [{"k": bad} for bad in (0, "0000000110000000", "two", 1.5)],
    "target": [{"target": "pal"}],
}  # fmt: skip


@pytest.mark.parametrize("column", BAD_CELLS)
def test_a_bad_cell_is_reported(column: str) -> None:
    for change in BAD_CELLS[column]:
        with pytest.raises(InputError, match=f'^data set/test, row 1, column "{column}": '):
            load(GRAPH | change)


@pytest.mark.parametrize(
    ("header", "missing"),
    [
        ("story,target", "query"),
        ("query,target", "story"),
        ("query,target,story,edge_types", "story_edges"),
        ("query,target,story_edges", "edge_types"),
        ("query,target,story_edges,edge_types", "genders"),
    ],
)
def test_a_missing_column_is_reported(header: str, missing: str) -> None:
    row = dict.fromkeys(header.split(","), "a")
    with pytest.raises(InputError, match=f'^x.csv: no column "{missing}"; expected query, '):
        next(parse_rows("x.csv", [row]))


@pytest.mark.parametrize(("model", "row"), [("gat", TEXT), ("bilstm_mean", GRAPH)])
def test_a_model_refuses_stories_that_it_cannot_read(model: str, row: dict, tmp_path) -> None:
    data = clutrr_jax.load({"train": [row] * 5, "test": [row]})
    what = "facts" if model == "gat" else "text"
    with pytest.raises(InputError, match=f"^{model}: reads {what}, but story 1 of 5 has none; exp"):
        clutrr_jax.train(model, data, replicas=1, epochs=1, folder=tmp_path)


STAR = {"edges": "[(0, 1), (1, 2)]", "edge_labels": "['EC', 'EC']", "query_edge": "(0, 2)"}


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"query_edge": "(1, 3)"}, "query_edge"),  # elements are counted from 0
        ({"edge_labels": "['EC', 'XX']"}, "edge_labels"),
        ({"edges": ""}, "edges"),
        ({"edges": "[(0, 1), (1, 200)]"}, "edges"),
        ({"query_label": "son"}, "query_label"),
    ],
)
def test_columns_of_star_are_named_as_in_its_files(change: dict, column: str) -> None:
    with pytest.raises(InputError, match=f'^x_test.csv, row 1, column "{column}": '):
        next(parse_rows("x_test.csv", [STAR | change]))


def test_names_of_files_of_star_state_the_number_of_paths_and_their_length() -> None:
    row = next(parse_rows("test_rcc8_k_3_b_2.csv", [STAR]))
    assert (row.noise, row.k) == (2, 3) and row.names == ("0", "1", "2")
    with pytest.raises(InputError, match='no column "edges"; expected edges, edge_labels'):
        next(parse_rows("test.csv", [{"edge_labels": "['EC']", "query_edge": "(0, 2)"}]))


def test_another_dialect_is_one_entry(monkeypatch) -> None:
    """With names of columns of its own, and a cell that needs more than another name."""

    def cells(row, file):
        return {"facts": [part.split(">") for part in row["triples"].split(";")]}

    own = Dialect("own", ("triples",), (("triples",), ("pair",)), {"pair": "query"}, cells)
    monkeypatch.setattr(dialects, "DIALECTS", (own, *dialects.DIALECTS))
    row = {"triples": "Ann>son>Bob;Bob>sister>Cy", "pair": "Ann, Cy"}
    assert first(row).facts == tuple(FACTS)
    with pytest.raises(InputError, match='row 1, column "pair": '):
        first(row | {"pair": "Ann"})
    with pytest.raises(InputError, match="row 1: not a row of own "):
        first(row | {"triples": None})
