"""Warnings of data and trainings that may not fit into the memory."""

import re
from pathlib import Path

import pytest

from clutrr_jax import devices
from clutrr_jax.data import prepare
from clutrr_jax.devices import free_memory, warn_if_too_large
from clutrr_jax.training import loop
from tests.command_line import launch

SMALL = (
    "--config.models=prover", "--config.prover.rounds=1", "--config.prover.train.epochs=1",
    "--config.train.replicas=2",
)  # fmt: skip
LINE = re.compile(r"warning: (.+) needs about (\S+) GB, (\S+) GB are free; it may end .+$", re.M)


def test_a_run_that_may_not_fit_is_warned_of_and_goes_on(
    small_folder, tmp_path, monkeypatch
) -> None:
    data = f"--config.data={small_folder}"
    done = launch(*SMALL, data, f"--workdir={tmp_path / 'fits'}")
    assert done.code == 0 and "warning" not in done.err
    for module in (prepare, loop):
        monkeypatch.setattr(module, "free_memory", lambda: 1000.0)
    done = launch(*SMALL, data, f"--workdir={tmp_path / 'tight'}")
    assert done.code == 0 and (tmp_path / "tight" / "prover" / "model.json").exists()
    found = LINE.findall(done.err)
    assert [what for what, _, _ in found] == ["reading the data", "the training"]
    assert all(float(needed) > float(free) == 1e-6 for _, needed, free in found)


def test_a_warning_says_what_is_needed_and_what_is_free(capsys) -> None:
    warn_if_too_large("it", 2e9, 2e9)
    assert capsys.readouterr().err == ""
    warn_if_too_large("it", 27.4e9, 8e9)
    assert LINE.findall(capsys.readouterr().err) == [("it", "27", "8")]


@pytest.mark.parametrize("suffix, factor", [("csv", 3), ("csv.gz", 12), ("parquet", 7)])
def test_the_memory_of_files_follows_from_their_size(suffix: str, factor: float, tmp_path) -> None:
    (tmp_path / "train").mkdir()
    for name, size in {f"train/0.{suffix}": 1000, f"test.{suffix}": 100}.items():
        (tmp_path / name).write_bytes(bytes(size))
    assert prepare.bytes_in_memory(tmp_path) == factor * 1100
    assert prepare.bytes_in_memory(tmp_path / f"test.{suffix}") == factor * 100
    assert prepare.bytes_in_memory(Path("clutrr-v1/gen23")) == 0  # generated on first use


def test_free_memory_of_a_container_is_what_its_limit_leaves(tmp_path, monkeypatch) -> None:
    files = {
        "/proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n",
        "/proc/self/statm": "50 3 2",  # pages: 3 are in memory
        "/sys/fs/cgroup/memory.max": "max\n",
    }

    def path(name: str) -> Path:
        file = tmp_path / name.replace("/", "_")
        file.write_text(files[name])
        return file

    monkeypatch.setattr(devices, "Path", path)
    monkeypatch.setattr(devices.os, "sysconf", lambda name: 4096)
    assert free_memory() == 8000 * 1024
    files["/sys/fs/cgroup/memory.max"] = "1000000\n"
    assert free_memory() == 1000000 - 3 * 4096
