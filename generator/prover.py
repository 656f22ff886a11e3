"""Symbolic prover: forward closure under composition rules, and proofs of single facts.

A fact (X, r, Y) reads "Y is the r of X". A rule `first, second -> head` derives (X, head, Y) from
(X, first, Z) and (Z, second, Y). No person is related to themselves: such facts are dropped.

The prover shares only the table of rules with the code that builds proofs (`closure`, `clause`),
so it is an independent check of generated stories and of published data.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from generator.kinship import NUM_PREDICATES, RULE_TABLE

MIN_PROBABILITY = 1e-4  # rules, facts and proofs with a lower probability are ignored
_CHUNK = 8  # relations per half of a lookup index: tables of at most 2^16 entries


class _Composition(NamedTuple):
    """Rules as lookup tables over sets of relations. A set is a bit mask.

    Relations in rule bodies have the lowest bits, in chunks of `width` bits. `tables[i, j]` maps
    `set of chunk i << width | set of chunk j` to the set of heads.
    """

    bit: np.ndarray  # [R] bit of each relation, uint16 (at most 16 relations) or uint32
    width: int
    tables: dict[tuple[int, int], np.ndarray]


@lru_cache(maxsize=16)
def _composition(rules: tuple[tuple[int, int, int], ...], relations: int) -> _Composition:
    body = sorted({relation for rule in rules for relation in rule[:2]})
    order = body + [relation for relation in range(relations) if relation not in body]
    bit = np.argsort(order).astype(np.uint16 if relations <= 16 else np.uint32)
    chunks = max(1, -(-len(body) // _CHUNK))
    width = -(-len(body) // chunks)
    heads = np.zeros((chunks * width, chunks * width), bit.dtype)
    for first, second, head in rules:
        heads[bit[first], bit[second]] |= 1 << int(bit[head])
    blocks = heads.reshape(chunks, width, chunks, width)
    tables = {
        (i, j): _unions(_unions(blocks[i, :, j].T).T).ravel()
        for i in range(chunks)
        for j in range(chunks)
        if blocks[i, :, j].any()
    }
    return _Composition(bit, width, tables)


def _unions(sets: np.ndarray) -> np.ndarray:
    """The union of every subset of n sets, [n, ...] -> [2^n, ...]; bit i selects set i."""
    unions = np.zeros_like(sets, shape=(1, *sets.shape[1:]))
    for row in sets:
        unions = np.concatenate([unions, unions | row])
    return unions


def _close(
    sets: np.ndarray, composition: _Composition, inverse: np.ndarray | None = None
) -> np.ndarray:
    """Adds everything that follows to the relation sets [B, P, P] of B stories, in place."""
    bit, width, tables = composition
    people = sets.shape[1]
    own = np.arange(people)
    low = (1 << width) - 1
    sets[:, own, own] = 0
    active = np.arange(len(sets))
    while len(active):
        known = sets[active]
        if inverse is not None:
            turned = known.swapaxes(1, 2).copy()
            for relation, other in enumerate(inverse):
                known |= (turned >> bit[relation] & 1) << bit[other]
        for z in range(people):
            for (i, j), table in tables.items():
                first = (known[:, :, z, None] >> i * width & low) << width
                second = known[:, z, None, :] >> j * width & low
                known |= table[first | second]
            known[:, own, own] = 0
        grown = (known != sets[active]).any(axis=(1, 2))
        sets[active] = known
        active = active[grown]
    return sets


def _members(sets: np.ndarray, composition: _Composition) -> np.ndarray:
    """Sets [...] as booleans [..., R]."""
    return (sets[..., None] >> composition.bit & 1).astype(bool)


def _compiled(rules: np.ndarray, relations: int) -> _Composition:
    return _composition(tuple(map(tuple, rules.tolist())), relations)


def closure(
    facts: np.ndarray, rules: np.ndarray = RULE_TABLE, inverse: np.ndarray | None = None
) -> np.ndarray:
    """All facts that are stated or follow.

    Args:
      facts: [B, P, P, R] bool, true where Y is stated to be the r of X; R is at most 32.
      rules: [rules, 3] `first, second -> head`; by default the 16 rules over predicates.
      inverse: [R] the relation of (Y, X) for each relation of (X, Y); by default facts are not
        inverted.
    Returns:
      [B, P, P, R] bool.
    """
    composition = _compiled(rules, facts.shape[-1])
    sets = np.zeros(facts.shape[:3], composition.bit.dtype)
    for relation, bit in enumerate(composition.bit):
        sets |= facts[..., relation].astype(sets.dtype) << bit
    return _members(_close(sets, composition, inverse), composition)


def derivable(
    edges: np.ndarray, predicates: np.ndarray, query: np.ndarray, people: int
) -> np.ndarray:
    """Predicates that are stated or follow for one pair of people per story, by the 16 rules.

    Args:
      edges: [B, E, 2] people (X, Y) of the stated facts, 0..people-1.
      predicates: [B, E] predicate from X to Y; -1 is padding.
      query: [B, 2] the query pair.
      people: upper bound on the number of people in a story.
    Returns:
      [B, 11] bool.
    """
    composition = _compiled(RULE_TABLE, NUM_PREDICATES)
    row = np.arange(len(edges))
    sets = np.zeros((len(edges), people, people), composition.bit.dtype)
    for e in range(edges.shape[1]):
        mask = composition.bit.dtype.type(1) << composition.bit[predicates[:, e]]
        sets[row, edges[:, e, 0], edges[:, e, 1]] |= np.where(predicates[:, e] >= 0, mask, 0)
    return _members(_close(sets, composition)[row, query[:, 0], query[:, 1]], composition)


class Fact(NamedTuple):
    """Person y is the `relation` (or predicate) of person x."""

    x: int
    relation: int
    y: int


class Step(NamedTuple):
    """One application of a rule: `first` and `second` prove `head`."""

    first: Fact
    second: Fact
    head: Fact


class Proof(NamedTuple):
    """Steps in an order where premises come first; the last step proves the goal."""

    probability: float
    steps: list[Step]


RuleHeads = dict[tuple[int, int], list[tuple[int, float]]]


def rule_heads(probabilities: np.ndarray) -> RuleHeads:
    """The heads of each rule body `first, second` with their probabilities.

    Args:
      probabilities: [R, R, R] probability of each rule `first, second -> head`.
    """
    heads: RuleHeads = defaultdict(list)
    for first, second, head in np.argwhere(probabilities >= MIN_PROBABILITY).tolist():
        heads[first, second].append((head, float(probabilities[first, second, head])))
    return dict(heads)


def prove(
    facts: Mapping[Fact, float], heads: RuleHeads, goal: Fact, weight: np.ndarray | None = None
) -> Proof | None:
    """The most probable proof of a fact; of equally probable proofs one with the fewest steps.

    A derived fact has the probability of its two premises, times that of the rule, times the weight
    of its pair of people. None of these exceeds 1, so facts can be settled from the most probable
    down (Knuth 1977, "A generalization of Dijkstra's algorithm").

    Args:
      facts: stated facts and their probabilities.
      heads: the rules, see `rule_heads`.
      goal: the fact to prove.
      weight: [P, P] in 0..1; by default 1 everywhere.
    Returns:
      The proof, without steps if the goal is stated; None if no proof reaches MIN_PROBABILITY.
    """
    agenda: list[tuple[float, int, Fact, tuple[Fact, Fact] | None]] = [
        (-probability, 0, fact, None)
        for fact, probability in facts.items()
        if probability >= MIN_PROBABILITY and fact.x != fact.y
    ]
    heapq.heapify(agenda)
    settled: dict[Fact, tuple[float, int, tuple[Fact, Fact] | None]] = {}
    starting: dict[int, list[Fact]] = defaultdict(list)  # settled facts by x
    ending: dict[int, list[Fact]] = defaultdict(list)  # settled facts by y

    def compose(first: Fact, second: Fact) -> None:
        x, y = first.x, second.y
        if x == y:
            return
        probability = settled[first][0] * settled[second][0]
        if weight is not None:
            probability *= float(weight[x, y])
        steps = settled[first][1] + settled[second][1] + 1
        for relation, rule_probability in heads.get((first.relation, second.relation), ()):
            head = Fact(x, relation, y)
            if probability * rule_probability >= MIN_PROBABILITY and head not in settled:
                entry = (-probability * rule_probability, steps, head, (first, second))
                heapq.heappush(agenda, entry)

    while agenda and goal not in settled:
        negative, steps, fact, premises = heapq.heappop(agenda)
        if fact in settled:
            continue
        settled[fact] = -negative, steps, premises
        for other in starting[fact.y]:
            compose(fact, other)
        for other in ending[fact.x]:
            compose(other, fact)
        starting[fact.x].append(fact)
        ending[fact.y].append(fact)
    if goal not in settled:
        return None

    def steps_to(fact: Fact) -> Iterator[Step]:
        premises = settled[fact][2]
        if premises:
            yield from steps_to(premises[0])
            yield from steps_to(premises[1])
            yield Step(*premises, fact)

    return Proof(settled[goal][0], list(dict.fromkeys(steps_to(goal))))
