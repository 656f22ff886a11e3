"""Checkpoints on disks that fail."""

import random
import resource
import signal
from pathlib import Path

import jax
import numpy as np
import pytest

from clutrr_jax.training.checkpoints import NOTE, Checkpoints
from generator.errors import InputError


def state(epoch: int) -> dict[str, jax.Array]:
    key = jax.random.key(epoch)
    return {"params": jax.random.normal(key, (100, 10)), "keys": jax.random.split(key, 3)}


def numbers(found: dict[str, jax.Array]) -> list[np.ndarray]:
    return [np.asarray(found["params"]), np.asarray(jax.random.key_data(found["keys"]))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the checkpoints of the epochs 1 and 2."""
    checkpoints = Checkpoints(tmp_path / "c")
    for epoch in (1, 2):
        checkpoints.save(epoch, state(epoch))
    return tmp_path / "c"


@pytest.mark.parametrize("noted", [True, False])
def test_no_flipped_bit_is_believed(noted: bool, folder: Path, capfd) -> None:
    """It is noticed, and the checkpoint before is taken. Without the note, which a run may have
    been killed before, one that matters is noticed."""
    rng, taken = random.Random(0), set()
    if not noted:
        (folder / "2" / NOTE).unlink()
    for file in [
        f for f in (folder / "2").rglob("*") if f.is_file() and (noted or "default" in f.parts)
    ]:
        whole = file.read_bytes()
        for _ in range(3):
            damaged = bytearray(whole)
            damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
            file.write_bytes(damaged)
            found = Checkpoints(folder).restore(state(0))
            assert found is not None
            for a, b in zip(numbers(found[1]), numbers(state(found[0])), strict=True):
                np.testing.assert_array_equal(a, b)
            taken.add(found[0])
        file.write_bytes(whole)
    assert taken == ({1} if noted else {1, 2})
    if noted:
        assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("epoch", [3, 5])
def test_a_damaged_checkpoint_is_in_nobodys_way(folder: Path, epoch: int) -> None:
    Checkpoints(folder).save(5, state(5))  # 2 and 5 are left
    for file in (folder / "5" / "default").rglob("*"):
        if file.is_file():
            file.write_bytes(b"")
    checkpoints = Checkpoints(folder)
    found = checkpoints.restore(state(0))
    assert found is not None and found[0] == 2
    checkpoints.save(epoch, state(epoch))
    found = Checkpoints(folder).restore(state(0))
    assert found is not None and found[0] == epoch
    for a, b in zip(numbers(found[1]), numbers(state(epoch)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_full_disk_is_one_line_and_the_last_good_checkpoint_stays(folder: Path) -> None:
    checkpoints = Checkpoints(folder)
    # No file may be longer than a few bytes: the nearest to a full disk that needs no rights.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
    try:
        with pytest.raises(InputError, match=r"3: cannot be written \(.*\); the same command"):
            checkpoints.save(3, state(3))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    found = Checkpoints(folder).restore(state(0))
    assert found is not None and found[0] == 2
