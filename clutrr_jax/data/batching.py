"""The kinds of batch, packed from `StoryArrays` inside jitted programs, and the plan of shapes.

Rows are story numbers; the row -1 stands for no story: its graph is empty, its mask False.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import jraph
import numpy as np

from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.data.vocabulary import FIRST_ENTITY, PAD

# Of "pairs" are graphs too, for models whose arrays are padded to the story with most people.
InputKind = Literal["graph", "pairs", "tokens", "states"]
GRAPHS = ("graph", "pairs")
MAX_BUCKETS = 4  # shapes of the batches of one kind: each is one more branch to compile
TEST_BATCH = 128  # stories of a batch that is not trained on
LENGTH_STEP = 4  # token lengths are rounded up to a multiple of this


class TokenBatch(NamedTuple):
    """B stories as token numbers, padded on the right to T."""

    tokens: jax.Array  # [B, T]
    mask: jax.Array  # [B, T] True on tokens of the story
    query: jax.Array  # [B, 2] entity numbers of the asked pair
    mentions: jax.Array  # [B, 2, T] True where an asked person is mentioned
    target: jax.Array  # [B]
    row_mask: jax.Array  # [B] False for the row -1
    people: jax.Array  # [B, P] entity numbers of the story's people; -1 for none
    named: jax.Array  # [B, M] the tokens that name one of them, in order; T for none
    facts: jax.Array  # [B, F, 3] what it states: first and second person, edge type; -1 for none
    states: jax.Array | None = None  # [B, T, D] float32, of the kind "states": zero at padding


@dataclass(frozen=True)
class Shape:
    """Budget of one batch: stories; nodes and edges in all; and for each story people, facts,
    tokens, and tokens that name people."""

    stories: int
    nodes: int = 0
    edges: int = 0
    people: int = 0
    facts: int = 0
    tokens: int = 0
    names: int = 0


def plan_shapes(
    kind: InputKind, stories: StoryArrays, batch_size: int
) -> tuple[list[Shape], list[np.ndarray]]:
    """The shapes that batches of these stories need, and the rows that go into each.

    A graph batch has one shape, with room for the largest stories at once: any batch fits.
    Batches of pairs come in up to four numbers of people, and the others in up to four lengths,
    chosen so that the least padding is computed.
    """
    if kind == "graph":
        return [_graph_shape(stories, slice(None), batch_size)], [np.arange(len(stories.target))]
    if kind == "pairs":
        lengths = np.asarray(stories.n_node) ** 2
    else:
        lengths = -(-np.asarray(stories.n_token) // LENGTH_STEP) * LENGTH_STEP
    bounds = best_lengths(lengths, MAX_BUCKETS)
    bucket = np.searchsorted(bounds, lengths)
    buckets = [np.flatnonzero(bucket == b) for b in range(len(bounds))]
    if kind == "pairs":
        return [_graph_shape(stories, rows, batch_size) for rows in buckets], buckets
    return [
        _token_shape(stories, rows, batch_size, bound)
        for rows, bound in zip(buckets, bounds, strict=True)
    ], buckets


def _token_shape(stories: StoryArrays, rows: np.ndarray, batch_size: int, tokens: int) -> Shape:
    """Room for each of the rows."""
    return Shape(
        stories=batch_size,
        tokens=tokens,
        people=int(np.asarray(stories.n_node)[rows].max()),
        facts=int(np.asarray(stories.n_edge)[rows].max()),
        names=int(count_names(stories)[rows].max()),
    )


def count_names(stories: StoryArrays) -> np.ndarray:
    """How many tokens of each story name one of its people, [S]."""
    n_node, n_token = np.asarray(stories.n_node), np.asarray(stories.n_token)
    numbers = np.arange(len(n_node)) << 32
    people = np.repeat(numbers, n_node) + np.asarray(stories.entity) + FIRST_ENTITY
    tokens = np.repeat(numbers, n_token) + np.asarray(stories.tokens)
    owner = np.repeat(np.arange(len(n_node)), n_token)
    return np.bincount(owner, np.isin(tokens, people), minlength=len(n_node)).astype(int)


def _graph_shape(stories: StoryArrays, rows: Any, batch_size: int) -> Shape:
    """Room for any `batch_size` of the rows at once."""
    n_node, n_edge = np.asarray(stories.n_node)[rows], np.asarray(stories.n_edge)[rows]
    return Shape(
        stories=batch_size,
        # One node more: padding edges need a padding node to join.
        nodes=int(np.sort(n_node)[-batch_size:].sum()) + 1,
        edges=int(np.sort(n_edge)[-batch_size:].sum()),
        people=int(n_node.max()),
        facts=int(n_edge.max()),
    )


def best_lengths(lengths: np.ndarray, count: int) -> list[int]:
    """Up to `count` of the lengths, ascending, such that padding each story to the next one
    computes the fewest tokens in all (dynamic programming over the distinct lengths)."""
    values, freq = np.unique(lengths, return_counts=True)
    below = np.concatenate([[0], np.cumsum(freq)])
    cost = np.concatenate([[0.0], np.full(len(values), np.inf)])
    last: list[np.ndarray] = []
    for _ in range(min(count, len(values))):
        # cost[i]: the best for the i shortest lengths; the last bucket covers j..i-1.
        totals = cost[None, :-1] + (below[1:, None] - below[None, :-1]) * values[:, None]
        totals[np.triu_indices(len(values), 1)] = np.inf
        last.append(totals.argmin(axis=1))
        cost = np.concatenate([[0.0], totals.min(axis=1)])
    bounds, i = [], len(values)
    for choice in reversed(last):
        if i:
            bounds.append(int(values[i - 1]))
            i = int(choice[i - 1])
    return sorted(bounds)


@partial(jax.jit, static_argnames="shape")  # traced once for training and the dev rows
def pack(stories: StoryArrays, rows: jax.Array, shape: Shape) -> Any:
    """The batch of the given shape that holds the stories `rows` [B]."""
    return (_pack_tokens if shape.tokens else _pack_graphs)(stories, rows, shape)


def _sums(sizes: jax.Array) -> jax.Array:
    """The cumulative sums of a few numbers: as one kernel, where `jnp.cumsum` compiles to many."""
    upto = jnp.tri(len(sizes), dtype=bool)
    return jnp.where(upto, sizes, 0).sum(axis=1)


def _owners(sizes: jax.Array, budget: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """For each of `budget` slots the graph that owns it (the B graphs in order, then B for the
    padding), and its number within the graph; and the first slot of each graph, [B + 1]."""
    ends = _sums(sizes)
    first = jnp.append(ends - sizes, ends[-1])
    slots = jnp.arange(budget)
    owner = jnp.searchsorted(ends, slots, side="right", method="compare_all")
    return owner, slots - first[owner], first


def _pack_graphs(stories: StoryArrays, rows: jax.Array, shape: Shape) -> jraph.GraphsTuple:
    """B graphs and, last, the one padding graph that takes what is left of the budget.

    nodes {entity [N], story [N] of 0 to B, place [N] within the story}, edges {relation [E]},
    globals {query [B + 1, 2] nodes of the batch, target, mask [B + 1], people [B + 1, P] the nodes
    of each story, the last node filling up, facts [B + 1, F] its edges in the order of the story,
    the last edge filling up}.
    """
    real = rows >= 0
    row = jnp.where(real, rows, 0)
    n_node = jnp.where(real, stories.n_node[row], 0)  # [B]
    n_edge = jnp.where(real, stories.n_edge[row], 0)
    row = jnp.append(row, 0)

    story, person, first_node = _owners(n_node, shape.nodes)  # [N], [N], [B + 1]
    is_node = story < len(rows)
    node = jnp.where(is_node, stories.node_start[row[story]] + person, 0)

    owner, place, first_edge = _owners(n_edge, shape.edges)  # [E], [E], [B + 1]
    is_edge = owner < len(rows)
    edge = jnp.where(is_edge, stories.edge_start[row[owner]] + place, 0)
    # Padding edges join padding nodes alone.
    senders = jnp.where(is_edge, stories.senders[edge], 0) + first_node[owner]
    receivers = jnp.where(is_edge, stories.receivers[edge], 0) + first_node[owner]

    mask = jnp.append(real, False)
    return jraph.GraphsTuple(
        nodes={
            "entity": jnp.where(is_node, stories.entity[node], 0),
            "story": story,
            "place": person,
        },
        edges={"relation": jnp.where(is_edge, stories.relation[edge], 0)},
        senders=senders,
        receivers=receivers,
        n_node=jnp.append(n_node, shape.nodes - first_node[-1]),
        n_edge=jnp.append(n_edge, shape.edges - first_edge[-1]),
        globals={
            "query": jnp.where(
                mask[:, None], stories.query[row] + first_node[:, None], shape.nodes - 1
            ),
            "target": stories.target[row],
            "mask": mask,
            "people": jnp.where(
                jnp.arange(shape.people) < jnp.append(n_node, 0)[:, None],
                first_node[:, None] + jnp.arange(shape.people),
                shape.nodes - 1,
            ),
            "facts": jnp.where(
                jnp.arange(shape.facts) < jnp.append(n_edge, 0)[:, None],
                first_edge[:, None] + jnp.arange(shape.facts),
                shape.edges - 1,
            ),
        },
    )


def _pack_tokens(stories: StoryArrays, rows: jax.Array, shape: Shape) -> TokenBatch:
    real = rows >= 0
    row = jnp.where(real, rows, 0)
    steps = jnp.arange(shape.tokens)
    mask = (steps < stories.n_token[row][:, None]) & real[:, None]  # [B, T]
    place = jnp.where(mask, stories.token_start[row][:, None] + steps, 0)
    tokens = jnp.where(mask, stories.tokens[place], PAD)
    query = stories.entity[stories.node_start[row][:, None] + stories.query[row]]  # [B, 2]
    person = jnp.arange(shape.people)
    is_person = (person < stories.n_node[row][:, None]) & real[:, None]  # [B, P]
    node = jnp.where(is_person, stories.node_start[row][:, None] + person, 0)
    people = jnp.where(is_person, stories.entity[node], -1)
    is_name = tokens[:, :, None] == people[:, None] + FIRST_ENTITY  # [B, T, P]
    is_name = (is_name & is_person[:, None]).any(axis=-1)
    fact = jnp.arange(shape.facts)
    is_fact = (fact < stories.n_edge[row][:, None]) & real[:, None]  # [B, F]
    edge = jnp.where(is_fact, stories.edge_start[row][:, None] + fact, 0)
    facts = jnp.stack([x[edge] for x in (stories.senders, stories.receivers, stories.relation)], -1)
    return TokenBatch(
        tokens=tokens,
        mask=mask,
        query=query,
        mentions=(tokens[:, None, :] == query[:, :, None] + FIRST_ENTITY) & mask[:, None, :],
        target=stories.target[row],
        row_mask=real,
        people=people,
        named=jnp.sort(jnp.where(is_name, steps, shape.tokens), axis=1)[:, : shape.names],
        facts=jnp.where(is_fact[..., None], facts, -1),
        states=_pack_states(stories.states, place, mask),
    )


def _pack_states(states: jax.Array | None, place: jax.Array, mask: jax.Array) -> jax.Array | None:
    """[M, D], [B, T], [B, T] -> [B, T, D]."""
    if states is None:
        return None
    return jnp.where(mask[..., None], states[place], 0).astype(jnp.float32)


def targets(batch: Any) -> tuple[jax.Array, jax.Array]:
    """Target and mask of each row of either kind of batch, [B] each."""
    if isinstance(batch, TokenBatch):
        return batch.target, batch.row_mask
    return batch.globals["target"][:-1], batch.globals["mask"][:-1]


def chunk(rows: Sequence[int] | np.ndarray, size: int, multiple: int = 1) -> np.ndarray:
    """Rows -> [chunks, size], the last of them filled up with -1, their number a `multiple`."""
    chunks = -(-len(rows) // (size * multiple)) * multiple
    padded = np.full(chunks * size, -1, np.int32)
    padded[: len(rows)] = rows
    return padded.reshape(chunks, size)
