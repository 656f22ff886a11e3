"""The families of 2018 and all simple paths in them (Sinha et al. 2018, Algorithm 1, table 2).

A family has a root couple and `l_max` generations below it. Everybody above the last generation is
married, and each couple has c_min to c_max children. Exchanging two siblings with their descendants
turns a path into another one with the same relations, so only one path per class of such paths is
enumerated. `Paths.weight` is the expected size of the class in a random family.
"""

from itertools import islice, pairwise
from math import perm
from typing import NamedTuple

import numpy as np

from generator.errors import InputError
from generator.relations.kinship import INVERSE, NUM_PREDICATES, PREDICATE_ID
from generator.workshop.rules import is_unambiguous

MAX_PEOPLE = 1000  # per family; larger ones have no further paths of a listable length
MAX_PATHS = 1_000_000  # of one length


class Family(NamedTuple):
    """A family of P people in preorder; spouses directly follow their partner.

    The head of a couple is its descendant of the root. A branch is a child of a couple together
    with the child's partner and descendants; its id is that of the child.
    """

    edges: np.ndarray  # [P, P] predicate of person Y relative to X, -1 without an edge
    head: np.ndarray  # [P] head of the person's couple, or the person
    branches: np.ndarray  # [P, P] bool: branches[p, b] is True if p belongs to branch b
    parent: np.ndarray  # [P] head of the parents (or parents-in-law), -1 for the root couple


class Paths(NamedTuple):
    """M classes of simple paths of k facts, between people who are joined by an edge."""

    people: np.ndarray  # [M, k + 1]
    clause: np.ndarray  # [M, k] predicates along the path
    answer: np.ndarray  # [M] predicate of the last person relative to the first
    weight: np.ndarray  # [M] expected number of paths of this class in a random family


def family(l_max: int, children: int) -> Family:
    """Returns the family in which every couple has `children` children.

    Siblings have an edge only in the last generation, which is unmarried; the counts of table 2
    imply this.
    """
    size = 2 * sum(children**level for level in range(l_max)) + children**l_max
    if size > MAX_PEOPLE:
        raise InputError(
            f"workshop: a family of {l_max} generations with {children} children per couple has "
            f"over {MAX_PEOPLE} people, expected fewer: decrease --l-max or --c-max"
        )
    heads: list[int] = []
    parents: list[int] = []

    def add_branch(level: int, parent: int) -> None:
        head = len(heads)
        is_married = level < l_max
        heads.extend([head] * (1 + is_married))
        parents.extend([parent] * (1 + is_married))
        for _ in range(children if is_married else 0):
            add_branch(level + 1, head)

    add_branch(0, -1)
    head, parent = np.array(heads), np.array(parents)
    person = np.arange(size)
    is_married = np.bincount(head, minlength=size)[head] == 2
    grandparent = np.where(parent >= 0, parent[parent], -1)
    different = person[:, None] != person
    is_descendant = head == person
    is_next_generation = parent == head[:, None]
    siblings = (parent == parent[:, None]) & different & ~is_married & (parent >= 0)

    edges = np.full((size, size), -1)
    edges[(head == head[:, None]) & different] = PREDICATE_ID["SO"]
    edges[is_next_generation & is_descendant] = PREDICATE_ID["child"]
    edges[is_next_generation & ~is_descendant] = PREDICATE_ID["in-law"]
    edges[(grandparent == head[:, None]) & is_descendant] = PREDICATE_ID["grand"]
    edges[siblings] = PREDICATE_ID["sibling"]
    inverse = (edges < 0) & (edges.T >= 0)
    edges[inverse] = INVERSE[edges.T[inverse]]

    branches = np.zeros((size, size), bool)
    for p in np.flatnonzero(parent >= 0):
        branches[p] = branches[parent[p]]
        branches[p, head[p]] = True
    return Family(edges, head, branches, parent)


def simple_paths(members: Family, people: int) -> np.ndarray:
    """Returns all simple paths of a number of people, one per class, [M, people].

    The representative of a class visits the branches of each couple in the order of their ids.
    """
    size = len(members.head)
    bit = [1 << p for p in range(size)]
    own = members.branches.diagonal()
    branch = [sum(bit[p] for p in np.flatnonzero(column)) for column in members.branches.T]
    # Previous branch of the same parents.
    previous = {
        b: a
        for siblings in (np.flatnonzero((members.parent == p) & own) for p in range(size))
        for a, b in pairwise(siblings.tolist())
    }
    # A path may visit a person if it has visited, for each of the person's branches, that branch or
    # the previous one.
    gates = [
        [branch[b] | branch[previous[b]] for b in np.flatnonzero(row).tolist() if b in previous]
        for row in members.branches
    ]
    neighbors = [np.flatnonzero(row >= 0).tolist() for row in members.edges]

    level: list[tuple[tuple[int, ...], int]] = [((p,), bit[p]) for p in range(size) if not gates[p]]
    for facts in range(1, people):
        longer = (
            ((*path, p), visited | bit[p])
            for path, visited in level
            for p in neighbors[path[-1]]
            if not visited & bit[p] and all(visited & gate for gate in gates[p])
        )
        level = list(islice(longer, MAX_PATHS + 1))
        if len(level) > MAX_PATHS:
            raise InputError(
                f"workshop: over {MAX_PATHS} paths of {facts} facts, "
                "expected fewer: decrease --k, --l-max or --c-max"
            )
    return np.array([path for path, _ in level], int).reshape(-1, people)


def count_paths(l_max: int, c_max: int, people: int) -> int:
    """Returns the number of unique relation paths of `people` people as in table 2.

    These are the distinct combinations of the predicates along a simple path and the predicate of
    the edge between its ends. Paths start at the end that comes first in preorder.
    """
    members = family(l_max, min(c_max, people))
    paths = simple_paths(members, people)
    ends = members.edges[paths[:, 0], paths[:, -1]]
    counted = (ends >= 0) & (paths[:, 0] < paths[:, -1])
    predicates = np.column_stack([members.edges[paths[:, :-1], paths[:, 1:]], ends])[counted]
    return len(np.unique(predicates @ NUM_PREDICATES ** np.arange(people)))


def paths_of(members: Family, k: int, c_min: int, c_max: int, drop_ambiguous: bool) -> Paths:
    """Returns the paths of k facts, with their weights in random families.

    Couples have c_min to c_max children, all numbers equally likely, and in `members`
    min(c_max, k + 1). `drop_ambiguous` returns paths with `rules.is_unambiguous` only.
    """
    people = simple_paths(members, k + 1)
    answer = members.edges[people[:, 0], people[:, -1]]
    people, answer = people[answer >= 0], answer[answer >= 0]
    clause = members.edges[people[:, :-1], people[:, 1:]]
    if drop_ambiguous:
        kept = np.array([is_unambiguous(tuple(row)) for row in clause.tolist()], bool)
        people, clause, answer = people[kept], clause[kept], answer[kept]
    if not len(people):
        raise InputError(
            f"workshop: no path of {k} facts in a family of {len(members.head)} people, "
            "expected a smaller --k, or a larger --l-max or --c-max"
        )
    # A path that visits t of c branches stands for c (c - 1) ... (c - t + 1) paths.
    sizes = range(c_min, c_max + 1)
    mean_count = np.array([sum(perm(c, t) for c in sizes) / len(sizes) for t in range(k + 2)])
    visited = np.zeros((len(people), len(members.head)), bool)
    for column in people.T:
        visited |= members.branches[column]
    weight = np.ones(len(people))
    for parent in np.unique(members.parent[members.parent >= 0]):
        weight *= mean_count[visited[:, members.parent == parent].sum(axis=1)]
    return Paths(people, clause, answer, weight)
