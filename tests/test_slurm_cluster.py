"""An experiment on a real Slurm cluster of one node."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from clutrr_jax.experiment import JOB_ID
from tests.command_line import ROOT, start
from tests.test_docs import blocks

EPOCHS = 60
NAMES = [f"{policy}/0/gat" for policy in ("fixed", "redrawn", "learned")]

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def nodes() -> list[str]:
    """The nodes of the cluster, if one answers."""
    if not shutil.which("sinfo"):
        return []
    command = ["sinfo", "--noheader", "--Node", "--format=%N"]
    return subprocess.run(command, capture_output=True, text=True).stdout.split()


@pytest.fixture
def cluster(tmp_path: Path):
    """Skips the test if there is no cluster of this machine alone. Cancels remaining jobs."""
    pytest.importorskip("submitit", reason="submitit is not installed")
    if nodes() != [platform.node().split(".")[0]]:
        pytest.skip("no Slurm cluster of this machine alone")
    yield
    remaining = {path.read_text().strip() for path in tmp_path.glob(f"*/*/*/{JOB_ID}")}
    subprocess.run(["scancel", "--quiet", *remaining], check=False)


def start_grid(workdir: Path) -> subprocess.Popen:
    # Ctrl-C has to reach the command even if the tests run in the background.
    accept = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return start(
        "--config.scale=smoke", "--config.gat.node=20",
        f"--config.train.epochs={EPOCHS}", "--config.train.checkpoint_minutes=0.0",
        "--launcher=slurm", "--slurm.cpus_per_task=1", f"--workdir={workdir}",
        config="figure7", preexec_fn=accept,
    )  # fmt: skip


def metrics(workdir: Path, name: str) -> list[dict]:
    path = workdir / name / "metrics.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def wait_until_half_done(workdir: Path, names: list[str]) -> tuple[str, list[dict]]:
    """Returns the name and metrics of a run that is neither at its start nor near its end."""
    end = time.monotonic() + 600
    while time.monotonic() < end:
        for name in names:
            lines = metrics(workdir, name)
            if 3 <= len(lines) < EPOCHS // 2:
                return name, lines
        time.sleep(0.05)
    raise AssertionError("no run was half done within 600 s")


def process_of(workdir: Path, name: str) -> int:
    """Returns the id of the process that executes a run."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_text().split("\0")
        except OSError:  # it has ended
            continue
        if f"--workdir={workdir}" in words and name in words:
            return int(path.parent.name)
    raise AssertionError(f"no process of {name}")


def test_grid_completes_although_jobs_are_killed_and_preempted(cluster, tmp_path) -> None:
    first = start_grid(tmp_path)
    assert first.stdout
    for _ in NAMES:
        assert "submitted as job" in first.stdout.readline()
    first.send_signal(signal.SIGINT)
    printed = first.communicate(timeout=300)[0]
    assert first.returncode == 130 and "3 jobs continue" in printed
    jobs = {name: (tmp_path / name / JOB_ID).read_text().strip() for name in NAMES}
    assert len(set(jobs.values())) == 3

    second = start_grid(tmp_path)
    try:
        killed, before_kill = wait_until_half_done(tmp_path, NAMES)
        os.kill(process_of(tmp_path, killed), signal.SIGKILL)
        others = [name for name in NAMES if name != killed]
        warned, before_warning = wait_until_half_done(tmp_path, others)
        process = process_of(tmp_path, warned)
        parent = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        for of_job in (process, parent):
            os.kill(of_job, signal.SIGUSR2)  # as Slurm does before it preempts a job
        printed = second.communicate(timeout=900)[0]
    finally:
        second.kill()
    assert second.returncode == 0, printed

    lines = printed.splitlines()
    assert not any(": submitted as" in line for line in lines)
    (resubmitted,) = [line for line in lines if ": resubmitted as" in line]
    assert resubmitted.startswith(f"{killed}: ")
    assert f"{warned}: queued, job {jobs[warned]}" in lines
    for name in NAMES:
        same_job = (tmp_path / name / JOB_ID).read_text().strip() == jobs[name]
        assert same_job == (name != killed)
        assert lines.count(f"{name}: finished") == 1
    runs = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert {run["name"]: run["state"] for run in runs} == dict.fromkeys(NAMES, "finished")
    # The runs resumed: their first epoch is that of their first job.
    for name, before in ((killed, before_kill), (warned, before_warning)):
        after = metrics(tmp_path, name)
        assert [line["epoch"] for line in after] == list(range(1, EPOCHS + 1))
        assert after[0] == before[0]


def test_the_script_of_the_docs_trains_one_run_with_two_tasks(
    cluster, small_folder, tmp_path
) -> None:
    """After SIGTERM the script queues its job again, which resumes the run."""
    script, workdir = blocks("docs/distributed.md", "bash")[0], tmp_path / "run"
    for old, new in {
        "python launch.py": f"{sys.executable} launch.py --config.models=gat --config.gat.node=20 "
        f"--config.train.epochs={EPOCHS}",
        "runs/wide": str(workdir),
        "data_089907f8.zip": str(small_folder),
        "replicas=32": "replicas=2",
        "#SBATCH --gpus-per-node=8\n": "",
    }.items():
        assert old in script
        script = script.replace(old, new)
    submit = [
        "sbatch",
        "--parsable",
        "--nodes=1",
        "--ntasks-per-node=2",
        f"--output={tmp_path}/log",
    ]
    done = subprocess.run(
        submit, cwd=ROOT, input=script, capture_output=True, text=True, check=True
    )
    job = done.stdout.strip()
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / "a/b/c" / JOB_ID).write_text(job)  # so that a failed test cancels it
    _, before = wait_until_half_done(workdir, ["gat"])
    subprocess.run(["scancel", "--signal=TERM", job], check=True)
    end = time.monotonic() + 600
    while not (workdir / "gat" / "model.json").exists() and time.monotonic() < end:
        time.sleep(0.5)
    log = (tmp_path / "log").read_text()
    summary = json.loads((workdir / "gat" / "model.json").read_text())
    assert summary["device"].endswith(", on each of 2 hosts"), log
    after = metrics(workdir, "gat")
    assert [line["epoch"] for line in after] == list(range(1, EPOCHS + 1))
    assert after[0] == before[0] and "stopped by SIGTERM" in log
