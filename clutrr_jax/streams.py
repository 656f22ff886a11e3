"""Streams of random numbers. Every stream of this package is derived here, from a seed, a purpose
and indices such as that of the epoch, so that no two streams share numbers.

Stories have streams of their own (`generator.stories.blocks`).
"""

from collections.abc import Iterable
from enum import IntEnum
from hashlib import blake2b
from typing import Any

import jax
import numpy as np


class Stream(IntEnum):
    """Purpose of a stream, with its indices. The values are above those of the generator, whose
    streams have the same derivation."""

    PARAMETERS = 100  # (): initial parameters
    DROPOUT = 101  # (epoch,)
    REDRAWN_ENTITIES = 102  # (epoch,)
    SENTENCES = 103  # (epoch,): order of the sentences
    DEV_SPLIT = 104  # (bucket,)
    STORY_ORDER = 105  # (epoch, bucket)
    BUCKET_ORDER = 106  # (epoch,)
    ENTITIES = 107  # by content
    BATCHES = 109  # (): order of `clutrr_jax.batches`
    EXAMPLES = 110  # (): solved examples of a prompt


def jax_key(stream: Stream, seed: Any, *index: Any) -> jax.Array:
    """Returns the JAX key of a stream. Seed and indices may be traced integers."""
    key = jax.random.key(seed)
    for part in (int(stream), *index):
        key = jax.random.fold_in(key, part)
    return key


def numpy_rng(stream: Stream, seed: int, *index: int) -> np.random.Generator:
    """Returns the NumPy generator of a stream."""
    # With a list as seed, trailing zeros would make no difference.
    return np.random.default_rng(np.random.SeedSequence(int(seed), spawn_key=(stream, *index)))


def content_random(stream: Stream, seed: int, contents: Iterable[bytes], count: int) -> np.ndarray:
    """Returns random numbers that depend on a content alone, uint64 [contents, count]."""
    key = f"{int(stream)} {int(seed)}".encode()
    digests = (blake2b(content, digest_size=8, key=key).digest() for content in contents)
    start = np.array([int.from_bytes(digest, "little") for digest in digests], np.uint64)
    # The generator splitmix64 (Steele et al. 2014), whose state starts at the digest.
    x = start[:, None] + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
