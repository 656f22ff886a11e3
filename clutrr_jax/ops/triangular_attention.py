"""Triangular attention (Bergen et al. 2021, equation 2): a pair (x, y) attends over third people z.

Shapes: B stories, X and Y people whose pairs are updated, P people, D state dimension, K heads.
"""

from functools import partial

import jax
import jax.numpy as jnp

from clutrr_jax import ops


def triangular_attention(
    left: jax.Array, right: jax.Array, is_person: jax.Array, heads: int
) -> jax.Array:
    """Attention of the pairs (x, y) over the people z, [B, X, Y, D].

    The dot product of the keys of (x, z) and (z, y) scores z; the elementwise product of their
    values is what z contributes.

    Args:
      left: [B, X, P, 2 D] keys and values of (x, z).
      right: [B, P, Y, 2 D] keys and values of (z, y).
      is_person: [B, P] False at padding.
      heads: number of heads K, each over its own D / K features.
    """
    fast = ops.use_fast_kernels()
    function = triangular_attention_fast if fast else triangular_attention_reference
    return function(left, right, is_person, heads)


def triangular_attention_reference(left, right, is_person, heads: int) -> jax.Array:
    """Plain version of `triangular_attention`, differentiated by JAX."""

    def split(sides: jax.Array) -> tuple[jax.Array, jax.Array]:
        """[B, P, P, 2 D] -> keys and values, [B, P, P, K, D / K] each."""
        key, value = jnp.split(sides, 2, axis=-1)
        shape = (*key.shape[:-1], heads, -1)
        return key.reshape(shape), value.reshape(shape)

    (left_key, left_value), (right_key, right_value) = split(left), split(right)
    score = jnp.einsum("bxzkd,bzykd->bxyzk", left_key, right_key) / left_key.shape[-1] ** 0.5
    weight = jax.nn.softmax(jnp.where(is_person[:, None, None, :, None], score, -1e9), axis=3)
    out = jnp.einsum("bxyzk,bxzkd,bzykd->bxykd", weight, left_value, right_value)
    return out.reshape(*out.shape[:3], -1)


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def triangular_attention_fast(left, right, is_person, heads: int) -> jax.Array:
    """Version of `triangular_attention` that loops over z, with a gradient written by hand.

    It never builds an array over (x, y, z) and features. The sums over people that JAX's own
    gradient contains are many times slower on a CPU than sums of slices.
    """
    return _forward(left, right, is_person, heads)[0]


def _forward(left, right, is_person, heads):
    left_key, left_value = jnp.split(left, 2, axis=-1)
    right_key, right_value = jnp.split(right, 2, axis=-1)
    head = _head_matrix(left_key.shape[-1], heads)
    people = range(left.shape[2])
    score = jnp.stack([_product(left_key, right_key, z) @ head for z in people])  # [P, B, X, Y, K]
    score *= (heads / len(head)) ** 0.5
    weight = jax.nn.softmax(jnp.where(is_person.T[:, :, None, None, None], score, -1e9), axis=0)
    total = sum(weight[z] @ head.T * _product(left_value, right_value, z) for z in people)
    return total, (left, right, weight)


def _backward(heads, saved, gradient):
    left, right, weight = saved
    left_key, left_value = jnp.split(left, 2, axis=-1)
    right_key, right_value = jnp.split(right, 2, axis=-1)
    head = _head_matrix(left_key.shape[-1], heads)
    people = range(left.shape[2])
    d_weight = jnp.stack(
        [gradient * _product(left_value, right_value, z) @ head for z in people]
    )  # [P, B, X, Y, K]
    d_score = weight * (d_weight - (weight * d_weight).sum(axis=0))
    d_score *= (heads / len(head)) ** 0.5

    d_left, d_right = [], []
    for z in people:
        key, value = d_score[z] @ head.T, gradient * (weight[z] @ head.T)  # [B, X, Y, D]
        over_y = [
            sum(part[:, :, y] * other[:, z, y, None] for y in range(gradient.shape[2]))
            for part, other in ((key, right_key), (value, right_value))
        ]
        over_x = [
            sum(part[:, x] * other[:, x, z, None] for x in range(gradient.shape[1]))
            for part, other in ((key, left_key), (value, left_value))
        ]
        d_left.append(jnp.concatenate(over_y, axis=-1))  # [B, X, 2 D]
        d_right.append(jnp.concatenate(over_x, axis=-1))  # [B, Y, 2 D]
    return jnp.stack(d_left, axis=2), jnp.stack(d_right, axis=1), None


triangular_attention_fast.defvjp(_forward, _backward)


def _product(left: jax.Array, right: jax.Array, z: int) -> jax.Array:
    """Elementwise product of the sides (x, z) and (z, y), [B, X, Y, D]."""
    return left[:, :, z, None] * right[:, z, None]


def _head_matrix(dim: int, heads: int) -> jax.Array:
    """[D, K] one-hot head of each feature: sums features by head, or repeats a weight over them."""
    return jnp.repeat(jnp.eye(heads), dim // heads, axis=0)
