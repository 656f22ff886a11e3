"""kill -9 at random moments: every time the same command goes on, to the numbers of a run that was
left alone. CLUTRR_KILLS says how many times (3 where it is not set)."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
SETTINGS = [
    "--config=experiments/single.py",
    "--config.models=prover",
    "--config.prover.train.replicas=2",
    "--config.prover.train.epochs=12",
    "--config.train.checkpoint_minutes=0.0",  # saving is a good part of the time
]


def test_killed_at_random_moments(small_folder, tmp_path) -> None:
    def command(workdir: Path) -> list[str]:
        place = [f"--config.data={small_folder}", f"--workdir={workdir}"]
        return [sys.executable, "launch.py", *SETTINGS, *place]

    def run(workdir: Path) -> float:
        start = time.monotonic()
        done = subprocess.run(command(workdir), cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return time.monotonic() - start

    run(tmp_path / "compiles")  # the next one finds its programs compiled, as the killed ones do
    whole = run(tmp_path / "whole")
    rng = random.Random(0)
    kills, workdir = 0, tmp_path / "0"
    for attempt in range(1000):
        if kills == int(os.environ.get("CLUTRR_KILLS", "3")):
            break
        process = subprocess.Popen(
            command(workdir), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            _, said = process.communicate(timeout=rng.uniform(0.3, 1.0) * whole)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
        else:
            assert process.returncode == 0, said.decode()
            same(tmp_path / "whole", workdir)
            workdir = tmp_path / str(attempt + 1)
    run(workdir)
    same(tmp_path / "whole", workdir)


def same(one: Path, other: Path) -> None:
    name = "prover/predictions.csv"
    assert (one / name).read_bytes() == (other / name).read_bytes()
