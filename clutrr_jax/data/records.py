"""Rows of CLUTRR data -> `Records`: flat NumPy arrays plus the text, checked cell by cell."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from generator.errors import InputError, at
from generator.files import MAX_EDGES, MAX_PEOPLE, MAX_STORY
from generator.kinship import GENDERS, NUM_RELATIONS, RELATION_ID, RELATIONS

# The released noise facts carry no relation (only the facts of the path do): one more edge type.
UNSTATED = NUM_RELATIONS
NUM_EDGE_TYPES = NUM_RELATIONS + 1

COLUMNS = (
    "story", "query", "target", "task_name", "story_edges", "edge_types", "query_edge", "genders",
)  # fmt: skip

_PAIR = re.compile(r"\(\s*(\d{1,6})\s*,\s*(\d{1,6})\s*\)")
_PAIRS = re.compile(rf"\[(?:[\s,]*{_PAIR.pattern})*[\s,]*\]")
_WORD = re.compile(r"'([a-z-]+)'|\"([a-z-]+)\"")
_WORDS = re.compile(r"\[(?:[\s,]*(?:'[a-z-]+'|\"[a-z-]+\"))*[\s,]*\]")
_QUERY = re.compile(r"\(\s*(['\"])((?:(?!\1).)+)\1\s*,\s*(['\"])((?:(?!\3).)+)\3\s*\)")
_TASK = re.compile(r"(?:task_)?(\d{1,3})\.(\d{1,3})")


@dataclass(frozen=True)
class Records:
    """S stories with N people and E facts in all. People and facts of story s are the rows
    `node_start[s]:node_start[s + 1]` and `edge_start[s]:edge_start[s + 1]` of the flat arrays.
    """

    stories: Sequence[str]  # S texts, names in [brackets]
    names: Sequence[str]  # [N]
    genders: np.ndarray  # [N] index in GENDERS
    senders: np.ndarray  # [E] X of the fact (X, relation, Y), counted within the story
    receivers: np.ndarray  # [E] Y
    relations: np.ndarray  # [E] index in RELATIONS, or UNSTATED
    node_start: np.ndarray  # [S + 1]
    edge_start: np.ndarray  # [S + 1]
    query: np.ndarray  # [S, 2] the asked pair (X, Y), counted within the story
    target: np.ndarray  # [S] what Y is to X, index in RELATIONS
    task: np.ndarray  # [S] the T of task T.K
    clause_length: np.ndarray  # [S] its K

    def __len__(self) -> int:
        return len(self.target)

    def select(self, rows: np.ndarray) -> "Records":
        """The given rows (integers or a mask), in that order."""
        rows = np.arange(len(self))[rows]
        node, node_start = _spans(self.node_start, rows)
        edge, edge_start = _spans(self.edge_start, rows)
        return Records(
            stories=[self.stories[s] for s in rows],
            names=[self.names[i] for i in node],
            genders=self.genders[node],
            senders=self.senders[edge],
            receivers=self.receivers[edge],
            relations=self.relations[edge],
            node_start=node_start,
            edge_start=edge_start,
            query=self.query[rows],
            target=self.target[rows],
            task=self.task[rows],
            clause_length=self.clause_length[rows],
        )


def _spans(start: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Flat indices of the spans `start[r]:start[r + 1]` of all rows, and where each now starts."""
    sizes = np.diff(start)[rows]
    new_start = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(new_start[-1]) + np.repeat(start[:-1][rows] - new_start[:-1], sizes), new_start


def concatenate(parts: Sequence[Records]) -> Records:
    """All stories of several record sets, in order."""

    def starts(name: str) -> np.ndarray:
        sizes = [np.diff(getattr(p, name)) for p in parts]
        return np.concatenate([[0], np.cumsum(np.concatenate(sizes))])

    def join(name: str) -> np.ndarray:
        return np.concatenate([getattr(p, name) for p in parts])

    return Records(
        stories=[story for p in parts for story in p.stories],
        names=[name for p in parts for name in p.names],
        node_start=starts("node_start"),
        edge_start=starts("edge_start"),
        **{
            name: join(name)
            for name in (
                "genders", "senders", "receivers", "relations",
                "query", "target", "task", "clause_length",
            )
        },
    )  # fmt: skip


class CellError(ValueError):
    """A cell that cannot be used: the column, and what is wrong with it."""

    def __init__(self, column: str, problem: str):
        super().__init__(problem)
        self.column = column


@lru_cache(maxsize=65536)
def _parse_edges(cell: str) -> np.ndarray:
    """`[(0, 1), (1, 2)]` -> [E, 2]."""
    if not _PAIRS.fullmatch(cell.strip()):
        raise CellError("story_edges", "expected a list of node pairs such as [(0, 1), (1, 2)]")
    edges = np.array(_PAIR.findall(cell), np.int32).reshape(-1, 2)
    if not len(edges):
        raise CellError("story_edges", "no fact: expected at least one node pair")
    if len(edges) > MAX_EDGES:
        raise CellError("story_edges", f"{len(edges):,} facts, expected at most {MAX_EDGES:,}")
    return edges


@lru_cache(maxsize=65536)
def _parse_types(cell: str) -> tuple[int, ...]:
    """`['son', 'aunt']` -> relation ids."""
    if not _WORDS.fullmatch(cell.strip()):
        raise CellError("edge_types", "expected a list of relations such as ['son', 'aunt']")
    names = [single or double for single, double in _WORD.findall(cell)]
    for name in names:
        if name not in RELATION_ID:
            raise CellError("edge_types", f'unknown relation "{name}", expected one of {_known()}')
    return tuple(RELATION_ID[name] for name in names)


def _known() -> str:
    return ", ".join(RELATIONS)


def _parse_pair(cell: str) -> tuple[int, int]:
    match = _PAIR.fullmatch(cell.strip())
    if not match:
        raise CellError("query_edge", "expected a pair of nodes such as (0, 3)")
    return int(match[1]), int(match[2])


@lru_cache(maxsize=4096)
def _parse_task(cell: str) -> tuple[int, int]:
    match = _TASK.fullmatch(cell.strip())
    if not match:
        raise CellError("task_name", "expected a task such as task_1.3")
    return int(match[1]), int(match[2])


def _parse_target(cell: str) -> int:
    """A relation by name, or by its number in the Hugging Face data set."""
    if cell in RELATION_ID:
        return RELATION_ID[cell]
    if cell.isascii() and cell.isdigit() and len(cell) < 3 and int(cell) < NUM_RELATIONS:
        return int(cell)
    raise CellError(
        "target", f'unknown label "{cell}", expected a number below {NUM_RELATIONS} or {_known()}'
    )


def _parse_genders(cell: str) -> tuple[list[str], list[int]]:
    names, genders = [], []
    for person in cell.split(","):
        name, _, gender = person.rpartition(":")
        if not name or gender not in GENDERS:
            raise CellError("genders", f'cannot read "{person}", expected NAME:male or NAME:female')
        names.append(name)
        genders.append(GENDERS.index(gender))
    if len(names) > MAX_PEOPLE:
        raise CellError("genders", f"{len(names):,} people, expected at most {MAX_PEOPLE}")
    if len(set(names)) < len(names):
        raise CellError("genders", "a name stands twice: expected one name per person")
    return names, genders


def _check_query(query: str, story: str, names: list[str], pair: tuple[int, int]) -> None:
    match = _QUERY.fullmatch(query.strip())
    if not match:
        raise CellError("query", "expected a pair of names such as ('Ann', 'Bob')")
    asked = (match[2], match[4])
    for name in asked:
        if f"[{name}]" not in story:
            raise CellError("query", f'"{name}" is not in the story: expected two of its people')
    if max(pair) >= len(names):
        raise CellError("query_edge", f"no such node: the row has {len(names)} people")
    if asked != (names[pair[0]], names[pair[1]]):
        raise CellError("query", "query and query_edge name different people: expected the same")
    if pair[0] == pair[1]:
        raise CellError("query_edge", "expected two different people")


def parse(file: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> Records:
    """Rows of one table -> records.

    Args:
      file: its name, for error messages.
      header: column names; at least `COLUMNS`.
      rows: the cells as text, in the order of the header.
    Raises:
      InputError: naming file, row and column of the first cell that cannot be used.
    """
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise InputError(f'{at(file)}: no column "{missing[0]}", expected {", ".join(COLUMNS)}')
    places = [header.index(name) for name in COLUMNS]
    stories: list[str] = []
    names: list[str] = []
    genders: list[int] = []
    edges: list[np.ndarray] = []
    relations: list[int] = []
    counts: list[tuple[int, int]] = []
    labels: list[tuple[int, ...]] = []
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise InputError(f"{at(file, number)}: {len(row)} cells, expected {len(header)}")
        story, query, target, task, edge_cell, types, pair_cell, gender_cell = [
            row[place] for place in places
        ]
        try:
            if len(story) > MAX_STORY:
                raise CellError("story", f"{len(story):,} characters, expected at most {MAX_STORY}")
            row_names, row_genders = _parse_genders(gender_cell)
            row_edges = _parse_edges(edge_cell)
            row_types = _parse_types(types)
            if row_edges.max() >= len(row_names):
                raise CellError("story_edges", f"no such node: the row has {len(row_names)} people")
            if len(row_types) > len(row_edges):
                raise CellError(
                    "edge_types", f"{len(row_types)} relations for {len(row_edges)} story_edges"
                )
            pair = _parse_pair(pair_cell)
            _check_query(query, story, row_names, pair)
            labels.append((*pair, _parse_target(target), *_parse_task(task)))
        except CellError as error:
            raise InputError(f"{at(file, number, error.column)}: {error}") from None
        stories.append(story)
        names += row_names
        genders += row_genders
        edges.append(row_edges)
        relations += row_types
        relations += [UNSTATED] * (len(row_edges) - len(row_types))
        counts.append((len(row_names), len(row_edges)))
    if not stories:
        raise InputError(f"{at(file)}: no rows, expected at least one story")
    all_edges = np.concatenate(edges)
    starts = np.concatenate([np.zeros((1, 2), int), np.cumsum(np.array(counts), axis=0)])
    table = np.array(labels, np.int32)
    return Records(
        stories=stories,
        names=names,
        genders=np.array(genders, np.int8),
        senders=all_edges[:, 0],
        receivers=all_edges[:, 1],
        relations=np.array(relations, np.int32),
        node_start=starts[:, 0],
        edge_start=starts[:, 1],
        query=table[:, :2],
        target=table[:, 2],
        task=table[:, 3],
        clause_length=table[:, 4],
    )


def tasks(records: Records) -> Iterator[tuple[str, np.ndarray]]:
    """Each task `T.K` of the records, in order of T, then K, with its rows."""
    for t, k in sorted(
        set(zip(records.task.tolist(), records.clause_length.tolist(), strict=True))
    ):
        yield f"{t}.{k}", np.flatnonzero((records.task == t) & (records.clause_length == k))


def by_people(records: Records, most: int = 1 << 20) -> Iterator[np.ndarray]:
    """The rows in groups of as many people, with at most that many pairs of people in a group, if
    it is not a single story: so that one large story does not make arrays of pairs large for all.
    """
    people = np.diff(records.node_start)
    for number in np.unique(people):
        rows = np.flatnonzero(people == number)
        size = max(1, most // int(number) ** 2)
        yield from (rows[start : start + size] for start in range(0, len(rows), size))
