"""Sequence encoders of the facts of a story: RNN, LSTM, GRU, CNN and multi-head attention.

A story with the facts (X, r, Y), (Y, q, Z) becomes the symbols X r Y Y q Z, where people are
entities of the pool. The encoders are those of Minervini et al. 2020, except that they ignore
padding and use the readout that all models share.

Shapes: B stories, F facts of a story, T = 3 F symbols, D symbol dimension, H hidden dimension,
V distinct symbols.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models.common import READOUT, EntityEmbedding, Readout, check_heads, dropout
from clutrr_jax.models.lstm import initial_weight, lstm
from clutrr_jax.models.setting import Setting

# Sizes as in the code of Minervini et al. 2020, which has no dropout.
SETTINGS = {
    "embedding": Setting(100, "width of the embeddings of people and relations", at_least=1),
    "hidden": Setting(100, "width of the encoder, of each direction or filter", at_least=1),
    "readout": READOUT,
    "dropout": dropout(0.0),
}
ATTENTION_SETTINGS = SETTINGS | {  # the authors' 3 heads do not divide 100
    "heads": Setting(4, "attention heads, a divisor of embedding", at_least=1)
}


def gives(settings: Mapping[str, Any]) -> list[str]:
    """What an encoder of a sequence has besides the facts, see `Spec`: the data state the facts of
    the clause first, in the order in which they follow each other."""
    return ["order of facts"]


def rnn(inputs: jax.Array, weight: jax.Array, mask: jax.Array) -> jax.Array:
    """Recurrence h = tanh(inputs + h W) of Elman (1990). Arguments as in `lstm`, with one gate."""

    def step(hidden, now):
        x, keep = now
        hidden = jnp.tanh(x + jnp.einsum("gbh,ghk->gbk", hidden, weight)) * keep[..., None]
        return hidden, hidden

    return jax.lax.scan(step, jnp.zeros_like(inputs[0]), (inputs, mask))[1]


def gru(inputs: jax.Array, weight: jax.Array, mask: jax.Array) -> jax.Array:
    """GRU recurrence (Cho et al. 2014) with the reset gate applied after the matrix product.

    Arguments as in `lstm`, with three gates: reset, update, new.
    """
    size = weight.shape[1]

    def step(hidden, now):
        x, keep = now
        h = jnp.einsum("gbh,ghk->gbk", hidden, weight)
        reset, update = jnp.split(nnx.sigmoid(x[..., : 2 * size] + h[..., : 2 * size]), 2, axis=-1)
        new = jnp.tanh(x[..., 2 * size :] + reset * h[..., 2 * size :])
        hidden = (update * hidden + (1 - update) * new) * keep[..., None]
        return hidden, hidden

    return jax.lax.scan(step, jnp.zeros_like(inputs[0, ..., :size]), (inputs, mask))[1]


# Recurrence and number of gates.
CELLS: dict[str, tuple[Callable[..., jax.Array], int]] = {
    "rnn": (rnn, 1),
    "gru": (gru, 3),
    "lstm": (lstm, 4),
}


class Recurrent(nnx.Module):
    """Bidirectional recurrent layer that encodes a story as the last state of each direction."""

    def __init__(self, cell: str, dim: int, hidden: int, *, rngs: nnx.Rngs):
        self.cell = cell
        _, gates = CELLS[cell]
        self.inputs = nnx.Linear(dim, 2 * gates * hidden, rngs=rngs)
        self.weight = nnx.Param(jnp.stack([initial_weight(hidden, rngs, gates) for _ in range(2)]))

    def __call__(self, gates: jax.Array, mask: jax.Array) -> jax.Array:
        """Outputs of `inputs` [T, B, 2 gates H] and mask [T, B] -> story vectors [B, 2H]."""
        forward, backward = jnp.split(gates, 2, axis=-1)
        both = jnp.stack([forward, backward[::-1]], axis=1)
        masks = jnp.stack([mask, mask[::-1]], axis=1).astype(gates.dtype)
        hidden = CELLS[self.cell][0](both, self.weight[...], masks)  # [T, 2, B, H]
        last = mask.sum(axis=0) - 1  # [B] last symbol before padding
        stories = jnp.arange(mask.shape[1])
        return jnp.concatenate([hidden[last, 0, stories], hidden[-1, 1]], axis=-1)


class EdgeSequence(nnx.Module):
    """Base class: readout over the encoded sequence and the embeddings of the query people."""

    def __init__(self, config, sizes: Sizes, width: int, *, rngs: nnx.Rngs):
        """`width` is the dimension of the encoded sequence."""
        self.entity = EntityEmbedding(sizes.entities, config.embedding, rngs=rngs)
        self.entities = sizes.entities
        shape = (sizes.edge_types, config.embedding)
        self.relation = nnx.Param(jax.random.normal(rngs.params(), shape) / config.embedding**0.5)
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)
        self.readout = Readout(width + 2 * config.embedding, config, sizes, rngs=rngs)

    def encode(self, symbols: jax.Array, mask: jax.Array, table: jax.Array) -> jax.Array:
        """Symbol ids and mask [T, B], embeddings of all symbols [V, D] -> stories [B, width]."""
        raise NotImplementedError

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Relation logits [B, relations]."""
        entity = batch.nodes["entity"]
        facts = batch.globals["facts"][:-1]  # [B, F]
        symbols = jnp.stack([
            entity[batch.senders[facts]],
            self.entities + batch.edges["relation"][facts],
            entity[batch.receivers[facts]],
        ], axis=-1).reshape(len(facts), -1).T  # [T, B]  # fmt: skip
        mask = jnp.arange(len(symbols))[:, None] < 3 * batch.n_edge[:-1]
        people = self.entity(jnp.arange(self.entities))
        table = jnp.concatenate([people, self.relation[...]])  # [V, D]
        story = self.dropout(self.encode(symbols, mask, table))
        first, second = people[entity[batch.globals["query"][:-1]]].swapaxes(0, 1)
        return self.readout(story, first, second)


class EdgeRNN(EdgeSequence):
    """Bidirectional RNN (Elman 1990)."""

    cell = "rnn"

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        super().__init__(config, sizes, 2 * config.hidden, rngs=rngs)
        self.layer = Recurrent(self.cell, config.embedding, config.hidden, rngs=rngs)

    def encode(self, symbols, mask, table):
        # Projecting the V distinct symbols is cheaper than projecting all T B positions.
        return self.layer(self.layer.inputs(table)[symbols], mask)


class EdgeLSTM(EdgeRNN):
    """Bidirectional LSTM (Hochreiter and Schmidhuber 1997)."""

    cell = "lstm"


class EdgeGRU(EdgeRNN):
    """Bidirectional GRU (Cho et al. 2014)."""

    cell = "gru"


class EdgeCNN(EdgeSequence):
    """Convolutions over 1 to 5 symbols with max pooling over the positions (Kim 2014)."""

    widths = (1, 2, 3, 4, 5)  # of the filters; `hidden` filters of each

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        super().__init__(config, sizes, len(self.widths) * config.hidden, rngs=rngs)
        # On a CPU, training with `nnx.Conv` is 11 times as slow as with windows.
        self.filters = nnx.List(
            nnx.Linear(width * config.embedding, config.hidden, rngs=rngs) for width in self.widths
        )

    def encode(self, symbols, mask, table):
        x = table[symbols] * mask[..., None]  # [T, B, D]
        pooled = []
        for width, layer in zip(self.widths, self.filters, strict=True):
            # A filter may extend beyond the end of the story, where its inputs are zero.
            padded = jnp.pad(x, ((0, width - 1), (0, 0), (0, 0)))
            window = jnp.concatenate([padded[i : i + len(x)] for i in range(width)], axis=-1)
            pooled.append((nnx.relu(layer(window)) * mask[..., None]).max(axis=0))  # [B, H]
        return jnp.concatenate(pooled, axis=-1)


class EdgeAttention(EdgeSequence):
    """Multi-head self-attention over the symbols (Vaswani et al. 2017) with a residual connection,
    followed by a bidirectional LSTM, as in Minervini et al. 2020."""

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        super().__init__(config, sizes, 2 * config.hidden, rngs=rngs)
        dim = config.embedding
        check_heads(config, "embedding")
        self.heads = config.heads
        self.project = nnx.Linear(dim, 3 * dim, use_bias=False, rngs=rngs)
        self.out = nnx.Linear(dim, dim, rngs=rngs)
        self.layer = Recurrent("lstm", dim, config.hidden, rngs=rngs)

    def encode(self, symbols, mask, table):
        heads = self.project(table).reshape(len(table), 3, self.heads, -1)  # [V, 3, heads, D/heads]
        query, key, value = (heads[:, part][symbols.T] for part in range(3))
        mine = mask.T[:, None, None]  # [B, 1, 1, T]
        attended = jax.nn.dot_product_attention(query, key, value, mask=mine)  # [B, T, heads, ...]
        x = table[symbols] + self.out(attended.swapaxes(0, 1).reshape(*symbols.shape, -1))
        return self.layer(self.layer.inputs(x), mask)
