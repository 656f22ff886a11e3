"""Words as vectors, and LSTM layers that leave only the recurrence in the scan.

Shapes: B stories, T tokens, D embedding dimension, H hidden dimension.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.vocabulary import FIRST_ENTITY, UNKNOWN
from clutrr_jax.models.common import Dropout, EntityEmbedding
from clutrr_jax.ops.matmul import RoundedLinear


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

    def __init__(self, dim: int, hidden: int, products: str, *, rngs: nnx.Rngs):
        self.inputs = RoundedLinear(dim, 4 * hidden, products, rngs=rngs)
        self.bias = nnx.Param(first_bias(hidden))
        self.weight = nnx.Param(first_weight(hidden, rngs))

    def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        """[T, B, D], [T, B] -> [T, B, H], zero at padding."""
        gates = self.inputs(x) + self.bias[...]
        return lstm(gates[:, None], self.weight[...][None], mask[:, None].astype(x.dtype))[:, 0]


class BiLSTM(nnx.Module):
    """One bidirectional layer: both directions run in the same scan."""

    def __init__(self, dim: int, hidden: int, products: str, *, rngs: nnx.Rngs):
        self.inputs = RoundedLinear(dim, 8 * hidden, products, rngs=rngs)
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
        self.keep = Dropout(unknown, rngs=rngs)
        self.first_word = FIRST_ENTITY + sizes.entities
        self.entity = EntityEmbedding(sizes.entities, dim, rngs=rngs)
        words = sizes.tokens - FIRST_ENTITY - sizes.entities
        self.words = nnx.Param(jax.random.normal(rngs.params(), (words, dim)) / dim**0.5)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """[...] -> [..., D]."""
        known = (tokens < self.first_word) | (self.keep(jnp.ones(tokens.shape)) > 0)
        nothing = jnp.zeros((FIRST_ENTITY, self.words.shape[1]))
        table = jnp.concatenate([nothing, self.entity.table[...], self.words[...]])
        return table[jnp.where(known, tokens, UNKNOWN)]
