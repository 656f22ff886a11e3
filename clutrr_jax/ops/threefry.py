"""The random numbers of `jax.random`, by kernels that a CPU compiles sooner.

On a CPU JAX computes the 20 rounds of Threefry (Salmon et al. 2011) as a loop of some eight
kernels for each use; here they are one kernel. The numbers are the same.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl

from clutrr_jax.ops.compiling import outlined

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))  # Salmon et al. 2011, table 4
_PARITY = 0x1BD11BDA


def key(seed: int | jax.Array) -> jax.Array:
    """`jax.random.key`, the same one, of a seed from 0 to 2^31 - 1."""
    return jax.random.key(seed, impl=_implementation())


def _implementation() -> Any:
    return _IN_ONE_KERNEL if jax.default_backend() == "cpu" else "threefry2x32"


def is_key(x: jax.Array) -> bool:
    return jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)


def numbers(x: jax.Array) -> jax.Array:
    """Keys as what can be saved and sent; anything else as it is."""
    return jax.random.key_data(x) if is_key(x) else x


def like(template: jax.Array, x: jax.Array) -> jax.Array:
    """The inverse of `numbers`, for arrays of the template's kind."""
    return jax.random.wrap_key_data(x, impl=_implementation()) if is_key(template) else x


def threefry(key: Any, count: Any) -> tuple[Any, Any]:
    """Threefry-2x32 of the counters (0, count), with the two numbers of the key; all of them
    uint32, of JAX or of NumPy."""
    keys = [key[0], key[1], key[0] ^ key[1] ^ np.uint32(_PARITY)]
    x, y = keys[0], count + keys[1]
    for group in range(1, 6):
        for rotation in _ROTATIONS[(group - 1) % 2]:
            x = x + y
            y = x ^ (y << rotation | y >> 32 - rotation)
        x = x + keys[group % 3]
        y = y + (keys[(group + 1) % 3] + np.uint32(group))
    return x, y


def _counters(shape: tuple[int, ...]) -> jax.Array:
    return jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)


def _seed(seed: jax.Array) -> jax.Array:
    return jnp.stack([jnp.uint32(0), seed.astype(jnp.uint32)])


@outlined
def _fold_in(key: jax.Array, data: jax.Array) -> jax.Array:
    return jnp.stack(threefry(key, data.astype(jnp.uint32)))


@partial(outlined, static=(1,))
def _split(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    return jnp.stack(threefry(key, _counters(shape)), axis=-1)


@partial(outlined, static=(1, 2))
def _random_bits(key: jax.Array, bits: int, shape: tuple[int, ...]) -> jax.Array:
    x, y = threefry(key, _counters(shape))
    return (x ^ y).astype(f"uint{bits}")


_IN_ONE_KERNEL = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="threefry2x32 in one kernel",
    tag="fry",
)
