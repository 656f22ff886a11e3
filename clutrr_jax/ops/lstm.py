"""LSTM recurrence (Hochreiter and Schmidhuber 1997) with precomputed input projections.

Shapes: T steps, G independent LSTMs, B stories, H hidden dimension.
"""

import jax
import jax.numpy as jnp

from clutrr_jax import ops


def lstm(inputs: jax.Array, weight: jax.Array, mask: jax.Array) -> jax.Array:
    """Runs G independent LSTMs in one scan.

    Args:
      inputs: [T, G, B, 4H] contribution of the inputs and the bias to the input, forget, cell and
        output gates, computed for all steps before the scan.
      weight: [G, H, 4H] from the hidden state to the gates.
      mask: [T, G, B] 0 at padding, where state and output are zero.

    Returns:
      Hidden states [T, G, B, H].
    """
    return (lstm_fast if ops.use_fast_kernels() else lstm_reference)(inputs, weight, mask)


def lstm_reference(inputs: jax.Array, weight: jax.Array, mask: jax.Array) -> jax.Array:
    """Plain version of `lstm`, differentiated by JAX."""

    def step(state, now):
        hidden, cell = state
        inputs, keep = now
        gates = inputs + jnp.einsum("gbh,ghk->gbk", hidden, weight)
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        cell *= keep[..., None]
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    zero = jnp.zeros((*inputs.shape[1:3], weight.shape[1]), inputs.dtype)
    return jax.lax.scan(step, (zero, zero), (inputs, mask))[1]


@jax.custom_vjp
def lstm_fast(inputs: jax.Array, weight: jax.Array, mask: jax.Array) -> jax.Array:
    """Version of `lstm` whose gradient of `weight` is one matrix product after the scan.

    JAX's own gradient adds to the [G, H, 4H] gradient in each of the T steps.
    """
    return _forward(inputs, weight, mask)[0]


def _forward(inputs, weight, mask):
    zero = jnp.zeros((*inputs.shape[1:3], weight.shape[1]), inputs.dtype)

    def step(state, now):
        hidden, cell = state
        inputs, keep = now
        gates = inputs + jnp.einsum("gbh,ghk->gbk", hidden, weight)
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        i, f, g, o = jax.nn.sigmoid(i), jax.nn.sigmoid(f), jnp.tanh(g), jax.nn.sigmoid(o)
        cell = (f * cell + i * g) * keep[..., None]
        hidden = o * jnp.tanh(cell)
        return (hidden, cell), (hidden, cell, jnp.concatenate([i, f, g, o], axis=-1))

    _, (hidden, cell, gates) = jax.lax.scan(step, (zero, zero), (inputs, mask))
    return hidden, (hidden, cell, gates, weight, mask)


def _backward(saved, d_hidden):
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


lstm_fast.defvjp(_forward, _backward)
