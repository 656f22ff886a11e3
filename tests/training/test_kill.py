"""A run that is stopped at random moments resumes to the results of an uninterrupted run."""

import random
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import ROOT

STOPS = 10
# launch.py, whose epochs of a few seconds have many segments.
PROGRAM = """
import sys
from clutrr_jax.training import loop
from launch import main
loop.SEGMENT_SECONDS = 0.1
sys.exit(main(sys.argv[1:], "launch.py"))
"""
SETTINGS = [
    "--config.train.replicas=2",
    "--config.train.epochs=4",
    "--config.train.checkpoint_minutes=0.0",  # saves after every segment, to be stopped during it
]
SIZES = {"gat": ["--config.gat.rounds=1"], "bilstm_mean": ["--config.bilstm_mean.hidden=16"]}


@pytest.fixture(scope="module")
def stories(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("stories")
    options = ["--train=1.2,1.3", "--test=1.4", "--train-rows=200", "--test-rows=50"]
    subprocess.run(
        [sys.executable, "-m", "generator", *options, f"--out={folder}"], cwd=ROOT, check=True
    )
    return f"--config.data={folder}"


@pytest.mark.slow
@pytest.mark.parametrize("model", SIZES)
def test_a_stopped_run_resumes_to_the_same_results(model: str, stories: str, tmp_path) -> None:
    """By SIGTERM, after which it exits by itself, and by SIGKILL."""

    def start(workdir: Path) -> subprocess.Popen:
        arguments = [f"--config.models={model}", *SETTINGS, *SIZES[model], stories]
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments, f"--workdir={workdir}"],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def run(workdir: Path) -> float:
        began, process = time.monotonic(), start(workdir)
        printed, _ = process.communicate()
        assert process.returncode == 0, printed
        return time.monotonic() - began

    def assert_same_predictions(workdir: Path) -> None:
        ours, whole = (
            np.load(f / model / "predictions.npz") for f in (workdir, tmp_path / "whole")
        )
        assert ours.files == whole.files
        for name in whole.files:
            np.testing.assert_array_equal(ours[name], whole[name])

    run(tmp_path / "warm_up")  # fills the compilation cache, so that `seconds` is that of a rerun
    seconds = run(tmp_path / "whole")
    rng = random.Random(0)
    stops, folders = 0, count()
    workdir = tmp_path / str(next(folders))
    while stops < STOPS:
        process, sent = start(workdir), rng.choice([signal.SIGTERM, signal.SIGKILL])
        try:
            printed, _ = process.communicate(timeout=rng.uniform(0.3, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(sent)
            printed, _ = process.communicate()
            # SIGTERM kills it before it has read its arguments, and is too late after the tests.
            expected = (75, 0, -sent) if sent == signal.SIGTERM else (-sent,)
            assert process.returncode in expected, printed
            stops += 1
        else:
            assert process.returncode == 0, printed
            seconds *= 0.8  # the machine is less busy than before
        if process.returncode == 0:
            assert_same_predictions(workdir)
            workdir = tmp_path / str(next(folders))  # a finished run would be found finished
    run(workdir)
    assert_same_predictions(workdir)
