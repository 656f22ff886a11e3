"""Backward chaining: a target fact and the k facts that prove it, with the proof (section 3.2).

A story is a path: fact i leads from person i to person i + 1, and the target from the first to the
last. Each of k - 1 steps picks one of the facts that some rule resolves, then one of those rules,
then the person in the middle, each uniformly, and replaces the fact by two.

No fact stands twice in a story and its proof, in either direction: a step that would do so is drawn
again. So no story states what it asks, and no proof needs what it proves. A person may come up
twice: people per story are about those of the released data.
"""

from typing import NamedTuple

import numpy as np

from generator.closure import KinshipGraph
from generator.kinship import NUM_RELATIONS

_ATTEMPTS = 8  # draws of a step before a story is given up


class Chains(NamedTuple):
    """B targets with their proofs; facts are numbers in a KinshipGraph."""

    facts: np.ndarray  # [B, k] the path
    steps: np.ndarray  # [B, k - 1, 3] the proof: the resolved fact, and the two that prove it
    complete: np.ndarray  # [B] whether all steps were found; else the story is of no use

    def people(self, graph: KinshipGraph) -> np.ndarray:
        """The people along the path, [B, k + 1]."""
        return np.concatenate([graph.start[self.facts], graph.end[self.facts[:, -1:]]], axis=1)


def chain(graph: KinshipGraph, target: np.ndarray, k: int, rng: np.random.Generator) -> Chains:
    """Replaces each target fact [B] by k facts that prove it."""
    b = len(target)
    facts = np.repeat(target[:, None], k, axis=1)
    steps = np.repeat(facts[:, 1:, None], 3, axis=2)
    used = np.full((b, 2 * k - 1), -1)  # the facts of story and proof, either direction for both
    used[:, 0] = graph.either[target]
    complete = np.ones(b, bool)
    for length in range(1, k):
        row = np.flatnonzero(complete)
        complete[:] = False
        resolvable = graph.resolvable(facts[:, :length])
        for _ in range(_ATTEMPTS):
            position, found = choose(resolvable[row], rng)
            row, position = row[found], position[found]
            head = facts[row, position]
            body = graph.resolve(head, rng)  # [rows, 2]
            either = graph.either[body]
            new = ~(used[row, : 2 * length - 1, None] == either[:, None]).any(axis=(1, 2))
            done, at, body = row[new], position[new], body[new]
            steps[done, length - 1, 0], steps[done, length - 1, 1:] = head[new], body
            used[done, 2 * length - 1 : 2 * length + 1] = either[new]
            column = np.arange(1, length + 1)  # move up what comes after
            facts[done, 1 : length + 1] = facts[done[:, None], column - (column > at[:, None])]
            facts[done, at], facts[done, at + 1] = body.T
            complete[done] = True
            row = row[~new]
    return Chains(facts, steps, complete)


def choose(allowed: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A uniform true column of each row of `allowed` [B, m], and whether there is one, [B] each."""
    count = allowed.cumsum(axis=1)
    total = count[:, -1]
    rank = (rng.random(len(allowed)) * total).astype(np.int64)
    return (count > rank[:, None]).argmax(axis=1), total > 0


def clause_code(relations: np.ndarray) -> np.ndarray:
    """A number for each clause [B, k] of relations, unlike for unlike clauses up to k = 13."""
    code = np.zeros(len(relations), np.uint64)
    for column in relations.T:
        code = code * np.uint64(NUM_RELATIONS) + column.astype(np.uint64)
    return code


def held_out(relations: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """Whether the clauses [B, k] belong to the random `fraction` that only tests show, [B].

    The choice is a hash of clause and seed (splitmix64), so that it needs no list of all clauses:
    there are about 5 ** k.
    """
    with np.errstate(over="ignore"):
        x = clause_code(relations) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
        x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)).astype(np.float64) < fraction * 2.0**53
