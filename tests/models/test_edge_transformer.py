"""The Edge Transformer's gradients that are written by hand, and its shorter layers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from ml_collections import ConfigDict

from clutrr_jax.data.batching import Shape, pack
from clutrr_jax.models.edge_transformer import CONFIG, EdgeTransformer, triangles
from clutrr_jax.ops.matmul import product

STORIES, PEOPLE, DIM, HEADS = 2, 4, 6, 2
REAL = jnp.arange(PEOPLE) < jnp.array([4, 3])[:, None]


def plain_triangles(left: jax.Array, right: jax.Array) -> jax.Array:
    """The definition, summed over the people z."""

    def by_head(array: jax.Array) -> jax.Array:
        return array.reshape(*array.shape[:3], HEADS, -1)

    left_key, left_value, right_key, right_value = map(
        by_head, (*jnp.split(left, 2, axis=-1), *jnp.split(right, 2, axis=-1))
    )
    score = jnp.einsum("bxzkd,bzykd->bxyzk", left_key, right_key) / (DIM / HEADS) ** 0.5
    weight = nnx.softmax(jnp.where(REAL[:, None, None, :, None], score, -jnp.inf), axis=3)
    total = jnp.einsum("bxyzk,bxzkd,bzykd->bxykd", weight, left_value, right_value)
    return total.reshape(*total.shape[:3], DIM)


def with_gradient(function, first: jax.Array, second: jax.Array, aim: jax.Array) -> tuple:
    """The function's value, and the gradients by both arguments of its product with `aim`."""

    @jax.jit
    def both(first, second):
        value, backward = jax.vjp(function, first, second)
        return value, *backward(aim)

    return both(first, second)


@pytest.mark.parametrize(("x", "y"), [(PEOPLE, PEOPLE), (1, 1), (3, 2)])
def test_triangular_attention_and_its_gradient(x: int, y: int) -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    left = jax.random.normal(keys[0], (STORIES, x, PEOPLE, 2 * DIM))
    right = jax.random.normal(keys[1], (STORIES, PEOPLE, y, 2 * DIM))
    aim = jax.random.normal(keys[2], (STORIES, x, y, DIM))
    ours = with_gradient(lambda *sides: triangles(*sides, REAL, HEADS), left, right, aim)
    for got, wanted in zip(ours, with_gradient(plain_triangles, left, right, aim), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-5)


@pytest.mark.parametrize(("dtype", "error"), [("float32", 1e-5), ("bfloat16", 0.1)])
def test_product_and_its_gradient(dtype: str, error: float) -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (STORIES, PEOPLE, DIM))
    kernel = jax.random.normal(keys[1], (DIM, 5))
    aim = jax.random.normal(keys[2], (STORIES, PEOPLE, 5))
    ours = with_gradient(lambda *pair: product(*pair, dtype), x, kernel, aim)
    for got, wanted in zip(ours, with_gradient(jnp.matmul, x, kernel, aim), strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, wanted, atol=error)


def test_the_layers_at_some_pairs_equal_the_layers_at_all(small) -> None:
    """The first, the last and the last but one compute only what the answer needs."""
    shape = Shape(stories=4, nodes=40, edges=40, people=12, facts=12)
    batch = pack(small.train_stories, jnp.array([3, 70, 20, 110]), shape)
    model = EdgeTransformer(
        ConfigDict(CONFIG | {"dim": 8, "layers": 3}), small.sizes, rngs=nnx.Rngs(0)
    )
    model.eval()

    @nnx.jit
    def at_all_pairs(model):
        size = batch.globals["people"].shape[1]
        real = jnp.arange(size) < batch.n_node[:-1, None]
        owner, place = batch.nodes["story"], batch.nodes["place"]
        kept = [jnp.ones((len(real), 1, 1, width)) for width in (8, 32, 8)]
        states = jnp.tile(model.table[-1], (len(real), size, size, 1))
        fact = (owner[batch.senders], place[batch.senders], place[batch.receivers])
        states = states.at[fact].set(model.table[batch.edges["relation"]], mode="drop")
        for _ in range(3):
            states = model.layer(*model.layer.sides(states, "float32"), real, kept, "float32")
        first, second = place[batch.globals["query"][:-1]].T
        asked = states[jnp.arange(len(real)), first, second]
        return model.out(nnx.relu(model.hidden(asked)))

    logits = nnx.jit(lambda model: model(batch))(model)
    np.testing.assert_allclose(logits, at_all_pairs(model), atol=1e-5)
