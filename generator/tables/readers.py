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
from typing import Any, BinaryIO

from generator.errors import InputError, at, check_utf8
from generator.files import json_values, read_json, reading
from generator.splits import NAMES, split_of_folder
from generator.tables.cells import is_frame, plain

# Name of a table (in a .zip: the path of the archive and the path within it) and its rows.
Source = tuple[str, Iterator[Mapping[str, Any]]]

csv.field_size_limit(1 << 24)  # answers of language models are long


def csv_rows(name: str, file: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yields the rows of a CSV file with a header, without empty lines."""
    index = -1
    try:
        with io.TextIOWrapper(file, "utf-8-sig", newline="") as lines:
            header: list[str] = []
            for index, cells in enumerate(filter(None, csv.reader(lines, strict=True))):
                if not index:
                    header = cells
                    check_columns(name, header)
                elif len(cells) != len(header):
                    raise InputError(
                        f"{at(name, index)}: {len(cells)} cells, expected {len(header)}"
                    )
                else:
                    yield dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise InputError(f"{at(name, max(index + 1, 1))}: not a CSV row ({error})") from None


def gzip_rows(name: str, file: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yields the rows of a compressed CSV file."""
    return csv_rows(name, gzip.GzipFile(fileobj=file))  # type: ignore[arg-type]


def parquet_rows(name: str, file: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yields the rows of a Parquet file, with the names of class labels."""
    import pyarrow.parquet as pq  # only this format needs it

    parquet = pq.ParquetFile(io.BytesIO(file.read()))
    check_columns(name, parquet.schema_arrow.names)
    features: dict[str, Any] = {}
    with suppress(ValueError, KeyError, TypeError):  # written by the package `datasets`, if at all
        metadata = parquet.schema_arrow.metadata or {}
        features = json.loads(metadata[b"huggingface"])["info"]["features"]
    rows = (row for batch in parquet.iter_batches(1024) for row in batch.to_pylist())
    return with_label_names(name, rows, features)


READERS: dict[str, Callable[[str, BinaryIO], Iterator[Any]]] = {
    ".csv": csv_rows,
    ".csv.gz": gzip_rows,
    ".parquet": parquet_rows,
    ".jsonl": json_values,
}
SUFFIXES = tuple(READERS)
# Ends of names of tables; those that are not in SUFFIXES are refused.
_TABLES = {".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".xls", ".xlsx", ".arrow", ".feather"}


def table_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the rows of one file, at least one: CSV unless its name ends otherwise."""
    return _rows(str(path), partial(path.open, "rb"))


def _rows(name: str, open_file: Callable[[], Any]) -> Iterator[Any]:
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


def sources(path: Path) -> list[Source]:
    """The tables of a file, .zip or folder, ordered by name; at least one, of one data set."""
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
    check_utf8(*found)
    for name in found:
        if not name.endswith(SUFFIXES):
            raise InputError(f"{name}: expected a table that ends in {', '.join(SUFFIXES)}")
    _check_unique(path, found)
    with suppress(InputError):  # an interruption of the generator, for example
        names = read_json(path / "config.json", {"generator": str, "files": [str]})["files"]
        if missing := [name for name in names if not (path / name).exists()]:
            more = f" and {len(missing) - 1} others" if missing[1:] else ""
            print(f"{path}: {missing[0]}{more} of config.json are missing", file=sys.stderr)
    return [(name, _rows(name, open_file)) for name, open_file in found.items()]


def _check_unique(path: Path, found: Iterable[str]) -> None:
    """Raises InputError for `a/train.csv` and `b/train.csv`, or `train.csv` and `train.csv.gz`."""
    first: dict[tuple[str, str], str] = {}
    for file in found:
        table, name = Path(file), file.removeprefix(f"{path}/")
        split = table.parent.name if split_of_folder(table.parent.name) else ""
        other = first.setdefault((split, Path(table.name.removesuffix(".gz")).stem), name)
        if other != name:
            raise InputError(
                f"{path}: several tables of one name, {other} and {name}; expected one data set"
            )


def _folder_tables(folder: Path) -> list[Path]:
    """The tables in a folder, or in the only data set in it."""
    if files := tables_in(folder):
        return files
    inner = {place.name: files for place in _folders(folder) if (files := tables_in(place))}
    if len(inner) > 1:
        raise InputError(f"{folder}: several data sets, expected one of {', '.join(inner)}")
    return next(iter(inner.values()), [])


def tables_in(folder: Path) -> list[Path]:
    """The tables in a folder or, if it has none, in its folders of one split each."""
    files = _tables(folder)
    if split_of_folder(folder.name):
        return files
    inner = {place: tables for place in _folders(folder) if (tables := _tables(place))}
    of_splits = [file for place, tables in inner.items() for file in tables
                 if split_of_folder(place.name)]  # fmt: skip
    if files and of_splits:
        raise InputError(f"{of_splits[0]}: a table beside {files[0]}; expected one data set")
    for place in inner if of_splits else ():
        if not split_of_folder(place.name):
            raise InputError(f"{place}: the name states no split, as others do; expected {NAMES}")
    return files or of_splits


def _folders(folder: Path) -> list[Path]:
    every = sorted(folder.iterdir()) if folder.is_dir() else []
    return [place for place in every if place.is_dir() and not is_foreign(place.name)]


def _tables(folder: Path) -> list[Path]:
    """The tables directly in a folder. Raises InputError for one beside them that is not read."""
    every = sorted(folder.iterdir()) if folder.is_dir() else []
    files = [file for file in every if file.is_file() and _is_table(file.name)]
    return files if any(file.name.endswith(SUFFIXES) for file in files) else []


def _zip_tables(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return sorted(member.filename for member in archive.infolist()
                          if not member.is_dir() and _is_table(member.filename))  # fmt: skip
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise InputError(f"{path}: damaged or truncated zip ({error})") from None


def _member(path: Path, name: str) -> Any:
    with zipfile.ZipFile(path) as archive:
        return archive.open(name)


def _is_table(name: str) -> bool:
    """Returns whether a path within an archive or folder is that of a table."""
    ends = {end.lower() for end in Path(name).suffixes[-2:]}
    return bool(ends & _TABLES) and not is_foreign(name)


def is_foreign(name: str) -> bool:
    """Returns whether a part of a path within an archive or folder is hidden, or one that an
    operating system or editor adds."""
    parts = re.split(r"[/\\]", name.lower())
    return any(part.startswith((".", "~$", "__macosx")) and part.strip(".") for part in parts)


def memory_rows(name: str, rows: Any) -> Iterator[Any]:
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


def check_columns(name: str, columns: Iterable[str]) -> None:
    """Raises InputError if two columns have the same name."""
    columns = list(columns)
    for column in filter(None, columns):
        if columns.count(column) > 1:
            raise InputError(f'{name}: {columns.count(column)} columns "{column}", expected one')


def with_label_names(name: str, rows: Iterable[Any], features: Mapping[str, Any]) -> Iterator[Any]:
    """Yields rows with the names of class labels in place of their numbers.

    Args:
      name: name of the table in messages.
      rows: mappings from column to cell.
      features: type of each column, as `datasets` writes it in JSON: a class label has "names",
        and a list the "feature" of its parts.
    """
    labels = {}
    for column, feature in features.items():
        while feature and (isinstance(feature, list) or "feature" in feature):
            feature = feature[0] if isinstance(feature, list) else feature["feature"]
        if feature and feature.get("_type") == "ClassLabel" and (names := feature.get("names")):
            # A mapping in a data card: {"0": "aunt", ...}
            labels[column] = list(names.values() if isinstance(names, Mapping) else names)
    for index, row in enumerate(rows, start=1):
        yield row if not labels else {
            column: _named(at(name, index, column), plain(cell), labels[column])
            if column in labels else cell for column, cell in row.items()
        }  # fmt: skip


def _named(place: str, value: Any, names: list[str]) -> Any:
    """A cell with names in place of class labels, of which -1 is a missing one."""
    if isinstance(value, list):
        return [_named(place, part, names) for part in value]
    if not isinstance(value, int | float) or value == -1:
        return None if value == -1 else value
    if value not in range(len(names)):
        raise InputError(f"{place}: class label {value}, expected one below {len(names)}")
    return names[int(value)]
