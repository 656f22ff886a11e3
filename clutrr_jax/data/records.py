"""Stories as flat NumPy arrays and text: `Records`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from generator.checks import content
from generator.errors import InputError
from generator.relations.algebra import Algebra
from generator.tables.columns import format_facts
from generator.tables.rows import Row


class Story(NamedTuple):
    """One story in words."""

    text: str  # with names in [brackets]
    people: tuple[str, ...]
    facts: tuple[tuple[str, str, str], ...]  # (X, relation of Y to X, Y); "" if it is not stated
    query: tuple[str, str]  # (X, Y)
    target: str  # relation of Y to X; "" if it is not given
    k: int  # clause length; 0 if it is not given
    id: str  # of the row; may be empty


@dataclass(frozen=True, repr=False)
class Records:
    """S stories with N people and E facts in total.

    The people and facts of story s are the slices `node_start[s]:node_start[s + 1]` and
    `edge_start[s]:edge_start[s + 1]` of the flat arrays.
    """

    stories: Sequence[str]  # S texts, with names in [brackets]
    names: Sequence[str]  # [N]
    genders: np.ndarray  # [N] property in the view of the algebra, or UNKNOWN_GENDER
    senders: np.ndarray  # [E] X of the fact (X, relation, Y), index within the story
    receivers: np.ndarray  # [E] Y
    relations: np.ndarray  # [E] relation, or `unstated`
    node_start: np.ndarray  # [S + 1]
    edge_start: np.ndarray  # [S + 1]
    query: np.ndarray  # [S, 2] the query pair (X, Y), indices within the story
    target: np.ndarray  # [S] relation of Y to X, or NO_TARGET
    task: np.ndarray  # [S] T of task T.K, or the number of paths; 0 if it is not given
    clause_length: np.ndarray  # [S] K of task T.K; 0 if it is not given
    ids: Sequence[str]  # S ids of the rows; "" in files without this column
    algebra: Algebra  # of the relations

    @property
    def unstated(self) -> int:
        """Edge type of a fact whose relation is not given, as in the noise of the releases."""
        return len(self.algebra.relations)

    def relation_name(self, relation: int) -> str:
        """Returns the name of a relation; "" for NO_TARGET and `unstated`."""
        return (*self.algebra.relations, "")[relation]

    def __len__(self) -> int:
        return len(self.target)

    def __repr__(self) -> str:
        known = [str(k) for k in np.unique(self.clause_length) if k]
        return f"{len(self):,} stories" + (f" of k = {', '.join(known)}" if known else "")

    def story(self, index: int) -> Story:
        """Returns one story in words, with the facts that the data state."""
        index = range(len(self))[index]  # also counts from the end
        people = self.names[self.node_start[index] : self.node_start[index + 1]]
        edges = slice(self.edge_start[index], self.edge_start[index + 1])
        return Story(
            text=self.stories[index],
            people=tuple(people),
            facts=tuple(
                (people[x], self.relation_name(relation), people[y])
                for x, relation, y in zip(
                    self.senders[edges], self.relations[edges], self.receivers[edges], strict=True
                )
            ),
            query=(people[self.query[index, 0]], people[self.query[index, 1]]),
            target=self.relation_name(self.target[index]),
            k=int(self.clause_length[index]),
            id=self.ids[index],
        )

    @cached_property
    def contents(self) -> list[tuple[int | None, int]]:
        """Hashes of the text of each story, and of its facts and query, [S]."""
        told = map(self.story, range(len(self)))
        return [content(one.text, one.facts, one.query) for one in told]

    def are_among(self, others: "Records") -> np.ndarray:
        """Returns whether each story has the text of another or, if one of both has no text, its
        facts and query, [S]."""
        texts = {text for text, _ in others.contents} - {None}
        facts = {facts for _, facts in others.contents}
        without_text = {facts for text, facts in others.contents if text is None}
        return np.array([
            text in texts or stated in (facts if text is None else without_text)
            for text, stated in self.contents
        ])  # fmt: skip

    def select(self, rows: np.ndarray) -> "Records":
        """Returns the given stories (integers or a mask), in that order."""
        rows = np.arange(len(self))[rows]
        node, node_start = _spans(self.node_start, rows)
        edge, edge_start = _spans(self.edge_start, rows)
        parts: dict[str, Any] = {}
        for names, index in ((_OF_STORIES, rows), (_OF_PEOPLE, node), (_OF_FACTS, edge)):
            for name in names:
                values = getattr(self, name)
                is_array = isinstance(values, np.ndarray)
                parts[name] = values[index] if is_array else [values[i] for i in index]
        return replace(self, node_start=node_start, edge_start=edge_start, **parts)


_OF_STORIES = ("stories", "query", "target", "task", "clause_length", "ids")
_OF_PEOPLE, _OF_FACTS = ("names", "genders"), ("senders", "receivers", "relations")


def _spans(start: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the flat indices of the slices `start[r]:start[r + 1]`, and their new starts."""
    sizes = np.diff(start)[rows]
    new_start = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(new_start[-1]) + np.repeat(start[:-1][rows] - new_start[:-1], sizes), new_start


def concatenate(parts: Sequence[Records]) -> Records:
    """Returns the stories of several records of one algebra, in order."""
    joined: dict[str, Any] = {}
    for name in (*_OF_STORIES, *_OF_PEOPLE, *_OF_FACTS):
        values = [getattr(part, name) for part in parts]
        is_array = isinstance(values[0], np.ndarray)
        joined[name] = np.concatenate(values) if is_array else [*chain(*values)]
    for name in ("node_start", "edge_start"):
        sizes = np.concatenate([np.diff(getattr(part, name)) for part in parts])
        joined[name] = np.cumsum([0, *sizes])
    return replace(parts[0], **joined)


def check_algebras(parts: Sequence[Records]) -> None:
    """Raises InputError if the algebras of several records differ."""
    algebras = list(dict.fromkeys(part.algebra for part in parts))
    if len(algebras) > 1:
        found = " and ".join(algebra.name for algebra in algebras)
        raise InputError(f"relations of {found} in one data set, expected one algebra")


def build_records(rows: Sequence[Row]) -> Records:
    """Converts parsed rows of one algebra, at least one, to records."""
    edges = np.array([edge for row in rows for edge in row.edges], np.int32).reshape(-1, 2)
    # Only the first edges of a released story have relations.
    unstated = len(rows[0].algebra.relations)
    types = [[*row.relations, *[unstated] * (len(row.edges) - len(row.relations))] for row in rows]
    return Records(
        stories=[row.story for row in rows],
        names=[name for row in rows for name in row.names],
        genders=np.array([gender for row in rows for gender in row.genders], np.int8),
        senders=edges[:, 0],
        receivers=edges[:, 1],
        relations=np.concatenate(types).astype(np.int32),
        node_start=np.cumsum([0, *(len(row.names) for row in rows)]),
        edge_start=np.cumsum([0, *(len(row.edges) for row in rows)]),
        query=np.array([row.query for row in rows], np.int32),
        target=np.array([row.target for row in rows], np.int32),
        task=np.array([row.noise for row in rows], np.int32),
        clause_length=np.array([row.k for row in rows], np.int32),
        ids=[row.id for row in rows],
        algebra=rows[0].algebra,
    )


def columns(records: Records) -> dict[str, list[str]]:
    """Returns the cells of S stories by published column, [S] each, without columns of what is not
    known for any story; inverse of `build_records`."""
    people, facts = records.node_start.tolist(), records.edge_start.tolist()
    pairs = np.stack([records.senders, records.receivers], axis=1).tolist()
    rows = []
    for s, query in enumerate(records.query.tolist()):
        person, fact = slice(*people[s : s + 2]), slice(*facts[s : s + 2])
        stated = [records.relation_name(r) for r in records.relations[fact]]
        t, k = int(records.task[s]), int(records.clause_length[s])
        row = {"id": records.ids[s], "story": records.stories[s]}
        row["target"] = records.relation_name(records.target[s])
        row |= format_facts(
            records.names[person], records.genders[person].tolist(), pairs[fact],
            [word for word in stated if word], query,
        )  # fmt: skip
        if not pairs[fact]:  # a story whose facts are not known
            row |= {"story_edges": "", "edge_types": ""}
        rows.append(row | {"task_name": f"task_{t}.{k}" if t and k else "", "k": str(k or "")})
    found = {name: [row[name] for row in rows] for name in rows[0]}
    if not len(records.relations):
        del found["query_edge"]
    if all(found["task_name"]):
        del found["k"]
    return {name: cells for name, cells in found.items() if name == "id" or any(cells)}


def tasks(records: Records) -> Iterator[tuple[str, np.ndarray]]:
    """Yields each task with the indices of its stories, ordered by T, then K.

    A task is named `T.K`, and `bT.K` in an algebra where T is the number of paths.
    """
    prefix = "" if records.algebra.is_kinship else "b"
    pairs = set(zip(records.task.tolist(), records.clause_length.tolist(), strict=True))
    for t, k in sorted(pairs):
        yield f"{prefix}{t}.{k}", np.flatnonzero((records.task == t) & (records.clause_length == k))


def positional_ids(test: Records) -> list[str]:
    """Returns T.K/ROW for each test story; rows count from 1 within their task."""
    ids = np.empty(len(test), object)
    for task, rows in tasks(test):
        ids[rows] = [f"{task}/{row}" for row in range(1, len(rows) + 1)]
    return ids.tolist()


def story_ids(test: Records) -> list[str]:
    """Returns the column `id` if every test story has a different one, otherwise T.K/ROW."""
    ids = set(test.ids) - {""}
    return list(test.ids) if len(ids) == len(test) else positional_ids(test)


def by_people(records: Records, max_pairs: int = 1 << 20) -> Iterator[np.ndarray]:
    """Yields the indices of all stories, in groups with the same number of people.

    A group has at most `max_pairs` pairs of people, or one story. Arrays of all pairs of a group
    are therefore small, whatever the largest story.
    """
    people = np.diff(records.node_start)
    for count in np.unique(people):
        rows = np.flatnonzero(people == count)
        size = max(1, max_pairs // int(count) ** 2)
        yield from (rows[start : start + size] for start in range(0, len(rows), size))
