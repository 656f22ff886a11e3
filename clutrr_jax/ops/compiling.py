"""What makes a program quick to compile on a CPU."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata


def outlined(function: Callable[..., Any], static: tuple[int, ...] = ()) -> Callable[..., Any]:
    """`function` as a part of a program that XLA compiles by itself.

    What `jax.jit` calls within a program XLA copies to each of its calls and fuses with what
    stands there, so that every copy has kernels of its own. Here a call stays a call, and its
    kernels are compiled once for all of them. On an accelerator, where a fusion saves more than a
    call, it is `jax.jit`.

    Args:
      function: takes and gives arrays, and trees of them.
      static: the places of arguments that are no arrays.
    """

    def body(*args):
        # Not for the functions of JAX that it calls in turn, such as `jnp.where`.
        with set_xla_metadata(inlineable=None):
            return function(*args)

    part = jax.jit(wraps(function)(body), static_argnums=static)

    @wraps(function)
    def call(*args):
        if jax.default_backend() != "cpu":
            return part(*args)
        # XLA would copy a constant into the part that it is given to, which then is another one.
        fixed = [x if i in static else jax.lax.optimization_barrier(x) for i, x in enumerate(args)]
        with set_xla_metadata(inlineable="false"):
            return part(*fixed)

    return call
