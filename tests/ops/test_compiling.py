"""Parts of a program that are compiled by themselves."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from clutrr_jax.ops.compiling import outlined


def twice(x: jax.Array, weight: jax.Array, power: int, shift: int | jax.Array) -> jax.Array:
    return jnp.where(x > 0, jnp.tanh(x @ weight), x - shift) ** power


def story(step, x, weight):
    for shift in range(4):
        x = step(x, weight, 3, shift)
    return x.sum()


def test_it_computes_what_the_function_does_and_so_does_its_gradient() -> None:
    x, weight = jnp.linspace(-1, 1, 12).reshape(3, 4), jnp.linspace(-2, 3, 16).reshape(4, 4)
    part = partial(outlined, static=(2,))(twice)
    found, right = (
        jax.jit(jax.value_and_grad(partial(story, step), (0, 1)))(x, weight)
        for step in (part, twice)
    )
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5), found, right)
    several = jax.jit(jax.vmap(partial(story, part), (0, None)))(jnp.stack([x, 2 * x]), weight)
    np.testing.assert_allclose(several, [story(twice, x, weight), story(twice, 2 * x, weight)])


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="on an accelerator it is jax.jit")
def test_its_calls_stay_calls_of_one_part() -> None:
    """The same one even where it is given constants, of which 0 would make it simpler."""
    args = jnp.ones((3, 4)), jnp.ones((4, 4))
    part, whole = (
        jax.jit(partial(story, step)).lower(*args).compile().as_text()
        for step in (partial(outlined, static=(2,))(twice), jax.jit(twice, static_argnums=2))
    )
    assert part.count(" call(") == 4 and whole.count(" call(") == 0
    bodies = dict(re.findall(r"^%(\S+) [^\n]*\{\n(.*?)^\}", part, re.MULTILINE | re.DOTALL))

    def kernels(name: str) -> str:
        """What a function computes, without the names in it."""
        body = re.sub(r", metadata=.*", "", bodies[name])
        body = re.sub(r"calls=%([\w.-]+)", lambda match: kernels(match[1]), body)
        return re.sub(r"%[\w.-]+", "", body)

    calls = [name for name in bodies if name.startswith("twice")]
    assert len(calls) == 4 and len(set(map(kernels, calls))) == 1
