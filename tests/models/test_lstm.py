"""The LSTM recurrence equals its formulas and is zero at padding."""

import jax
import jax.numpy as jnp
import numpy as np

from clutrr_jax.models.lstm import lstm

STEPS, GROUPS, STORIES, HIDDEN = 5, 2, 3, 4
# Padding after the story, before it (a reversed story), and in its middle.
MASK = jnp.stack([
    jnp.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 1, 1, 0]]).T,
    jnp.array([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 1, 1, 0, 1]]).T,
], axis=1).astype(jnp.float32)  # [T, G, B]  # fmt: skip


def test_lstm_equals_formulas() -> None:
    """Each LSTM and story by itself, one step at a time. States are zero at padding."""

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    keys = jax.random.split(jax.random.key(0))
    inputs = jax.random.normal(keys[0], (STEPS, GROUPS, STORIES, 4 * HIDDEN))
    weight = jax.random.normal(keys[1], (GROUPS, HIDDEN, 4 * HIDDEN))
    found = lstm(inputs, weight, MASK)
    inputs, weight = np.asarray(inputs), np.asarray(weight)
    for group in range(GROUPS):
        for story in range(STORIES):
            h = c = np.zeros(HIDDEN)
            for t in range(STEPS):
                gates = inputs[t, group, story] + h @ weight[group]
                i, f, g, o = np.split(gates, 4)
                c = (sigmoid(f) * c + sigmoid(i) * np.tanh(g)) * MASK[t, group, story]
                h = sigmoid(o) * np.tanh(c)
                np.testing.assert_allclose(found[t, group, story], h, atol=1e-5)
    assert not found[MASK == 0].any()
