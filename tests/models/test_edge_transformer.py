"""The Edge Transformer computes its last layers only where the answer needs them."""

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from clutrr_jax.data.batching import Shape, pack
from clutrr_jax.models.edge_transformer import EdgeTransformer
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
