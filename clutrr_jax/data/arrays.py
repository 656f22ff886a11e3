"""Records as flat arrays on the device, from which jitted programs pack their batches."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from clutrr_jax.data.compositions import Compositions, list_compositions
from clutrr_jax.data.records import Records
from clutrr_jax.data.vocabulary import (
    FIRST_ENTITY,
    Vocabulary,
    draw_entities,
    encode,
    story_random,
)
from generator.relations.algebra import Algebra


@dataclass(frozen=True)
class Sizes:
    """Sizes and special tokens of a data set, which a model needs at initialization."""

    entities: int  # size of the entity pool
    tokens: int  # size of the vocabulary
    algebra: Algebra  # of the relations
    sentence_ends: tuple[int, ...] = ()  # tokens that end a sentence
    # Words for relations: token, predicate, and sign of the gender (-1 male, 1 female, 0 either).
    relation_words: tuple[tuple[int, int, int], ...] = ()
    # Tokens next to a relation's name that show where its holder is named (Ann in "Ann's uncle"):
    # before it, and after it.
    holder_words: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    states: int = 0  # dimension of the states of a pretrained encoder, 0 without one
    encoder: Any = None  # `EncoderConfig` of an encoder that is trained with the model

    @property
    def relations(self) -> int:
        return len(self.algebra.relations)

    @property
    def edge_types(self) -> int:
        """The relations, and the edge type of facts whose relation is not given."""
        return self.relations + 1


class StoryArrays(NamedTuple):
    """S stories. The N people, E facts and M tokens of all stories are concatenated; those of a
    story begin at its start index."""

    node_start: jax.Array  # [S]
    n_node: jax.Array  # [S]
    entity: jax.Array  # [N] id in the entity pool
    edge_start: jax.Array  # [S]
    n_edge: jax.Array  # [S]
    senders: jax.Array  # [E] position of the person within the story
    receivers: jax.Array  # [E] position of the person within the story
    relation: jax.Array  # [E] edge type
    token_start: jax.Array  # [S]
    n_token: jax.Array  # [S]
    tokens: jax.Array  # [M]
    query: jax.Array  # [S, 2] position of the people within the story
    target: jax.Array  # [S]
    # For a model over a pretrained encoder: [M, D] float16 states if it is frozen, or [M] the
    # encoder's token ids if it is trained.
    states: jax.Array | None = None
    pieces: jax.Array | None = None
    compositions: Compositions | None = None  # for a model that reads them

    @property
    def of_encoder(self) -> bool:
        """Whether the tokens are those of a pretrained encoder, and no words of the story."""
        return self.states is not None or self.pieces is not None


def build_arrays(records: Records, vocabulary: Vocabulary, seed: int) -> StoryArrays:
    """Converts records to arrays. `seed` and its content determine the entities of a story."""
    random = story_random(records, vocabulary.entities, seed)
    entities = draw_entities(np.diff(records.node_start), random)
    tokens, token_start = encode(records, vocabulary, entities)
    arrays = {}
    for kind, start in (
        ("node", records.node_start), ("edge", records.edge_start), ("token", token_start),
    ):  # fmt: skip
        arrays[f"{kind}_start"] = start[:-1].astype(np.int32)
        arrays[f"n_{kind}"] = np.diff(start).astype(np.int32)
    arrays |= {"entity": entities, "relation": records.relations, "tokens": tokens}
    for name in ("senders", "receivers", "query", "target"):
        arrays[name] = getattr(records, name)
    return StoryArrays(**jax.device_put(arrays))


def with_compositions(stories: StoryArrays) -> StoryArrays:
    """Returns the stories with the compositions of pairs of people."""
    edges = (stories.n_node, stories.n_edge, stories.senders, stories.receivers)
    listed = list_compositions(*map(np.asarray, edges))
    return stories._replace(compositions=jax.device_put(listed))


def _owner(start: jax.Array, total: int) -> jax.Array:
    """Story index of each of the `total` concatenated elements."""
    return jnp.searchsorted(start, jnp.arange(total), side="right") - 1


def redraw_entities(stories: StoryArrays, pool: int, key: jax.Array) -> StoryArrays:
    """Returns the stories with their entities permuted at random, for each story separately."""
    order = _argsort(jax.random.uniform(key, (len(stories.target), pool)))
    entity = stories.tokens - FIRST_ENTITY
    owner = _owner(stories.token_start, len(entity))
    renamed = order[owner, jnp.clip(entity, 0, pool - 1)] + FIRST_ENTITY
    return stories._replace(
        entity=order[_owner(stories.node_start, len(stories.entity)), stories.entity],
        tokens=jnp.where((entity >= 0) & (entity < pool), renamed, stories.tokens),
    )


def _argsort(x: jax.Array) -> jax.Array:
    """`jnp.argsort(x)` of short rows [S, n], which takes a CPU ten times as long for n = 20."""
    index = jnp.arange(x.shape[1])
    mine, other = x[:, :, None], x[:, None]
    is_before = (other < mine) | ((other == mine) & (index < index[:, None]))
    rank = is_before.sum(axis=2)
    return (index[:, None] * (rank[:, :, None] == index)).sum(axis=1)


def reorder_sentences(
    stories: StoryArrays, ends: tuple[int, ...], fraction: float, key: jax.Array
) -> StoryArrays:
    """Returns the stories with the sentences of a random fraction of them in random order, given
    the tokens that end a sentence."""
    total = len(stories.tokens)
    owner = _owner(stories.token_start, total)
    end = jnp.isin(stories.tokens, jnp.array(ends, jnp.int32))
    end &= ~jnp.append(end[1:], False)  # only the last mark of "?!" ends it
    sentence = jnp.cumsum(end) - end
    story_key, order_key = jax.random.split(key)
    reordered = jax.random.uniform(story_key, (len(stories.target),)) < fraction
    rank = jnp.where(reordered[owner], jax.random.uniform(order_key, (total,))[sentence], 0.0)
    return stories._replace(tokens=stories.tokens[jnp.lexsort((rank, owner))])
