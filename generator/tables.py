"""Reading CLUTRR data of any origin: .zip, folder, .csv, .csv.gz or .parquet, row by row."""

import csv
import gzip
import io
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from generator.errors import InputError, at
from generator.kinship import GENDERS, RELATION_ID, RELATIONS

REQUIRED = (
    "story", "query", "target", "f_comb", "task_name", "story_edges", "edge_types", "query_edge",
    "genders",
)  # fmt: skip
_PAIRS = re.compile(r"\[(\(\d{1,4}, ?\d{1,4}\)(, ?|(?=\])))*\]")
_PAIR = re.compile(r"\((\d{1,4}), ?(\d{1,4})\)")
_WORDS = re.compile(r"\[('[\w-]+'(, ?|(?=\])))*\]")
_QUERY = re.compile(r"\('([^']*)', ?'([^']*)'\)")
_TASK = re.compile(r"(?:task_)?(\d{1,2})\.(\d{1,2})")


class Row(NamedTuple):
    """One story. People are numbered as in `genders`; relations are indices in RELATIONS."""

    story: str
    clean_story: str
    names: tuple[str, ...]
    genders: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    relations: tuple[int, ...]  # of the first edges; the released noise edges have none
    asked: tuple[int, int]
    target: int
    clause: str  # f_comb
    noise: int  # T of task T.K
    k: int
    agrees: bool  # whether f_comb, query and query_edge say the same as the facts


class Table(NamedTuple):
    """One file of a data set; `rows()` reads it anew each time."""

    name: str
    split: str  # train, dev or test
    rows: Callable[[], Iterator[Row]]


def data_sets(paths: list[Path]) -> dict[str, list[Table]]:
    """The files named, in data sets: what is in one .zip or one folder belongs together.

    Raises:
      InputError: there is no such file, or no data in it.
    """
    found: dict[str, list[Table]] = {}
    for path in paths:
        if path.is_dir():
            files = sorted(p for p in path.iterdir() if _is_table(p.name))
            if not files:
                raise InputError(f"{path}: the folder holds no .csv, .csv.gz or .parquet file")
            found.setdefault(str(path), []).extend(map(_file_table, files))
        elif path.suffix == ".zip":
            found.setdefault(str(path), []).extend(_zip_tables(path))
        elif not path.exists():
            raise InputError(f"{path}: there is no such file")
        elif _is_table(path.name):
            found.setdefault(str(path.parent), []).append(_file_table(path))
        else:
            raise InputError(
                f"{path}: expected a .zip, .csv, .csv.gz or .parquet file, or a folder"
            )
    order = {"train": 0, "dev": 1, "test": 2}
    return {
        name: sorted(tables, key=lambda t: (order[t.split], _task_order(t.name)))
        for name, tables in found.items()
    }


def _is_table(name: str) -> bool:
    return name.endswith((".csv", ".csv.gz", ".parquet"))


def _split_of(name: str) -> str:
    """The split, by the name of the file; what says nothing is a test."""
    found = [s for s in ("train", "dev", "validation") if s in Path(name).name]
    return "test" if not found else "train" if found[0] == "train" else "dev"


def _task_order(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", Path(name).name)]


def _file_table(path: Path) -> Table:
    if path.suffix == ".parquet":
        return Table(path.name, _split_of(path.name), lambda: _rows(_parquet(path), str(path)))

    def cells() -> Iterator[dict[str, str]]:
        with _reading(str(path)):
            opened = gzip.open if path.suffix == ".gz" else open
            with opened(path, "rt", encoding="utf-8", newline="") as file:
                yield from _csv(file, str(path))  # type: ignore[arg-type]

    return Table(path.name, _split_of(path.name), lambda: _rows(cells(), str(path)))


def _zip_tables(path: Path) -> Iterator[Table]:
    with _reading(str(path)), zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if n.endswith(".csv") and "__MACOSX" not in n]
    if not names:
        raise InputError(f"{path}: the archive holds no .csv file")
    for name in names:
        yield _zip_table(path, name)


def _zip_table(path: Path, name: str) -> Table:
    where = f"{path}: {name}"

    def cells() -> Iterator[dict[str, str]]:
        with _reading(where), zipfile.ZipFile(path) as archive, archive.open(name) as raw:
            yield from _csv(io.TextIOWrapper(raw, "utf-8", newline=""), where)

    return Table(Path(name).name, _split_of(name), lambda: _rows(cells(), where))


@contextmanager
def _reading(where: str) -> Iterator[None]:
    """What can go wrong with a file, as InputError."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{where}: there is no such file") from None
    except (zipfile.BadZipFile, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{where}: damaged, or not what its ending says ({error})") from None
    except OSError as error:
        raise InputError(f"{where}: cannot be read ({error})") from None


def _csv(file: TextIO, where: str) -> Iterator[dict[str, Any]]:
    reader = csv.DictReader(file)
    if reader.fieldnames is None:
        raise InputError(f"{where}: the file is empty; expected a header and rows")
    yield from reader


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow as pa  # not needed for any other form
    import pyarrow.parquet as pq

    with _reading(str(path)):
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(4096):
                    yield from batch.to_pylist()
        except pa.ArrowInvalid as error:
            raise InputError(f"{path}: damaged, or not a Parquet file ({error})") from None


def _rows(cells: Iterator[dict[str, Any]], where: str) -> Iterator[Row]:
    number = 0
    for number, row in enumerate(cells, 1):
        if number == 1:
            for column in REQUIRED:
                if column not in row:
                    raise InputError(
                        f'{where}: no column "{column}"; expected {", ".join(REQUIRED)}'
                    )
        yield _row(row, where, number)
    if not number:
        raise InputError(f"{where}: no rows below the header")


def _row(row: dict[str, Any], where: str, number: int) -> Row:
    for column in REQUIRED:
        if row[column] is None:
            raise InputError(f"{at(where, number, column)}: the cell is missing")

    def parsed(column: str, parse: Callable[[str], Any], expected: str) -> Any:
        try:
            return parse(str(row[column]))
        except (ValueError, KeyError, IndexError, AttributeError):
            found = str(row[column])[:60]
            raise InputError(f'{at(where, number, column)}: "{found}" is not {expected}') from None

    people = parsed("genders", _genders, "a list of people such as Ann:female,Bob:male")
    edges = parsed("story_edges", _edges, "a list of pairs such as [(0, 1), (1, 2)]")
    relations = parsed("edge_types", _types, "a list of relations such as ['son', 'brother']")
    asked = parsed("query_edge", _edge, "a pair such as (0, 2)")
    query = parsed("query", _query, "a pair of names such as ('Ann', 'Bob')")
    target = parsed("target", _target, f"a relation or a number below {len(RELATIONS)}")
    noise, k = parsed("task_name", _task, "a task such as task_1.3")
    names, genders = people
    for column, pairs in (("story_edges", edges), ("query_edge", (asked,))):
        if any(person >= len(names) for pair in pairs for person in pair):
            raise InputError(
                f'{at(where, number, column)}: "{row[column]}" has a person that is not among the '
                f"{len(names)} of genders"
            )
    if len(relations) > len(edges):
        raise InputError(
            f"{at(where, number, 'edge_types')}: {len(relations)} relations for {len(edges)} edges"
        )
    clause = str(row["f_comb"])
    agrees = (
        clause == "-".join(RELATIONS[r] for r in relations[:k])
        and query == (names[asked[0]], names[asked[1]])
        and (asked[0], asked[1]) == (edges[0][0], edges[min(k, len(edges)) - 1][1])
    )
    return Row(
        str(row["story"]), str(row.get("clean_story") or ""), names, genders, edges, relations,
        asked, target, clause, noise, k, agrees,
    )  # fmt: skip


def _genders(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    names, genders = zip(*(part.rsplit(":", 1) for part in text.split(",")), strict=True)
    return names, tuple(GENDERS.index(gender.strip()) for gender in genders)


@lru_cache(1 << 16)
def _edges(text: str) -> tuple[tuple[int, int], ...]:
    if not _PAIRS.fullmatch(text) or text == "[]":
        raise ValueError
    return tuple((int(x), int(y)) for x, y in _PAIR.findall(text))


@lru_cache(1 << 16)
def _types(text: str) -> tuple[int, ...]:
    if not _WORDS.fullmatch(text) or text == "[]":
        raise ValueError
    return tuple(RELATION_ID[word] for word in re.findall(r"[\w-]+", text))


@lru_cache(1 << 10)
def _edge(text: str) -> tuple[int, int]:
    x, y = _PAIR.fullmatch(text).groups()  # type: ignore[union-attr]
    return int(x), int(y)


def _query(text: str) -> tuple[str, str]:
    x, y = _QUERY.fullmatch(text).groups()  # type: ignore[union-attr]
    return x, y


def _target(text: str) -> int:
    if text in RELATION_ID:
        return RELATION_ID[text]
    return range(len(RELATIONS))[int(text)] if text.isdecimal() else RELATION_ID[text]


def _task(text: str) -> tuple[int, int]:
    noise, k = _TASK.fullmatch(text).groups()  # type: ignore[union-attr]
    return int(noise), int(k)
