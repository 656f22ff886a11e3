"""Layers shared by the models: entity embeddings, messages along facts, pooling, readout."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models.setting import Setting
from generator.errors import InputError

DIRECTIONS = ("forward", "backward", "both")  # of the messages, relative to the facts

# Settings that several models have.
READOUT = Setting(200, "width of the hidden layer of the readout", at_least=1)
WORD_DROPOUT = Setting(
    0.05,
    "fraction of words replaced by the unknown word in training",
    at_least=0,
    below=1,
    sweeps=True,
)


def dropout(default: float) -> Setting:
    """Returns the setting "dropout" of a model."""
    return Setting(default, "dropout rate", at_least=0, below=1, sweeps=True)


def check_heads(config, name: str) -> None:
    """Raises InputError if setting `name` is not a multiple of the number of heads."""
    if config[name] % config.heads:
        raise InputError(f"{name} {config[name]}: expected a multiple of heads {config.heads}")


class EntityVectors(nnx.Variable):
    """Entity embeddings, which are trained with `train.entities=learned` only."""


class EntityEmbedding(nnx.Module):
    """Random vectors of expected squared norm 1 for the entities of the pool (Sinha et al. 2019,
    appendix 1.5)."""

    def __init__(self, entities: int, dim: int, *, rngs: nnx.Rngs):
        self.table = EntityVectors(jax.random.normal(rngs.params(), (entities, dim)) / dim**0.5)

    def __call__(self, entity: jax.Array) -> jax.Array:
        """Entity ids [...] -> [..., dim]."""
        return self.table[...][entity]


class Messages(NamedTuple):
    """Edges along which messages are sent, [E] each."""

    senders: jax.Array
    receivers: jax.Array
    types: jax.Array  # relation id; plus the number of edge types for messages against a fact


def messages(batch: jraph.GraphsTuple, edge_types: int, directions: str) -> Messages:
    """Messages along the facts (forward), against them (backward), or both."""
    relation = batch.edges["relation"]
    parts = []
    if directions in ("forward", "both"):
        parts.append((batch.senders, batch.receivers, relation))
    if directions in ("backward", "both"):
        parts.append((batch.receivers, batch.senders, relation + edge_types))
    return Messages(*(jnp.concatenate(column) for column in zip(*parts, strict=True)))


def spread(
    # New states from the states and whether each message is sent, bool [E].
    update: Callable[[jax.Array, jax.Array], jax.Array],
    initial: jax.Array,  # [N, ...]
    is_start: jax.Array,  # [N]
    batch: jraph.GraphsTuple,
    senders: jax.Array,  # [E]
    receivers: jax.Array,
    rounds: int,  # at most
) -> tuple[jax.Array, jax.Array]:
    """Spreads states from the start person of each story along messages, round by round.

    People that are not reached send nothing, and start persons keep their state. Returns the final
    states, and which people were reached, bool [N].
    """
    # The number of rounds depends on the size of the story alone, not on the padding.
    of_story = (batch.n_node - 1)[batch.nodes["story"]]

    def round_(carry, index):
        state, reached = carry
        is_sent = reached[senders]
        new = update(state, is_sent)
        received = jraph.segment_max(is_sent.astype(jnp.int32), receivers, len(is_start)) > 0
        received &= ~is_start & (index < of_story)
        kept = received.reshape(-1, *[1] * (state.ndim - 1))
        return (jnp.where(kept, new, state), reached | received), None

    needed = min(rounds, batch.globals["people"].shape[1] - 1)
    return jax.lax.scan(round_, (initial, is_start), jnp.arange(needed))[0]


def pair_index(batch: jraph.GraphsTuple) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Story of each edge, and positions of its sender and receiver in the story, [E] each: an index
    into arrays [B, P, P]. Edges of the padding graph are out of range."""
    story, position = batch.nodes["story"], batch.nodes["position"]
    return story[batch.senders], position[batch.senders], position[batch.receivers]


def query_positions(batch: jraph.GraphsTuple) -> jax.Array:
    """Positions of the two query people in their story, [2, B]."""
    return batch.nodes["position"][batch.globals["query"][:-1]].T


def pool_people(x: jax.Array, batch: jraph.GraphsTuple) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Node states [N, H] -> mean over each story, first and second query person, [B, H] each."""
    sums = jraph.segment_sum(x, batch.nodes["story"], len(batch.n_node))
    query = x[batch.globals["query"][:-1]]  # [B, 2, H]; the last graph is padding
    return sums[:-1] / jnp.maximum(batch.n_node[:-1, None], 1), query[:, 0], query[:, 1]


class Readout(nnx.Module):
    """Two-layer MLP over (story, query person 1, query person 2), shared by all models (Sinha et
    al. 2019, section 4.1). Its settings are `readout`, the hidden dimension, and `dropout`."""

    def __init__(self, dim: int, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(dim, config.readout, rngs=rngs)
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)
        self.out = nnx.Linear(config.readout, sizes.relations, rngs=rngs)

    def __call__(self, story: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
        """[B, D1], [B, D2], [B, D2] -> relation logits [B, relations]."""
        hidden = nnx.relu(self.hidden(jnp.concatenate([story, first, second], axis=-1)))
        return self.out(self.dropout(hidden))


class GraphNetwork(nnx.Module):
    """Skeleton of GAT and GCN: entity vectors, rounds of layers with dropout, readout."""

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.directions = config.directions
        self.rounds, self.edge_types, self.dim = config.rounds, sizes.edge_types, config.node
        self.entity = (
            EntityEmbedding(sizes.entities, config.node, rngs=rngs) if config.entities else None
        )
        self.steps: Any = nnx.List(self.layers(config, rngs))
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)
        self.readout = Readout(3 * config.node, config, sizes, rngs=rngs)

    def layers(self, config, rngs: nnx.Rngs) -> Iterable[nnx.Module]:
        """Layers of a round."""
        raise NotImplementedError

    def begin(self, batch: jraph.GraphsTuple) -> tuple[jax.Array, Messages]:
        """Initial node states [N, H], and the messages."""
        entity = batch.nodes["entity"]
        x = jnp.tile(self.start, (len(entity), 1)) if self.entity is None else self.entity(entity)
        return x, messages(batch, self.edge_types, self.directions)

    @property
    def start(self) -> jax.Array:
        """Initial state of nodes without entity vectors, [H]."""
        return jnp.zeros(self.dim)

    def propagate(self, x: jax.Array, layer: Callable[[Any, jax.Array], jax.Array]) -> jax.Array:
        """Final node states [N, H]; `layer(step, x)` applies one of the layers."""
        for _ in range(self.rounds):
            for step in self.steps:
                x = layer(step, self.dropout(x))
        return x
