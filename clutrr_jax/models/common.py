"""What the models share: dropout, messages, the fixed entity embedding, the readout, the loss,
settings."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.ops.compiling import outlined
from generator.errors import InputError

DIRECTIONS = ("forward", "backward", "both")  # of the messages


def check_heads(config, name: str) -> None:
    """Raises InputError if the heads do not divide the setting of that name."""
    if config[name] % config.heads:
        raise InputError(f"{name} {config[name]}: expected a multiple of heads {config.heads}")


class Fixed(nnx.Variable):
    """A value that is drawn once and never trained: the optimizer sees `nnx.Param` alone."""


class EntityVectors(Fixed):
    """The vectors of the entities, which a run may choose to train."""


def split(model: nnx.Module, learn_entities: bool = False) -> tuple[Any, Any, Any]:
    """The structure of a model, what of it is trained, and the rest; `nnx.merge` is the inverse."""
    trained = nnx.Any(nnx.Param, EntityVectors) if learn_entities else nnx.Param
    parts: Any = nnx.split(model, trained, ...)
    return parts


class Drawn(NamedTuple):
    """Which numbers of an array are kept: those where `numbers << shift` is below `kept`."""

    numbers: jax.Array  # from 0 to 255
    shift: int | jax.Array
    kept: int | jax.Array  # of 256


def drop(x: jax.Array, drawn: Drawn | None) -> jax.Array:
    """Dropout [..., D] -> [..., D], or none. It is linear, and its own transpose."""
    if drawn is None:
        return x
    kept = drawn.numbers << drawn.shift < drawn.kept
    return jnp.where(kept, x * (256 / jnp.maximum(drawn.kept, 1)), 0.0)


class Dropout(nnx.Module):
    """As `nnx.Dropout`, with fewer random bits, which on a CPU cost more than the product with the
    mask: the rate is rounded to a 256th, the scale with it."""

    def __init__(self, rate: float, *, rngs: nnx.Rngs):
        self.kept = round(256 * (1 - rate))
        self.rngs = rngs.dropout.fork()
        self.deterministic = False  # `nnx.Module.eval` sets it

    @property
    def _keeps_all(self) -> bool:
        return self.deterministic or self.kept == 256

    def draw(self, count: int, *shape: int) -> list[Drawn | None]:
        """What is kept in each of the next `count` calls on arrays of this shape. Only as many
        bits are drawn as the rate has: at a half one, so that a byte does for eight calls."""
        if self._keeps_all:
            return [None] * count
        bits = min(8 - i for i in range(8) if self.kept % 2**i == 0)
        per_byte = 8 // bits
        drawn = [_bytes(self.rngs(), shape) for _ in range(-(-count // per_byte))]
        return [
            Drawn(drawn[call // per_byte], bits * (call % per_byte), self.kept)
            for call in range(count)
        ]

    def __call__(self, x: jax.Array) -> jax.Array:
        """[..., D] -> [..., D]."""
        return x if self._keeps_all else drop(x, Drawn(_bytes(self.rngs(), x.shape), 0, self.kept))


def _bytes(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Random numbers below 256."""
    *rows, dim = shape
    bits = jax.random.bits(key, (*rows, -(-dim // 4)))  # 32 bits each
    return jax.lax.bitcast_convert_type(bits, jnp.uint8).reshape(*rows, -1)[..., :dim]


class EntityEmbedding(nnx.Module):
    """Random vectors of length about 1 for the entities of the pool (Sinha et al. 2019, appendix
    1.5)."""

    def __init__(self, entities: int, dim: int, *, rngs: nnx.Rngs):
        self.table = EntityVectors(jax.random.normal(rngs.params(), (entities, dim)) / dim**0.5)

    def __call__(self, entity: jax.Array) -> jax.Array:
        return self.table[...][entity]


class Messages(NamedTuple):
    """Who sends to whom along what, [E] each."""

    senders: jax.Array
    receivers: jax.Array
    types: jax.Array  # relation of the fact, plus the number of edge types along its reverse


def messages(batch: jraph.GraphsTuple, edge_types: int, directions: str) -> Messages:
    """Along the facts, along their reverses, or both."""
    relation = batch.edges["relation"]
    parts = []
    if directions in ("forward", "both"):
        parts.append((batch.senders, batch.receivers, relation))
    if directions in ("backward", "both"):
        parts.append((batch.receivers, batch.senders, relation + edge_types))
    return Messages(*(jnp.concatenate(column) for column in zip(*parts, strict=True)))


def pool_people(x: jax.Array, batch: jraph.GraphsTuple) -> tuple[jax.Array, jax.Array, jax.Array]:
    """People [N, H] -> what a readout takes: the mean of each story's people and the two that are
    asked about, [B, H] each."""
    sums = jraph.segment_sum(x, batch.nodes["story"], len(batch.n_node))
    asked = x[batch.globals["query"][:-1]]  # [B, 2, H]
    # Without the padding graph.
    return sums[:-1] / jnp.maximum(batch.n_node[:-1, None], 1), asked[:, 0], asked[:, 1]


class Readout(nnx.Module):
    """(story, entity 1, entity 2) -> 2-layer MLP -> relation logits, shared by all models
    (Sinha et al. 2019, section 4.1)."""

    def __init__(self, dim: int, hidden: int, relations: int, dropout: float, *, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(dim, hidden, rngs=rngs)
        self.dropout = Dropout(dropout, rngs=rngs)
        self.out = nnx.Linear(hidden, relations, rngs=rngs)

    def __call__(self, story: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
        """[B, D1], [B, D2], [B, D2] -> [B, relations]."""
        hidden = nnx.relu(self.hidden(jnp.concatenate([story, first, second], axis=-1)))
        return self.out(self.dropout(hidden))


_exp_of_row = outlined(jnp.exp)


@jax.custom_jvp
def exp(x: jax.Array) -> jax.Array:
    """`jnp.exp`, as that of one long row: where the last axis is as short as heads or relations,
    XLA writes it out for each of its numbers, which takes a CPU long to compile."""
    return _exp_of_row(x.ravel()).reshape(x.shape)


@exp.defjvp
def _(primals, tangents):
    power = exp(*primals)
    return power, tangents[0] * power


@outlined
def _largest(logits: jax.Array) -> jax.Array:
    largest = logits.max(axis=1, keepdims=True)
    return jnp.where(jnp.isfinite(largest), largest, 0)


def cross_entropy(logits: jax.Array, target: jax.Array) -> jax.Array:
    """`optax.softmax_cross_entropy_with_integer_labels`, the same numbers, in kernels that a CPU
    compiles sooner. [B, relations], [B] -> [B]."""
    largest = _largest(jax.lax.stop_gradient(logits))
    total = exp(logits - largest).sum(axis=1)
    own = jnp.take_along_axis(logits, target[:, None], axis=1)[:, 0]
    return jnp.log(total) + largest[:, 0] - own
