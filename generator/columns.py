"""The published columns of a story: formats and parses one row.

The columns are those of the data sets that Sinha et al. (2019) released; the README describes them.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from generator.errors import InputError, at
from generator.kinship import GENDERS, NUM_RELATIONS, RELATION_ID, RELATIONS

COLUMNS = (
    "", "id", "story", "query", "text_query", "target", "text_target", "clean_story",
    "proof_state", "f_comb", "task_name", "story_edges", "edge_types", "query_edge", "genders",
    "syn_story", "node_mapping", "task_split",
)  # fmt: skip
REQUIRED = (
    "story", "query", "target", "task_name", "story_edges", "edge_types", "query_edge", "genders",
)  # fmt: skip
_OPTIONAL = ("id", "clean_story", "f_comb", "task_split")

# Limits of one story: the generator has 150 names per gender, and writes far fewer facts.
MAX_PEOPLE, MAX_EDGES, MAX_STORY = 150, 1000, 1 << 15

_MISSPELLED = "neice"  # in files written by the original CLUTRR code
_ID_OF = RELATION_ID | {_MISSPELLED: RELATION_ID["niece"]}
_KNOWN = ", ".join(RELATIONS)

_PAIR = re.compile(r"\(\s*(\d{1,6})\s*,\s*(\d{1,6})\s*\)")
_PAIRS = re.compile(rf"\[(?:[\s,]*{_PAIR.pattern})*[\s,]*\]")
_WORD = re.compile(r"'([a-z-]+)'|\"([a-z-]+)\"")
_WORDS = re.compile(r"\[(?:[\s,]*(?:'[a-z-]+'|\"[a-z-]+\"))*[\s,]*\]")
_NAMES = re.compile(r"\(\s*(['\"])((?:(?!\1).)+)\1\s*,\s*(['\"])((?:(?!\3).)+)\3\s*\)")
_TASK = re.compile(r"(?:task_)?(\d{1,3})\.(\d{1,3})")


# Formatting.


def format_row(
    *,
    index: int,
    uuid: str,
    story: str,
    clean_story: str,
    stated_target: list[str],
    names: Sequence[str],
    genders: Sequence[int],
    edges: bytes,
    relations: bytes,
    query: tuple[int, int],
    target: int,
    proof: Iterable[Sequence[int]],
    family_nodes: Sequence[int],
    task: str,
    k: int,
    split: str,
) -> tuple[str, ...]:
    """Returns the cells of one story, in the order of COLUMNS.

    Args:
      index: index of the row in its file, from 0.
      uuid: the story's id.
      story: the text, with names in [brackets].
      clean_story: the text without noise.
      stated_target: sentences that state the answer.
      names: name of each person.
      genders: gender of each person, index in GENDERS.
      edges: people x0 y0 x1 y1 ... of the facts, one byte each.
      relations: relation of each fact, index in RELATIONS, one byte each.
      query: the query pair.
      target: the answer, index in RELATIONS.
      proof: steps (x, z, y, r, p, q) from the root: (x, r, y) follows from (x, p, z) and (z, q, y).
      family_nodes: each person's index in the family.
      task: the task, such as "1.3".
      k: number of facts on the path.
      split: train, dev or test.
    """
    x, y = query
    nodes = ", ".join([f"{node}: {i}" for i, node in enumerate(family_nodes)])
    return (
        str(index),
        uuid,
        story,
        f"('{names[x]}', '{names[y]}')",
        "",
        RELATIONS[target],
        repr(stated_target),
        clean_story,
        _format_proof(proof, names),
        _format_clause(relations[:k]),
        f"task_{task}",
        _format_edges(edges),
        _format_relations(relations),
        f"({x}, {y})",
        ",".join([f"{name}:{GENDERS[g]}" for name, g in zip(names, genders, strict=True)]),
        "",
        f"{{{nodes}}}",
        split,
    )


def _format_proof(steps: Iterable[Sequence[int]], names: Sequence[str]) -> str:
    """`[{fact: [fact, fact]}, ...]`, from the root."""
    parts = []
    for x, z, y, head, first, second in steps:
        a, b, c = names[x], names[z], names[y]
        parts.append(
            f"{{('{a}', '{RELATIONS[head]}', '{c}'): [('{a}', '{RELATIONS[first]}', '{b}'), "
            f"('{b}', '{RELATIONS[second]}', '{c}')]}}"
        )
    return f"[{', '.join(parts)}]"


@lru_cache(1 << 14)
def _format_edges(edges: bytes) -> str:
    return str(list(zip(edges[::2], edges[1::2], strict=True)))


@lru_cache(1 << 14)
def _format_relations(relations: bytes) -> str:
    return str([RELATIONS[r] for r in relations])


@lru_cache(1 << 14)
def _format_clause(relations: bytes) -> str:
    return "-".join([RELATIONS[r] for r in relations])


# Parsing.


class Row(NamedTuple):
    """One parsed story. People are indexed in the order of `genders`."""

    row_index: int  # row of the file, from 1
    split: str  # train, dev or test
    id: str  # "" if the file has no such column
    story: str
    clean_story: str  # "" if the file has no such column
    names: tuple[str, ...]
    genders: tuple[int, ...]  # index in GENDERS
    edges: tuple[tuple[int, int], ...]
    relations: tuple[int, ...]  # of the first edges, index in RELATIONS; the others state none
    query: tuple[int, int]
    query_names: tuple[str, str]
    target: int  # index in RELATIONS
    clause: str  # f_comb
    noise: int  # T of task T.K
    k: int


class _CellError(ValueError):
    """A cell that cannot be parsed."""

    def __init__(self, column: str, problem: str):
        super().__init__(problem)
        self.column = column


def parse_rows(file: str, header: Sequence[str], table: Iterable[Sequence[str]]) -> Iterator[Row]:
    """Parses the rows of one table.

    Args:
      file: its name, which decides the split (see `split_of`) and appears in messages.
      header: column names, which include those of REQUIRED.
      table: cells as text, in the order of the header.
    Raises:
      InputError: names the file, row and column of the first cell that cannot be parsed.
    """
    for column in REQUIRED:
        if column not in header:
            raise InputError(f'{at(file)}: no column "{column}"; expected {", ".join(REQUIRED)}')
    # A column that is missing is an empty cell at the end of the row.
    places = [header.index(c) if c in header else len(header) for c in REQUIRED + _OPTIONAL]
    pick = itemgetter(*places)
    file_split = split_of(Path(file).name)
    target, types = header.index("target"), header.index("edge_types")
    index = 0
    for index, cells in enumerate(table, start=1):
        if len(cells) != len(header):
            raise InputError(f"{at(file, index)}: {len(cells)} cells, expected {len(header)}")
        try:
            row = _parse_row(index, pick([*cells, ""]), file_split)
        except _CellError as error:
            raise InputError(f"{at(file, index, error.column)}: {error}") from None
        if _MISSPELLED in cells[target] + cells[types]:
            _note_spelling(file)
        yield row
    if not index:
        raise InputError(f"{at(file)}: no rows, expected at least one story")


def split_of(text: str) -> str | None:
    """Returns the split that the name of a file, or a cell of `task_split`, stands for."""
    text = text.lower()
    for part, split in (("test", "test"), ("train", "train"), ("valid", "dev"), ("dev", "dev")):
        if part in text:
            return split
    return None


@cache
def _note_spelling(file: str) -> None:
    """Prints a note, once per file."""
    print(f'{at(file)}: "{_MISSPELLED}" is read as "niece"', file=sys.stderr)


def _parse_row(index: int, cells: Sequence[str], file_split: str | None) -> Row:
    (
        story, query_cell, target, task, edge_cell, types, pair_cell, gender_cell,
        story_id, clean_story, clause, split,
    ) = cells  # fmt: skip
    for column, text in (("story", story), ("clean_story", clean_story)):
        if len(text) > MAX_STORY:
            raise _CellError(column, f"{len(text):,} characters, expected at most {MAX_STORY:,}")
    names, genders = _parse_genders(gender_cell)
    edges = _parse_edges(edge_cell)
    relations = _parse_relations(types)
    if len(relations) > len(edges):
        raise _CellError("edge_types", f"{len(relations)} relations for {len(edges)} story_edges")
    query = _parse_pair(pair_cell)
    for column, highest in (("story_edges", max(map(max, edges))), ("query_edge", max(query))):
        if highest >= len(names):
            raise _CellError(column, f"no person {highest}: the row has {len(names)} people")
    noise, k = _parse_task(task)
    return Row(
        row_index=index,
        split=file_split or split_of(split) or "train",
        id=story_id,
        story=story,
        clean_story=clean_story,
        names=names,
        genders=genders,
        edges=edges,
        relations=relations,
        query=query,
        query_names=_parse_query(query_cell),
        target=_parse_target(target),
        clause=clause.replace(_MISSPELLED, "niece") or _format_clause(bytes(relations[:k])),
        noise=noise,
        k=k,
    )


@lru_cache(1 << 16)
def _parse_edges(cell: str) -> tuple[tuple[int, int], ...]:
    """`[(0, 1), (1, 2)]`."""
    if not _PAIRS.fullmatch(cell.strip()):
        raise _CellError("story_edges", "expected a list of pairs such as [(0, 1), (1, 2)]")
    edges = tuple([(int(x), int(y)) for x, y in _PAIR.findall(cell)])
    if not 0 < len(edges) <= MAX_EDGES:
        raise _CellError("story_edges", f"{len(edges):,} edges, expected 1 to {MAX_EDGES:,}")
    return edges


@lru_cache(1 << 16)
def _parse_relations(cell: str) -> tuple[int, ...]:
    """`['son', 'aunt']`."""
    if not _WORDS.fullmatch(cell.strip()):
        raise _CellError("edge_types", "expected a list of relations such as ['son', 'aunt']")
    words = [single or double for single, double in _WORD.findall(cell)]
    if not words:
        raise _CellError("edge_types", "no relations, expected those of the first edges")
    for word in words:
        if word not in _ID_OF:
            raise _CellError("edge_types", f'unknown relation "{word}", expected one of {_KNOWN}')
    return tuple([_ID_OF[word] for word in words])


@lru_cache(1 << 10)
def _parse_pair(cell: str) -> tuple[int, int]:
    match = _PAIR.fullmatch(cell.strip())
    if not match:
        raise _CellError("query_edge", "expected a pair such as (0, 3)")
    return int(match[1]), int(match[2])


def _parse_query(cell: str) -> tuple[str, str]:
    match = _NAMES.fullmatch(cell.strip())
    if not match:
        raise _CellError("query", "expected a pair of names such as ('Ann', 'Bob')")
    return match[2], match[4]


@lru_cache(1 << 10)
def _parse_task(cell: str) -> tuple[int, int]:
    match = _TASK.fullmatch(cell.strip())
    if not match or not int(match[2]):
        raise _CellError("task_name", "expected a task such as task_1.3")
    return int(match[1]), int(match[2])


def _parse_target(cell: str) -> int:
    """A relation by name, or by its index in the data set `CLUTRR/v1` on Hugging Face."""
    if cell in _ID_OF:
        return _ID_OF[cell]
    if cell.isascii() and cell.isdigit() and len(cell) < 3 and int(cell) < NUM_RELATIONS:
        return int(cell)
    raise _CellError(
        "target", f'unknown label "{cell}", expected a number below {NUM_RELATIONS} or {_KNOWN}'
    )


def _parse_genders(cell: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """`Ann:female,Bob:male`."""
    names, genders = [], []
    for person in cell.split(","):
        name, _, gender = person.rpartition(":")
        if not name or gender not in GENDERS:
            raise _CellError("genders", f'"{person}": expected NAME:male or NAME:female')
        names.append(name)
        genders.append(GENDERS.index(gender))
    if len(names) > MAX_PEOPLE:
        raise _CellError("genders", f"{len(names):,} people, expected at most {MAX_PEOPLE}")
    if len(set(names)) < len(names):
        raise _CellError("genders", "a name occurs twice: expected different names")
    return tuple(names), tuple(genders)
