"""Reading data sets as `Records`."""

import csv
import gzip
import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import UNSTATED, Records, build_records, by_people, concatenate, tasks
from clutrr_jax.data.story_ids import story_ids
from generator.columns import parse_rows
from generator.errors import InputError
from generator.kinship import RELATION_ID
from tests.generator.test_columns import ROW


def records_of(*changes: dict[str, str]) -> Records:
    """Records with one story for each set of changed cells of ROW."""
    cells = [list({**ROW, **change}.values()) for change in changes]
    return build_records("x", parse_rows("x", list(ROW), cells))


def test_a_row_is_stored_in_flat_arrays() -> None:
    records = records_of({}, {"story_edges": "[(0, 1), (1, 2), (1, 0)]"})
    assert list(records.names) == ["Ann", "Bob", "Cy"] * 2
    assert records.genders.tolist() == [1, 0, 1] * 2
    assert records.senders.tolist() == [0, 1, 0, 1, 1]
    assert records.receivers.tolist() == [1, 2, 1, 2, 0]
    son, sister = RELATION_ID["son"], RELATION_ID["sister"]
    assert records.relations.tolist() == [son, sister, son, sister, UNSTATED]
    assert records.node_start.tolist() == [0, 3, 6] and records.edge_start.tolist() == [0, 2, 5]
    assert records.query.tolist() == [[0, 2]] * 2
    assert records.target.tolist() == [RELATION_ID["daughter"]] * 2
    assert records.task.tolist() == [1, 1] and records.clause_length.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": "('Ann', 'Dan')"}, '"Dan" is not in the story'),
        ({"query": "('Bob', 'Cy')"}, "query and query_edge name different people"),
        ({"query_edge": "(0, 0)"}, "query and query_edge name different people"),
        ({"query": "('Ann', 'Ann')", "query_edge": "(0, 0)"}, "expected two different people"),
    ],
)
def test_a_contradictory_query_is_reported(change: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=f'^x, row 2, column "query": .*{message}'):
        records_of({}, change)


@pytest.mark.parametrize("content", [None, []])
def test_a_path_without_data_is_reported(content, tmp_path: Path) -> None:
    path = tmp_path / "data"
    if content is not None:
        path.mkdir()
    with pytest.raises(InputError, match=r"no such file or folder|no data, expected a train"):
        load(path)


def test_all_formats_of_a_data_set_are_equivalent(small_folder: Path, tmp_path: Path) -> None:
    """Folder, zip, gzip, JSON Lines, and the columns of Hugging Face with a numeric target."""
    folder = load(small_folder)
    assert folder.train is not None and folder.test is not None
    archive, hugging_face, gzipped = tmp_path / "d.zip", tmp_path / "hf", tmp_path / "gz"
    lines = tmp_path / "lines"
    for path in (hugging_face, gzipped, lines):
        path.mkdir()
    with zipfile.ZipFile(archive, "w") as target:
        for file in small_folder.glob("*.csv"):
            target.write(file, f"inner/{file.name}")
            (gzipped / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    for split in ("train", "test"):
        rows: list[dict[str, str]] = []
        for file in sorted(small_folder.glob(f"*_{split}.csv")):
            rows += csv.DictReader(file.open(newline=""))
        columns = {name: [row[name] for row in rows] for name in rows[0] if name}
        columns |= {"target": [RELATION_ID[name] for name in columns["target"]]}
        columns |= {"target_text": columns["target"]}
        (lines / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        pq.write_table(pa.table(columns), hugging_face / f"{split}-00000-of-00001.parquet")
    for path in (archive, hugging_face, gzipped, lines):
        other = load(path)
        assert other.train is not None and other.test is not None
        assert list(other.train.stories) == list(folder.train.stories)
        assert story_ids(other.test) == story_ids(folder.test)
        assert [(t, len(r)) for t, r in tasks(other.test)] == [
            (t, len(r)) for t, r in tasks(folder.test)
        ]
        np.testing.assert_array_equal(other.train.target, folder.train.target)
        np.testing.assert_array_equal(other.train.relations, folder.train.relations)


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
