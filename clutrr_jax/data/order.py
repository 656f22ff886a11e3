"""Train and dev rows of each replica, and the order of the batches of an epoch.

Drawn on the host, from the replica's seed and the epoch. R replicas, M microbatches of b stories.
"""

from typing import Any

import numpy as np

from clutrr_jax.data.batching import InputKind, chunk, plan_shapes
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.streams import Stream, numpy_rng


class TrainBatches:
    """Batches of the train stories, epoch by epoch, and of the dev stories, for the seeds [R] of
    the replicas. The number of dev batches is a multiple of `multiple`.

    Attributes:
      shapes: shape of the microbatches of each bucket.
      steps: batches of an epoch.
      train_rows: of each bucket, [R, rows].
      dev_rows: of the dev batches of each bucket, [R, C, b], -1 at padding.
      train_count, dev_count: stories of each replica.
    """

    def __init__(self, kind: InputKind, data: Prepared, train: Any, seeds: Any, multiple: int = 1):
        stories, count = data.train_stories, len(data.train)
        self.seeds, self.microbatches = seeds, train.microbatches
        # A small data set is one batch, rounded up to a multiple of the microbatches.
        size = min(train.batch, count + -count % train.microbatches) // train.microbatches
        self.batch_size = size * train.microbatches
        shapes, buckets = plan_shapes(kind, stories, size)
        self.shapes = tuple(shapes)
        self.train_rows, dev_rows = split_rows(buckets, seeds, train.dev_fraction)
        self.dev_rows = [
            np.stack([chunk(own, size, multiple) for own in bucket]) for bucket in dev_rows
        ]
        self.steps = sum(-(-rows.shape[1] // self.batch_size) for rows in self.train_rows)
        self.train_count, self.dev_count = (
            sum(rows.shape[1] for rows in of_buckets) for of_buckets in (self.train_rows, dev_rows)
        )

    def __call__(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows [R, steps, M, b] of an epoch, counted from 1, and bucket of each step [steps]."""
        rows, buckets = epoch_batches(epoch, self.seeds, self.train_rows, self.batch_size)
        return rows.reshape(*rows.shape[:2], self.microbatches, -1), buckets


def split_rows(
    buckets: list[np.ndarray], seeds: np.ndarray, dev_fraction: float
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Splits every bucket at random, for each replica in its own way but into equal sizes. Returns
    the train and the dev rows; for each bucket an array [R, rows]."""
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
    """Batches of an epoch in random order, each of stories of one bucket, given the rows [R, rows]
    of the buckets.

    Returns the rows of each batch [R, steps, batch_size], -1 at padding, and its bucket [steps],
    which is the same for all replicas, so that all of them run the same branch of the program.
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
