"""Bad input is refused with one line that names the file."""

import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clutrr_jax.data.dataset import load
from clutrr_jax.data.prepare import prepare
from clutrr_jax.language_models.submissions import read_submissions
from clutrr_jax.run import check_run_folder
from generator.errors import InputError
from generator.files import atomic_write
from generator.paraphrases.importer import cut, read_stories
from generator.paraphrases.load import read_bank
from generator.stories.config import Config
from generator.write import write_dataset
from tests.fuzz import checked, error_of
from tests.generator.tables.test_columns import ROW, table


def zipped(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t_train.csv", content)
    return stream.getvalue()


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([ROW] * 9), sink)
    return sink.getvalue()


ROWS = table(*[{}] * 40)
LINE = json.dumps(ROW).encode()
TABLES = [
    ("a.txt", b"story", "expected a folder, a .zip"),
    ("a.csv", b"", "no rows"),
    ("a.csv", table(), "no rows"),
    ("a.csv", b",id,story\n0,a,b\n", 'no column "query"'),
    ("a.csv", b"\xff\xfe\x00", "damaged"),
    ("a.csv", ROWS[:-30], "row 40: not a CSV row"),
    ("a.csv", ROWS[:-8], "row 40: 9 cells, expected 10"),
    ("a.csv.gz", b"\x1f\x8b\x08 no", "damaged"),
    ("a.csv.gz", gzip.compress(ROWS)[:-9], "damaged"),
    ("a.parquet", b"PAR1", "damaged"),
    ("a.parquet", parquet()[:-9], "damaged"),
    ("a.zip", b"PK\x03\x04 and then nothing", "damaged"),
    ("a.zip", zipped(ROWS)[:-100], "damaged"),
    ("a.zip", zipped(ROWS).replace(b"t_train", b"u_train", 1), "damaged"),
    ("a.zip", zipped(b""), "t_train.csv: no rows"),
    ("a.jsonl", b"", "no rows"),
    ("a.jsonl", LINE + b"\n{", "row 2: not a line of JSON"),
    ("a.jsonl", LINE + b"\n" + b"[" * 100_000, "row 2: not a line of JSON"),
    ("a.jsonl", LINE + b"\n3", "row 2: int, expected columns with their cells"),
    ("a.jsonl", LINE.replace(b"daughter", b"\xff"), "damaged"),
    ("a.jsonl", LINE.replace(b"daughter", b"friend"), 'row 1, column "target": unknown label'),
    ("a.jsonl", LINE + b"\n" + LINE.replace(b'"target": ', b'"answer": '), '"target": missing'),
]


@pytest.mark.parametrize(("name", "content", "message"), TABLES)
def test_a_bad_table_is_refused(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert message in error_of(load, path)


OTHER_FILES: list[tuple[str, str, Callable[[Path], object], str]] = [
    *[("bank.json", text, read_bank, "")
      for text in ("[" * 100_000, "[]", '"a"', "{", "\xff", '{"templates": 3}', "9" * 5000, "")],
    ("bank.json", json.dumps({"male:son": ["{0} {1}. " + "a. " * 10**5]}), read_bank, "sentences"),
    *[("config.json", text, lambda path: check_run_folder(path.parent, {}), "JSON")
      for text in ("[" * 100_000, "[]", '"a"', "{", "\xff", "9" * 5000, "")],
    ("config.json", "\xff\xfe", lambda path: write_dataset(Config(test_rows=1), path.parent),
     "other settings"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "read", "message"), OTHER_FILES)
def test_a_bad_file_is_refused(name: str, text: str, read, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode("latin-1"))
    error = error_of(read, path)
    assert error and message in error


def test_predictions_are_refused_unless_replicas_have_the_same_stories(small, tmp_path) -> None:
    path = tmp_path / "x.csv"
    rows = "".join(f"1.2/1,aunt,{replica}\n" for replica in range(20_000))
    path.write_text("id,prediction,replica\n" + rows + "1.2/2,aunt,7\n")
    error = error_of(lambda path: read_submissions([path], small.test), path)
    assert "no prediction of replica 0" in error


@pytest.mark.parametrize("name", ["../../t_train.csv", "/t_train.csv", "C:\\t.csv", "a/b/t.csv"])
def test_an_archive_is_read_without_unpacking_to_disk(name: str, tmp_path: Path) -> None:
    path = tmp_path / "inner" / "x.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, table({}))
    with checked(path.parent):
        records = load(path).train
    assert len(records) == 1
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["inner", "x.zip"]


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    """Reading a pipe would block."""
    os.mkfifo(tmp_path / "t_train.csv")
    (tmp_path / "t_test.csv").mkdir()
    assert "no data" in error_of(load, tmp_path)
    assert "expected a folder" in error_of(load, tmp_path / "t_train.csv")


# Regular expressions and loops whose time was once quadratic in the length.


@pytest.mark.parametrize(
    "change",
    [
        {"story": ROW["story"] + "[" * 32_000},
        {"story": ROW["story"] + "[ " * 16_000},
        {"query": "(" + "'a'," * 50_000},
        {"clean_story": "[Ann] " + "a. " * 10_000 + "[Bob] [Cy]"},
        {"story_edges": "[" + "(0, 1)," * 40_000},
    ],
)
def test_long_cells_are_read_in_linear_time(change: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(table({"clean_story": ROW["story"]} | change, {"task_split": "test"}))
    error_of(prepare, path)
    error_of(lambda path: cut(next(iter(read_stories([path]).values()))), path)


def test_a_failed_write_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a" / "x.txt"
    with atomic_write(path) as part:
        part.write_text("old")
    for error, raised in (OSError(28, "No space left"), InputError), (KeyError(), KeyError):
        with pytest.raises(raised), atomic_write(path) as part:
            part.write_text("half")
            raise error
    assert path.read_text() == "old" and list(path.parent.iterdir()) == [path]
    with pytest.raises(InputError, match="cannot be written"), atomic_write(path / "y"):
        pass
