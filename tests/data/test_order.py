"""Laws of the split into train and dev rows, and of the order of batches."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clutrr_jax.data.order import epoch_batches, split_rows

SEEDS = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=3, unique=True).map(np.array)


def test_every_replica_splits_all_rows_in_its_own_way() -> None:
    buckets = [np.arange(50), np.arange(50, 83)]
    train, dev = split_rows(buckets, np.array([0, 1]), dev_fraction=0.2)
    for b, rows in enumerate(buckets):
        for r in range(2):
            both = np.concatenate([train[b][r], dev[b][r]])
            assert sorted(both.tolist()) == rows.tolist()
        assert dev[b].shape == (2, int(len(rows) * 0.2))
        assert set(dev[b][0]) != set(dev[b][1])


@given(st.integers(1, 10_000), SEEDS, st.lists(st.integers(1, 40), min_size=1), st.integers(1, 16))
def test_an_epoch_has_every_row_once_in_batches_of_one_bucket(
    epoch: int, seeds: np.ndarray, sizes: list[int], batch_size: int
) -> None:
    ends = np.cumsum(sizes)
    buckets = [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    train_rows = [np.tile(rows, (len(seeds), 1)) for rows in buckets]
    rows, bucket = epoch_batches(epoch, seeds, train_rows, batch_size)
    steps = sum(-(-size // batch_size) for size in sizes)
    assert rows.shape == (len(seeds), steps, batch_size)
    for own in rows:
        for b, expected in enumerate(buckets):
            found = own[bucket == b]
            assert sorted(found[found >= 0].tolist()) == expected.tolist()
    alone, same = epoch_batches(epoch, seeds[-1:], [r[-1:] for r in train_rows], batch_size)
    np.testing.assert_array_equal(alone[0], rows[-1])  # depends on the replica's own seed only
    np.testing.assert_array_equal(same, bucket)


def test_epochs_and_replicas_differ() -> None:
    rows = [np.tile(np.arange(500), (2, 1))]
    orders = [epoch_batches(epoch, np.array([3, 4]), rows, 10)[0] for epoch in (1, 2)]
    different = np.concatenate(orders).reshape(4, -1)
    assert len(np.unique(different, axis=0)) == 4
