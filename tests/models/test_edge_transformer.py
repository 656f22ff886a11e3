"""Known answers of the Edge Transformer: its attention, and its states of several facts."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.records import UNSTATED
from clutrr_jax.models.edge_transformer import EdgeTransformer, triangular_attention
from tests.models.graphs import graphs
from tests.models.small import small_config


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


def test_facts_about_the_same_pair() -> None:
    """Known facts are averaged, one that is not stated counts only if it is the only one."""
    sizes = Sizes(entities=20, tokens=0)
    model = EdgeTransformer(small_config("edge_transformer"), sizes, rngs=nnx.Rngs(0))
    facts = [(0, 4, 1), (0, UNSTATED, 1), (0, 7, 1), (0, 4, 1), (1, UNSTATED, 0), (2, 5, 1)]
    table, states = np.asarray(model.table[...]), model.states(graphs([facts], [(0, 2)], 3))[0]
    no_fact = table[UNSTATED + 1]
    expected = [
        [no_fact, (2 * table[4] + table[7]) / 3, no_fact],
        [table[UNSTATED], no_fact, no_fact],
        [no_fact, table[5], no_fact],
    ]
    np.testing.assert_allclose(states, expected, rtol=1e-6, atol=1e-7)
