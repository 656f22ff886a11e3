"""Readers of tables: .csv, .csv.gz, .jsonl and .parquet files, alone, in a folder or in a .zip, and
rows in memory. A row is a mapping from column to cell: text, a number, a list or None.

Nothing is unpacked to disk.
"""

import csv
import gzip
import io
import json
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from generator.errors import InputError, at, check_utf8
from generator.files import json_values, read_json, reading
from generator.splits import NAMES, split_of_folder
from generator.tables.cells import is_frame, plain

Rows = Iterator[Any]

csv.field_size_limit(1 << 24)  # answers of language models are long


def csv_rows(name: str, file: Any) -> Rows:
    """Yields the rows of a CSV file with a header, without empty lines."""
    index, header = -1, list[str]()
    try:
        with io.TextIOWrapper(file, "utf-8-sig", newline="") as lines:
            for index, cells in enumerate(filter(None, csv.reader(lines, strict=True))):
                header = header or check_columns(name, cells)
                if len(cells) != len(header):
                    problem = f"{len(cells)} cells, expected {len(header)}"
                    raise InputError(f"{at(name, index)}: {problem}")
                if index:
                    yield dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise InputError(f"{at(name, max(index + 1, 1))}: not a CSV row ({error})") from None


def parquet_rows(name: str, file: Any) -> Rows:
    """Yields the rows of a Parquet file, with the names of class labels."""
    import pyarrow.parquet as pq  # only this format needs it

    parquet = pq.ParquetFile(io.BytesIO(file.read()))
    check_columns(name, parquet.schema_arrow.names)
    features: dict[str, Any] = {}
    with suppress(ValueError, KeyError, TypeError):  # written by the package `datasets`, if at all
        features = json.loads(parquet.schema_arrow.metadata[b"huggingface"])["info"]["features"]
    rows = (row for batch in parquet.iter_batches(1024) for row in batch.to_pylist())
    return with_label_names(name, rows, features)


READERS: dict[str, Callable[[str, Any], Rows]] = {
    ".csv": csv_rows,
    ".csv.gz": lambda name, file: csv_rows(name, gzip.GzipFile(fileobj=file)),
    ".parquet": parquet_rows,
    ".jsonl": json_values,
}
SUFFIXES = tuple(READERS)
# Ends of names of tables; those that have no reader are refused.
_TABLES = {".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".xls", ".xlsx", ".arrow", ".feather"}


def table_rows(path: Path) -> Rows:
    """Yields the rows of one file, at least one: CSV unless its name ends otherwise."""
    return _rows(str(path), partial(path.open, "rb"))


def _rows(name: str, open_file: Callable[[], Any]) -> Rows:
    read = next((READERS[end] for end in SUFFIXES if name.endswith(end)), csv_rows)
    row = None
    try:
        with open_file() as file:
            for row in read(name, file):
                yield row
    except InputError:
        raise
    except Exception as error:  # the libraries raise a dozen kinds for damaged files
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{name}: damaged, not a readable table ({reason})") from None
    if row is None:
        raise InputError(f"{name}: no rows, expected a header and at least one row")


def sources(path: Path) -> list[tuple[str, Rows]]:
    """Name and rows of each table of a file, .zip or folder, at least one, of one data set. The
    name of one in a .zip is the path of the archive and the path within it."""
    found: dict[str, Callable[[], Any]] = {}
    with reading(path):
        if path.is_dir():
            found = {str(file): partial(file.open, "rb") for file in _folder_tables(path)}
        elif path.is_file() and path.suffix == ".zip":
            found = {f"{path}/{name}": partial(_member, path, name) for name in _zip_tables(path)}
        elif path.is_file() and path.name.endswith(SUFFIXES):
            found = {str(path): partial(path.open, "rb")}
        elif not path.exists():
            raise InputError(f"{path}: no such file or folder, expected CLUTRR data")
        else:
            raise InputError(f"{path}: expected a folder, a .zip, or one of {', '.join(SUFFIXES)}")
    if not found:
        raise InputError(f"{path}: no data, expected {', '.join(SUFFIXES)} files")
    _check_names(path, list(found))
    with suppress(InputError):  # an interruption of the generator, for example
        names = read_json(path / "config.json", {"generator": str, "files": [str]})["files"]
        if missing := [name for name in names if not (path / name).exists()]:
            more = f" and {len(missing) - 1} others" if missing[1:] else ""
            print(f"{path}: {missing[0]}{more} of config.json are missing", file=sys.stderr)
    return [(name, _rows(name, open_file)) for name, open_file in found.items()]


def _check_names(path: Path, names: list[str]) -> None:
    """Raises InputError for tables that are not read, and for `a/train.csv` and `b/train.csv`, or
    `train.csv` and `train.csv.gz`."""
    check_utf8(*names)
    first: dict[tuple[str, str], str] = {}
    for name in names:
        if not name.endswith(SUFFIXES):
            raise InputError(f"{name}: expected a table that ends in {', '.join(SUFFIXES)}")
        table, within = Path(name), name.removeprefix(f"{path}/")
        split = table.parent.name if split_of_folder(table.parent.name) else ""
        other = first.setdefault((split, Path(table.name.removesuffix(".gz")).stem), within)
        if other != within:
            raise InputError(
                f"{path}: several tables of one name, {other} and {within}; expected one data set"
            )


def _folder_tables(folder: Path) -> list[Path]:
    """The tables in a folder, or in the only data set in it."""
    if files := tables_in(folder):
        return files
    inner = {place.name: files for place in _inside(folder, Path.is_dir)
             if (files := tables_in(place))}  # fmt: skip
    if len(inner) > 1:
        raise InputError(f"{folder}: several data sets, expected one of {', '.join(inner)}")
    return next(iter(inner.values()), [])


def tables_in(folder: Path) -> list[Path]:
    """The tables in a folder or, if it has none, in its folders of one split each."""
    files = _tables(folder)
    if split_of_folder(folder.name):
        return files
    inner = {place: found for place in _inside(folder, Path.is_dir) if (found := _tables(place))}
    of_splits = [table for place, found in inner.items() if split_of_folder(place.name)
                 for table in found]  # fmt: skip
    if files and of_splits:
        raise InputError(f"{of_splits[0]}: a table beside {files[0]}; expected one data set")
    for place in inner if of_splits else ():
        if not split_of_folder(place.name):
            raise InputError(f"{place}: the name states no split, as others do; expected {NAMES}")
    return files or of_splits


def _tables(folder: Path) -> list[Path]:
    """The tables directly in a folder, also those that are not read if some are."""
    files = [file for file in _inside(folder, Path.is_file) if _is_table(file.name)]
    return files if any(file.name.endswith(SUFFIXES) for file in files) else []


def _inside(folder: Path, kind: Callable[[Path], bool]) -> list[Path]:
    every = sorted(folder.iterdir()) if folder.is_dir() else []
    return [place for place in every if kind(place) and not is_foreign(place.name)]


def _zip_tables(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return sorted(name for name in archive.namelist()
                          if _is_table(name) and not is_foreign(name))  # fmt: skip
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise InputError(f"{path}: damaged or truncated zip ({error})") from None


def _member(path: Path, name: str) -> Any:
    with zipfile.ZipFile(path) as archive:
        return archive.open(name)


def _is_table(name: str) -> bool:
    return not name.endswith("/") and any(e.lower() in _TABLES for e in Path(name).suffixes[-2:])


def is_foreign(name: str) -> bool:
    """Returns whether a part of a path within an archive or folder is hidden, or one that an
    operating system or editor adds."""
    parts = re.split(r"[/\\]", name.lower())
    return any(part.startswith((".", "~$", "__macosx")) and part.strip(".") for part in parts)


def memory_rows(name: str, rows: Any) -> Rows:
    """Yields rows in memory: mappings from column to cell, or those of a pandas data frame, whose
    index may have columns too. Class labels of the package `datasets` are read as their names."""
    if is_frame(rows):
        levels = [level for level in rows.index.names if level not in (None, *rows.columns)]
        frame = rows.reset_index(level=levels)
        check_columns(name, map(str, frame.columns))
        rows = frame.to_dict("records")
    if not isinstance(rows, Iterable):
        raise InputError(f"{name}: {type(rows).__name__}, expected rows")
    features = getattr(rows, "features", None)
    row = None
    for row in with_label_names(name, rows, features.to_dict() if features else {}):
        yield row
    if row is None:
        raise InputError(f"{name}: no rows, expected at least one story")


def check_columns(name: str, columns: Iterable[str]) -> list[str]:
    """Returns the columns. Raises InputError if two have the same name."""
    columns = list(columns)
    for column in filter(None, columns):
        if columns.count(column) > 1:
            raise InputError(f'{name}: {columns.count(column)} columns "{column}", expected one')
    return columns


def with_label_names(name: str, rows: Iterable[Any], features: Mapping[str, Any]) -> Rows:
    """Yields rows with the names of class labels in place of their numbers. `features` are the
    types of columns, as the package `datasets` writes them in JSON."""
    labels = {}
    for column, feature in features.items():
        while feature and (isinstance(feature, list) or "feature" in feature):  # of the parts
            feature = feature[0] if isinstance(feature, list) else feature["feature"]
        if feature and feature.get("_type") == "ClassLabel" and (names := feature.get("names")):
            # A mapping in a data card: {"0": "aunt", ...}
            labels[column] = list(names.values() if isinstance(names, Mapping) else names)
    for index, row in enumerate(rows, start=1):
        found = {column: _named(at(name, index, column), plain(row[column]), names)
                 for column, names in labels.items() if column in row}  # fmt: skip
        yield row | found if found else row


def _named(place: str, value: Any, names: list[str]) -> Any:
    """A cell with names in place of class labels, of which -1 is a missing one."""
    if isinstance(value, list):
        return [_named(place, part, names) for part in value]
    if not isinstance(value, int | float) or value == -1:
        return None if value == -1 else value
    if value not in range(len(names)):
        raise InputError(f"{place}: class label {value}, expected one below {len(names)}")
    return names[int(value)]
