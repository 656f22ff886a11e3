"""Runs of a grid as jobs: of a cluster that is played, and of a real one where Slurm answers."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import launch
from experiments.grid import slurm
from experiments.grid.report import ERROR
from experiments.grid.slurm_job import Job
from generator.errors import InputError

ROOT = Path(__file__).parents[2]
NAMES = ["clean/gat", "supporting/gat"]
WELL = ["PENDING", "RUNNING", "finishes"]


class Played(slurm.Slurm):
    """A cluster whose jobs go one step further at each look at the queue: to a state, or to their
    end, in which they leave what a run leaves."""

    def __init__(self, workdir: Path, **steps: list[list[str]]):
        """Steps of each job of a run, named by the first word of its name; then WELL."""
        self.workdir, self.steps = workdir, steps
        self.jobs: dict[str, tuple[str, list[str]]] = {}  # id -> run, steps that are left
        self.submitted: list[list[str]] = []  # the runs, for each array

    def submit(self, jobs: list[Job]) -> list[str]:
        names = [job.command[-1] for job in jobs]
        self.submitted.append(names)
        ids = [f"{len(self.submitted)}_{i}" for i in range(len(names))]
        for name, job in zip(names, ids, strict=True):
            own = self.steps.get(name.split("/")[0], [])
            self.jobs[job] = name, list(own.pop(0) if own else WELL)
        return ids

    def states(self) -> dict[str, str]:
        silent = [steps for _, steps in self.jobs.values() if steps[0] == "unanswered"]
        if silent:
            silent[0].pop(0)
            raise InputError("--launcher=slurm: squeue: Socket timed out")
        return {job: self._step(*job_of) for job, job_of in self.jobs.items()}

    def _step(self, name: str, steps: list[str]) -> str:
        step = steps.pop(0) if len(steps) > 1 else steps[0]
        folder = self.workdir / name
        if step == "finishes":
            for file in ("results.json", "report.html"):
                (folder / file).touch()
            return "COMPLETED"
        if step == "fails":
            (folder / ERROR).write_text("ValueError: no\n")
            return "FAILED"
        return step

    def log(self, job: str) -> Path:
        return self.workdir / "slurm" / f"{job}.err"


@pytest.fixture(autouse=True)
def at_once(monkeypatch) -> None:
    monkeypatch.setattr(slurm, "PAUSES", (0.0, 0.0))


def run(cluster: Played) -> dict[str, str]:
    return slurm.run(NAMES, cluster.workdir, ["python"], cluster)


def test_all_runs_are_one_array(tmp_path: Path, capsys) -> None:
    cluster = Played(tmp_path)
    assert run(cluster) == {} and cluster.submitted == [NAMES]
    said = capsys.readouterr().out.splitlines()
    assert said == [
        *(f"{name}: submitted as job 1_{i}" for i, name in enumerate(NAMES)),
        *(f"{name}: running, job 1_{i}" for i, name in enumerate(NAMES)),
        *(f"{name}: finished" for name in NAMES),
    ]


def test_a_lost_job_is_submitted_again(tmp_path: Path, capsys) -> None:
    cluster = Played(tmp_path, clean=[["RUNNING", "NODE_FAIL"], ["RUNNING", "GONE"]])
    assert run(cluster) == {}
    assert cluster.submitted == [NAMES, NAMES[:1], NAMES[:1]]
    said = capsys.readouterr().out
    assert "clean/gat: job 1_0 ended without a result (NODE_FAIL)" in said
    assert "clean/gat: submitted again as job 2_0" in said


def test_a_job_that_is_always_lost_is_a_failed_run(tmp_path: Path) -> None:
    cluster = Played(tmp_path, clean=[["FAILED"]] * 10)
    assert set(run(cluster)) == {"clean/gat"}
    assert cluster.submitted == [NAMES] + slurm.AGAIN * [NAMES[:1]]
    error = (tmp_path / "clean/gat" / ERROR).read_text()
    assert f"{1 + slurm.AGAIN} jobs ended without a result (FAILED)" in error
    assert f"slurm/{1 + slurm.AGAIN}_0.err" in error


@pytest.mark.parametrize(("step", "why"), [("fails", "ValueError: no"), ("CANCELLED", "cancelled")])
def test_what_failed_or_was_cancelled_is_not_submitted_again(step, why, tmp_path: Path) -> None:
    cluster = Played(tmp_path, clean=[["RUNNING", step]])
    failed = run(cluster)
    assert set(failed) == {"clean/gat"} and why in failed["clean/gat"]
    assert cluster.submitted == [NAMES]
    assert why in (tmp_path / "clean/gat" / ERROR).read_text()
    # The same command again is another try, with nothing left of the last.
    assert run(Played(tmp_path, clean=[["GONE"], WELL])) == {}
    assert not (tmp_path / "clean/gat" / ERROR).exists()


def test_a_pre_empted_job_is_waited_for(tmp_path: Path, capsys) -> None:
    steps = ["RUNNING", "PREEMPTED", "COMPLETING", "PENDING", "RUNNING", "finishes"]
    cluster = Played(tmp_path, clean=[steps])
    assert run(cluster) == {} and cluster.submitted == [NAMES]
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("clean")]
    words = [line.partition(": ")[2].split()[0] for line in said]
    assert words == ["submitted", "running,", "queued,", "running,", "finished"]


def test_a_result_may_come_late(tmp_path: Path) -> None:
    late = ["RUNNING", *["COMPLETED"] * (slurm.LOOKS - 1), "finishes"]
    cluster = Played(tmp_path, clean=[late])
    assert run(cluster) == {} and cluster.submitted == [NAMES]


def test_stopped_and_started_again_it_waits_for_the_same_jobs(
    tmp_path: Path, capsys, monkeypatch
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    cluster = Played(tmp_path, supporting=[["RUNNING"] * 2 + ["GONE"]])
    with monkeypatch.context() as patch, pytest.raises(SystemExit, match="130"):
        patch.setattr(slurm.time, "sleep", interrupt)
        run(cluster)
    assert "2 jobs go on (scancel 1 ends them)" in capsys.readouterr().out
    assert run(cluster) == {}
    # The lost one alone has a second job.
    assert cluster.submitted == [NAMES, NAMES[1:]]


def test_a_queue_that_does_not_answer_is_asked_again(tmp_path: Path, capsys) -> None:
    cluster = Played(tmp_path, clean=[["RUNNING", "unanswered", "unanswered", *WELL]])
    assert run(cluster) == {} and cluster.submitted == [NAMES]
    assert capsys.readouterr().err.count("asking again") == 1
    # Before anything is submitted it is the user who has to do something.
    cluster.jobs["1_0"] = "clean/gat", ["unanswered"]
    with pytest.raises(InputError, match="Socket timed out"):
        run(cluster)


# What a job does


def test_a_job_goes_on_when_warned_and_ends_as_its_command() -> None:
    code = "import os, signal\nfor s in (signal.SIGTERM, signal.SIGUSR2): os.kill(os.getpid(), s)\n"
    Job([sys.executable, "-c", code])()
    with pytest.raises(SystemExit) as end:
        Job([sys.executable, "-c", "raise SystemExit(3)"])()
    assert end.value.code == 3


def test_a_pre_empted_job_is_submitted_as_it_was() -> None:
    pytest.importorskip("submitit")
    job = Job(["python"])
    assert job.checkpoint().function is job


def test_a_job_uses_the_cores_that_it_was_given(monkeypatch) -> None:
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "3")
    assert launch.cores() == 3
    monkeypatch.delenv("SLURM_CPUS_ON_NODE")
    assert 1 <= launch.cores() <= (os.cpu_count() or 1)


# Slurm's commands


@pytest.fixture
def commands(tmp_path: Path, monkeypatch) -> Path:
    """A folder of commands by the names of Slurm's, which are alone on the path."""
    pytest.importorskip("submitit")
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, line in {
        "sbatch": "echo Submitted batch job 7",
        "squeue": "echo 7_0 RUNNING; echo 7_1 PENDING",
        "srun": "",
    }.items():
        script(folder / name, line)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def test_what_is_asked_for_reaches_sbatch(commands: Path, tmp_path: Path) -> None:
    asked = slurm.settings()
    asked.update({"partition": "gpu", "cpus_per_task": 3, "array_parallelism": 1})
    cluster = slurm.Slurm("table2", tmp_path / "slurm", asked)
    assert cluster.submit([Job(["true"]), Job(["true"])]) == ["7_0", "7_1"]
    assert cluster.states() == {"7_0": "RUNNING", "7_1": "PENDING"}
    lines = (tmp_path / "slurm" / "7_submission.sh").read_text().splitlines()
    options = {line.removeprefix("#SBATCH --") for line in lines if line.startswith("#SBATCH")}
    assert {"partition=gpu", "cpus-per-task=3", "array=0-1%1", "time=240", "requeue"} <= options
    assert not {option for option in options if option.startswith(("mem", "gpus", "account"))}
    assert "--cpus-per-task=3" in next(line for line in lines if line.startswith("srun"))


def test_mistakes_are_one_line(commands: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    cluster = slurm.Slurm("table2", tmp_path / "slurm", slurm.settings())
    script(commands / "sbatch", "echo sbatch: error: Invalid partition >&2; exit 1")
    script(commands / "squeue", "echo squeue: error: no controller >&2; exit 1")
    with pytest.raises(InputError, match=r"^--launcher=slurm: sbatch: error: Invalid partition$"):
        cluster.submit([Job(["true"])])
    with pytest.raises(InputError, match=r"^--launcher=slurm: squeue: error: no controller$"):
        cluster.states()
    assert capsys.readouterr().err == ""
    (commands / "squeue").unlink()
    with pytest.raises(InputError, match="no squeue here, expected a Slurm cluster"):
        slurm.Slurm("table2", tmp_path, slurm.settings())
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(InputError, match=r"pip install submitit==1\.5\.4$"):
        slurm.Slurm("table2", tmp_path, slurm.settings())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--launcher=moon"], "--launcher=moon: value should be one of <local|slurm"),
        (["--launcher=slurm", "--slurm.bogus=1"], 'no setting "slurm.bogus"'),
        (["--launcher=slurm"], "single is a single run, expected a grid"),
    ],
)
def test_a_mistake_in_the_command_is_one_line(arguments, expected: str, tmp_path: Path) -> None:
    done = launched("single", *arguments, f"--workdir={tmp_path}").communicate(timeout=300)[0]
    assert expected in done and len(done.splitlines()) == 1 and not list(tmp_path.iterdir())


def launched(experiment: str, *arguments: str) -> subprocess.Popen:
    command = [sys.executable, "launch.py", f"--config=experiments/{experiment}.py", *arguments]
    # Ctrl-C reaches it even if these tests run in the background, where it would be ignored.
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        preexec_fn=heard,
    )  # fmt: skip


# Through launch.py, on a cluster

EPOCHS = 60


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[None]:
    """Skips where there is none; no job outlives the test."""
    pytest.importorskip("submitit", reason="no submitit: no grid is run on a cluster")
    if nodes() != [platform.node().split(".")[0]]:
        pytest.skip("no Slurm cluster of this machine alone answers: no grid is run on a cluster")
    yield
    left = {path.read_text().strip() for path in tmp_path.glob(f"*/*/*/{slurm.JOB}")}
    subprocess.run(["scancel", "--quiet", *left], check=False)


def test_a_grid_completes_although_jobs_are_killed_and_pre_empted(cluster, tmp_path) -> None:
    arguments = [
        "--config.scale=smoke", "--config.train.replicas=2", "--config.gat.node=20",
        f"--config.train.epochs={EPOCHS}", "--config.train.checkpoint_minutes=0.0",
        "--launcher=slurm", "--slurm.cpus_per_task=1", f"--workdir={tmp_path}",
    ]  # fmt: skip
    names = [f"{who}/gat/{seed}" for who in ("fixed", "redrawn", "learned") for seed in (0, 1)]

    first = launched("figure7", *arguments)
    assert first.stdout
    for _ in names:
        assert "submitted as job" in first.stdout.readline()
    first.send_signal(signal.SIGINT)
    said = first.communicate(timeout=300)[0]
    assert first.returncode == 130 and "6 jobs go on" in said
    jobs = {name: (tmp_path / name / slurm.JOB).read_text().strip() for name in names}
    assert len(set(jobs.values())) == 6

    second = launched("figure7", *arguments)
    try:
        killed, lines_of_killed = half_way(tmp_path, names)
        os.kill(process_of(tmp_path, killed), signal.SIGKILL)
        warned, lines_of_warned = half_way(tmp_path, [name for name in names if name != killed])
        process = process_of(tmp_path, warned)
        stat = Path(f"/proc/{process}/stat").read_text()
        for of_the_job in (process, int(stat.rpartition(")")[2].split()[1])):  # and its parent
            os.kill(of_the_job, signal.SIGUSR2)  # as Slurm does
        said = second.communicate(timeout=900)[0]
    finally:
        second.kill()
    assert second.returncode == 0, said

    told = said.splitlines()
    assert not any("submitted as" in line for line in told)
    again = [line for line in told if "submitted again" in line]
    assert len(again) == 1 and again[0].startswith(f"{killed}: ")
    assert f"{warned}: queued, job {jobs[warned]}" in told
    for name in names:
        same_job = (tmp_path / name / slurm.JOB).read_text().strip() == jobs[name]
        assert same_job == (name != killed)
        assert told.count(f"{name}: finished") == 1
    cells = json.loads((tmp_path / "results.json").read_text())["cells"]
    assert {cell["name"]: cell["state"] for cell in cells} == dict.fromkeys(names, "finished")
    # They went on: their first epoch is the one of their first job, to its time.
    for name, before in ((killed, lines_of_killed), (warned, lines_of_warned)):
        lines = metrics(tmp_path, name)
        assert [line["epoch"] for line in lines] == list(range(1, EPOCHS + 1))
        assert lines[0] == before[0]


def nodes() -> list[str]:
    """Of the cluster that answers; a real one is spared."""
    if not shutil.which("sinfo"):
        return []
    command = ["sinfo", "--noheader", "--Node", "--format=%N"]
    return subprocess.run(command, capture_output=True, text=True).stdout.split()


def metrics(workdir: Path, name: str) -> list[dict]:
    path = workdir / name / "gat" / "metrics.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def half_way(workdir: Path, names: list[str]) -> tuple[str, list[dict]]:
    """A run that has some epochs behind it and some before it, and those behind it."""

    def found() -> tuple[str, list[dict]] | None:
        for name in names:
            lines = metrics(workdir, name)
            if 3 <= len(lines) < EPOCHS // 2:
                return name, lines
        return None

    return wait_for(found)


def wait_for(found: Callable, seconds: float = 600):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        something = found()
        if something:
            return something
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s")


def process_of(workdir: Path, name: str) -> int:
    """The one that does this run."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_text().split("\0")
        except OSError:  # it has ended
            continue
        if f"--workdir={workdir}" in words and name in words:
            return int(path.parent.name)
    raise AssertionError(f"no process of {name}")
