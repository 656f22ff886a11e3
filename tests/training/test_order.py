"""Which stories are trained on, and in which order."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutrr_jax.training.order import permuted, split_rows, steps_of_epoch

SEEDS = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=3, unique=True).map(np.array)


def test_every_replica_splits_all_rows_its_own_way() -> None:
    buckets = [np.arange(50), np.arange(50, 83)]
    split = split_rows(buckets, np.array([0, 1]), dev=0.2)
    for b, rows in enumerate(buckets):
        for r in range(2):
            both = np.concatenate([split.train[b][r], split.dev[b][r]])
            assert sorted(both.tolist()) == rows.tolist()
        assert split.dev[b].shape == (2, int(len(rows) * 0.2))
        assert set(split.dev[b][0]) != set(split.dev[b][1])


@pytest.mark.parametrize("count", [0, 1, 7, 300, 2000])  # sorted in 0, 0, 1, 1 and 2 rounds
@given(seeds=SEEDS)
def test_rows_are_permuted_as_jax_does(count: int, seeds: np.ndarray) -> None:
    rows = np.arange(count) + 5
    keys = [jax.random.key(seed) for seed in seeds]
    right = [jax.random.permutation(key, rows) for key in keys]
    numbers = np.array([jax.random.key_data(key) for key in keys])
    np.testing.assert_array_equal(permuted(numbers, np.tile(rows, (len(seeds), 1))), right)


@given(st.integers(1, 10_000), SEEDS, st.lists(st.integers(1, 40), min_size=1), st.integers(1, 16))
def test_an_epoch_has_every_row_once_in_batches_of_one_bucket(
    number: int, seeds: np.ndarray, sizes: list[int], batch: int
) -> None:
    ends = np.cumsum(sizes)
    buckets = [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    given_rows = [np.tile(rows, (len(seeds), 1)) for rows in buckets]
    rows, bucket = steps_of_epoch(number, seeds, given_rows, batch)
    assert rows.shape == (len(seeds), sum(-(-size // batch) for size in sizes), batch)
    for mine in rows:
        for b, all_rows in enumerate(buckets):
            drawn = mine[bucket == b]
            assert sorted(drawn[drawn >= 0].tolist()) == all_rows.tolist()
    alone, same = steps_of_epoch(number, seeds[-1:], [r[-1:] for r in given_rows], batch)
    np.testing.assert_array_equal(alone[0], rows[-1])  # what a replica sees is its seed's alone
    np.testing.assert_array_equal(same, bucket)


def test_epochs_and_replicas_differ() -> None:
    rows = [np.tile(np.arange(500), (2, 1))]
    orders = [steps_of_epoch(epoch, np.array([3, 4]), rows, 10)[0] for epoch in (1, 2)]
    different = np.concatenate(orders).reshape(4, -1)
    assert len(np.unique(different, axis=0)) == 4
