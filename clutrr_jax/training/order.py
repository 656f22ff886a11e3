"""Which stories a replica trains on, and in which order: drawn by NumPy, since what sorts takes
long to compile for a CPU, once for each array that is sorted."""

import math
from typing import NamedTuple

import numpy as np

from clutrr_jax.data.batching import chunk
from clutrr_jax.ops import threefry


class Split(NamedTuple):
    """Each replica's own train and dev rows, for each bucket an array [R, rows]."""

    train: list[np.ndarray]
    dev: list[np.ndarray]


def split_rows(buckets: list[np.ndarray], seeds: np.ndarray, dev: float) -> Split:
    """Every replica draws its own dev share of every bucket, so that all have the same shapes."""
    train_parts, dev_parts = [], []
    for b, rows in enumerate(buckets):
        orders = np.stack([np.random.default_rng([seed, b]).permutation(rows) for seed in seeds])
        held = int(len(rows) * dev)
        train_parts.append(orders[:, held:])
        dev_parts.append(np.sort(orders[:, :held], axis=1))
    return Split(train_parts, dev_parts)


def steps_of_epoch(
    number: int, seeds: np.ndarray, train_rows: list[np.ndarray], batch: int
) -> tuple[np.ndarray, np.ndarray]:
    """The batches of an epoch, each of one bucket.

    Args:
      number: of the epoch.
      seeds: of the replicas, [R].
      train_rows: of each bucket, [R, rows].
      batch: its stories.
    Returns:
      The rows of each step, [R, steps, B], -1 for none, and its bucket, [steps]: that is the same
      for all replicas, so that all of them run the same branch of the program.
    """
    keys = _fold_in(_keys(seeds), number)
    parts = [
        np.stack([chunk(mine, batch) for mine in permuted(_fold_in(keys, b), rows)])
        for b, rows in enumerate(train_rows)
    ]
    bucket = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    order = permuted(_keys(np.array([number])), np.arange(len(bucket))[None])[0]
    return np.concatenate(parts, axis=1)[:, order], bucket[order]


def permuted(keys: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Each row of [R, n] in a new order: `jax.random.permutation` of its key [R, 2]."""
    n = rows.shape[1]
    rounds = math.ceil(3 * math.log(max(1, n)) / math.log(2**32 - 1))
    for _ in range(rounds):
        pairs = np.stack(_threefry(keys[:, None], np.arange(2)), axis=-1)  # [R, 2 keys, 2]
        keys = pairs[:, 0]
        bits = np.bitwise_xor(*_threefry(pairs[:, 1:], np.arange(n)))
        rows = np.take_along_axis(rows, bits.argsort(axis=1, kind="stable"), axis=1)
    return rows


def _keys(seeds: np.ndarray) -> np.ndarray:
    """`jax.random.key` of each seed, [R] -> [R, 2]."""
    return np.stack([np.zeros_like(seeds), seeds], axis=1).astype(np.uint32)


def _fold_in(keys: np.ndarray, data: int) -> np.ndarray:
    """`jax.random.fold_in`, [R, 2] -> [R, 2]."""
    return np.stack(_threefry(keys, np.array([data])), axis=-1)


def _threefry(keys: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return threefry.threefry(np.moveaxis(keys, -1, 0), count.astype(np.uint32))
