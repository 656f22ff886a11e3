"""Streams of random numbers: no two of them coincide, and they are all derived in one place."""

import re
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import clutrr_jax
from clutrr_jax.streams import Stream, jax_key, numpy_rng
from generator.stories.blocks import _rng
from generator.stories.config import SPLITS, Config, Task

SEEDS = (0, 1, 2**31 - 1)
INDICES = ((), (0,), (1,), (100,), (0, 0), (0, 1), (1, 0))


def test_no_two_numpy_streams_coincide() -> None:
    """Not even in one of their first numbers, and not with a stream of the generator either."""
    generators = [numpy_rng(s, seed, *i) for s, seed, i in product(Stream, SEEDS, INDICES)]
    generators += [
        _rng(Config(seed=seed), split, Task(noise, k), *index)
        for seed, split, noise, k in product(SEEDS, SPLITS, (1, 5), (2, 10))
        for index in ((), (0,), (0, 1))
    ]
    numbers = [rng.integers(2**63, size=4) for rng in generators]
    assert len(np.unique(numbers)) == np.size(numbers)


def test_no_two_jax_streams_coincide() -> None:
    """Nor do the keys that are folded into them, of the parameters and of the steps of an epoch."""
    of_epochs = (Stream.DROPOUT, Stream.REDRAWN_ENTITIES, Stream.SENTENCES)

    @jax.jit
    def used_keys(seed):
        keys = [jax_key(Stream.PARAMETERS, seed)]
        keys += [jax_key(stream, seed, epoch) for stream in of_epochs for epoch in range(1, 4)]
        keys += [jax.random.fold_in(key, i) for key in keys for i in range(4)]
        return jnp.stack([jax.random.key_data(key) for key in keys])

    found = np.concatenate([used_keys(seed) for seed in SEEDS])
    assert len(np.unique(found, axis=0)) == len(found) == 50 * len(SEEDS)


def test_streams_are_derived_in_one_place() -> None:
    """In evaluation mode a model draws no numbers: its key is a constant."""
    folder = Path(clutrr_jax.__file__).parent
    for path in folder.rglob("*.py"):
        if path.name != "streams.py":
            made = re.findall(
                r"default_rng\(|RandomState|random\.(?:PRNG)?[kK]ey\((?!0\))", path.read_text()
            )
            assert not made, path
