"""Train and dev rows of each replica, and the order of the batches of an epoch.

Drawn on the host, from the replica's seed and the epoch.
"""

import numpy as np

from clutrr_jax.data.batching import chunk
from clutrr_jax.streams import Stream, numpy_rng


def split_rows(
    buckets: list[np.ndarray], seeds: np.ndarray, dev_fraction: float
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Splits every bucket at random, for each replica in its own way but into equal sizes.

    Returns:
      Train and dev rows; for each bucket an array [R, rows].
    """
    train, dev = [], []
    for b, rows in enumerate(buckets):
        orders = np.stack(
            [numpy_rng(Stream.DEV_SPLIT, seed, b).permutation(rows) for seed in seeds]
        )
        held = int(len(rows) * dev_fraction)
        train.append(orders[:, held:])
        dev.append(np.sort(orders[:, :held], axis=1))
    return train, dev


def epoch_batches(
    epoch: int, seeds: np.ndarray, train_rows: list[np.ndarray], batch_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Batches of an epoch in random order, each of stories of one bucket.

    Args:
      epoch: counted from 1.
      seeds: [R] of the replicas.
      train_rows: rows of each bucket, [R, rows].
      batch_size: stories of a batch.

    Returns:
      Rows of each batch [R, steps, batch_size], -1 at padding, and its bucket [steps], which is the
      same for all replicas, so that all of them run the same branch of the program.
    """
    batches = [
        np.stack([
            chunk(numpy_rng(Stream.STORY_ORDER, seed, epoch, b).permutation(rows), batch_size)
            for seed, rows in zip(seeds, of_bucket, strict=True)
        ])
        for b, of_bucket in enumerate(train_rows)
    ]  # fmt: skip
    bucket = np.repeat(np.arange(len(batches)), [b.shape[1] for b in batches]).astype(np.int32)
    order = numpy_rng(Stream.BUCKET_ORDER, 0, epoch).permutation(len(bucket))
    return np.concatenate(batches, axis=1)[:, order], bucket[order]
