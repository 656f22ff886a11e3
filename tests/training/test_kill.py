"""A run that is killed at random moments resumes to the results of an uninterrupted run."""

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from tests.command_line import start

KILLS = int(os.environ.get("CLUTRR_KILLS", "3"))
SETTINGS = [
    "--config.models=prover",
    "--config.prover.share_genders=True",  # faster
    "--config.prover.train.replicas=2",
    "--config.prover.train.epochs=12",
    "--config.train.checkpoint_minutes=0.0",  # saves every epoch, to be killed during it
]


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_results(small_folder, tmp_path) -> None:
    def launch(workdir: Path) -> subprocess.Popen:
        return start(*SETTINGS, f"--config.data={small_folder}", f"--workdir={workdir}")

    def run(workdir: Path) -> float:
        began, process = time.monotonic(), launch(workdir)
        printed, _ = process.communicate()
        assert process.returncode == 0, printed
        return time.monotonic() - began

    def assert_same_predictions(workdir: Path) -> None:
        file = "prover/predictions.csv"
        assert (workdir / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()

    run(tmp_path / "warm_up")  # fills the compilation cache, so that `seconds` is that of a rerun
    seconds = run(tmp_path / "whole")
    rng = random.Random(0)
    kills, workdir = 0, tmp_path / "0"
    for attempt in range(1000):
        if kills == KILLS:
            break
        process = launch(workdir)
        try:
            printed, _ = process.communicate(timeout=rng.uniform(0.3, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
        else:
            assert process.returncode == 0, printed
            assert_same_predictions(workdir)
            workdir = tmp_path / str(attempt + 1)
    run(workdir)
    assert_same_predictions(workdir)
