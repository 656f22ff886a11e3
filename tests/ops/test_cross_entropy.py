"""The loss, and its exponential, are those of optax and JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from clutrr_jax.models.common import cross_entropy, exp

RELATIONS = 7
STORIES = 5
LOGITS = arrays(np.float32, (STORIES, RELATIONS), elements=st.floats(-200, 200, width=32))
TARGETS = arrays(np.int32, STORIES, elements=st.integers(0, RELATIONS - 1))


def loss_and_gradient(losses, logits, target):
    weight = jnp.arange(1.0, len(target) + 1)
    return jax.value_and_grad(lambda logits: (losses(logits, target) * weight).sum())(logits)


@given(LOGITS, TARGETS)
def test_it_is_that_of_optax_and_so_is_its_gradient(logits: np.ndarray, target: np.ndarray) -> None:
    found = loss_and_gradient(cross_entropy, logits, target)
    right = loss_and_gradient(optax.softmax_cross_entropy_with_integer_labels, logits, target)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-6), found, right)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_no_number_gives_no_number(wrong: float) -> None:
    logits = jnp.zeros((2, RELATIONS)).at[0, 3].set(wrong)
    losses = cross_entropy(logits, jnp.array([1, 1]))
    assert not np.isfinite(losses[0])
    assert losses[1] == pytest.approx(np.log(RELATIONS))


def test_the_exponential_is_that_of_jax_and_so_is_its_gradient() -> None:
    x = jnp.linspace(-30, 30, 42).reshape(2, 3, 7)
    np.testing.assert_allclose(jax.jit(exp)(x), jnp.exp(x), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: exp(x).sum())(x), jnp.exp(x), rtol=1e-6)
