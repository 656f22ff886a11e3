"""The families of 2018 and every simple path in them (Sinha et al. 2018, Algorithm 1 and table 2).

A family is a root couple and `l_max` generations below it; everyone above the last generation is
married, and every couple has c_min to c_max children. Brothers and sisters are swapped freely: a
swap turns one path into another of the same relations, and only one path of each such class is
made. `Paths.weight` says how many paths, in how many families, it stands for.
"""

from collections.abc import Iterator
from itertools import islice
from math import perm
from typing import NamedTuple

import numpy as np

from generator.errors import InputError
from generator.kinship import INVERSE, NUM_PREDICATES, PREDICATE_ID
from generator.workshop.rules import is_sure

MAX_PEOPLE = 1000  # in a family: larger ones hold no new paths of a length that can be listed
MAX_PATHS = 1_000_000  # of one length, listed at once


class Family(NamedTuple):
    """P people in preorder; who marries into the family comes right after the partner."""

    edges: np.ndarray  # [P, P] predicate of Y to X, -1 where the graph has no edge
    head: np.ndarray  # [P] the child of the family in this person's couple, which may be the person
    branches: np.ndarray  # [P, P] bool: the branches that p stands in, each named by its head
    parent: np.ndarray  # [P] head of the parents' couple (or parents-in-law's), -1 for the root


class Paths(NamedTuple):
    """M classes of simple paths of k facts whose ends are joined by an edge."""

    people: np.ndarray  # [M, k + 1]
    clause: np.ndarray  # [M, k] predicates along the path
    answer: np.ndarray  # [M] predicate of the last person to the first
    weight: np.ndarray  # [M] paths of this class in a random family, on average


def family(l_max: int, children: int) -> Family:
    """The family in which every couple has `children` children; siblings have an edge only in the
    last generation (where nobody is married), as the counts of table 2 demand.

    Raises:
      InputError: more than `MAX_PEOPLE` people.
    """
    size = 2 * sum(children**level for level in range(l_max)) + children**l_max
    if size > MAX_PEOPLE:
        raise InputError(
            f"workshop: a family of {l_max} generations with {children} children per couple has "
            f"over {MAX_PEOPLE} people, expected fewer: lower --l-max or --c-max"
        )
    heads: list[int] = []
    parents: list[int] = []

    def grow(level: int, parent: int) -> None:
        me = len(heads)
        couple = 2 if level < l_max else 1
        heads.extend([me] * couple)
        parents.extend([parent] * couple)
        for _ in range(children if couple == 2 else 0):
            grow(level + 1, me)

    grow(0, -1)
    head, parent = np.array(heads), np.array(parents)
    person = np.arange(size)
    married = np.bincount(head, minlength=size)[head] == 2
    grandparent = np.where(parent >= 0, parent[parent], -1)
    apart = person[:, None] != person
    born = head == person
    below = parent == head[:, None]
    siblings = (parent == parent[:, None]) & apart & ~married & (parent >= 0)

    edges = np.full((size, size), -1)
    edges[(head == head[:, None]) & apart] = PREDICATE_ID["SO"]
    edges[below & born] = PREDICATE_ID["child"]
    edges[below & ~born] = PREDICATE_ID["in-law"]
    edges[(grandparent == head[:, None]) & born] = PREDICATE_ID["grand"]
    edges[siblings] = PREDICATE_ID["sibling"]
    against = (edges < 0) & (edges.T >= 0)
    edges[against] = INVERSE[edges.T[against]]

    branches = np.zeros((size, size), bool)
    for p in range(1, size):
        if parent[p] >= 0:
            branches[p] = branches[parent[p]]
            branches[p, head[p]] = True
    return Family(edges, head, branches, parent)


def simple_paths(members: Family) -> Iterator[np.ndarray]:
    """All simple paths of 1, 2, 3, ... people, one of each class, [M, people] per length.

    A path enters the branches of a couple's children in their order, which picks one path of each
    class: a swap of branches can bring them into that order, and no other swap keeps it.

    Raises:
      InputError: more than `MAX_PATHS` paths of one length.
    """
    size = len(members.head)
    bit = [1 << p for p in range(size)]
    branch = [sum(bit[p] for p in np.flatnonzero(column)) for column in members.branches.T]
    elder: dict[int, int] = {}  # the branch before this one, of the same parents
    latest: dict[int, int] = {}
    for b in np.flatnonzero(members.branches.any(axis=0)).tolist():
        parent = int(members.parent[b])
        if parent in latest:
            elder[b] = latest[parent]
        latest[parent] = b
    # A person can be reached once each branch around them, or the one before it, has been entered.
    gates = [
        [branch[b] | branch[elder[b]] for b in np.flatnonzero(row).tolist() if b in elder]
        for row in members.branches
    ]
    neighbours = [np.flatnonzero(row >= 0).tolist() for row in members.edges]

    level: list[tuple[tuple[int, ...], int]] = [((p,), bit[p]) for p in range(size) if not gates[p]]
    while level:
        if len(level) > MAX_PATHS:
            raise InputError(
                f"workshop: over {MAX_PATHS} paths of {len(level[0][0]) - 1} facts, "
                "expected fewer: lower --k, --l-max or --c-max"
            )
        yield np.array([path for path, _ in level])
        longer = (
            ((*path, p), seen | bit[p])
            for path, seen in level
            for p in neighbours[path[-1]]
            if not seen & bit[p] and all(seen & gate for gate in gates[p])
        )
        level = list(islice(longer, MAX_PATHS + 1))


def count_paths(l_max: int, c_max: int, people: int) -> int:
    """Unique relation paths of `people` people, as table 2 counts them: over each two people joined
    by an edge, the first in preorder as the start, and every simple path between them, the distinct
    pairs of the predicates along the path and the predicate of the edge.
    """
    members = family(l_max, min(c_max, people))
    paths = next(islice(simple_paths(members), people - 1, None), np.empty((0, people), int))
    ends = members.edges[paths[:, 0], paths[:, -1]]
    counted = (ends >= 0) & (paths[:, 0] < paths[:, -1])
    names = np.column_stack([members.edges[paths[:, :-1], paths[:, 1:]], ends])[counted]
    return len(np.unique(names @ NUM_PREDICATES ** np.arange(people)))


def paths_of(members: Family, k: int, c_min: int, c_max: int, sure: bool) -> Paths:
    """The paths of k facts that stories are drawn from.

    Args:
      members: the family with `c_max` children, or k + 1 where that is fewer.
      k: facts along the path.
      c_min, c_max: least and most children; each number between them is as likely.
      sure: only paths with a sure answer (`rules.is_sure`).
    Raises:
      InputError: there is no such path.
    """
    people = next(islice(simple_paths(members), k, None), np.empty((0, k + 1), int))
    answer = members.edges[people[:, 0], people[:, -1]]
    people, answer = people[answer >= 0], answer[answer >= 0]
    clause = members.edges[people[:, :-1], people[:, 1:]]
    if sure:
        kept = np.array([is_sure(tuple(row)) for row in clause.tolist()], bool)
        people, clause, answer = people[kept], clause[kept], answer[kept]
    if not len(people):
        raise InputError(
            f"workshop: no path of {k} facts in a family of {len(members.head)} people, "
            "expected a smaller --k or a larger --l-max or --c-max"
        )
    # t branches of c children can be entered in c (c - 1) ... (c - t + 1) orders.
    sizes = range(c_min, c_max + 1)
    orders = np.array([sum(perm(c, t) for c in sizes) / len(sizes) for t in range(k + 2)])
    entered = np.zeros((len(people), len(members.head)), bool)
    for column in people.T:
        entered |= members.branches[column]
    weight = np.ones(len(people))
    for parent in np.unique(members.parent[members.parent >= 0]):
        weight *= orders[entered[:, members.parent == parent].sum(axis=1)]
    return Paths(people, clause, answer, weight)
