"""Matrix products whose inputs may be rounded to bfloat16."""

from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx


class RoundedLinear(nnx.Module):
    """A linear layer without bias whose products are rounded in training alone."""

    def __init__(self, dim: int, out: int, products: str, *, rngs: nnx.Rngs):
        self.kernel = nnx.Param(nnx.initializers.lecun_normal()(rngs.params(), (dim, out)))
        self.products = products
        self.deterministic = False  # `nnx.Module.eval` sets it

    def __call__(self, x: jax.Array) -> jax.Array:
        """[..., dim] -> float32 [..., out]."""
        return product(x, self.kernel[...], "float32" if self.deterministic else self.products)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def product(x: jax.Array, kernel: jax.Array, dtype: str) -> jax.Array:
    """[..., I] x [I, O] -> float32 [..., O]. The inputs are rounded to `dtype`, those of the
    gradient's products too; sums are float32. A CPU with bfloat16 is twice as fast with it, but
    only if all of its products give float32."""
    return _dot(x, kernel, ((x.ndim - 1,), (0,)), dtype)


def _dot(a: jax.Array, b: jax.Array, over: tuple, dtype: str) -> jax.Array:
    return jax.lax.dot_general(
        a.astype(dtype), b.astype(dtype), (over, ((), ())), preferred_element_type=jnp.float32
    )


def _product_forward(x, kernel, dtype):
    return product(x, kernel, dtype), (x.astype(dtype), kernel)


def _product_backward(dtype, saved, gradient):
    x, kernel = saved
    rows = tuple(range(x.ndim - 1))
    return (
        _dot(gradient, kernel, ((x.ndim - 1,), (1,)), dtype),
        _dot(x, gradient, (rows, rows), dtype),
    )


product.defvjp(_product_forward, _product_backward)
