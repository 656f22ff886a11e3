"""Stories as flat NumPy arrays and text: `Records`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from generator.algebra import Algebra
from generator.checks import content
from generator.errors import InputError
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
        """Hashes of what each story says, see `generator.checks.content`, [S]."""
        told = map(self.story, range(len(self)))
        return [content(one.text, one.facts, one.query) for one in told]

    @cached_property
    def questions(self) -> list[int]:
        """A hash of what each story says, of its query and of its facts in any order, [S]."""
        told = map(self.story, range(len(self)))
        return [
            hash((said, str((one.query, sorted(one.facts))).casefold()))
            for said, one in zip(self.contents, told, strict=True)
        ]

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
        return replace(
            self,
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
            ids=[self.ids[s] for s in rows],
        )


def _spans(start: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the flat indices of the slices `start[r]:start[r + 1]`, and their new starts."""
    sizes = np.diff(start)[rows]
    new_start = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(new_start[-1]) + np.repeat(start[:-1][rows] - new_start[:-1], sizes), new_start


def concatenate(parts: Sequence[Records]) -> Records:
    """Returns the stories of several records of one algebra, in order.

    Raises:
      InputError: their algebras differ.
    """
    check_algebras(parts)
    arrays = ("genders", "senders", "receivers", "relations", "query", "target", "task",
              "clause_length")  # fmt: skip
    starts: dict[str, Any] = {
        name: np.cumsum([0, *(size for p in parts for size in np.diff(getattr(p, name)))])
        for name in ("node_start", "edge_start")
    }
    return replace(
        parts[0],
        stories=[story for p in parts for story in p.stories],
        names=[name for p in parts for name in p.names],
        ids=[id for p in parts for id in p.ids],
        **starts | {name: np.concatenate([getattr(p, name) for p in parts]) for name in arrays},
    )


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
    """Returns the cells of S stories by published column, [S] each; inverse of `build_records`.

    Columns of what is not known for any story are left out.
    """
    rows = []
    people, facts = records.node_start.tolist(), records.edge_start.tolist()
    pairs = np.stack([records.senders, records.receivers], axis=1).tolist()
    genders, relations = records.genders.tolist(), records.relations.tolist()
    for s, query in enumerate(records.query.tolist()):
        person, fact = slice(*people[s : s + 2]), slice(*facts[s : s + 2])
        stated = [records.relation_name(r) for r in relations[fact] if r != records.unstated]
        rows.append(
            format_facts(records.names[person], genders[person], pairs[fact], stated, query)
        )
        if not pairs[fact]:  # a story whose facts are not known
            rows[-1] |= {"story_edges": "", "edge_types": ""}
    found = {
        "id": list(records.ids),
        "story": list(records.stories),
        "target": list(map(records.relation_name, records.target)),
        **{name: [row[name] for row in rows] for name in rows[0]},
    }
    steps = list(zip(records.task.tolist(), records.clause_length.tolist(), strict=True))
    found["task_name"] = [f"task_{t}.{k}" if t and k else "" for t, k in steps]
    if not all(found["task_name"]):
        found["k"] = [str(k or "") for _, k in steps]
    if not len(records.relations):
        del found["story_edges"], found["edge_types"], found["query_edge"]
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
