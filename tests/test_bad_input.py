"""Bad input is refused with one line that names the file, within limits of time and memory."""

import gzip
import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clutrr_jax.data.dataset import load
from clutrr_jax.data.prepare import prepare
from clutrr_jax.language_models.submissions import read_submissions
from clutrr_jax.run import check_run_folder
from generator.config import Config
from generator.errors import InputError
from generator.files import atomic_write
from generator.paraphrases.importer import cut, read_stories
from generator.paraphrases.load import read_bank
from generator.write import write_dataset
from tests.fuzz import checked, error_of
from tests.generator.test_columns import ROW, table

# Offsets of fields in the local and in the central header of a zip entry.
FIELDS = {"flags": (6, 8), "method": (8, 10), "crc": (14, 16), "size": (22, 24), "name": (26, 28)}


def zipped(content: bytes, compression: int = 8, **fields: bytes) -> bytes:
    """A zip file with one entry, and fields of its headers replaced."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        archive.writestr("t_train.csv", content)
    data = bytearray(stream.getvalue())
    for field, value in fields.items():
        for signature, offset in zip((b"PK\x03\x04", b"PK\x01\x02"), FIELDS[field], strict=True):
            at = data.index(signature) + offset
            data[at : at + len(value)] = value
    return bytes(data)


def zipped_zeros() -> bytes:
    """1.1 GB of zeros in 1.1 MB, with correct sizes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    size = (1100 << 20).to_bytes(4, "little")
    return zipped(block * 1100 + b"\x03\x00", zipfile.ZIP_STORED, method=b"\x08\x00", size=size)


def gzipped_rows() -> bytes:
    header, row = table({}).split(b"\r\n", 1)
    return gzip.compress(header + b"\r\n") + gzip.compress(row * 4000) * 40


def parquet(copies: int, story: str) -> bytes:
    """A table whose rows are all the same; every cell is stored once."""
    rows = pa.array(np.zeros(copies, np.int32))
    cells = {**ROW, "story": story}
    columns = [pa.DictionaryArray.from_arrays(rows, pa.array([cell])) for cell in cells.values()]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, list(cells)), sink, compression="zstd")
    return sink.getvalue()


ROWS = table(*[{}] * 40)
LINE = json.dumps(ROW).encode()
TABLES: list[tuple[str, bytes | Callable[[], bytes], str]] = [
    ("a.txt", b"story", "expected a folder, a .zip"),
    ("a.csv", b"", "empty file"),
    ("a.csv", table(), "no rows"),
    ("a.csv", b",id,story\n0,a,b\n", 'no column "query"'),
    ("a.csv", b"\xff\xfe\x00", "not a UTF-8 CSV"),
    ("a.csv", ROWS[:-30], "row 40: not a CSV row"),
    ("a.csv", ROWS[:-8], "row 40: 9 cells, expected 10"),
    ("a.csv.gz", b"\x1f\x8b\x08 no", "not a UTF-8 CSV"),
    ("a.csv.gz", gzip.compress(ROWS)[:-9], "not a UTF-8 CSV"),
    ("a.parquet", b"PAR1", "not a readable Parquet"),
    ("a.parquet", parquet(9, ROW["story"])[:-9], "not a readable Parquet"),
    ("a.zip", b"PK\x03\x04 and then nothing", "truncated zip"),
    *[("a.zip", zipped(ROWS)[:-cut], "truncated zip") for cut in (5, 100, 200)],
    ("a.zip", zipped(ROWS, flags=b"\x01\x00"), "password"),
    ("a.zip", zipped(ROWS, zipfile.ZIP_BZIP2), "unsupported compression"),
    ("a.zip", zipped(ROWS, crc=b"1234"), "CRC"),
    ("a.zip", zipped(ROWS, size=b"\xff\xff\xff\x7f"), "unpacks to 2,147,483,647 bytes"),
    # Small files that unpack to more than a gigabyte.
    ("a.zip", zipped_zeros, "unpacks to 1,153,433,600 bytes or more"),
    ("a.zip", zipped(ROWS, method=b"\x63\x00"), "unsupported compression"),
    ("a.zip", zipped(ROWS, zipfile.ZIP_LZMA), "unsupported compression"),
    ("a.zip", zipped(ROWS, zipfile.ZIP_STORED, method=b"\x08\x00"), "damaged"),
    ("a.zip", zipped(ROWS, size=b"\x05\x00\x00\x00"), "t_train.csv"),
    ("a.zip", zipped(ROWS, name=b"\xff\xff"), "zip"),
    ("a.csv.gz", lambda: gzip.compress(bytes(1 << 20)) * 1100, "not a CSV row"),
    ("a.csv.gz", lambda: gzip.compress(b"," * (1 << 20)) * 1100, "not a CSV row"),
    ("a.csv.gz", lambda: gzip.compress(b'"\n",' * (1 << 18)) * 1100, "not a CSV row"),
    ("a.csv.gz", gzipped_rows, "bytes or more, expected at most"),
    ("a.csv.gz", lambda: gzip.compress(b"\n" * (3 << 20)), "bytes or more, expected at most"),
    ("a.jsonl", b"", "no rows"),
    ("a.jsonl", LINE + b"\n{", "row 2: not a line of JSON"),
    ("a.jsonl", LINE + b"\n" + b"[" * 100_000, "row 2: not a line of JSON"),
    ("a.jsonl", LINE + b"\n3", "row 2: int, expected columns with their cells"),
    ("a.jsonl", LINE.replace(b"daughter", b"\xff"), "not a UTF-8 file"),
    ("a.jsonl", LINE.replace(b"daughter", b"friend"), 'row 1, column "target": unknown label'),
    ("a.jsonl", LINE + b"\n" + LINE.replace(b'"target": ', b'"answer": '), '"target": missing'),
    ("a.jsonl", b'{"story": "' + b"a" * (1 << 24) + b'"}', "over 16,777,216 characters"),
    ("a.parquet", lambda: parquet(300_000, "x " * 500), "bytes or more, expected at most"),
    ("a.parquet", lambda: parquet(1, "x" * 50_000_000), "bytes or more, expected at most"),
]


@pytest.mark.parametrize(("name", "content", "message"), TABLES)
def test_a_bad_table_is_refused(name: str, content, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content())
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


# Archives and folders.


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


def test_a_link_in_an_archive_is_not_followed(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("t_train.csv")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert 'no column "query"' in error_of(load, tmp_path / "x.zip")


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


# Writing.


def test_a_failed_write_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a" / "x.txt"
    with atomic_write(path) as part:
        part.write_text("old")
    for error, raised in (OSError(28, "No space left"), InputError), (KeyError(), KeyError):
        with pytest.raises(raised), atomic_write(path) as part:
            part.write_text("half")
            raise error
    assert path.read_text() == "old" and list(path.parent.iterdir()) == [path]
    with (
        pytest.raises(InputError, match="cannot be written"),
        atomic_write(path / "y"),
    ):
        pass
