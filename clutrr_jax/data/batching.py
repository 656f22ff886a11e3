"""Shapes of batches, and their packing from `StoryArrays` inside jitted programs.

The rows of a batch are story indices. Row -1 is padding: its graph is empty, its mask is False.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import jraph
import numpy as np

from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.data.compositions import Compositions
from clutrr_jax.data.vocabulary import FIRST_ENTITY, PAD

# "pairs" batches are graph batches too, but of stories with similar numbers of people, for models
# whose arrays are padded to the largest story.
InputKind = Literal["graph", "pairs", "tokens"]
GRAPHS = ("graph", "pairs")
MAX_BUCKETS = 4  # most shapes of the batches of a data set; the program has a branch for each
LENGTH_STEP = 4  # token lengths are rounded up to a multiple of this
# Least numbers of people, facts, tokens and tokens that name people in the batch of a single story.
QUESTION = np.array([4, 4, 32, 8])


class TokenBatch(NamedTuple):
    """B stories as token ids, padded on the right to T tokens."""

    tokens: jax.Array  # [B, T]
    mask: jax.Array  # [B, T] False at padding
    query: jax.Array  # [B, 2] entity ids of the query pair
    mentions: jax.Array  # [B, 2, T] True at tokens that name a query person
    target: jax.Array  # [B] relation
    row_mask: jax.Array  # [B] False for row -1
    people: jax.Array  # [B, P] entity ids of the people, -1 at padding
    name_positions: jax.Array  # [B, M] positions of the tokens that name people, T at padding
    # [B, F, 3] stated facts: positions in `people` of X and Y, and edge type; -1 at padding
    facts: jax.Array
    states: jax.Array | None = None  # [B, T, D] float32 states of an encoder, zero at padding
    pieces: jax.Array | None = None  # [B, T] token ids of an encoder that is trained, 0 at padding


@dataclass(frozen=True)
class Shape:
    """Budget of a batch. Nodes and edges are totals, the other sizes are per story."""

    stories: int
    nodes: int = 0
    edges: int = 0
    people: int = 0
    facts: int = 0
    tokens: int = 0
    names: int = 0  # tokens that name people
    rounds: int = 0  # of compositions
    steps: int = 0  # compositions of a round of the batch


def plan_shapes(
    kind: InputKind, stories: StoryArrays, batch_size: int, max_buckets: int | None = None
) -> tuple[list[Shape], list[np.ndarray]]:
    """Shapes of the batches of these stories, and the rows of each shape.

    Graph batches have one shape, which fits any `batch_size` stories. For the other kinds, stories
    are split into up to `max_buckets` shapes (by default MAX_BUCKETS) by their number of people
    ("pairs") or tokens, such that the padding is minimal.
    """
    if kind == "graph":
        lengths = np.zeros(len(stories.target), int)
    elif kind == "pairs":
        lengths = np.asarray(stories.n_node) ** 2
    else:
        lengths = -(-np.asarray(stories.n_token) // LENGTH_STEP) * LENGTH_STEP
    bounds = bucket_bounds(lengths, max_buckets or MAX_BUCKETS)
    bucket = np.searchsorted(bounds, lengths)
    buckets = [np.flatnonzero(bucket == b) for b in range(len(bounds))]
    return [
        _shape(stories, rows, batch_size, 0 if kind in GRAPHS else bound)
        for rows, bound in zip(buckets, bounds, strict=True)
    ], buckets


def _shape(stories: StoryArrays, rows: np.ndarray, batch_size: int, tokens: int) -> Shape:
    """Shape that fits any `batch_size` of the rows; 0 tokens for a graph batch."""
    n_node, n_edge = np.asarray(stories.n_node)[rows], np.asarray(stories.n_edge)[rows]
    shape = Shape(batch_size, people=int(n_node.max()), facts=int(n_edge.max()))
    if tokens:
        return replace(shape, tokens=tokens, names=int(count_names(stories)[rows].max()))
    if stories.compositions is not None:
        size = np.asarray(stories.compositions.size)[rows]
        size = np.sort(size, axis=0)[-batch_size:].sum(axis=0)
        shape = replace(shape, rounds=int(np.count_nonzero(size)), steps=int(size.max()))
    return replace(
        shape,
        # One more node, because padding edges need a padding node.
        nodes=int(np.sort(n_node)[-batch_size:].sum()) + 1,
        edges=int(np.sort(n_edge)[-batch_size:].sum()),
    )


def question_shape(kind: InputKind, stories: StoryArrays) -> Shape:
    """Shape of the batch of a single story.

    Its numbers of people, facts, tokens and names are those of QUESTION times the same power of
    two, so that stories of similar length have the same shape, and the same compiled program.
    """
    people, facts, tokens, names = map(int, _question_sizes(stories))
    if kind in GRAPHS:
        shape = Shape(1, nodes=people + 1, edges=facts, people=people, facts=facts)
        if stories.compositions is None:
            return shape
        # The pairs of a chain have at most P^2 / 4 compositions in a round.
        steps = people**2 // 4
        most = max(np.asarray(stories.compositions.size).max() / steps, 1)
        steps *= 4 ** math.ceil(math.log(most, 4))
        return replace(shape, rounds=people - 1, steps=steps)
    return Shape(1, people=people, facts=facts, tokens=tokens, names=names)


def _question_sizes(stories: StoryArrays) -> np.ndarray:
    counts = stories.n_node, stories.n_edge, stories.n_token, count_names(stories)
    most = max((np.concatenate(counts) / QUESTION).max(), 1)
    return QUESTION * 2 ** math.ceil(math.log2(most))


def pad_question(stories: StoryArrays) -> StoryArrays:
    """Pads the arrays of a single story to the sizes of its shape; several stories stay as they
    are."""
    if len(stories.target) > 1:
        return stories
    people, facts, tokens, _ = _question_sizes(stories)
    shape = question_shape("graph", stories)
    sizes = {"entity": people, "senders": facts, "receivers": facts, "relation": facts,
             "tokens": tokens, "states": tokens, "pieces": tokens}  # fmt: skip
    padded: dict[str, Any] = {}
    for name, size in sizes.items():
        array = getattr(stories, name)
        if array is not None:
            padding = [(0, size - len(array)), *[(0, 0)] * (array.ndim - 1)]
            padded[name] = np.pad(np.asarray(array), padding)
    if stories.compositions is not None:
        start, size, steps = map(np.asarray, stories.compositions)
        rounds = [(0, 0), (0, shape.rounds - size.shape[1])]
        more = [(0, shape.rounds * shape.steps - len(steps)), (0, 0)]
        padded["compositions"] = Compositions(
            np.pad(start, rounds), np.pad(size, rounds), np.pad(steps, more)
        )
    return stories._replace(**padded)


def count_names(stories: StoryArrays) -> np.ndarray:
    """Number of tokens of each story that name one of its people, [S]."""
    n_node, n_token = np.asarray(stories.n_node), np.asarray(stories.n_token)
    # (story, token) pairs as single integers
    story = np.arange(len(n_node)) << 32
    entity, tokens = np.asarray(stories.entity), np.asarray(stories.tokens)
    people = np.repeat(story, n_node) + entity[: n_node.sum()] + FIRST_ENTITY
    tokens = np.repeat(story, n_token) + tokens[: n_token.sum()]
    owner = np.repeat(np.arange(len(n_node)), n_token)
    return np.bincount(owner, np.isin(tokens, people), minlength=len(n_node)).astype(int)


def bucket_bounds(lengths: np.ndarray, count: int) -> list[int]:
    """Upper bounds of up to `count` buckets, ascending, that minimize the total padded length.

    Dynamic programming over the distinct lengths.
    """
    values, freq = np.unique(lengths, return_counts=True)
    below = np.concatenate([[0], np.cumsum(freq)])
    cost = np.concatenate([[0.0], np.full(len(values), np.inf)])
    last: list[np.ndarray] = []
    for _ in range(min(count, len(values))):
        # cost[i] is the least cost of the i shortest distinct lengths; entry [i - 1, j] of totals
        # is the cost if the last bucket covers the distinct lengths j to i - 1.
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


def pack(stories: StoryArrays, rows: jax.Array, shape: Shape) -> Any:
    """Packs the stories `rows` [B] into a batch of the given shape: a `TokenBatch` if the shape has
    tokens, else a `jraph.GraphsTuple`."""
    return (_pack_tokens if shape.tokens else _pack_graphs)(stories, rows, shape)


def _assign_slots(sizes: jax.Array, budget: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Assigns `sizes` [B] slots to each graph in order, and the rest of the budget to the padding
    graph B. Returns graph and position of each slot [budget], and the first slot of each graph
    [B + 1]."""
    ends = jnp.cumsum(sizes)
    first = jnp.append(ends - sizes, ends[-1])
    slots = jnp.arange(budget)
    graph = jnp.searchsorted(ends, slots, side="right", method="compare_all")
    return graph, slots - first[graph], first


def _pack_graphs(stories: StoryArrays, rows: jax.Array, shape: Shape) -> jraph.GraphsTuple:
    """Packs B graphs and, last, one padding graph with the remaining nodes and edges.

    Nodes:
      entity: [N] entity id.
      story: [N] graph, 0 to B.
      position: [N] within the story.
    Edges:
      relation: [E] edge type.
    Globals:
      query: [B + 1, 2] nodes of the query pair.
      target: [B + 1] relation.
      mask: [B + 1] False for row -1 and the padding graph.
      people: [B + 1, P] nodes of each story, padded with the last node.
      facts: [B + 1, F] edges of each story in its order, padded with the last edge.
      people_mask, facts_mask: [B + 1, P], [B + 1, F] False at this padding.
    """
    real = rows >= 0
    row = jnp.where(real, rows, 0)
    n_node = jnp.where(real, stories.n_node[row], 0)  # [B]
    n_edge = jnp.where(real, stories.n_edge[row], 0)
    row = jnp.append(row, 0)

    story, position, first_node = _assign_slots(n_node, shape.nodes)
    is_node = story < len(rows)
    node = jnp.where(is_node, stories.node_start[row[story]] + position, 0)

    owner, fact, first_edge = _assign_slots(n_edge, shape.edges)
    is_edge = owner < len(rows)
    edge = jnp.where(is_edge, stories.edge_start[row[owner]] + fact, 0)
    # Padding edges connect the first padding node to itself.
    senders = jnp.where(is_edge, stories.senders[edge], 0) + first_node[owner]
    receivers = jnp.where(is_edge, stories.receivers[edge], 0) + first_node[owner]

    def is_member(count: jax.Array, width: int) -> jax.Array:
        return jnp.arange(width) < jnp.append(count, 0)[:, None]

    def members(first: jax.Array, mask: jax.Array, padding: int) -> jax.Array:
        return jnp.where(mask, first[:, None] + jnp.arange(mask.shape[1]), padding)

    people_mask, facts_mask = is_member(n_node, shape.people), is_member(n_edge, shape.facts)
    mask = jnp.append(real, False)
    return jraph.GraphsTuple(
        nodes={
            "entity": jnp.where(is_node, stories.entity[node], 0),
            "story": story,
            "position": position,
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
            "people": members(first_node, people_mask, shape.nodes - 1),
            "facts": members(first_edge, facts_mask, shape.edges - 1),
            "people_mask": people_mask,
            "facts_mask": facts_mask,
        }
        | _pack_compositions(stories, row[:-1], real, shape),
    )


def _pack_compositions(
    stories: StoryArrays, row: jax.Array, real: jax.Array, shape: Shape
) -> dict[str, jax.Array]:
    """`steps` [D, C, 4] of stories that have compositions: story, X, Z and Y of those of each
    round; story B is padding."""
    if stories.compositions is None:
        return {}
    start, size, steps = stories.compositions
    assign = jax.vmap(partial(_assign_slots, budget=shape.steps), in_axes=1)
    story, step, _ = assign(jnp.where(real[:, None], size[row], 0)[:, : shape.rounds])
    is_step = story < len(row)
    first = start[row[jnp.where(is_step, story, 0)], jnp.arange(shape.rounds)[:, None]]
    found = steps[jnp.where(is_step, first + step, 0)]
    return {"steps": jnp.concatenate([story[..., None], found], axis=-1)}


def _pack_tokens(stories: StoryArrays, rows: jax.Array, shape: Shape) -> TokenBatch:
    real = rows >= 0
    row = jnp.where(real, rows, 0)
    steps = jnp.arange(shape.tokens)
    mask = (steps < stories.n_token[row][:, None]) & real[:, None]  # [B, T]
    index = jnp.where(mask, stories.token_start[row][:, None] + steps, 0)
    tokens = jnp.where(mask, stories.tokens[index], PAD)
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
        name_positions=jnp.sort(jnp.where(is_name, steps, shape.tokens), axis=1)[:, : shape.names],
        facts=jnp.where(is_fact[..., None], facts, -1),
        states=None
        if stories.states is None
        else jnp.where(mask[..., None], stories.states[index], 0).astype(jnp.float32),
        pieces=None if stories.pieces is None else jnp.where(mask, stories.pieces[index], 0),
    )


def evaluation_batch() -> int:
    """Returns the number of stories of a batch in evaluation.

    On a CPU few stories are faster: their arrays stay in the cache.
    """
    return 32 if jax.default_backend() == "cpu" else 128


def targets(batch: Any) -> tuple[jax.Array, jax.Array]:
    """Target and mask of each row of a graph or token batch, [B] each."""
    if isinstance(batch, TokenBatch):
        return batch.target, batch.row_mask
    return batch.globals["target"][:-1], batch.globals["mask"][:-1]


def chunk(rows: Sequence[int] | np.ndarray, size: int, multiple: int = 1) -> np.ndarray:
    """Splits rows into chunks [chunks, size], a multiple of `multiple`, padded with -1."""
    chunks = -(-len(rows) // (size * multiple)) * multiple
    padded = np.full(chunks * size, -1, np.int32)
    padded[: len(rows)] = rows
    return padded.reshape(chunks, size)
