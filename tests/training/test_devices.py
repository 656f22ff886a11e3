"""The same settings on 1 and on 8 devices: the same curve."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from clutrr_jax.training.replicas import Replicas
from generator.errors import InputError
from tests.training.test_steps import programs_for

# name, replicas, parts of a batch -> groups of devices and devices of a group, of 8.
CASES = {
    "prover,3,1": (3, 1),
    "gat,10,1": (8, 1),
    "gat,3,4": (2, 4),
    "bilstm_mean,2,8": (1, 8),
}


@pytest.fixture(scope="module")
def found(small_folder, tmp_path_factory) -> dict[int, dict[str, np.ndarray]]:
    """What came of all cases, by the number of devices."""
    out = tmp_path_factory.mktemp("devices")
    for devices in (1, 8):
        command = [
            sys.executable,
            "-m",
            "tests.training.device_worker",
            str(devices),
            str(small_folder),
        ]
        done = subprocess.run(
            [*command, str(out / f"{devices}.npz"), *CASES],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    return {devices: dict(np.load(out / f"{devices}.npz")) for devices in (1, 8)}


@pytest.mark.parametrize("case", CASES)
def test_one_and_eight_devices_train_the_same(found, case: str) -> None:
    """Losses, states and answers of all replicas, also where these do not divide the devices. The
    order of sums may differ: losses within 1e-5, and parameters within 1e-4, since Adam divides by
    what may be small."""
    assert tuple(found[8][f"{case} mesh"]) == CASES[case]
    assert tuple(found[1][f"{case} mesh"]) == (1, 1)
    names = [name for name in found[1] if name.startswith(case) and not name.endswith("mesh")]
    assert len(names) >= 6
    for name in names:
        within = 1e-5 if name.endswith("losses") else 1e-4
        np.testing.assert_allclose(found[8][name], found[1][name], atol=within, err_msg=name)
    answers = f"{case} answers"
    np.testing.assert_array_equal(found[8][answers], found[1][answers])


def test_parts_that_do_not_divide_the_batch_are_refused(small) -> None:
    with pytest.raises(
        InputError, match=r"train.microbatches 5: expected a divisor of train.batch"
    ):
        programs_for("gat", small, Replicas(1, parts=5), microbatches=5)
