"""Data sets of any origin: tables in a .zip, a folder, or single files."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from generator.columns import Row, parse_rows, split_of
from generator.files import SPLIT_FOLDERS, Source, sources

_ORDER = {"train": 0, "dev": 1, "test": 2}


class Table(NamedTuple):
    """The rows of one split in one file."""

    name: str
    split: str  # train, dev or test
    rows: Callable[[], Iterator[Row]]  # each call reads the file again


def read_rows(source: Source) -> Iterator[Row]:
    """Parses one file. Raises InputError for a file or a cell that cannot be read."""
    table = source.rows()
    return parse_rows(source.name, next(table), table)


def data_sets(paths: list[Path]) -> dict[str, list[Table]]:
    """Groups files into data sets: the files of one .zip or one folder belong together.

    Tables are ordered by split, then by task.

    Raises:
      InputError: a file does not exist, cannot be read, or holds no data.
    """
    found: dict[str, list[Table]] = {}
    for path in paths:
        tables = [table for source in sources(path) for table in _tables(source)]
        whole = path.is_dir() or path.suffix == ".zip"
        found.setdefault(str(path if whole else path.parent), []).extend(tables)
    return {name: sorted(tables, key=_order) for name, tables in found.items()}


def _tables(source: Source) -> list[Table]:
    """One table per split. A file whose name states no split may hold rows of several."""
    path, split = Path(source.name), split_of(Path(source.name).name)
    name = f"{path.parent.name}/{path.name}" if path.parent.name in SPLIT_FOLDERS else path.name
    splits = {split} if split else {row.split for row in read_rows(source)}
    return [
        Table(
            name if len(splits) == 1 else f"{name} ({split})", split, partial(_rows, source, split)
        )
        for split in splits
    ]


def _rows(source: Source, split: str) -> Iterator[Row]:
    return (row for row in read_rows(source) if row.split == split)


def _order(table: Table) -> tuple[int, list[int]]:
    return _ORDER[table.split], [int(number) for number in re.findall(r"\d+", table.name)]
