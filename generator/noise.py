"""Noise facts: walks through the family of a story that its proof does not use (section 3.5).

The shapes follow the released data (figure 4):
  supporting    a detour from one person of the path to the next, over new people; the result of
                backward chaining from the fact between the two
  irrelevant    a walk from a person of the path (except the last) to new people
  disconnected  a walk over new people only
Each new person occurs once in a story, so noise never shortens the path between the query pair.

All three functions take
  graph        the families
  expressible  bool [11], the predicates that noise facts may have (a detour ignores it: it has only
               predicates that paths have too)
  chains       the paths of B stories
  taken        bool [B, n], the family members that occur in each story; updated in place
  length       number of facts per walk
  rng          random generator
and return the facts of one walk per story, [B, length]; -1 in rows where no walk was found.
"""

import numpy as np

from generator.clause import Chains, chain, choose
from generator.closure import KinshipGraph

_ATTEMPTS = 20


def supporting(
    graph: KinshipGraph,
    expressible: np.ndarray,
    chains: Chains,
    taken: np.ndarray,
    length: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Samples a detour per story; see the module docstring."""
    n = graph.families.n
    noise = np.full((len(chains.facts), length), -1)
    todo = np.arange(len(noise))
    for _ in range(_ATTEMPTS):
        fact = chains.facts[todo, rng.integers(0, chains.facts.shape[1], len(todo))]
        provable = graph.is_provable(fact)
        detour = chain(graph, np.where(provable, fact, graph.target[0]), length, rng)
        new = graph.end[detour.facts[:, :-1]] % n
        repeated = (new[:, :, None] == new[:, None, :]).sum(axis=(1, 2)) > new.shape[1]
        good = provable & detour.complete & ~repeated
        good &= ~taken[todo[:, None], new].any(axis=1)
        noise[todo[good]] = detour.facts[good]
        taken[todo[good, None], new[good]] = True
        todo = todo[~good]
    return noise


def irrelevant(
    graph: KinshipGraph,
    expressible: np.ndarray,
    chains: Chains,
    taken: np.ndarray,
    length: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Samples a dangling walk per story; see the module docstring."""
    row = np.arange(len(taken))
    fact = chains.facts[row, rng.integers(0, chains.facts.shape[1], len(row))]
    return _walk(graph, expressible, graph.start[fact], taken, length, rng)


def disconnected(
    graph: KinshipGraph,
    expressible: np.ndarray,
    chains: Chains,
    taken: np.ndarray,
    length: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Samples a disconnected walk per story; see the module docstring."""
    n = graph.families.n
    family = graph.start[chains.facts[:, 0]] // n
    exists = graph.families.exists.reshape(-1, n)[family]
    person, found = choose(exists & ~taken, rng)
    taken[np.flatnonzero(found), person[found]] = True
    noise = _walk(graph, expressible, family * n + person, taken, length, rng)
    noise[~found] = -1
    return noise


def _walk(
    graph: KinshipGraph,
    expressible: np.ndarray,
    start: np.ndarray,
    taken: np.ndarray,
    length: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Samples random walks from `start` [B] to new people, [B, length]; -1 where impossible."""
    n = graph.families.n
    row = np.arange(len(start))
    found = np.ones(len(start), bool)
    noise = np.empty((len(start), length), np.int64)
    for step in range(length):
        degree = graph.start_offset[start + 1] - graph.start_offset[start]
        fact = graph.start_offset[start, None] + np.arange(degree.max(initial=1))
        valid = fact < graph.start_offset[start + 1, None]
        fact = np.where(valid, fact, 0)
        valid &= expressible[graph.predicate[fact]] & ~taken[row[:, None], graph.end[fact] % n]
        column, has_next = choose(valid, rng)
        found &= has_next
        noise[:, step] = fact[row, column]
        start = graph.end[noise[:, step]]
        taken[row, start % n] = True
    noise[~found] = -1
    return noise
