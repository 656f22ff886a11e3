"""Backward chaining: a target fact and the k facts that prove it, with the proof (section 3.2).

A story is a path: fact i leads from person i to person i + 1, and the target from the first to the
last. Each of k - 1 steps picks one of the facts that some rule resolves, then one of those rules,
then the person in the middle, each uniformly, and replaces the fact by two.
"""

from typing import NamedTuple

import numpy as np

from generator.closure import KinshipGraph
from generator.kinship import NUM_RELATIONS


class Chains(NamedTuple):
    """B targets with their proofs; facts are numbers in a KinshipGraph."""

    facts: np.ndarray  # [B, k] the path
    steps: np.ndarray  # [B, k - 1, 3] the proof: the resolved fact, and the two that prove it
    complete: np.ndarray  # [B] whether there was always a fact to resolve

    def people(self, graph: KinshipGraph) -> np.ndarray:
        """The people along the path, [B, k + 1]."""
        return np.concatenate([graph.start[self.facts], graph.end[self.facts[:, -1:]]], axis=1)


def chain(graph: KinshipGraph, target: np.ndarray, k: int, rng: np.random.Generator) -> Chains:
    """Replaces each target fact [B] by k facts that prove it."""
    row = np.arange(len(target))
    facts = target[:, None]
    steps = np.empty((len(target), k - 1, 3), np.int64)
    complete = np.ones(len(target), bool)
    for length in range(1, k):
        position, found = choose(graph.resolvable(facts), rng)
        complete &= found
        chosen = np.where(found, facts[row, position], graph.target[0])  # any, if none resolves
        first, second = graph.resolve(chosen, rng)
        steps[:, length - 1] = np.stack([chosen, first, second], axis=1)
        after = np.arange(length + 1) > position[:, None]
        facts = np.take_along_axis(facts, np.arange(length + 1) - after, 1)
        facts[row, position] = first
        facts[row, position + 1] = second
    return Chains(facts, steps, complete)


def choose(allowed: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A uniform true column of each row of `allowed` [B, m], and whether there is one, [B] each."""
    count = allowed.cumsum(axis=1)
    total = count[:, -1]
    rank = (rng.random(len(allowed)) * total).astype(np.int64)
    return (count > rank[:, None]).argmax(axis=1), total > 0


def is_circular(chains: Chains) -> np.ndarray:
    """Whether a fact of the story or of its proof stands twice among them, [B].

    Among 2 k - 1 different facts, the story does not state what it asks, and no proof needs what it
    proves.
    """
    facts = np.sort(np.concatenate([chains.facts, chains.steps[:, :, 0]], axis=1), axis=1)
    return (facts[:, 1:] == facts[:, :-1]).any(axis=1)


def states_inverse(graph: KinshipGraph, chains: Chains) -> np.ndarray:
    """Whether a fact of the path leads from the last person to the first, [B]."""
    people = chains.people(graph)
    inverse = (people[:, :-1] == people[:, -1:]) & (people[:, 1:] == people[:, :1])
    return inverse.any(axis=1)


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
