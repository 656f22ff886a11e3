"""Proofs: of a story's label from its stated facts, by the benchmark's 16 rules; and of any answer
from what a model read, by the rules that it learned."""

import heapq
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from clutrr_jax.data.records import UNSTATED, Records
from generator.kinship import COMPOSE, PREDICATE_OF


class Fact(NamedTuple):
    """Person y is the predicate of person x, counted within the story."""

    x: int
    predicate: int
    y: int


class Step(NamedTuple):
    """`first` and `second` prove `head`, by a rule."""

    first: Fact
    second: Fact
    head: Fact


def prove(records: Records, story: int) -> list[Step] | None:
    """A proof of the label of a story from its stated facts, of the fewest rounds, each step after
    those that it rests on; None where it does not follow."""
    edges = slice(records.edge_start[story], records.edge_start[story + 1])
    known: dict[Fact, Step | None] = {
        Fact(x, int(PREDICATE_OF[relation]), y): None
        for x, y, relation in zip(
            records.senders[edges].tolist(),
            records.receivers[edges].tolist(),
            records.relations[edges].tolist(),
            strict=True,
        )
        if relation != UNSTATED
    }
    x, y = records.query[story].tolist()
    goal = Fact(x, int(PREDICATE_OF[records.target[story]]), y)
    while goal not in known:
        new = {
            step.head: step
            for first in known
            for second in known
            if first.y == second.x and first.x != second.y
            for step in _compose(first, second)
            if step.head not in known
        }
        if not new:
            return None
        known |= new
    return list(dict.fromkeys(_steps(goal, known)))


def _compose(first: Fact, second: Fact) -> Iterator[Step]:
    head = int(COMPOSE[first.predicate, second.predicate])
    if head >= 0:
        yield Step(first, second, Fact(first.x, head, second.y))


def _steps(fact: Fact, known: dict[Fact, Step | None]) -> Iterator[Step]:
    step = known[fact]
    if step is not None:
        yield from _steps(step.first, known)
        yield from _steps(step.second, known)
        yield step


LEAST = 1e-4  # chance below which neither a rule, nor a fact, nor a proof counts
Read = tuple[int, int, int]  # X, relation, Y: Y is the r of X, counted within the story
Heads = dict[tuple[int, int], list[tuple[int, float]]]


class Likeliest(NamedTuple):
    """A proof from facts and rules of which none is certain."""

    chance: float
    steps: list[tuple[Read, Read, Read]]  # first, second -> head; each after those it rests on


def heads_of(rules: np.ndarray) -> Heads:
    """Chances [R, R, R] -> for each `first, second` the heads and their chances."""
    found: Heads = defaultdict(list)
    for first, second, head in np.argwhere(rules >= LEAST).tolist():
        found[first, second].append((head, float(rules[first, second, head])))
    return dict(found)


def prove_likeliest(
    relation: np.ndarray, chance: np.ndarray, heads: Heads, goal: Read
) -> Likeliest | None:
    """The likeliest proof of `goal`; of equally likely ones one of the fewest steps; None where
    none reaches the least chance.

    A derived fact has the chance of its two, times that of its rule, times what reading leaves
    unsaid of its pair. As this is never more than either of the two, facts are settled from the
    likeliest down (Knuth 1977).

    Args:
      relation, chance: the likeliest fact read of each pair of people, [P, P].
      heads: the rules.
      goal: what is to be proved.
    """
    unsaid = 1 - chance
    agenda: list[tuple[float, int, Read, tuple[Read, ...]]] = [
        (-float(chance[x, y]), 0, (x, int(relation[x, y]), y), ())
        for x, y in np.argwhere(chance >= LEAST).tolist()
        if x != y
    ]
    heapq.heapify(agenda)
    known: dict[Read, tuple[float, int, tuple[Read, ...]]] = {}
    of_first: dict[int, list[Read]] = defaultdict(list)
    of_second: dict[int, list[Read]] = defaultdict(list)

    def offer(first: Read, second: Read) -> None:
        x, y = first[0], second[2]
        if x == y:
            return
        both = known[first][0] * known[second][0] * unsaid[x, y]
        steps = known[first][1] + known[second][1] + 1
        for head, of_rule in heads.get((first[1], second[1]), ()):
            if both * of_rule >= LEAST and (x, head, y) not in known:
                entry = (-float(both * of_rule), steps, (x, head, y), (first, second))
                heapq.heappush(agenda, entry)

    while agenda and goal not in known:
        minus, steps, fact, body = heapq.heappop(agenda)
        if fact in known:
            continue
        known[fact] = -minus, steps, body
        for other in of_first[fact[2]]:
            offer(fact, other)
        for other in of_second[fact[0]]:
            offer(other, fact)
        of_first[fact[0]].append(fact)
        of_second[fact[2]].append(fact)
    if goal not in known:
        return None

    def told(fact: Read) -> Iterator[tuple[Read, Read, Read]]:
        body = known[fact][2]
        if body:
            yield from told(body[0])
            yield from told(body[1])
            yield body[0], body[1], fact

    return Likeliest(known[goal][0], list(dict.fromkeys(told(goal))))
