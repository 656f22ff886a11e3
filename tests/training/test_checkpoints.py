"""Checkpoints: a damaged one is never used, and a full disk is one line."""

import random
import resource
import signal
from pathlib import Path

import jax
import numpy as np
import pytest

from clutrr_jax.training.checkpoints import DIGESTS, Checkpoints
from generator.errors import InputError


def state(epoch: int) -> dict[str, jax.Array]:
    key = jax.random.key(epoch)
    return {"params": jax.random.normal(key, (100, 10)), "step": jax.numpy.int32(epoch)}


def assert_restores(folder: Path, epoch: int) -> None:
    found, _, restored = Checkpoints(folder).restore(state(0))
    assert found == epoch
    jax.tree.map(np.testing.assert_array_equal, restored, state(epoch))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Checkpoints of epochs 1 and 2."""
    checkpoints = Checkpoints(tmp_path / "c")
    for epoch in (1, 2):
        checkpoints.save(epoch, state(epoch))
    return tmp_path / "c"


def test_reading_creates_no_folder(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "c").restore(state(0)) is None
    assert not list(tmp_path.iterdir())


def test_every_flipped_bit_is_noticed(folder: Path, capfd) -> None:
    """The checkpoint before is restored, and nothing is printed."""
    rng = random.Random(0)
    assert_restores(folder, 2)
    for file in [f for f in (folder / "2").rglob("*") if f.is_file()]:
        intact = file.read_bytes()
        damaged = bytearray(intact)
        damaged[rng.randrange(len(intact))] ^= 1 << rng.randrange(8)
        file.write_bytes(damaged)
        assert_restores(folder, 1)
        file.write_bytes(intact)
    assert capfd.readouterr() == ("", "")


def test_a_checkpoint_without_digests_is_incomplete(folder: Path) -> None:
    """A run may be killed between the arrays and the digests, also at its first checkpoint."""
    (folder / "2" / DIGESTS).unlink()
    assert_restores(folder, 1)
    (folder / "1" / DIGESTS).unlink()
    assert Checkpoints(folder).restore(state(0)) is None
    Checkpoints(folder).save(1, state(1))
    assert_restores(folder, 1)


def damage(folder: Path) -> None:
    for file in (folder / "default").rglob("*"):
        if file.is_file():
            file.write_bytes(b"")


@pytest.mark.parametrize("epoch", [2, 3, 7])
@pytest.mark.parametrize("is_complete", [False, True])
def test_a_damaged_checkpoint_is_replaced(folder: Path, epoch: int, is_complete: bool) -> None:
    """The one before stays until the next is complete, and then as the one before that."""
    checkpoints = Checkpoints(folder)
    assert checkpoints.restore(state(0))
    checkpoints.save(5, state(5))  # 2 and 5 are left
    if is_complete:
        damage(folder / "5")
    else:
        (folder / "5" / DIGESTS).unlink()
    checkpoints = Checkpoints(folder)
    assert checkpoints.restore(state(0))[0] == 2
    checkpoints.save(epoch + 1, state(epoch + 1))
    assert_restores(folder, epoch + 1)
    damage(folder / str(epoch + 1))
    assert_restores(folder, 2)


def test_all_checkpoints_damaged_is_one_line(folder: Path) -> None:
    for file in folder.glob(f"*/{DIGESTS}"):
        file.write_text("")
    with pytest.raises(InputError, match=r"no checkpoint can be read \(a file differs"):
        Checkpoints(folder).restore(state(0))


def test_another_configuration_is_one_line(folder: Path) -> None:
    other = state(0) | {"params": jax.numpy.zeros((100, 11))}
    with pytest.raises(InputError, match="a checkpoint of another configuration"):
        Checkpoints(folder).restore(other)


def test_a_full_disk_is_one_line_and_the_last_checkpoint_stays(folder: Path) -> None:
    checkpoints = Checkpoints(folder)
    assert checkpoints.restore(state(0))
    # A limit on the file size is the closest to a full disk that needs no privileges.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
    try:
        with pytest.raises(InputError, match=r"3: cannot be written \(.*\); run the same command"):
            checkpoints.save(3, state(3))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert_restores(folder, 2)
