"""Two processes on 127.0.0.1 with one or four CPU devices each behave as one process."""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from clutrr_jax.training import distributed
from tests.command_line import start
from tests.generator.test_write import read

SETTINGS = [
    "--config.models=edge_lstm",
    "--config.edge_lstm.train.replicas=3",
    "--config.train.checkpoint_minutes=0.0",
]


def launch(workdir: Path, settings: list[str], devices: int = 1) -> subprocess.Popen:
    """Starts launch.py on a number of CPU devices."""
    environment = os.environ | {"SLURM_CPUS_ON_NODE": str(devices)}
    return start(*SETTINGS, f"--workdir={workdir}", *settings, env=environment)


class Hosts:
    """Two hosts; the second one has another workdir, which must stay unused."""

    def __init__(
        self, workdir: Path, settings: list[str], second: tuple[str, ...] = (), devices: int = 1
    ):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            hosts = [f"--hosts=127.0.0.1:{free.getsockname()[1]}", "--host_count=2"]
        self.metrics = workdir / "edge_lstm" / "metrics.jsonl"
        self.processes = [
            launch(workdir, [*settings, *hosts, "--host_number=0"], devices),
            launch(
                workdir.parent / "unused", [*settings, *hosts, "--host_number=1", *second], devices
            ),
        ]

    def wait_for_epochs(self) -> None:
        """Waits for three more epochs after the first new one."""
        before = epochs(self.metrics)
        first = None
        while first is None or epochs(self.metrics) < first + 3:
            assert all(process.poll() is None for process in self.processes), self.end()
            if first is None and epochs(self.metrics) != before:
                first = epochs(self.metrics)
            time.sleep(0.05)

    def end(self, timeout: float = 600) -> list[tuple[int, str]]:
        """Waits for the exit code and the output of each host."""
        outputs = [process.communicate(timeout=timeout)[0] for process in self.processes]
        codes = [process.returncode for process in self.processes]
        return list(zip(codes, outputs, strict=True))


def epochs(metrics: Path) -> int:
    return metrics.read_text().count("\n") if metrics.exists() else 0


def losses(workdir: Path) -> np.ndarray:
    text = (workdir / "edge_lstm" / "metrics.jsonl").read_text()
    return np.array([json.loads(line)["loss"] for line in text.splitlines()])


def predictions(workdir: Path) -> list[str]:
    return [row["prediction"] for row in read(workdir / "edge_lstm" / "predictions.csv")]


def test_one_process_does_not_communicate() -> None:
    assert distributed.is_primary()
    assert [distributed.any_host(flag) for flag in (False, True)] == [False, True]
    array = np.arange(6.0).reshape(2, 3)
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    np.testing.assert_array_equal(distributed.gather(distributed.put(array, sharding)), array)
    np.testing.assert_array_equal(distributed.broadcast({"a": array})["a"], array)
    distributed.assert_same({"seed": 1})
    distributed.barrier("test")


def test_an_error_is_one_line_and_exit_code_2(capsys) -> None:
    with pytest.raises(SystemExit) as end:
        distributed.exit_with_error("no such file")
    assert end.value.code == 2 and capsys.readouterr().err == "error: no such file\n"


@pytest.mark.slow
@pytest.mark.parametrize("devices, microbatches", [(1, 1), (1, 2), (4, 1), (4, 8)])
def test_two_hosts_agree_with_one_process(
    small_folder, tmp_path, devices: int, microbatches: int
) -> None:
    """Each device trains its own replicas (some are added to fill them up), or a part of every
    batch. Up to the order of sums the results are the same. Only the primary writes."""
    settings = [f"--config.data={small_folder}", f"--config.train.microbatches={microbatches}"]
    settings += ["--config.edge_lstm.train.epochs=3", "--config.log=tensorboard"]
    settings += ["--config.train.batch=40"]
    single = launch(tmp_path / "one", settings)
    output, _ = single.communicate(timeout=600)
    assert single.returncode == 0, output
    ends = Hosts(tmp_path / "two", settings, devices=devices).end()
    assert [code for code, _ in ends] == [0, 0], ends
    assert predictions(tmp_path / "two") == predictions(tmp_path / "one")
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(tmp_path / "one"), atol=1e-5)
    assert not (tmp_path / "unused").exists()


@pytest.mark.slow
def test_a_job_resumes_after_the_loss_of_a_host(small_folder, tmp_path) -> None:
    """If either host is killed, the other one ends too. If one is preempted, both save the state
    and exit with code 75. The same command resumes to the results of an uninterrupted job."""
    settings = [f"--config.data={small_folder}", "--config.train.microbatches=2"]
    settings += ["--config.edge_lstm.train.epochs=60"]
    ends = Hosts(tmp_path / "whole", settings).end()
    assert [code for code, _ in ends] == [0, 0], ends

    for killed in (1, 0):
        job = Hosts(tmp_path / "cut", settings)
        job.wait_for_epochs()
        job.processes[killed].kill()
        ends = job.end(timeout=90)
        assert ends[killed][0] == -signal.SIGKILL and ends[1 - killed][0] != 0, ends

    job = Hosts(tmp_path / "cut", settings)
    job.wait_for_epochs()
    job.processes[1].terminate()
    ends = job.end()
    assert [code for code, _ in ends] == [75, 75], ends

    ends = Hosts(tmp_path / "cut", settings).end()
    assert [code for code, _ in ends] == [0, 0], ends
    assert predictions(tmp_path / "cut") == predictions(tmp_path / "whole")
    np.testing.assert_array_equal(losses(tmp_path / "cut"), losses(tmp_path / "whole"))


@pytest.mark.slow
def test_hosts_with_different_settings_are_refused(small_folder, tmp_path) -> None:
    settings = [f"--config.data={small_folder}", "--config.train.epochs=6"]
    ends = Hosts(tmp_path / "run", settings, second=("--config.train.epochs=7",)).end()
    assert [code for code, _ in ends] == [2, 2], ends
    for host, (_, output) in enumerate(ends):
        expected = f'error: train.epochs is "{6 + host}" on host {host}, expected the same on'
        assert output.splitlines()[-1] == f"{expected} all hosts"


@pytest.mark.slow
def test_an_error_of_one_host_ends_the_other(small_folder, tmp_path) -> None:
    missing = (f"--config.data={tmp_path / 'missing'}",)
    ends = Hosts(tmp_path / "run", [f"--config.data={small_folder}"], second=missing).end(90)
    assert ends[1][0] == 2 and ends[0][0] != 0, ends
    assert ends[1][1].splitlines()[-1].startswith("error: ")
