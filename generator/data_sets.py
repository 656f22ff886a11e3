"""Data sets with the published columns: tables in a .zip, a folder, or single files."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from generator.checks import check_splits
from generator.relations.algebras import algebra_of
from generator.splits import split_of_folder
from generator.tables.readers import Rows, sources
from generator.tables.rows import Row, parse_rows

_ORDER = {"train": 0, "dev": 1, "test": 2}


class Table(NamedTuple):
    """The rows of one split in one file."""

    name: str
    split: str  # train, dev or test
    rows: list[Row]


def data_sets(paths: list[Path]) -> Iterator[tuple[str, list[Table]]]:
    """Yields data sets by name: the files of one .zip or one folder belong together.

    Tables are ordered by split, then by task.
    """
    found: dict[str, list[tuple[str, Rows]]] = {}
    for path in paths:
        whole = path.is_dir() or path.suffix == ".zip"
        folder = path.parent.parent if split_of_folder(path.parent.name) else path.parent
        found.setdefault(str(path if whole else folder), []).extend(sources(path))
    for name, parts in found.items():
        algebra = algebra_of(Path(name))
        read = [(file, list(parse_rows(file, cells, algebra=algebra, place=Path(name))))
                for file, cells in parts]  # fmt: skip
        check_splits(read)
        yield name, sorted((table for file in read for table in _tables(*file)), key=_order)


def _tables(file: str, every: list[Row]) -> list[Table]:
    """One table per split: a file whose name states no split may hold rows of several."""
    rows: dict[str, list[Row]] = {}
    for row in every:
        rows.setdefault(row.split, []).append(row)
    path = Path(file)
    name = f"{path.parent.name}/{path.name}" if split_of_folder(path.parent.name) else path.name
    return [
        Table(name if len(rows) == 1 else f"{name} ({split})", split, part)
        for split, part in rows.items()
    ]


def _order(table: Table) -> tuple[int, list[int]]:
    return _ORDER[table.split], [int(number) for number in re.findall(r"\d+", table.name)]
