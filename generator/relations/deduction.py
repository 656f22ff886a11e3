"""Symbolic prover: forward closure under composition rules, and proofs of single facts.

A fact (X, r, Y) reads "Y is the r of X". A rule `first, second -> head` derives (X, head, Y) from
(X, first, Z) and (Z, second, Y). No person is related to themselves: such facts are dropped.

The prover shares only the table of rules with the code that builds proofs (`closure`, `clause`),
so it is an independent check of generated stories and of published data.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from generator.relations.algebra import Algebra

MIN_PROBABILITY = 1e-4  # rules, facts and proofs with a lower probability are ignored


def closure(facts: np.ndarray, rules: np.ndarray, inverse: np.ndarray | None = None) -> np.ndarray:
    """Returns all facts that are stated or follow, bool [B, P, P, R]: whether Y is the r of X.

    `rules` are `first, second -> head` [rules, 3]. Facts are also inverted if `inverse` has the
    relation of (Y, X) for each relation of (X, Y), [R].
    """
    known = facts.transpose(3, 1, 2, 0).copy()  # [R, P, P, B]: operations on rows of stories
    own = np.arange(known.shape[1])
    known[:, own, own] = False
    before = -1
    while before != (before := int(known.sum())):
        for relation, other in enumerate(() if inverse is None else inverse):
            known[other] |= known[relation].swapaxes(0, 1)
        for z in own:
            left, right = known[:, :, z].copy(), known[:, z].copy()
            for first, second, head in rules:
                known[head] |= left[first][:, None] & right[second]
            known[:, own, own] = False
    return known.transpose(3, 1, 2, 0)


def derivable(
    edges: np.ndarray, relations: np.ndarray, query: np.ndarray, people: int, algebra: Algebra
) -> np.ndarray:
    """Returns the relations that are stated or follow for a query pair per story, bool [B, R].

    The stated facts are pairs of people `edges` [B, E, 2] below `people`, and the `relations` of X
    to Y [B, E]; -1 is padding.
    """
    known = np.zeros((len(algebra.relations), people, people, len(edges)), bool)
    story, fact = np.nonzero(relations >= 0)
    x, y = edges[story, fact].T
    known[relations[story, fact], x, y, story] = True
    return closure(known.transpose(3, 1, 2, 0), algebra.rules)[np.arange(len(edges)), *query.T]


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
    """Returns the heads of each rule body `first, second`, given their probabilities [R, R, R]."""
    heads: RuleHeads = defaultdict(list)
    for first, second, head in np.argwhere(probabilities >= MIN_PROBABILITY).tolist():
        heads[first, second].append((head, float(probabilities[first, second, head])))
    return dict(heads)


def prove(
    facts: Mapping[Fact, float], heads: RuleHeads, goal: Fact, weight: np.ndarray | None = None
) -> Proof | None:
    """Returns the most probable proof of a fact from stated facts with probabilities, or None if
    none reaches MIN_PROBABILITY; of equally probable proofs one with the fewest steps.

    A derived fact has the probability of its two premises, times that of the rule, times the weight
    of its pair of people [P, P], by default 1. None of these exceeds 1, so facts can be settled
    from the most probable down (Knuth 1977, "A generalization of Dijkstra's algorithm").
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
