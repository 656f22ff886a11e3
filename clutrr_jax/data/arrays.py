"""`StoryArrays`: records as flat device arrays, from which jitted programs pack their batches."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from clutrr_jax.data.records import NUM_EDGE_TYPES, Records
from clutrr_jax.data.vocabulary import FIRST_ENTITY, Vocabulary, draw_entities, encode
from generator.kinship import NUM_RELATIONS

ENTITY_POOL = 20  # a larger pool is taken only when a story has more people


@dataclass(frozen=True)
class Sizes:
    """What a model must know of the data before it sees any."""

    entities: int
    tokens: int
    edge_types: int = NUM_EDGE_TYPES
    relations: int = NUM_RELATIONS
    sentence_ends: tuple[int, ...] = ()  # the tokens that end a sentence
    relation_words: tuple[int, ...] = (-1,) * NUM_RELATIONS  # the token of its name, -1 for none
    states: int = 0  # dimension of the frozen states of the tokens, if there are any


class StoryArrays(NamedTuple):
    """S stories. Their N people, E facts and M tokens stand flat, each story's from its start."""

    node_start: jax.Array  # [S]
    n_node: jax.Array  # [S]
    entity: jax.Array  # [N] number in the pool of entities
    edge_start: jax.Array  # [S]
    n_edge: jax.Array  # [S]
    senders: jax.Array  # [E] counted within the story
    receivers: jax.Array  # [E]
    relation: jax.Array  # [E] edge type
    token_start: jax.Array  # [S]
    n_token: jax.Array  # [S]
    tokens: jax.Array  # [M]
    query: jax.Array  # [S, 2] nodes, counted within the story
    target: jax.Array  # [S]
    clause_length: jax.Array  # [S]
    states: jax.Array | None = None  # [M, D] float16, what a frozen encoder makes of the tokens


def entity_pool(*parts: Records) -> int:
    """How many entity tokens are needed for the largest story."""
    return max(ENTITY_POOL, *(int(np.diff(p.node_start).max()) for p in parts))


def build_arrays(records: Records, vocabulary: Vocabulary, seed: int) -> StoryArrays:
    """Records -> arrays ready for a model. `seed` draws the entities of each story."""
    entities = draw_entities(np.diff(records.node_start), vocabulary.entities, seed)
    tokens, token_start = encode(records, vocabulary, entities)

    def spans(start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return start[:-1].astype(np.int32), np.diff(start).astype(np.int32)

    node_start, n_node = spans(records.node_start)
    edge_start, n_edge = spans(records.edge_start)
    first_token, n_token = spans(token_start)
    arrays = dict(
        node_start=node_start,
        n_node=n_node,
        entity=entities,
        edge_start=edge_start,
        n_edge=n_edge,
        senders=records.senders,
        receivers=records.receivers,
        relation=records.relations,
        token_start=first_token,
        n_token=n_token,
        tokens=tokens,
        query=records.query,
        target=records.target,
        clause_length=records.clause_length,
    )
    return StoryArrays(**jax.device_put(arrays))


def _owner(start: jax.Array, total: int) -> jax.Array:
    """The story of each of the `total` flat rows."""
    return jnp.searchsorted(start, jnp.arange(total), side="right") - 1


def redraw_entities(stories: StoryArrays, pool: int, key: jax.Array) -> StoryArrays:
    """The same stories with the entities of each drawn anew from the pool."""
    drawn = jax.random.uniform(key, (len(stories.target), pool))
    # Their argsort, [S, pool]: a sort takes a CPU ten times as long for rows as short as these.
    numbers = jnp.arange(pool)
    mine, other = drawn[:, :, None], drawn[:, None]
    first = (other < mine) | ((other == mine) & (numbers < numbers[:, None]))
    place = first.sum(axis=2)
    order = (numbers[:, None] * (place[:, :, None] == numbers)).sum(axis=1)
    number = stories.tokens - FIRST_ENTITY
    token_owner = _owner(stories.token_start, len(number))
    renamed = order[token_owner, jnp.clip(number, 0, pool - 1)] + FIRST_ENTITY
    return stories._replace(
        entity=order[_owner(stories.node_start, len(stories.entity)), stories.entity],
        tokens=jnp.where((number >= 0) & (number < pool), renamed, stories.tokens),
    )


def reorder_sentences(
    stories: StoryArrays, ends: tuple[int, ...], share: float, key: jax.Array
) -> StoryArrays:
    """The same stories, with the sentences of a share of them in a new order: what is true in a
    story does not depend on which fact is told first.

    Args:
      stories: of which only the tokens change.
      ends: the tokens that end a sentence.
      share: of the stories, drawn anew.
      key: of the random numbers.
    """
    total = len(stories.tokens)
    owner = _owner(stories.token_start, total)
    end = jnp.isin(stories.tokens, jnp.array(ends, jnp.int32))
    end &= ~jnp.append(end[1:], False)  # of "?!" the last
    sentence = jnp.cumsum(end) - end
    which, new_order = jax.random.split(key)
    moved = jax.random.uniform(which, (len(stories.target),)) < share
    place = jnp.where(moved[owner], jax.random.uniform(new_order, (total,))[sentence], 0.0)
    return stories._replace(tokens=stories.tokens[jnp.lexsort((place, owner))])
