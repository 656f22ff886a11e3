"""Laws of the Edge Transformer: its last layers, the equation of its attention."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from clutrr_jax.data.batching import Shape, pack
from clutrr_jax.models.edge_transformer import EdgeTransformer, triangular_attention
from tests.models.small import small_config


@pytest.mark.parametrize("layers", [2, 3])
def test_restricted_layers_equal_layers_at_all_pairs(small, layers: int) -> None:
    batch = pack(small.train_stories, jnp.array([3, 110]), Shape(2, 12, 12, people=6, facts=4))
    config = small_config("edge_transformer", layers=layers)
    model = EdgeTransformer(config, small.sizes, rngs=nnx.Rngs(0))
    model.eval()

    @nnx.jit
    def at_all_pairs(model):
        size = batch.globals["people"].shape[1]
        is_person = jnp.arange(size) < batch.n_node[:-1, None]
        owner, position = batch.nodes["story"], batch.nodes["position"]
        states = jnp.tile(model.table[-1], (2, size, size, 1))
        fact = owner[batch.senders], position[batch.senders], position[batch.receivers]
        states = states.at[fact].set(model.table[batch.edges["relation"]], mode="drop")
        no_dropout = [jnp.ones(())] * 3
        for _ in range(layers):
            states = model.layer(*model.layer.sides(states), is_person, no_dropout)
        first, second = position[batch.globals["query"][:-1]].T
        query = states[jnp.arange(2), first, second]
        return model.out(nnx.relu(model.hidden(query)))

    logits = nnx.jit(lambda model: model(batch))(model)
    np.testing.assert_allclose(logits, at_all_pairs(model), atol=1e-5)


def test_triangular_attention_equals_formulas() -> None:
    """Bergen et al. 2021, equation 2, for one pair of each story and head."""
    sizes, heads, dim = (4, 3), 2, 3  # people of each story, dimension of a head
    is_person = jnp.arange(4) < jnp.array(sizes)[:, None]
    left, right = (
        jax.random.normal(key, (2, 4, 4, 2 * heads * dim))
        for key in jax.random.split(jax.random.key(0))
    )
    found = triangular_attention(left, right, is_person, heads)
    x, y = 1, 2
    for story, people in enumerate(sizes):
        for head in range(heads):
            features = slice(head * dim, (head + 1) * dim)
            (key_xz, value_xz), (key_zy, value_zy) = (
                [part[:people, features] for part in np.split(np.asarray(side), 2, axis=-1)]
                for side in (left[story, x], right[story, :, y])
            )
            weight = np.exp((key_xz * key_zy).sum(axis=-1) / dim**0.5)
            expected = (weight / weight.sum()) @ (value_xz * value_zy)
            np.testing.assert_allclose(found[story, x, y, features], expected, atol=1e-5)
