"""Triangular attention: formulas, plain version and hand-written version agree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from clutrr_jax.ops.triangular_attention import (
    triangular_attention_fast,
    triangular_attention_reference,
)

STORIES, PEOPLE, DIM, HEADS = 2, 4, 6, 2
IS_PERSON = jnp.arange(PEOPLE) < jnp.array([4, 3])[:, None]


def sides(x: int, y: int) -> tuple[jax.Array, jax.Array]:
    keys = jax.random.split(jax.random.key(0))
    left = jax.random.normal(keys[0], (STORIES, x, PEOPLE, 2 * DIM))
    return left, jax.random.normal(keys[1], (STORIES, PEOPLE, y, 2 * DIM))


@pytest.mark.parametrize(("x", "y"), [(PEOPLE, PEOPLE), (1, 1), (3, 2)])
def test_fast_version_equals_reference(x: int, y: int) -> None:
    """Values and gradients."""
    direction = jax.random.normal(jax.random.key(1), (STORIES, x, y, DIM))

    def value_and_gradients(function):
        value, backward = jax.vjp(lambda *args: function(*args, IS_PERSON, HEADS), *sides(x, y))
        return value, *backward(direction)

    found = value_and_gradients(triangular_attention_fast)
    for a, b in zip(found, value_and_gradients(triangular_attention_reference), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_reference_equals_formulas() -> None:
    """Bergen et al. 2021, equation 2, for one pair of each story and head."""
    left, right = sides(PEOPLE, PEOPLE)
    found = triangular_attention_reference(left, right, IS_PERSON, HEADS)
    x, y, size = 1, 2, DIM // HEADS
    for story, people in enumerate((4, 3)):
        for head in range(HEADS):
            features = slice(head * size, (head + 1) * size)
            (key_xz, value_xz), (key_zy, value_zy) = (
                [part[:people, features] for part in np.split(np.asarray(side), 2, axis=-1)]
                for side in (left[story, x], right[story, :, y])
            )
            weight = np.exp((key_xz * key_zy).sum(axis=-1) / size**0.5)
            expected = (weight / weight.sum()) @ (value_xz * value_zy)
            np.testing.assert_allclose(found[story, x, y, features], expected, atol=1e-5)
