"""The LSTM recurrence and its gradient equal their formulas; states are zero at padding."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import sigmoid

from clutrr_jax.models.lstm import lstm

STEPS, GROUPS, STORIES, HIDDEN = 5, 2, 3, 4
# Padding after the story, before it (a reversed story), and in its middle.
MASK = jnp.stack([
    jnp.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 1, 1, 0]]).T,
    jnp.array([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 1, 1, 0, 1]]).T,
], axis=1).astype(jnp.float32)  # [T, G, B]  # fmt: skip


KEYS = jax.random.split(jax.random.key(0), 3)
INPUTS = jax.random.normal(KEYS[0], (STEPS, GROUPS, STORIES, 4 * HIDDEN))
WEIGHT = jax.random.normal(KEYS[1], (GROUPS, HIDDEN, 4 * HIDDEN))


def by_formulas(inputs: jax.Array, weight: jax.Array) -> jax.Array:
    """Each LSTM and story by itself, one step at a time, [T, G, B, H]."""

    def of_story(inputs, mask, weight):
        h, c, found = jnp.zeros(HIDDEN), jnp.zeros(HIDDEN), []
        for t in range(STEPS):
            i, f, g, o = jnp.split(inputs[t] + h @ weight, 4)
            c = (sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)) * mask[t]
            h = sigmoid(o) * jnp.tanh(c)
            found.append(h)
        return jnp.stack(found)

    of_stories = jax.vmap(of_story, (1, 1, None), out_axes=1)
    return jax.vmap(of_stories, (1, 1, 0), out_axes=1)(inputs, MASK, weight)


def test_lstm_equals_formulas() -> None:
    found = lstm(INPUTS, WEIGHT, MASK)
    np.testing.assert_allclose(found, by_formulas(INPUTS, WEIGHT), atol=1e-6)
    assert not found[MASK == 0].any() and found[MASK == 1].all()


def test_gradient_equals_that_of_the_formulas() -> None:
    loss_weight = jax.random.normal(KEYS[2], (STEPS, GROUPS, STORIES, HIDDEN))
    found, expected = (
        jax.jit(jax.grad(lambda x, w, f=f: (f(x, w) * loss_weight).sum(), argnums=(0, 1)))(
            INPUTS, WEIGHT
        )
        for f in (lambda x, w: lstm(x, w, MASK), by_formulas)
    )
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
