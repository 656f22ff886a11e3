"""Two processes as two hosts, which meet on 127.0.0.1, with one device each."""

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = [
    "--config=experiments/single.py",
    "--config.models=prover",
    "--config.prover.train.replicas=3",
    "--config.train.checkpoint_minutes=0.0",
]
LOST = 69  # the exit code of a host when another one has ended


def launch(workdir: Path, settings: list[str]) -> subprocess.Popen:
    """On one core, and so with one device."""
    one = {min(os.sched_getaffinity(0))}
    return subprocess.Popen(
        [sys.executable, "launch.py", *SETTINGS, f"--workdir={workdir}", *settings],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, one),
    )


class Hosts:
    """Two of them, the first with the run's folder, the other with none."""

    def __init__(self, workdir: Path, settings: list[str], of_other: tuple[str, ...] = ()):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            meet = [f"--hosts=127.0.0.1:{free.getsockname()[1]}", "--host_count=2"]
        self.metrics = workdir / "prover" / "metrics.jsonl"
        self.hosts = [
            launch(workdir, [*settings, *meet, "--host_number=0"]),
            launch(workdir.parent / "none", [*settings, *meet, "--host_number=1", *of_other]),
        ]

    def some_epochs_later(self) -> None:
        now = lines(self.metrics)
        seen = None
        while seen is None or lines(self.metrics) < seen + 3:
            assert all(host.poll() is None for host in self.hosts), self.end()
            if seen is None and lines(self.metrics) != now:
                seen = lines(self.metrics)
            time.sleep(0.05)

    def end(self, within: float = 600) -> list[tuple[int, str]]:
        """The exit code of each host, and what it said."""
        said = [host.communicate(timeout=within)[0] for host in self.hosts]
        return [(host.returncode, text) for host, text in zip(self.hosts, said, strict=True)]


def lines(file: Path) -> int:
    return file.read_text().count("\n") if file.exists() else 0


def losses(workdir: Path) -> np.ndarray:
    text = (workdir / "prover" / "metrics.jsonl").read_text()
    return np.array([json.loads(line)["loss"] for line in text.splitlines()])


def answers(workdir: Path) -> list[str]:
    with (workdir / "prover" / "predictions.csv").open() as file:
        return [row["prediction"] for row in csv.DictReader(file)]


@pytest.mark.parametrize("parts", [1, 2])
def test_two_hosts_agree_with_one_process(small_folder, tmp_path, parts: int) -> None:
    """Each with replicas of its own (one is added to fill them up), and each with a part of every
    batch: but for the order of sums, the same. The first host alone writes."""
    settings = [f"--config.data={small_folder}", f"--config.train.microbatches={parts}"]
    settings += ["--config.prover.train.epochs=3"]
    alone = launch(tmp_path / "one", settings)
    said, _ = alone.communicate(timeout=600)
    assert alone.returncode == 0, said
    ends = Hosts(tmp_path / "two", settings).end()
    assert [code for code, _ in ends] == [0, 0], ends
    assert answers(tmp_path / "two") == answers(tmp_path / "one")
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(tmp_path / "one"), atol=1e-5)
    assert not (tmp_path / "none").exists()


def test_a_host_that_ends_is_noticed_and_the_job_goes_on(small_folder, tmp_path) -> None:
    """Either of them killed, or one of them pre-empted: the other ends too, and the same command
    goes on to the numbers of a job that was left alone."""
    settings = [f"--config.data={small_folder}", "--config.train.microbatches=2"]
    settings += ["--config.prover.train.epochs=60"]
    undisturbed = Hosts(tmp_path / "whole", settings).end()
    assert [code for code, _ in undisturbed] == [0, 0], undisturbed

    for killed in (1, 0):
        job = Hosts(tmp_path / "cut", settings)
        job.some_epochs_later()
        job.hosts[killed].kill()
        ends = job.end(within=60)
        code, said = ends[1 - killed]
        assert (code, ends[killed][0]) == (LOST, -signal.SIGKILL), ends
        assert said.splitlines()[-1] == (
            f"error: host {killed} has ended; the same command on all hosts goes on from the last "
            "checkpoint"
        )
        assert "Traceback" not in said and "stack trace" not in said

    job = Hosts(tmp_path / "cut", settings)
    job.some_epochs_later()
    job.hosts[1].terminate()
    ends = job.end()
    assert [code for code, _ in ends] == [75, 75], ends

    ends = Hosts(tmp_path / "cut", settings).end()
    assert [code for code, _ in ends] == [0, 0], ends
    assert answers(tmp_path / "cut") == answers(tmp_path / "whole")
    np.testing.assert_array_equal(losses(tmp_path / "cut"), losses(tmp_path / "whole"))


def test_hosts_with_other_settings_are_refused(small_folder, tmp_path) -> None:
    settings = [f"--config.data={small_folder}"]
    ends = Hosts(tmp_path / "run", settings, of_other=("--config.train.epochs=7",)).end()
    assert [code for code, _ in ends] == [LOST, 2], ends
    wrong = 'train.epochs is "7" on this host, expected what it is on the first'
    assert ends[1][1].splitlines()[-1] == f"error: {wrong}"
    assert f"error: host 1 has ended: {wrong}; the same command" in ends[0][1]
