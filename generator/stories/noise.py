"""Noise facts: walks through the family of a story that its proof does not use (section 3.5).

Each new person occurs once in a story, so noise never shortens the path between the query pair. The
shapes follow the released data (figure 4). To add a noise type, write a method of `NoiseSampler`
and list it in `NOISE_TYPES`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from generator.stories.clause import Chains, chain, choose
from generator.stories.closure import KinshipGraph

_ATTEMPTS = 20


class NoiseSampler:
    """Samples walks for B stories with these paths; later walks avoid the people of earlier ones.

    All methods take the number of facts per walk and return facts [B, length]; -1 in rows where no
    walk was found. Their predicates are `expressible`, bool [11], except those of detours, which
    are predicates of paths.
    """

    def __init__(
        self, graph: KinshipGraph, chains: Chains, expressible: np.ndarray, rng: np.random.Generator
    ) -> None:
        self.graph, self.chains, self.expressible, self.rng = graph, chains, expressible, rng
        self.n = graph.families.n
        self.row = np.arange(len(chains.facts))
        path = graph.people(chains.facts) % self.n
        self.taken = np.zeros((len(path), self.n), bool)  # family members in the story
        self.taken[self.row[:, None], path] = True

    def supporting(self, length: int) -> np.ndarray:
        """Detours over new people from one person of the path to the next: the result of backward
        chaining from the fact between the two."""
        graph, n = self.graph, self.n
        noise = np.full((len(self.row), length), -1)
        todo = self.row
        for _ in range(_ATTEMPTS):
            fact = self._path_fact(todo)
            provable = graph.is_provable(fact)
            goal = np.where(provable, fact, graph.target[0])
            detour = chain(graph, goal, length, self.rng)
            new = graph.end[detour.facts[:, :-1]] % n
            repeated = (new[:, :, None] == new[:, None, :]).sum(axis=(1, 2)) > new.shape[1]
            good = provable & detour.complete & ~repeated
            good &= ~self.taken[todo[:, None], new].any(axis=1)
            noise[todo[good]] = detour.facts[good]
            self.taken[todo[good, None], new[good]] = True
            todo = todo[~good]
        return noise

    def irrelevant(self, length: int) -> np.ndarray:
        """Walks from a person of the path, except the last, to new people."""
        return self._walk(self.graph.start[self._path_fact(self.row)], length)

    def disconnected(self, length: int) -> np.ndarray:
        """Walks over new people only."""
        n = self.n
        family = self.graph.start[self.chains.facts[:, 0]] // n
        exists = self.graph.families.exists.reshape(-1, n)[family]
        person, found = choose(exists & ~self.taken, self.rng)
        self.taken[np.flatnonzero(found), person[found]] = True
        noise = self._walk(family * n + person, length)
        noise[~found] = -1
        return noise

    def _path_fact(self, row: np.ndarray) -> np.ndarray:
        """Samples a fact of the path of each of the given stories."""
        facts = self.chains.facts
        return facts[row, self.rng.integers(0, facts.shape[1], len(row))]

    def _walk(self, start: np.ndarray, length: int) -> np.ndarray:
        """Samples walks from `start` [B] to new people."""
        graph, row, n = self.graph, self.row, self.n
        found = np.ones(len(row), bool)
        noise = np.empty((len(row), length), np.int64)
        for step in range(length):
            degree = graph.start_offset[start + 1] - graph.start_offset[start]
            fact = graph.start_offset[start, None] + np.arange(degree.max(initial=1))
            valid = fact < graph.start_offset[start + 1, None]
            fact = np.where(valid, fact, 0)
            valid &= self.expressible[graph.predicate[fact]]
            valid &= ~self.taken[row[:, None], graph.end[fact] % n]
            column, has_next = choose(valid, self.rng)
            found &= has_next
            noise[:, step] = fact[row, column]
            start = graph.end[noise[:, step]]
            self.taken[row, start % n] = True
        noise[~found] = -1
        return noise


class Walk(NamedTuple):
    """A kind of walk."""

    sample: Callable[[NoiseSampler, int], np.ndarray]
    setting: str  # of Config: the number of facts
    more: int  # new people of a walk, minus its number of facts


class NoiseType(NamedTuple):
    """T of the tasks T.K: the facts of a story besides its path."""

    name: str
    walks: tuple[Walk, ...] = ()
    stated: float = 0.0  # probability that the answer is stated


_SUPPORTING = Walk(NoiseSampler.supporting, "supporting_length", -1)
_IRRELEVANT = Walk(NoiseSampler.irrelevant, "irrelevant_length", 0)
_DISCONNECTED = Walk(NoiseSampler.disconnected, "disconnected_length", 1)
# Not 8 to 14: these are tests of `generator.benchmark.seen_and_new`.
NOISE_TYPES = {
    1: NoiseType("clean"),
    2: NoiseType("supporting", (_SUPPORTING,)),
    3: NoiseType("irrelevant", (_IRRELEVANT,)),
    4: NoiseType("disconnected", (_DISCONNECTED,)),
    5: NoiseType("all three kinds of noise", (_SUPPORTING, _IRRELEVANT, _DISCONNECTED)),
    6: NoiseType("memory", stated=1.0),
    7: NoiseType("mix of 1 and 6", stated=0.5),
}
