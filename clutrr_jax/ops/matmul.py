"""Matrix products whose inputs may be rounded to bfloat16."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

# To what the inputs of a product may be rounded in training; not where a model is tested.
PRODUCTS = ("float32", "bfloat16")


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


def _dot(a: jax.Array, b: jax.Array, over: tuple, dtype: str, batch: tuple = ((), ())) -> jax.Array:
    return jax.lax.dot_general(
        a.astype(dtype), b.astype(dtype), (over, batch), preferred_element_type=jnp.float32
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


def rounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of arrays, all of its matrix products with inputs rounded to bfloat16 and
    sums in float32, those within loops, branches and calls too. What JAX itself offers for it,
    `jax.default_matmul_precision`, does nothing on a CPU.

    It is meant for a function that is not differentiated any more, such as a gradient.
    """

    def call(*args: Any) -> Any:
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
        leaves = _run_rounded(closed, *jax.tree.leaves(args))
        return jax.tree.unflatten(jax.tree.structure(shape), leaves)

    return call


def _run_rounded(traced: ClosedJaxpr, *args: jax.Array) -> list[jax.Array]:
    """Step by step what was traced; calls are run in place, the insides of loops replaced."""
    steps = traced.jaxpr
    values = dict(zip([*steps.constvars, *steps.invars], [*traced.consts, *args], strict=True))

    def read(name: Any) -> Any:
        return name.val if isinstance(name, Literal) else values[name]

    for step in steps.eqns:
        inputs, params = [read(name) for name in step.invars], step.params
        inner = params.get("jaxpr" if step.primitive.name == "jit" else "call_jaxpr")
        if step.primitive.name == "dot_general" and inputs[0].dtype == jnp.float32:
            over, batch = params["dimension_numbers"]
            out: Any = _dot(inputs[0], inputs[1], over, "bfloat16", batch)
        elif isinstance(inner, ClosedJaxpr):
            out = _run_rounded(inner, *inputs)
        else:
            params = {name: _round_inside(value) for name, value in params.items()}
            out = step.primitive.bind(*inputs, **params)
        several = isinstance(out, (list, tuple))
        values.update(zip(step.outvars, out if several else [out], strict=True))
    return [read(name) for name in steps.outvars]


def _round_inside(value: Any) -> Any:
    """A parameter of a loop or a branch; what it runs is traced anew, rounded."""
    if isinstance(value, ClosedJaxpr):
        return jax.make_jaxpr(partial(_run_rounded, value))(*value.in_avals)
    if isinstance(value, Jaxpr):  # of `jax.checkpoint`, which hands everything in
        inside = _round_inside(ClosedJaxpr(value, ()))
        assert not inside.consts
        return inside.jaxpr
    if type(value) is tuple:
        return tuple(_round_inside(part) for part in value)
    return value
