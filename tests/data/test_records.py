"""Reading data sets as `Records`."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import Records, build_records, by_people, concatenate
from generator.errors import InputError
from generator.relations.kinship import NUM_RELATIONS, RELATION_ID
from generator.tables.rows import parse_rows
from tests.generator.tables.test_columns import ROW


def records_of(*changes: dict[str, str]) -> Records:
    """Records with one story for each set of changed cells of ROW."""
    return build_records(list(parse_rows("x", [ROW | change for change in changes])))


def test_a_row_is_stored_in_flat_arrays() -> None:
    records = records_of({}, {"story_edges": "[(0, 1), (1, 2), (1, 0)]"})
    assert list(records.names) == ["Ann", "Bob", "Cy"] * 2
    assert records.genders.tolist() == [1, 0, 1] * 2
    assert records.senders.tolist() == [0, 1, 0, 1, 1]
    assert records.receivers.tolist() == [1, 2, 1, 2, 0]
    son, sister = RELATION_ID["son"], RELATION_ID["sister"]
    assert records.relations.tolist() == [son, sister, son, sister, NUM_RELATIONS]
    assert records.node_start.tolist() == [0, 3, 6] and records.edge_start.tolist() == [0, 2, 5]
    assert records.query.tolist() == [[0, 2]] * 2
    assert records.target.tolist() == [RELATION_ID["daughter"]] * 2
    assert records.task.tolist() == [1, 1] and records.clause_length.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"query": "('Ann', 'Dan')"},
            r'"\[Dan\]" is not in the story: expected two people, with names in',
        ),
        ({"query": "('Bob', 'Cy')"}, "query and query_edge name different people"),
        ({"query": "('Ann', 'Ann')"}, "query and query_edge name different people"),
    ],
)
def test_a_contradictory_query_is_reported(change: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=f'^data set, row 2, column "query": .*{message}'):
        load([ROW, ROW | change])


@pytest.mark.parametrize("content", [None, []])
def test_a_path_without_data_is_reported(content, tmp_path: Path) -> None:
    path = tmp_path / "data"
    if content is not None:
        path.mkdir()
    with pytest.raises(InputError, match=r"no such file or folder|no data, expected .csv"):
        load(path)


@given(rows=st.lists(st.integers(0, 119), min_size=1, max_size=30))
@settings(max_examples=30)
def test_concatenating_single_stories_equals_selecting_them(small, rows: list[int]) -> None:
    records = small.train
    parts = [records.select(np.array([row])) for row in rows]
    joined, selected = concatenate(parts), records.select(np.array(rows))
    for name in ("names", "stories", "ids"):
        assert list(getattr(joined, name)) == list(getattr(selected, name))
    for name in ("senders", "relations", "node_start", "edge_start", "query", "target", "genders"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(selected, name))


@pytest.mark.parametrize("max_pairs", [1, 9, 40, 500])
def test_groups_hold_each_story_once_and_few_pairs(small_folder, max_pairs: int) -> None:
    records = load(small_folder).train
    people = np.diff(records.node_start)
    groups = list(by_people(records, max_pairs))
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(records)))
    for rows in groups:
        assert len(set(people[rows])) == 1
        assert len(rows) == 1 or len(rows) * people[rows[0]] ** 2 <= max_pairs
