"""Reading CLUTRR data of any origin: .zip, folder, .csv, .csv.gz or .parquet, row by row."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from generator.errors import InputError, at
from generator.files import MAX_EDGES, MAX_PEOPLE, MAX_STORY, SUFFIXES, Source, sources
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
        tables = [_table(source) for source in sources(path)]
        if not tables:
            raise InputError(f"{at(path)}: holds no data, expected {', '.join(SUFFIXES)} files")
        whole = path.is_dir() or path.suffix == ".zip"
        found.setdefault(str(path if whole else path.parent), []).extend(tables)
    order = {"train": 0, "dev": 1, "test": 2}
    return {
        name: sorted(tables, key=lambda t: (order[t.split], _task_order(t.name)))
        for name, tables in found.items()
    }


def _split_of(name: str) -> str:
    """The split, by the name of the file; what says nothing is a test."""
    found = [s for s in ("train", "dev", "validation") if s in Path(name).name]
    return "test" if not found else "train" if found[0] == "train" else "dev"


def _task_order(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", Path(name).name)]


def _table(source: Source) -> Table:
    name = Path(source.name).name
    return Table(name, _split_of(name), partial(_rows, source))


def _rows(source: Source) -> Iterator[Row]:
    cells = source.rows()
    header = next(cells)
    for column in REQUIRED:
        if column not in header:
            raise InputError(
                f'{at(source.name)}: no column "{column}"; expected {", ".join(REQUIRED)}'
            )
    number = 0
    for number, row in enumerate(cells, 1):
        if len(row) != len(header):
            raise InputError(f"{at(source.name, number)}: {len(row)} cells, expected {len(header)}")
        yield _row(dict(zip(header, row, strict=True)), source.name, number)
    if not number:
        raise InputError(f"{at(source.name)}: no rows below the header")


def _row(row: dict[str, str], where: str, number: int) -> Row:
    def parsed(column: str, parse: Callable[[str], Any], expected: str) -> Any:
        try:
            return parse(row[column])
        except (ValueError, KeyError, IndexError, AttributeError):
            found = row[column][:60]
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
    length = max(len(row[column]) for column in ("story", "clean_story") if column in row)
    if len(names) > MAX_PEOPLE or len(edges) > MAX_EDGES or length > MAX_STORY:
        raise InputError(
            f"{at(where, number)}: {len(names):,} people, {len(edges):,} story_edges, a story of "
            f"{length:,} characters; expected at most {MAX_PEOPLE}, {MAX_EDGES:,}, {MAX_STORY:,}"
        )
    clause = row["f_comb"]
    agrees = (
        clause == "-".join(RELATIONS[r] for r in relations[:k])
        and query == (names[asked[0]], names[asked[1]])
        and (asked[0], asked[1]) == (edges[0][0], edges[min(k, len(edges)) - 1][1])
    )
    return Row(
        row["story"], row.get("clean_story", ""), names, genders, edges, relations,
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
    if int(k) < 1:
        raise ValueError
    return int(noise), int(k)
