"""Matrix product of inputs cast to a lower precision, with sums in float32."""

from functools import partial

import jax
import jax.numpy as jnp


def matmul(x: jax.Array, kernel: jax.Array, dtype: str) -> jax.Array:
    """Matrix product [..., I] x [I, O] -> float32 [..., O].

    Args:
      x: [..., I].
      kernel: [I, O].
      dtype: float32 or bfloat16, to which both are cast.
    """
    return (matmul_fast if use_fast_matmul() else matmul_reference)(x, kernel, dtype)


def use_fast_matmul() -> bool:
    """Returns whether the hand-written version runs, which is on CPUs only."""
    return jax.default_backend() == "cpu"


def matmul_reference(x: jax.Array, kernel: jax.Array, dtype: str) -> jax.Array:
    """Plain version of `matmul`, differentiated by JAX."""
    return jnp.matmul(x.astype(dtype), kernel.astype(dtype), preferred_element_type=jnp.float32)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def matmul_fast(x: jax.Array, kernel: jax.Array, dtype: str) -> jax.Array:
    """Version of `matmul` that also casts the gradient.

    JAX's own gradient multiplies float32 by bfloat16, which a CPU does not do in bfloat16.
    """
    return _dot(x, kernel, ((x.ndim - 1,), (0,)), dtype)


def _dot(a: jax.Array, b: jax.Array, contracting: tuple, dtype: str) -> jax.Array:
    return jax.lax.dot_general(
        a.astype(dtype),
        b.astype(dtype),
        (contracting, ((), ())),
        preferred_element_type=jnp.float32,
    )


def _forward(x, kernel, dtype):
    return matmul_fast(x, kernel, dtype), (x.astype(dtype), kernel)


def _backward(dtype, saved, gradient):
    x, kernel = saved
    rows = tuple(range(x.ndim - 1))
    return (
        _dot(gradient, kernel, ((x.ndim - 1,), (1,)), dtype),
        _dot(x, gradient, (rows, rows), dtype),
    )


matmul_fast.defvjp(_forward, _backward)
