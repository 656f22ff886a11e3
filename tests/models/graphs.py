"""Batches of stories that are written as facts."""

import jax.numpy as jnp
import jraph
import numpy as np

from clutrr_jax.data.compositions import list_compositions
from generator.relations.algebra import Algebra

Fact = tuple[int, int, int]  # sender, relation, receiver


def graphs(stories: list[list[Fact]], queries: list[tuple[int, int]], people: int):
    """Batch of stories that all have this number of people, and the padding graph."""
    nodes, n_edge = len(stories) * people + 1, [len(facts) for facts in stories]
    facts = np.array([
        (x + people * i, r, y + people * i) for i, f in enumerate(stories) for x, r, y in f
    ] + [(nodes - 1, 0, nodes - 1)])  # fmt: skip
    first = people * np.arange(len(stories))[:, None]
    start, widest = np.cumsum([0, *n_edge]), np.arange(max(n_edge, default=0))
    places = np.where(widest < np.array([*n_edge, 0])[:, None], start[:, None] + widest, start[-1])
    query = np.append(first + np.array(queries), [[nodes - 1, nodes - 1]], axis=0)
    slots = np.append(first + np.arange(people), [[nodes - 1] * people], axis=0)
    listed = list_compositions(
        np.full(len(stories), people), np.array(n_edge, int), *np.array(
            [(x, y) for f in stories for x, _, y in f], int
        ).reshape(-1, 2).T,
    )  # fmt: skip
    rounds = listed.size.shape[1]
    # Each round lists the compositions of all rounds, those of others as padding.
    story = np.repeat(np.arange(len(stories)), listed.size.sum(axis=1))
    of_round = np.repeat(np.tile(np.arange(rounds), len(stories)), listed.size.ravel())
    steps = np.stack([
        np.column_stack([np.where(of_round == d, story, len(stories)), listed.steps])
        for d in range(rounds)
    ])  # fmt: skip
    return jraph.GraphsTuple(
        nodes={"story": jnp.arange(nodes) // people, "position": jnp.arange(nodes) % people},
        edges={"relation": jnp.asarray(facts[:, 1])},
        senders=jnp.asarray(facts[:, 0]),
        receivers=jnp.asarray(facts[:, 2]),
        n_node=jnp.array([people] * len(stories) + [1]),
        n_edge=jnp.array([*n_edge, 1]),
        globals={
            "query": jnp.asarray(query),
            "people": jnp.asarray(slots),
            "facts": jnp.asarray(places),
            "steps": jnp.asarray(steps),
        },
    )


def made_up(relations: int) -> Algebra:
    """An algebra whose relations are their own inverses, and of whose compositions nothing is
    known."""
    names = tuple(map(str, range(relations)))
    inverses = tuple((r,) for r in range(relations))
    return Algebra("made up", names, inverses, ((),) * relations**2)
