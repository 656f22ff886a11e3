"""LSTM layers that leave only the recurrence in the scan, and the BiLSTM text models.

Shapes: B stories, T tokens, D embedding dimension, H hidden dimension.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.data.batches import TokenBatch
from clutrr_jax.data.stories import Sizes
from clutrr_jax.data.text import FIRST_ENTITY
from clutrr_jax.models.common import EntityEmbedding, Readout

# Sinha et al. 2019, appendix 2.2.
CONFIG = {
    "embedding": 100,
    "hidden": 100,
    "layers": 2,
    "readout": 200,
    "dropout": 0.3,
    "unknown": 0.05,
}


@jax.custom_vjp
def lstm(inputs: jax.Array, weight: jax.Array, mask: jax.Array) -> jax.Array:
    """The recurrence of G independent LSTMs side by side.

    Args:
      inputs: [T, G, B, 4H] what the inputs and the bias add to the gates (input, forget, cell,
        output), computed for all steps at once by the caller.
      weight: [G, H, 4H] from the hidden state to the gates.
      mask: [T, G, B] 0 where there is no token: state and output are zero there.
    Returns:
      hidden states [T, G, B, H].
    """
    return _lstm_forward(inputs, weight, mask)[0]


def _lstm_forward(inputs, weight, mask):
    _, groups, batch, width = inputs.shape
    zero = jnp.zeros((groups, batch, width // 4), inputs.dtype)

    def step(state, now):
        hidden, cell = state
        gates, keep = now
        gates = gates + jnp.einsum("gbh,ghk->gbk", hidden, weight)
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        i, f, g, o = nnx.sigmoid(i), nnx.sigmoid(f), jnp.tanh(g), nnx.sigmoid(o)
        cell = (f * cell + i * g) * keep[..., None]
        hidden = o * jnp.tanh(cell)
        return (hidden, cell), (hidden, cell, jnp.concatenate([i, f, g, o], axis=-1))

    _, (hidden, cell, gates) = jax.lax.scan(step, (zero, zero), (inputs, mask))
    return hidden, (hidden, cell, gates, weight, mask)


def _lstm_backward(saved, d_hidden):
    """By hand, so that the weight's gradient is one product over all steps after the scan."""
    hidden, cell, gates, weight, mask = saved

    def previous(states):
        return jnp.concatenate([jnp.zeros_like(states[:1]), states[:-1]])

    def step(carry, now):
        d_h, d_c = carry
        d_out, c, c_before, gate, keep = now
        i, f, g, o = jnp.split(gate, 4, axis=-1)
        d_h = d_h + d_out
        tanh_c = jnp.tanh(c)
        d_c = (d_c + d_h * o * (1 - tanh_c**2)) * keep[..., None]
        d_gates = jnp.concatenate(
            [
                d_c * g * i * (1 - i),
                d_c * c_before * f * (1 - f),
                d_c * i * (1 - g**2),
                d_h * tanh_c * o * (1 - o),
            ],
            axis=-1,
        )
        return (jnp.einsum("gbk,ghk->gbh", d_gates, weight), d_c * f), d_gates

    zero = jnp.zeros_like(cell[0])
    _, d_gates = jax.lax.scan(
        step, (zero, zero), (d_hidden, cell, previous(cell), gates, mask), reverse=True
    )
    d_weight = jnp.einsum("tgbh,tgbk->ghk", previous(hidden), d_gates)
    return d_gates, d_weight, jnp.zeros_like(mask)


lstm.defvjp(_lstm_forward, _lstm_backward)


def first_bias(hidden: int) -> jax.Array:
    """[4H]: an LSTM remembers at first."""
    return jnp.zeros(4 * hidden).at[hidden : 2 * hidden].set(1.0)


def first_weight(hidden: int, rngs: nnx.Rngs) -> jax.Array:
    """From the state to the gates, orthogonal. [H, 4H]."""
    orthogonal = nnx.initializers.orthogonal()
    return jnp.concatenate([orthogonal(rngs.params(), (hidden, hidden)) for _ in range(4)], axis=1)


class LSTM(nnx.Module):
    """One layer, from the first token to the last."""

    def __init__(self, dim: int, hidden: int, *, rngs: nnx.Rngs):
        self.inputs = nnx.Linear(dim, 4 * hidden, use_bias=False, rngs=rngs)
        self.bias = nnx.Param(first_bias(hidden))
        self.weight = nnx.Param(first_weight(hidden, rngs))

    def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        """[T, B, D], [T, B] -> [T, B, H], zero at padding."""
        gates = self.inputs(x) + self.bias[...]
        return lstm(gates[:, None], self.weight[...][None], mask[:, None].astype(x.dtype))[:, 0]


class BiLSTM(nnx.Module):
    """One bidirectional layer: both directions run in the same scan."""

    def __init__(self, dim: int, hidden: int, *, rngs: nnx.Rngs):
        self.inputs = nnx.Linear(dim, 8 * hidden, use_bias=False, rngs=rngs)
        self.bias = nnx.Param(jnp.tile(first_bias(hidden), 2))
        self.weight = nnx.Param(jnp.stack([first_weight(hidden, rngs) for _ in range(2)]))

    def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        """[T, B, D], [T, B] -> [T, B, 2H], zero at padding."""
        steps, batch, _ = x.shape
        gates = (self.inputs(x) + self.bias[...]).reshape(steps, batch, 2, -1)
        both = jnp.stack([gates[:, :, 0], gates[::-1, :, 1]], axis=1)  # [T, 2, B, 4H]
        masks = jnp.stack([mask, mask[::-1]], axis=1).astype(x.dtype)
        hidden = lstm(both, self.weight[...], masks)  # [T, 2, B, H]
        return jnp.concatenate([hidden[:, 0], hidden[::-1, 1]], axis=-1)


class TokenEmbedding(nnx.Module):
    """Words are learned, entities random and fixed; padding and unknown words are zero. In training
    a share of the words is made unknown, as the words of held-out paraphrases are in the tests."""

    def __init__(self, sizes: Sizes, dim: int, unknown: float, *, rngs: nnx.Rngs):
        self.make_unknown = nnx.Dropout(unknown, broadcast_dims=(-1,), rngs=rngs)
        self.first_word = FIRST_ENTITY + sizes.entities
        self.entity = EntityEmbedding(sizes.entities, dim, rngs=rngs)
        words = sizes.tokens - FIRST_ENTITY - sizes.entities
        self.words = nnx.Param(jax.random.normal(rngs.params(), (words, dim)) / dim**0.5)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """[...] -> [..., D]."""
        nothing = jnp.zeros((FIRST_ENTITY, self.words.shape[1]))
        x = jnp.concatenate([nothing, self.entity.table[...], self.words[...]])[tokens]
        return jnp.where((tokens < self.first_word)[..., None], x, self.make_unknown(x))


class BiLSTMModel(nnx.Module):
    """Bidirectional LSTM over the story, pooled over its tokens (Sinha et al. 2019, 1.1): the mean
    of the states, or their mean weighted by attention that knows the asked entities."""

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.pooling = config.pooling
        self.embed = TokenEmbedding(sizes, config.embedding, config.unknown, rngs=rngs)
        width = 2 * config.hidden
        dims = [config.embedding] + [width] * (config.layers - 1)
        self.layers = nnx.List(BiLSTM(dim, config.hidden, rngs=rngs) for dim in dims)
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)
        if self.pooling == "attention":
            self.key = nnx.Linear(width, config.hidden, rngs=rngs)
            self.query = nnx.Linear(2 * width, config.hidden, use_bias=False, rngs=rngs)
            self.score = nnx.Linear(config.hidden, 1, use_bias=False, rngs=rngs)
        self.readout = Readout(
            3 * width,
            config.readout,
            sizes.relations,
            config.dropout,
            rngs=rngs,
        )

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """Relation logits [B, relations]."""
        weight, x, first, second = self._read(batch)
        return self.readout(jnp.einsum("tb,tbh->bh", weight, x), first, second)

    def _read(self, batch: TokenBatch) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """The weight of each token [T, B], its state [T, B, 2H], and the two asked people, the mean
        of their mentions [B, 2H]."""
        mask = batch.mask.T  # [T, B]
        x = self.embed(batch.tokens.T)  # [T, B, D]
        for layer in self.layers:
            x = layer(self.dropout(x), mask)  # [T, B, 2H]
        x = self.dropout(x)
        mentions = batch.mentions / jnp.maximum(batch.mentions.sum(-1, keepdims=True), 1)
        entities = jnp.einsum("bet,tbh->ebh", mentions, x)  # [2, B, 2H]
        first, second = entities
        if self.pooling == "attention":
            query = self.query(jnp.concatenate([first, second], axis=-1))  # [B, H]
            score = self.score(jnp.tanh(self.key(x) + query))[..., 0]  # [T, B]
            weight = nnx.softmax(jnp.where(mask, score, -1e9), axis=0) * mask
        else:
            weight = mask / jnp.maximum(mask.sum(axis=0), 1)
        return weight, x, first, second


class BiLSTMAttention(BiLSTMModel):
    """The one of the two poolings that can be looked at."""

    def attention(self, batch: TokenBatch) -> jax.Array:
        """The weight of each token, [B, T]."""
        return self._read(batch)[0].T
