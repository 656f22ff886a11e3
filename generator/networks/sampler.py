"""Random graphs with b paths of k facts between two elements, of which one relation is possible.

The distribution is that of the published files of STaR (Khalid and Schockaert 2025):

- A path starts as a pair of facts. The pairs of the b paths are uniformly distributed among those
  which together leave one relation, the label, and of which each leaves out some relation.
- Up to four facts, a path grows by one fact at a time: one of its facts, (X, r, Y), becomes two
  whose only head is r.
- A longer path has k // 2 + 1 such facts. Then some become blocks of 2 to 5 paths of 2 to 4 facts,
  which leave the relation of the fact, so that there are k facts on each way through.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from generator.errors import InputError
from generator.relations.algebra import Algebra
from generator.relations.path_consistency import everything, integers, possible_relations
from generator.stories.config import Task

CHAIN = 4  # facts of the longest path without blocks
_BLOCK_PATHS = 5  # at most
_ATTEMPTS = 100  # per graph
_MAX_SETS = 1 << 22  # intersections of sets of relations, see `Sampler`


class Networks(NamedTuple):
    """N graphs with up to E facts. The query pair of a graph is (0, its last element)."""

    edges: np.ndarray  # [N, E, 2] elements (X, Y) of the facts, X before Y
    relations: np.ndarray  # [N, E]; -1: no fact
    elements: np.ndarray  # [N] number of elements


class _Choices:
    """Entries by key, of which `draw` picks one of a key in proportion to their weights."""

    def __init__(self, keys: np.ndarray, weights: np.ndarray) -> None:
        self.order = keys.argsort(kind="stable")
        self.keys, first = np.unique(keys[self.order], return_index=True)
        self.bounds = np.append(first, len(keys))
        of_key = np.repeat(np.arange(len(first)), np.diff(self.bounds))
        weights = weights[self.order]
        self.cumulative = (weights / np.bincount(of_key, weights)[of_key]).cumsum()

    def draw(self, keys: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Index of an entry for each key; each key must have one."""
        place = np.searchsorted(self.keys, keys)
        found = np.searchsorted(self.cumulative, place + rng.random(keys.shape), "right")
        return self.order[np.clip(found, self.bounds[place], self.bounds[place + 1] - 1)]


class Sampler:
    """Samples graphs of an algebra, in some cells B.K: B paths of K facts."""

    def __init__(self, algebra: Algebra, cells: Iterable[Task]) -> None:
        self.algebra = algebra
        heads = integers(algebra.composition)
        self.pairs = np.argwhere((heads > 0) & (heads < everything(algebra)))
        left = heads[tuple(self.pairs.T)]
        self.pair_of = _Choices(left, np.ones(len(left)))
        self.rules = algebra.rules
        self.rule_of = _Choices(self.rules[:, 2], np.ones(len(self.rules)))
        self.can_grow = np.isin(np.arange(len(heads)), self.rules[:, 2])
        # The sets that one path leaves, and their frequency; the intersections of several.
        sets, counts = np.unique(left, return_counts=True)
        self.left, weights = [sets], [counts / max(counts.sum(), 1)]
        self.steps: list[tuple[_Choices, np.ndarray, np.ndarray]] = []
        paths = (max(b, _BLOCK_PATHS if k > CHAIN else 1) for b, k in cells)
        for _ in range(max(paths, default=1) - 1):
            if len(self.left[-1]) * len(sets) > _MAX_SETS:
                raise InputError(
                    f"{algebra.name}: {len(sets)} different sets of heads have too many "
                    "intersections, expected fewer sets or fewer paths"
                )
            both = self.left[-1][:, None] & sets
            before, path = np.nonzero(both)
            weight = weights[-1][before] * weights[0][path]
            after, place = np.unique(both[before, path], return_inverse=True)
            choices = _Choices(after[place], weight)
            self.steps.append((choices, self.left[-1][before], sets[path]))
            self.left.append(after)
            weights.append(np.bincount(place, weight) / max(weight.sum(), 1e-300))

    def labels(self, paths: int) -> np.ndarray:
        """The relations that some pairs of facts, one for each path, leave alone."""
        single = np.uint64(1) << np.arange(len(self.algebra.relations), dtype=np.uint64)
        return np.flatnonzero(np.isin(single, self.left[paths - 1]))

    def graphs(
        self, labels: np.ndarray, task: Task, distractors: int, rng: np.random.Generator
    ) -> Networks:
        """Returns a graph for each label [N], of `self.labels`.

        Distractors are paths of 1 to k random facts that start at an element of the graph and end
        at a new one. Raises InputError if no graphs with some label were found.
        """
        found: Networks | None = None
        missing = np.arange(len(labels))
        for _ in range(_ATTEMPTS):
            new, whole = self._propose(labels[missing], task, rng)
            if distractors:
                new = self._with_distractors(new, distractors, task.k, rng)
            query = np.stack([np.zeros_like(new.elements), new.elements - 1], axis=1)
            possible = possible_relations(new.edges, new.relations, query, self.algebra)
            label = np.arange(len(self.can_grow)) == labels[missing, None]
            good = whole & (possible == label).all(axis=1)
            if found is None:
                found = new
            for old, part in zip(found, new, strict=True):
                old[missing] = part
            missing = missing[~good]
            if not len(missing):
                return found
        name = self.algebra.relations[labels[missing[0]]]
        raise InputError(
            f"{self.algebra.name}: no graphs with the answer {name} and {task.noise} paths of "
            f"{task.k} facts were found, expected other cells or more rules"
        )

    def _propose(
        self, labels: np.ndarray, task: Task, rng: np.random.Generator
    ) -> tuple[Networks, np.ndarray]:
        """Returns a graph for each label, and whether all of its facts have relations."""
        count, length = len(labels), task.k if task.k <= CHAIN else task.k // 2 + 1
        chains, whole = self._chains(labels, task.noise, length, rng)
        flat = (count, task.noise * length)
        segments = chains.reshape(flat)
        extra = _extra_facts(count * task.noise, length, task.k - length, rng).reshape(flat)
        paths = np.where(extra > 0, rng.integers(2, _BLOCK_PATHS + 1, flat), 1)
        edges, elements = _number(paths, extra + 1, length)
        relations = np.full(edges.shape[:-1], -1)
        relations[:, :, 0, 0] = segments
        for b in np.unique(paths[extra > 0]):
            for k in np.unique(extra[paths == b]) + 1:
                graph, segment = np.nonzero((paths == b) & (extra == k - 1))
                block, filled = self._chains(segments[graph, segment], b, k, rng)
                relations[graph, segment, :b, :k] = block
                np.logical_and.at(whole, graph, filled)
        networks = Networks(edges.reshape(count, -1, 2), relations.reshape(count, -1), elements)
        return networks, whole

    def _chains(
        self, labels: np.ndarray, paths: int, length: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Relations of paths that leave the labels [N, paths, length], and where there are any."""
        whole = np.isin(labels, self.labels(paths))
        chains = np.zeros((len(labels), paths, length), int)
        known = np.uint64(1) << labels[whole].astype(np.uint64)
        left = np.empty((len(known), paths), np.uint64)
        for path in range(paths - 1, 0, -1):
            choices, before, after = self.steps[path - 1]
            step = choices.draw(known, rng)
            left[:, path], known = after[step], before[step]
        left[:, 0] = known
        found = self.pairs[self.pair_of.draw(left.reshape(-1), rng)]
        grows = np.ones(len(found), bool)
        for _ in range(length - 2):
            found, grown = self._grow(found, rng)
            grows &= grown
        chains[whole] = found.reshape(-1, paths, length)
        whole[whole] = grows.reshape(-1, paths).all(axis=1)
        return chains, whole

    def _grow(self, found: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Replaces one relation of each path [N, L] by two, and returns where this is possible."""
        row, length = np.arange(len(found)), found.shape[1]
        at = (rng.random(found.shape) * self.can_grow[found]).argmax(axis=1)
        grown = self.can_grow[found[row, at]]
        longer = np.insert(found, length, 0, axis=1)
        after = np.arange(length + 1) > at[:, None]
        longer[:, 1:] = np.where(after[:, 1:], found, longer[:, 1:])
        rule = self.rule_of.draw(found[grown, at[grown]], rng)
        longer[row[grown], at[grown]], longer[row[grown], at[grown] + 1] = self.rules[rule, :2].T
        return longer, grown

    def _with_distractors(
        self, networks: Networks, count: int, length: int, rng: np.random.Generator
    ) -> Networks:
        """Adds paths that lead to new elements. The last element of a graph remains its last."""
        edges, relations, elements = networks
        facts = rng.integers(1, length, (len(elements), count), endpoint=True)
        last = elements - 1 + facts.sum(axis=1)
        edges = np.where(edges == elements[:, None, None] - 1, last[:, None, None], edges)
        start = rng.integers(elements[:, None], size=facts.shape)
        start = np.where(start == elements[:, None] - 1, last[:, None], start)
        step = np.arange(length)
        new = (elements[:, None] - 1 + facts.cumsum(axis=1) - facts)[..., None] + step
        old = np.where(step == 0, start[..., None], new - 1)
        pairs = np.sort(np.stack([old, new], axis=-1), axis=-1)
        random = rng.integers(len(self.can_grow), size=new.shape)
        random = np.where(step < facts[..., None], random, -1)
        return Networks(
            np.concatenate([edges, pairs.reshape(len(elements), -1, 2)], axis=1),
            np.concatenate([relations, random.reshape(len(elements), -1)], axis=1),
            last + 1,
        )


def _extra_facts(paths: int, length: int, extra: int, rng: np.random.Generator) -> np.ndarray:
    """Facts of each segment besides the first, [paths, length]: `extra` per path, up to 3 each."""
    found = np.zeros((paths, length), int)
    for segment in range(extra):
        rest = extra - found.sum(axis=1)
        some = rng.integers(1, np.clip(rest, 1, CHAIN - 1), endpoint=True)
        found[:, segment] = np.where(rest > 0, some, 0)
    return rng.permuted(found, axis=1) if extra else found


def _number(paths: np.ndarray, facts: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers the elements of graphs in the order of their facts.

    A segment has a number of parallel paths [N, S] of some facts each [N, S]. A path between the
    query pair has `length` segments. Returns facts as pairs of elements [N, S, paths, facts, 2],
    and the number of elements [N].
    """
    inner = paths * (facts - 1)
    ends_path = np.arange(paths.shape[1]) % length == length - 1
    first = 1 + (inner + ~ends_path).cumsum(axis=1) - (inner + ~ends_path)  # inner element
    elements = first[:, -1] + inner[:, -1] + 1
    end = np.where(ends_path, elements[:, None] - 1, first + inner)
    start = np.where(np.roll(ends_path, 1), 0, np.roll(end, 1, axis=1))
    path = np.arange(paths.max())[:, None]
    fact = np.arange(facts.max())
    first, start, end, facts = (a[..., None, None] for a in (first, start, end, facts))
    inside = first + path * (facts - 1) + fact
    before = np.where(fact == 0, start, inside - 1)
    after = np.where(fact == facts - 1, end, inside)
    return np.stack([before, after], axis=-1), elements


def max_elements(task: Task, distractors: int) -> int:
    """Returns the maximum number of elements of a graph."""
    inner = task.k - 1
    if task.k > CHAIN:
        length = task.k // 2 + 1
        inner = length - 1 + _BLOCK_PATHS * (task.k - length)
    return 2 + task.noise * inner + distractors * task.k


def cyclic(labels: np.ndarray, first: int, count: int) -> np.ndarray:
    """Returns the labels of rows `first`, `first` + 1, ..., each in turn."""
    return labels[(first + np.arange(count)) % len(labels)]
