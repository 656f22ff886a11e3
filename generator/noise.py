"""Noise facts: paths through the same family that no proof needs (section 3.5, figure 4).

As in the released data:
  supporting    leads from one person of the story's path to the next, over new people; it is what
                backward chaining makes of the fact between the two
  irrelevant    starts at a person of the path (not the last), and leads to new people
  disconnected  is a path of new people alone
No new person is twice in a story, so noise never shortens the way between the asked people.
"""

import numpy as np

from generator.clause import Chains, chain, choose
from generator.closure import KinshipGraph

_ATTEMPTS = 20


def supporting(
    graph: KinshipGraph,
    tellable: np.ndarray,
    chains: Chains,
    taken: np.ndarray,
    length: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """One detour for each story.

    Args:
      graph: the families.
      tellable: bool [11], the predicates that a noise fact may have. (A detour only has those of
        rules, as a path.)
      chains: the paths of B stories.
      taken: [B, n] which people of its family are in the story. Changed: the new ones are added.
      length: of the detour, in facts.
      rng: source of chance.
    Returns:
      [B, length] facts; -1 where none was found.
    """
    n = graph.families.n
    noise = np.full((len(chains.facts), length), -1)
    todo = np.arange(len(noise))
    for _ in range(_ATTEMPTS):
        fact = chains.facts[todo, rng.integers(0, chains.facts.shape[1], len(todo))]
        detour = chain(graph, np.where(graph.resolvable(fact), fact, graph.target[0]), length, rng)
        new = graph.end[detour.facts[:, :-1]] % n
        repeated = (new[:, :, None] == new[:, None, :]).sum(axis=(1, 2)) > new.shape[1]
        good = graph.resolvable(fact) & detour.complete & ~repeated
        good &= ~taken[todo[:, None], new].any(axis=1)
        noise[todo[good]] = detour.facts[good]
        taken[todo[good, None], new[good]] = True
        todo = todo[~good]
    return noise


def irrelevant(
    graph: KinshipGraph,
    tellable: np.ndarray,
    chains: Chains,
    taken: np.ndarray,
    length: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """One dangling path for each story; arguments and result as of `supporting`."""
    row = np.arange(len(taken))
    fact = chains.facts[row, rng.integers(0, chains.facts.shape[1], len(row))]
    return _walk(graph, tellable, graph.start[fact], taken, length, rng)


def disconnected(
    graph: KinshipGraph,
    tellable: np.ndarray,
    chains: Chains,
    taken: np.ndarray,
    length: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """One path apart for each story; arguments and result as of `supporting`."""
    n = graph.families.n
    family = graph.start[chains.facts[:, 0]] // n
    exists = graph.families.exists.reshape(-1, n)[family]
    person, found = choose(exists & ~taken, rng)
    taken[np.flatnonzero(found), person[found]] = True
    noise = _walk(graph, tellable, family * n + person, taken, length, rng)
    noise[~found] = -1
    return noise


def _walk(
    graph: KinshipGraph,
    tellable: np.ndarray,
    start: np.ndarray,
    taken: np.ndarray,
    length: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Random facts, each from the last person to a new one: [B, length], -1 where there is none."""
    n = graph.families.n
    row = np.arange(len(start))
    found = np.ones(len(start), bool)
    noise = np.empty((len(start), length), np.int64)
    for step in range(length):
        degree = graph.out[start + 1] - graph.out[start]
        fact = graph.out[start, None] + np.arange(degree.max(initial=1))
        valid = fact < graph.out[start + 1, None]
        fact = np.where(valid, fact, 0)
        valid &= tellable[graph.predicate[fact]] & ~taken[row[:, None], graph.end[fact] % n]
        column, any_left = choose(valid, rng)
        found &= any_left
        noise[:, step] = fact[row, column]
        start = graph.end[noise[:, step]]
        taken[row, start % n] = True
    noise[~found] = -1
    return noise
