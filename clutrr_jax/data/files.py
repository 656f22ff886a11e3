"""Published files -> a `Dataset` of train and test records.

Read are: a release as .zip or folder, a single CSV, what the generator writes, and the Hugging Face
data set `CLUTRR/v1` (the same columns, `target` a number) as CSV or Parquet, each plain or .csv.gz.
"""

import csv
import gzip
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clutrr_jax.data.records import COLUMNS, Records, concatenate, parse
from generator.errors import InputError, at

SUFFIXES = (".csv", ".csv.gz", ".parquet")
MAX_BYTES = 1 << 30  # no table in memory may be larger: a bomb, or data that must be cut
csv.field_size_limit(1 << 24)


@dataclass(frozen=True)
class Dataset:
    """A data set: what to train on (None in a file of tests alone) and what to test on."""

    name: str
    train: Records | None
    test: Records | None


def load(path: str | Path) -> Dataset:
    """Reads a data set. A file whose name contains `test` is test data, any other is train data
    (the Hugging Face `validation` split too: every replica draws its own dev split); in a single
    file whose name says neither, the column `task_split` decides row by row.

    Raises:
      InputError: nothing there, nothing to read in it, or a row that cannot be used.
    """
    path = Path(path)
    train: list[Records] = []
    test: list[Records] = []
    for name, header, rows in read_tables(path):
        records = parse(name, header, rows)
        is_test = mark_tests(name, header, rows)
        for part, chosen in ((train, ~is_test), (test, is_test)):
            if chosen.any():
                part.append(records.select(chosen))
    if not train and not test:
        raise InputError(f"{at(path)}: no data in it, expected files *_train.csv and *_test.csv")
    return Dataset(
        name=path.name.removesuffix(".zip"),
        train=concatenate(train) if train else None,
        test=concatenate(test) if test else None,
    )


def read_tables(path: Path) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Name, header and rows of every table of the data set, ordered by name. Raises InputError."""
    for name, content in _tables(path):
        yield name, *_read_table(name, content)


def mark_tests(name: str, header: list[str], rows: list[list[str]]) -> np.ndarray:
    """Which rows of a table are test data, as `load` says. bool [rows]."""
    base = Path(name).name.lower()
    if "test" in base:
        return np.ones(len(rows), bool)
    if "train" in base or "valid" in base or "task_split" not in header:
        return np.zeros(len(rows), bool)
    place = header.index("task_split")
    return np.array([row[place] == "test" for row in rows])


def _tables(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of every table of the data set, ordered by name."""
    try:
        if path.is_dir():
            for file in sorted(path.iterdir()):
                if file.name.endswith(SUFFIXES) and not file.name.startswith("."):
                    yield str(file), _limited(str(file), file.stat().st_size, file.read_bytes)
        elif path.suffix == ".zip":
            yield from _zip_tables(path)
        elif path.name.endswith(SUFFIXES):
            yield str(path), _limited(str(path), path.stat().st_size, path.read_bytes)
        elif path.exists():
            raise InputError(
                f"{at(path)}: expected a folder, a .zip, or one of {', '.join(SUFFIXES)}"
            )
        else:
            raise InputError(f"{at(path)}: no such file or folder, expected CLUTRR data")
    except OSError as error:
        raise InputError(f"{at(path)}: cannot be read ({error.strerror or error})") from None


def _zip_tables(path: Path) -> Iterator[tuple[str, bytes]]:
    """Tables of an archive, read in memory: nothing is ever extracted to disk."""
    try:
        with zipfile.ZipFile(path) as archive:
            for member in sorted(archive.infolist(), key=lambda m: m.filename):
                base = member.filename.rpartition("/")[2]
                if base.endswith(SUFFIXES) and not base.startswith("."):
                    name = f"{path}/{member.filename}"
                    with archive.open(member) as stream:
                        size = member.file_size
                        yield name, _limited(name, size, lambda s=stream: s.read(MAX_BYTES))
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InputError(f"{at(path)}: damaged or truncated zip ({error})") from None


def _limited(name: str, size: int, read) -> bytes:
    if size >= MAX_BYTES:
        raise InputError(f"{at(name)}: {size} bytes, expected under {MAX_BYTES}")
    return read()


def _read_table(name: str, content: bytes) -> tuple[list[str], list[list[str]]]:
    """Header and cells of one table, all as text."""
    if not content:
        raise InputError(f"{at(name)}: empty file, expected a table with {', '.join(COLUMNS)}")
    if name.endswith(".parquet"):
        return _read_parquet(name, content)
    try:
        if name.endswith(".gz"):
            content = gzip.GzipFile(fileobj=io.BytesIO(content)).read(MAX_BYTES)
        text = content.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{at(name)}: not a UTF-8 CSV file ({error})") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[list[str]] = []
    try:
        rows.extend(reader)
    except csv.Error as error:
        raise InputError(f"{at(name, max(len(rows), 1))}: not a CSV row ({error})") from None
    if not rows:
        raise InputError(f"{at(name)}: empty file, expected a table with {', '.join(COLUMNS)}")
    return rows[0], rows[1:]


def _read_parquet(name: str, content: bytes) -> tuple[list[str], list[list[str]]]:
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        if sum(file.metadata.row_group(g).total_byte_size for g in range(file.num_row_groups)) >= (
            MAX_BYTES
        ):
            raise InputError(f"{at(name)}: over {MAX_BYTES} bytes when read, expected less")
        header = [
            column for column in file.schema_arrow.names if column in (*COLUMNS, "task_split", "id")
        ]
        table = file.read(columns=header)
        columns = [
            ["" if cell is None else str(cell) for cell in table.column(column).to_pylist()]
            for column in header
        ]
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{at(name)}: not a readable Parquet file ({reason})") from None
    return header, [list(row) for row in zip(*columns, strict=True)]
