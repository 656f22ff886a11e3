"""The random numbers are those of `jax.random`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutrr_jax.ops import threefry

DRAWS = {
    "bits of 8": lambda key: jax.random.bits(key, (3, 5), "uint8"),
    "bits of 16": lambda key: jax.random.bits(key, (7,), "uint16"),
    "bits of 32": lambda key: jax.random.bits(key, (2, 3, 4)),
    "one": jax.random.normal,
    "none": lambda key: jax.random.uniform(key, (0,)),
    "uniform": lambda key: jax.random.uniform(key, (100,)),
    "normal": lambda key: jax.random.normal(key, (4, 9)),
    "permutation": lambda key: jax.random.permutation(key, 2000),
    "keys": lambda key: jax.random.key_data(jax.random.split(key, (2, 3))),
    "each of many": lambda key: jax.vmap(jax.random.uniform)(jax.random.split(key, 6)),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@given(seed=st.integers(0, 2**31 - 1), data=st.integers(0, 2**32 - 1))
def test_they_are_those_of_jax(draw, seed: int, data: int) -> None:
    def drawn(make):
        key = make(seed)
        return draw(key), draw(jax.random.fold_in(key, jnp.uint32(data)))

    for mine, right in zip(drawn(threefry.key), drawn(jax.random.key), strict=True):
        np.testing.assert_array_equal(mine, right)


def test_keys_are_saved_as_numbers() -> None:
    tree = {"key": threefry.key(5), "keys": jax.random.split(threefry.key(3), 4), "x": jnp.ones(2)}
    saved = jax.tree.map(lambda x: np.asarray(threefry.numbers(x)), tree)
    again = jax.tree.map(threefry.like, tree, saved)
    assert [threefry.is_key(x) for x in jax.tree.leaves(again)] == [True, True, False]
    np.testing.assert_array_equal(again["x"], tree["x"])
    for name in ("key", "keys"):
        assert again[name].dtype == tree[name].dtype
        np.testing.assert_array_equal(*(jax.random.key_data(t[name]) for t in (again, tree)))
