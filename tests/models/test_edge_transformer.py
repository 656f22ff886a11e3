"""The equation of the attention of the Edge Transformer."""

import jax
import jax.numpy as jnp
import numpy as np

from clutrr_jax.models.edge_transformer import triangular_attention


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
