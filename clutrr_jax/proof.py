"""The proof of a story's label from its stated facts, by the benchmark's 16 rules."""

from collections.abc import Iterator
from typing import NamedTuple

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
