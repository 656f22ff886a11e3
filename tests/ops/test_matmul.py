"""Matrix products whose inputs are rounded to bfloat16."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

from clutrr_jax.ops.matmul import rounded
from clutrr_jax.training.replicas import Replicas
from generator.errors import InputError
from tests.training.test_steps import leaves, programs_for


def recurrent(weight, x):
    """With a loop, a branch, a call and a derivative given by hand, as in the models."""

    def step(h, now):
        return jax.nn.relu(jnp.tanh(h @ weight) + now), h.sum()

    h, _ = jax.lax.scan(step, jnp.zeros_like(x[0]), x)
    h = jax.checkpoint(lambda h: jnp.tanh(h @ weight) @ weight)(h)
    h = jax.lax.cond(h.sum() > 0, lambda h: h @ weight, lambda h: (h @ weight) @ weight, h)
    return jnp.einsum("bi,bi->b", h, jax.jit(jnp.matmul)(h, weight)).sum()


def inputs_of_products(steps) -> set[str]:
    found = set()
    for step in steps.eqns:
        if step.primitive.name == "dot_general":
            found |= {str(x.aval.dtype) for x in step.invars}
        for inner in jaxprs_in_params(step.params):
            found |= inputs_of_products(inner)
    return found


def test_all_products_are_rounded_and_nothing_else() -> None:
    weight = 0.3 * jax.random.normal(jax.random.key(0), (16, 16))
    x = jax.random.normal(jax.random.key(1), (5, 8, 16))
    gradient = jax.grad(recurrent, argnums=(0, 1))
    assert inputs_of_products(jax.make_jaxpr(gradient)(weight, x).jaxpr) == {"float32"}
    traced = jax.make_jaxpr(rounded(gradient))(weight, x)
    assert inputs_of_products(traced.jaxpr) == {"bfloat16"}
    exact, near = gradient(weight, x), jax.jit(rounded(gradient))(weight, x)
    for a, b in zip(exact, near, strict=True):
        assert b.dtype == jnp.float32
        assert 0 < np.abs(a - b).max() < 0.02 * np.abs(a).max()


def test_a_product_is_that_of_rounded_inputs() -> None:
    a, b = jax.random.normal(jax.random.key(0), (2, 3, 4, 5))
    b = b.swapaxes(1, 2)
    expected = a.astype(jnp.bfloat16).astype(jnp.float32) @ b.astype(jnp.bfloat16).astype(
        jnp.float32
    )
    np.testing.assert_allclose(rounded(jnp.matmul)(a, b), expected, rtol=1e-6)


def test_a_model_trains_with_rounded_products(small) -> None:
    """Nearly as with exact ones, and what it makes of a story is computed exactly."""
    losses, states = [], []
    for products in ("float32", "bfloat16"):
        programs = programs_for("gat", small, Replicas(1), products=products)
        state, metrics = programs.epoch(programs.init(), 1)
        states.append(state)
        losses.append(float(metrics.loss[0]))
        answers = programs.predict(state.params, state.other, small.test_stories)
        if products == "float32":
            exact = programs
    assert 0 < abs(losses[0] - losses[1]) < 0.01
    again = exact.predict(states[1].params, states[1].other, small.test_stories)
    for a, b in zip(leaves(answers), leaves(again), strict=True):
        np.testing.assert_array_equal(a, b)


def test_other_products_are_refused(small) -> None:
    with pytest.raises(InputError, match=r'train.products "float16": expected one of float32'):
        programs_for("gat", small, Replicas(1), products="float16")
