"""Backward chaining: a target fact, k facts that prove it, and the proof (section 3.2).

The k facts form a path: fact i leads from person i to person i + 1, and the target fact leads from
the first to the last person. Each of the k - 1 steps replaces one fact by two. It samples a fact
that some rule can prove, then the rule, then the intermediate person, each uniformly.

No fact occurs twice in a story and its proof, in either direction; steps that would repeat a fact
are resampled. A story therefore never states its answer, and no proof is circular. A person may
occur twice on a path, as in the released data.
"""

from typing import NamedTuple

import numpy as np

from generator.relations.kinship import NUM_RELATIONS
from generator.stories.closure import KinshipGraph

_ATTEMPTS = 8  # samples of a step before a story is discarded


class Chains(NamedTuple):
    """B paths with their proofs. Facts are indices into a KinshipGraph."""

    facts: np.ndarray  # [B, k] the path
    steps: np.ndarray  # [B, k - 1, 3] the proof: a fact, and the two facts that imply it
    complete: np.ndarray  # [B] bool; rows with False are incomplete and must be discarded


def chain(graph: KinshipGraph, target: np.ndarray, k: int, rng: np.random.Generator) -> Chains:
    """Replaces each target fact [B] by k facts that prove it."""
    b = len(target)
    facts = np.repeat(target[:, None], k, axis=1)
    steps = np.repeat(facts[:, 1:, None], 3, axis=2)
    used = np.full((b, 2 * k - 1), -1)  # pair ids of the facts in the story and its proof
    used[:, 0] = graph.pair_id[target]
    complete = np.ones(b, bool)
    for length in range(1, k):
        row = np.flatnonzero(complete)
        complete[:] = False
        provable = graph.is_provable(facts[:, :length])
        for _ in range(_ATTEMPTS):
            position, found = choose(provable[row], rng)
            row, position = row[found], position[found]
            head = facts[row, position]
            body = graph.sample_body(head, rng)  # [rows, 2]
            pair_id = graph.pair_id[body]
            new = ~(used[row, : 2 * length - 1, None] == pair_id[:, None]).any(axis=(1, 2))
            done, at, body = row[new], position[new], body[new]
            steps[done, length - 1, 0], steps[done, length - 1, 1:] = head[new], body
            used[done, 2 * length - 1 : 2 * length + 1] = pair_id[new]
            column = np.arange(1, length + 1)  # shift the facts after the replaced one
            facts[done, 1 : length + 1] = facts[done[:, None], column - (column > at[:, None])]
            facts[done, at], facts[done, at + 1] = body.T
            complete[done] = True
            row = row[~new]
    return Chains(facts, steps, complete)


def choose(allowed: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Samples a uniform true column in each row of `allowed` [B, m].

    Returns the column [B], and bool [B]: False for rows without a true column.
    """
    count = allowed.cumsum(axis=1)
    total = count[:, -1]
    rank = (rng.random(len(allowed)) * total).astype(np.int64)
    return (count > rank[:, None]).argmax(axis=1), total > 0


def clause_code(relations: np.ndarray) -> np.ndarray:
    """Returns an integer per clause [B, k] of relations; distinct clauses differ for k <= 13."""
    code = np.zeros(len(relations), np.uint64)
    for column in relations.T:
        code = code * np.uint64(NUM_RELATIONS) + column.astype(np.uint64)
    return code


def held_out(relations: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """Returns bool [B]: True for clauses [B, k] in the random `fraction` reserved for tests.

    The choice is a hash of clause and seed (splitmix64), because there are too many clauses to list
    (about 5 ** k).
    """
    with np.errstate(over="ignore"):
        x = clause_code(relations) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
        x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)).astype(np.float64) < fraction * 2.0**53
