"""Runs of an experiment as Slurm jobs, on a simulated cluster."""

import os
import sys
from pathlib import Path

import pytest

from clutrr_jax.devices import available_cores
from clutrr_jax.experiment import ERROR, SUMMARY
from clutrr_jax.slurm import launcher
from clutrr_jax.slurm.job import Job
from generator.errors import InputError

NAMES = ["clean/gat", "supporting/gat"]
SUCCESS = ["PENDING", "RUNNING", "finishes"]


class Simulated(launcher.Slurm):
    """A cluster whose jobs take one step at each poll.

    A step is a Slurm state, "finishes" or "fails" (the run leaves its result), or "no answer".

    Args:
      workdir: the folder of the experiment.
      steps: for each run, by the first word of its name, the steps of its jobs; then SUCCESS.
    """

    def __init__(self, workdir: Path, **steps: list[list[str]]):
        self.workdir, self.folder, self.steps = workdir, workdir / "slurm", steps
        self.jobs: dict[str, tuple[str, list[str]]] = {}  # id -> name of the run, remaining steps
        self.submitted: list[list[str]] = []  # names of the runs of each array

    def submit(self, jobs: list[Job]) -> list[str]:
        names = [job.command[-1] for job in jobs]
        self.submitted.append(names)
        ids = [f"{len(self.submitted)}_{i}" for i in range(len(names))]
        for name, job in zip(names, ids, strict=True):
            own = self.steps.get(name.split("/")[0], [])
            self.jobs[job] = name, list(own.pop(0) if own else SUCCESS)
        return ids

    def states(self) -> dict[str, str]:
        silent = [steps for _, steps in self.jobs.values() if steps[0] == "no answer"]
        if silent:
            silent[0].pop(0)
            raise InputError("--launcher=slurm: squeue: Socket timed out")
        return {job: self._state(*job_of) for job, job_of in self.jobs.items()}

    def _state(self, name: str, steps: list[str]) -> str:
        step = steps.pop(0) if len(steps) > 1 else steps[0]
        folder = self.workdir / name
        if step == "finishes":
            (folder / SUMMARY).touch()
            return "COMPLETED"
        if step == "fails":
            (folder / ERROR).write_text("ValueError: no\n")
            return "FAILED"
        return step


@pytest.fixture(autouse=True)
def no_pause(monkeypatch) -> None:
    monkeypatch.setattr(launcher, "POLL_SECONDS", 0.0)


def run(cluster: Simulated) -> dict[str, str]:
    return launcher.Jobs(cluster.workdir, ["python"], cluster).run(NAMES)


@pytest.mark.parametrize(
    ("steps", "arrays", "printed"),
    [
        ([], 1, "submitted running, finished"),
        ([["RUNNING", *["COMPLETED"] * (launcher.POLLS - 1), "finishes"]], 1,
         "submitted running, finished"),
        ([["RUNNING", "PREEMPTED", "COMPLETING", "PENDING", "RUNNING", "finishes"]], 1,
         "submitted running, queued, running, finished"),
        ([["RUNNING", "NODE_FAIL"], ["RUNNING", "GONE"]], 3,
         "submitted running, job resubmitted running, job resubmitted running, finished"),
        ([["RUNNING", "no answer", "no answer", *SUCCESS]], 1,
         "submitted running, queued, running, finished"),
    ],
)  # fmt: skip
def test_runs_are_one_array_and_lost_jobs_are_resubmitted(
    steps, arrays, printed, tmp_path: Path, capsys
) -> None:
    cluster = Simulated(tmp_path, clean=[*steps])
    assert run(cluster) == {} and cluster.submitted == [NAMES, *[NAMES[:1]] * (arrays - 1)]
    out, err = capsys.readouterr()
    lines = [line.partition(": ") for line in out.splitlines()]
    assert [rest.split()[0] for name, _, rest in lines if name == NAMES[0]] == printed.split()
    assert err.count("retrying") == any("no answer" in of_job for of_job in steps)


def test_a_job_is_resubmitted_three_times(tmp_path: Path) -> None:
    cluster = Simulated(tmp_path, clean=[["FAILED"]] * 10)
    (reason,) = run(cluster).values()
    assert cluster.submitted == [NAMES] + launcher.RESUBMISSIONS * [NAMES[:1]]
    assert "4 jobs ended without a result (FAILED)" in reason and "slurm/4_0_0_log.err" in reason
    assert (cluster.workdir / "clean/gat" / ERROR).read_text() == reason + "\n"


@pytest.mark.parametrize(("step", "why"), [("fails", "ValueError: no"), ("CANCELLED", "cancelled")])
def test_failed_or_cancelled_run_is_not_resubmitted(step, why, tmp_path: Path) -> None:
    cluster = Simulated(tmp_path, clean=[["RUNNING", step]])
    failed = run(cluster)
    assert set(failed) == {"clean/gat"} and why in failed["clean/gat"]
    assert cluster.submitted == [NAMES]
    assert why in (tmp_path / "clean/gat" / ERROR).read_text()
    # Running the command again tries again and removes the old error.
    assert run(Simulated(tmp_path, clean=[["GONE"], SUCCESS])) == {}
    assert not (tmp_path / "clean/gat" / ERROR).exists()


@pytest.mark.parametrize(
    ("end", "failed"), [("finishes", {}), ("fails", {NAMES[0]: "ValueError: no"})]
)
def test_a_finished_run_that_goes_on_waits_for_its_new_result(end, failed, tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / SUMMARY).write_text("before")
        os.utime(tmp_path / name / SUMMARY, (0, 1))
    cluster = Simulated(tmp_path, clean=[["GONE", "PENDING", "RUNNING", end]])
    assert run(cluster) == failed and cluster.submitted == [NAMES]
    written = [(tmp_path / name / SUMMARY).stat().st_mtime > 1 for name in NAMES]
    assert written == [not failed, True]


def test_interrupted_command_waits_for_the_same_jobs(tmp_path: Path, capsys, monkeypatch) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    cluster = Simulated(tmp_path, supporting=[["RUNNING"] * 2 + ["GONE"]])
    with monkeypatch.context() as patch, pytest.raises(SystemExit, match="130"):
        patch.setattr(launcher.time, "sleep", interrupt)
        run(cluster)
    assert "2 jobs continue (scancel 1 cancels them)" in capsys.readouterr().out
    assert run(cluster) == {}
    assert cluster.submitted == [NAMES, NAMES[1:]]  # only the lost job again


def test_job_ignores_warnings_exits_like_its_command_and_is_requeued_unchanged() -> None:
    code = "import os, signal\nfor s in (signal.SIGTERM, signal.SIGUSR2): os.kill(os.getpid(), s)\n"
    job = Job([sys.executable, "-S", "-c", code])
    job()
    with pytest.raises(SystemExit) as end:
        Job([sys.executable, "-S", "-c", "raise SystemExit(3)"])()
    assert end.value.code == 3
    pytest.importorskip("submitit")
    assert job.checkpoint().function is job


def test_job_uses_its_cores(monkeypatch) -> None:
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "3")
    assert available_cores() == 3
    monkeypatch.delenv("SLURM_CPUS_ON_NODE")
    assert 1 <= available_cores() <= (os.cpu_count() or 1)


# Commands of Slurm, replaced by scripts


def script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch) -> Path:
    """The only folder in PATH, with scripts named like Slurm's commands."""
    pytest.importorskip("submitit")
    folder = tmp_path / "bin"
    folder.mkdir()
    script(folder / "sbatch", "echo Submitted batch job 7")
    script(folder / "squeue", "echo 7_0 RUNNING; echo 7_1 PENDING")
    script(folder / "srun", "")
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_options_reach_sbatch(commands: Path, tmp_path: Path) -> None:
    options = launcher.settings()
    options.update({"partition": "gpu", "cpus_per_task": 3, "array_parallelism": 1})
    cluster = launcher.Slurm("table2", tmp_path / "slurm", options)
    assert cluster.submit([Job(["true"]), Job(["true"])]) == ["7_0", "7_1"]
    assert cluster.states() == {"7_0": "RUNNING", "7_1": "PENDING"}
    lines = (tmp_path / "slurm" / "7_submission.sh").read_text().splitlines()
    given = {line.removeprefix("#SBATCH --") for line in lines if line.startswith("#SBATCH")}
    assert {"partition=gpu", "cpus-per-task=3", "array=0-1%1", "time=240", "requeue"} <= given
    assert not {option for option in given if option.startswith(("mem", "gpus", "account"))}
    assert "--cpus-per-task=3" in next(line for line in lines if line.startswith("srun"))


def test_errors_of_slurm_are_one_line(commands: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    cluster = launcher.Slurm("table2", tmp_path / "slurm", launcher.settings())
    script(commands / "sbatch", "echo sbatch: error: Invalid partition >&2; exit 1")
    with pytest.raises(InputError, match=r"^--launcher=slurm: sbatch: error: Invalid partition$"):
        cluster.submit([Job(["true"])])
    assert capsys.readouterr().err == ""
    (commands / "squeue").unlink()
    with pytest.raises(InputError, match="no squeue here, expected a Slurm cluster"):
        launcher.Slurm("table2", tmp_path, launcher.settings())
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(InputError, match=r"pip install submitit$"):
        launcher.Slurm("table2", tmp_path, launcher.settings())
