"""Reading CLUTRR tables: what is kept, and what is said of what cannot be read."""

import csv
import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import UNSTATED, by_people, concatenate, parse, tasks
from generator.errors import InputError
from generator.kinship import RELATION_ID

ROW = {
    "": "0",
    "story": "[Ann] and her son [Bob] met [Bob]'s sister [Cy].",
    "query": "('Ann', 'Cy')",
    "target": "daughter",
    "task_name": "task_1.2",
    "story_edges": "[(0, 1), (1, 2)]",
    "edge_types": "['son', 'sister']",
    "query_edge": "(0, 2)",
    "genders": "Ann:female,Bob:male,Cy:female",
    "task_split": "train",
}


def table(*changes: dict[str, str]) -> bytes:
    """A CSV file with one row for each set of changed cells."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(ROW))
    writer.writeheader()
    writer.writerows({**ROW, **change} for change in changes)
    return text.getvalue().encode()


def test_a_row_is_read_cell_by_cell(tmp_path: Path) -> None:
    (tmp_path / "x_train.csv").write_bytes(table({}))
    records = load(tmp_path).train
    assert records is not None
    assert list(records.names) == ["Ann", "Bob", "Cy"]
    assert records.genders.tolist() == [1, 0, 1]
    assert records.senders.tolist() == [0, 1] and records.receivers.tolist() == [1, 2]
    assert records.relations.tolist() == [RELATION_ID["son"], RELATION_ID["sister"]]
    assert records.query.tolist() == [[0, 2]]
    assert records.target.tolist() == [RELATION_ID["daughter"]]
    assert records.task.tolist() == [1] and records.clause_length.tolist() == [2]


def test_noise_facts_without_a_relation_are_unstated(tmp_path: Path) -> None:
    edges = {"story_edges": "[(0, 1), (1, 2), (1, 0)]"}
    (tmp_path / "x_train.csv").write_bytes(table(edges))
    records = load(tmp_path).train
    assert records is not None and records.relations[2] == UNSTATED


@pytest.mark.parametrize(
    ("column", "cell", "expected"),
    [
        ("query", "('Ann', 'Dan')", '"Dan" is not in the story'),
        ("query", "Ann, Cy", "expected a pair of names"),
        ("query", "('Bob', 'Cy')", "different people"),
        ("target", "cousin", 'unknown label "cousin"'),
        ("target", "22", 'unknown label "22"'),
        ("edge_types", "['son', 'boss']", 'unknown relation "boss"'),
        ("edge_types", "['son', 'son', 'son']", "3 relations for 2 story_edges"),
        ("edge_types", "son", "expected a list of relations"),
        ("story_edges", "[(0, 1), (1, 9)]", "no such node"),
        ("story_edges", "[]", "no fact"),
        ("story_edges", "__import__('os')", "expected a list of node pairs"),
        ("query_edge", "(0, 0)", "query and query_edge name different people"),
        ("query_edge", "(0, 7)", "no such node"),
        ("query_edge", "0", "expected a pair of nodes"),
        ("genders", "Ann:female,Bob:male,Cy", 'cannot read "Cy"'),
        ("genders", "Ann:female,Ann:male,Cy:male", "stands twice"),
        ("task_name", "seven", "expected a task such as task_1.3"),
    ],
)
def test_a_bad_cell_is_named(tmp_path: Path, column: str, cell: str, expected: str) -> None:
    path = tmp_path / "x_train.csv"
    path.write_bytes(table({}, {column: cell}))
    with pytest.raises(InputError) as error:
        load(path)
    message = str(error.value)
    assert str(path) in message and "row 2" in message and expected in message
    assert '"query' in message or f'column "{column}"' in message
    assert "\n" not in message


@pytest.mark.parametrize("column", ["story", "query", "target", "story_edges", "genders"])
def test_a_missing_column_is_named(tmp_path: Path, column: str) -> None:
    rows = list(csv.reader(io.StringIO(table({}).decode())))
    place = rows[0].index(column)
    text = "\n".join(",".join(f'"{c}"' for c in row[:place] + row[place + 1 :]) for row in rows)
    (tmp_path / "x_train.csv").write_text(text)
    with pytest.raises(InputError, match=f'no column "{column}"'):
        load(tmp_path / "x_train.csv")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a_train.csv", b"", "empty file"),
        ("a_train.csv", table(), "no rows"),
        ("a_train.csv", b"\xff\xfe\x00", "not a UTF-8 CSV"),
        ("a_train.csv", table({})[:-30], "not a CSV row"),
        ("a_train.csv", table({})[:-8], "9 cells, expected 10"),
        ("a.zip", b"PK\x03\x04 and then nothing", "truncated zip"),
        ("a_train.parquet", b"PAR1", "not a readable Parquet"),
        ("a_train.csv.gz", b"\x1f\x8b\x08 no", "not a UTF-8 CSV"),
        ("a.txt", b"story", "expected a folder, a .zip"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as error:
        load(tmp_path / name)
    assert expected in str(error.value) and name in str(error.value)


def test_nothing_there_is_said(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.csv", tmp_path):
        with pytest.raises(InputError, match=r"no such file|cannot be read|no data in it"):
            load(path)


def test_a_truncated_zip_is_named(small_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in small_folder.iterdir():
            archive.write(file, f"data/{file.name}")
    content = path.read_bytes()
    for size in (10, len(content) // 2, len(content) - 5):
        path.write_bytes(content[:size])
        with pytest.raises(InputError, match="zip"):
            load(path)


def test_every_form_of_a_data_set_reads_the_same(small_folder: Path, tmp_path: Path) -> None:
    """Folder, zip, gzip, and the Hugging Face columns (one file per split, numeric target)."""
    folder = load(small_folder)
    assert folder.train is not None and folder.test is not None
    archive, hugging, zipped = tmp_path / "d.zip", tmp_path / "hf", tmp_path / "gz"
    hugging.mkdir()
    zipped.mkdir()
    with zipfile.ZipFile(archive, "w") as target:
        for file in small_folder.glob("*.csv"):
            target.write(file, f"inner/{file.name}")
            (zipped / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    for split in ("train", "test"):
        rows: list[dict[str, str]] = []
        for file in sorted(small_folder.glob(f"*_{split}.csv")):
            rows += csv.DictReader(file.open(newline=""))
        columns = {name: [row[name] for row in rows] for name in rows[0] if name}
        columns |= {"target": [RELATION_ID[name] for name in columns["target"]]}
        columns |= {"target_text": columns["target"]}
        pq.write_table(pa.table(columns), hugging / f"{split}-00000-of-00001.parquet")
    for path in (archive, hugging, zipped):
        other = load(path)
        assert other.train is not None and other.test is not None
        assert list(other.train.stories) == list(folder.train.stories)
        assert dict((t, len(r)) for t, r in tasks(other.test)) == dict(
            (t, len(r)) for t, r in tasks(folder.test)
        )
        np.testing.assert_array_equal(other.train.target, folder.train.target)
        np.testing.assert_array_equal(other.train.relations, folder.train.relations)


def test_one_file_is_split_by_its_column(tmp_path: Path) -> None:
    (tmp_path / "all.csv").write_bytes(table({}, {"task_split": "test"}, {}))
    data = load(tmp_path / "all.csv")
    assert data.train is not None and data.test is not None
    assert (len(data.train), len(data.test)) == (2, 1)


def test_zip_entries_never_leave_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "inner" / "x.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../escaped_train.csv", table({}))
    load(path)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["inner", "x.zip"]


@given(rows=st.lists(st.integers(0, 119), min_size=1, max_size=30))
@settings(max_examples=30)
def test_selecting_then_joining_keeps_every_story(small, rows: list[int]) -> None:
    records = small.train
    parts = [records.select(np.array([row])) for row in rows]
    joined, selected = concatenate(parts), records.select(np.array(rows))
    for name in ("names", "stories"):
        assert list(getattr(joined, name)) == list(getattr(selected, name))
    for name in ("senders", "relations", "node_start", "edge_start", "query", "target", "genders"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(selected, name))


@given(cell=st.text(max_size=60), column=st.sampled_from(list(ROW)[1:]))
@settings(max_examples=300)
def test_any_cell_is_read_or_named(cell: str, column: str) -> None:
    row = {**ROW, column: cell}
    try:
        parse("file", list(row), [list(row.values())])
    except InputError as error:
        assert "row 1" in str(error)


@pytest.mark.parametrize("most", [1, 9, 40, 500])
def test_groups_hold_each_story_once_and_few_pairs(small_folder, most: int) -> None:
    records = load(small_folder).train
    people = np.diff(records.node_start)
    groups = list(by_people(records, most))
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(records)))
    for rows in groups:
        assert len(set(people[rows])) == 1
        assert len(rows) == 1 or len(rows) * people[rows[0]] ** 2 <= most
