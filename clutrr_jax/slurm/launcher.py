"""The runs of an experiment as jobs of a Slurm cluster: `--launcher=slurm`.

The jobs are one array, submitted through submitit. Slurm or submitit requeues a job that is
preempted or runs out of time. A job that is lost (killed, or its node failed) is resubmitted by
this process. In both cases the run resumes from its last checkpoint.

The result of a run is read from its folder, as for a local run; the queue only shows whether a job
is still running. The folder also holds the id of its last job, so that the same command, started
again, waits for the existing jobs and does not submit others.
"""

import contextlib
import io
import os
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict, config_dict

from clutrr_jax import experiment
from clutrr_jax.experiment import ERROR, JOB_ID, SUMMARY
from clutrr_jax.report.results import failure
from clutrr_jax.report.write import write_report
from clutrr_jax.run import check_run_folder, identity, record_failure, run_all
from clutrr_jax.runs import check_folder, prepare_with
from clutrr_jax.slurm.job import Job
from clutrr_jax.training import preemption
from generator.errors import InputError
from generator.files import write_text

RESUBMISSIONS = 3  # of a lost job
TIMEOUTS = 20  # how often a job is requeued after running out of time
# An ended job without a result is lost after this many polls, since shared folders are delayed.
POLLS = 4
POLL_SECONDS = 5.0  # between polls
# Final states. GONE is not a Slurm state: the queue no longer lists the job.
ENDED = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "GONE", "NODE_FAIL",
    "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT",
}  # fmt: skip
REPORTED = {"PENDING": "queued", "RUNNING": "running", "SUSPENDED": "suspended"}
ROOT = Path(__file__).resolve().parents[2]


def settings() -> ConfigDict:
    """Returns the sbatch options of a job. Options without a value are left to the cluster."""
    placeholder = config_dict.placeholder
    return ConfigDict({
        "partition": placeholder(str),
        "account": placeholder(str),
        "qos": placeholder(str),
        "constraint": placeholder(str),
        "time": 240,  # minutes; a run that needs longer is requeued and resumes
        "cpus_per_task": placeholder(int),
        "mem": placeholder(str),  # such as 16GB
        "gpus_per_node": placeholder(int),
        "gres": placeholder(str),  # such as gpu:a100:1
        "array_parallelism": 256,  # jobs that run at the same time
    })  # fmt: skip


def run_on_cluster(
    config: ConfigDict, workdir: Path, options: ConfigDict, command: list[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Runs the unfinished runs of an experiment as jobs, which repeat the command line of this
    process, and writes the report. Returns the results, and {name of a failed run: reason}."""
    all_runs = experiment.runs(config)
    check_folder(workdir, config.name)
    unfinished = []
    for run in experiment.select(config.only, all_runs):
        goes_on = check_run_folder(workdir / run.name, identity(run))
        if goes_on or not (workdir / run.name / SUMMARY).exists():
            unfinished.append(run.name)
    failed: dict[str, str] = {}
    if unfinished:
        cluster = Slurm(config.name, workdir / "slurm", options)
        command = [*command, "--launcher=job", "--config.only"]
        failed = Jobs(workdir, command, cluster).run(unfinished)
    return write_report(config, all_runs, workdir, prepare_with(config)), failed


def run_job(config: ConfigDict, workdir: Path) -> None:
    """Trains and tests the run of a job. If it fails, its folder says why."""
    selected = experiment.select(config.only, experiment.runs(config))
    try:
        with preemption.handled():
            run_all(selected, workdir, prepare_with(config))
    except Exception as error:
        for run in selected:
            record_failure(workdir / run.name, error)
        raise


class Slurm:
    """The Slurm cluster of this machine. The folder is for logs and submitit's files."""

    def __init__(self, name: str, folder: Path, options: ConfigDict):
        try:
            from submitit import SlurmExecutor
        except ImportError:
            raise InputError(
                "--launcher=slurm: submitit is not installed, expected it by pip install submitit"
            ) from None
        for program in ("sbatch", "squeue", "srun"):
            if not shutil.which(program):
                raise InputError(f"--launcher=slurm: no {program} here, expected a Slurm cluster")
        self.folder = folder
        self.executor = SlurmExecutor(folder, max_num_timeout=TIMEOUTS)
        given = {name: value for name, value in options.items() if value is not None}
        if "cpus_per_task" in given:  # srun does not inherit this option from sbatch
            given["srun_args"] = [f"--cpus-per-task={given['cpus_per_task']}"]
        path = f"export PYTHONPATH={shlex.quote(str(ROOT))}${{PYTHONPATH:+:$PYTHONPATH}}"
        self.executor.update_parameters(
            **given, job_name=name, setup=[path], additional_parameters={"requeue": True}
        )

    def submit(self, jobs: list[Job]) -> list[str]:
        """Submits an array of jobs and returns their ids."""
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        try:
            with contextlib.redirect_stderr(io.StringIO()):  # submitit prints what it raises
                return [job.job_id for job in self.executor.submit_array(jobs)]
        except (FailedJobError, FailedSubmissionError) as error:
            raise InputError(f"--launcher=slurm: {_last_line(str(error))}") from None

    def states(self) -> dict[str, str]:
        """Returns the Slurm state of each of the user's jobs in the queue, by job id."""
        command = ["squeue", "--array", "--noheader", "--states=all", "--format=%i %T"]
        done = subprocess.run(
            [*command, f"--user={os.getuid()}"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise InputError(f"--launcher=slurm: {_last_line(done.stderr)}")
        return dict(line.split() for line in done.stdout.splitlines())


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["failed without a message"])[-1]


@dataclass
class _Waiting:
    """The job of a run that has no result yet."""

    id: str
    state: str = "PENDING"  # as printed last
    resubmissions: int = 0
    polls: int = 0  # since the job ended


class Jobs:
    """The jobs of the runs of an experiment, whose command line ends with the name of a run."""

    def __init__(self, workdir: Path, command: list[str], cluster: Slurm):
        self.workdir, self.command, self.cluster = workdir, command, cluster
        self.waiting: dict[str, _Waiting] = {}  # by name of the run
        self.failed: dict[str, str] = {}
        self.before: dict[str, int] = {}  # times of the summaries of finished runs that go on

    def run(self, names: list[str]) -> dict[str, str]:
        """Submits a job for each unfinished run that has none, and waits for all jobs. Returns
        {name of a failed run: reason}. Ctrl-C exits with code 130; the jobs continue."""
        try:
            self.before = {name: self._written(name) for name in names}
            states = self.cluster.states()
            for name in names:
                path = self.workdir / name / JOB_ID
                job = path.read_text().strip() if path.exists() else ""
                if states.get(job, "GONE") not in ENDED:
                    self.waiting[name] = _Waiting(job)
                    _print(name, f"already has job {job}")
            self._submit([name for name in names if name not in self.waiting])
            self._wait()
        except KeyboardInterrupt:
            ids = " ".join(sorted({job.id.split("_")[0] for job in self.waiting.values()}))
            if ids:
                print(
                    f"\nStopped waiting. {len(self.waiting)} jobs continue (scancel {ids} cancels "
                    "them); the same command waits for them again.",
                    flush=True,
                )
            sys.exit(130)
        return self.failed

    def _wait(self) -> None:
        last_error = ""
        while self.waiting:
            try:
                self._poll()
                last_error = ""
            except InputError as error:  # the Slurm controller is busy or restarting
                if str(error) != last_error:
                    print(f"{error}; retrying", file=sys.stderr, flush=True)
                last_error = str(error)
            if self.waiting:
                time.sleep(POLL_SECONDS)

    def _poll(self) -> None:
        """Reads the queue once, prints changes and resubmits lost jobs."""
        states, lost = self.cluster.states(), []
        for name, job in list(self.waiting.items()):
            state = states.get(job.id, "GONE")
            if state not in ENDED:
                job.polls = 0
                if state != job.state and state in REPORTED:
                    job.state = state
                    _print(name, f"{REPORTED[state]}, job {job.id}")
            elif self._is_lost(name, job, state):
                lost.append(name)
        self._submit(lost)

    def _is_lost(self, name: str, job: _Waiting, state: str) -> bool:
        """Handles an ended job. Returns whether it left no result and has to be resubmitted."""
        job.polls += 1
        if self._written(name) not in (0, self.before[name]):
            del self.waiting[name]
            _print(name, "finished")
        elif reason := failure(self.workdir / name):
            self._fail(name, reason)
        elif job.polls < POLLS:
            pass
        elif state == "CANCELLED":
            self._fail(name, f"job {job.id} was cancelled")
        elif job.resubmissions == RESUBMISSIONS:
            log = self.cluster.folder / f"{job.id}_0_log.err"
            count = 1 + RESUBMISSIONS
            self._fail(name, f"{count} jobs ended without a result ({state}); see {log}")
        else:
            _print(name, f"job {job.id} ended without a result ({state})")
            return True
        return False

    def _written(self, name: str) -> int:
        """Time at which the summary of a run was written, in ns; 0 if there is none."""
        path = self.workdir / name / SUMMARY
        return path.stat().st_mtime_ns if path.exists() else 0

    def _submit(self, names: list[str]) -> None:
        if not names:
            return
        for name in names:
            (self.workdir / name / ERROR).unlink(missing_ok=True)
        ids = self.cluster.submit([Job([*self.command, name]) for name in names])
        for name, job in zip(names, ids, strict=True):
            write_text(self.workdir / name / JOB_ID, job + "\n")
            lost = self.waiting.get(name)
            self.waiting[name] = _Waiting(job, resubmissions=lost.resubmissions + 1 if lost else 0)
            _print(name, f"{'resubmitted' if lost else 'submitted'} as job {job}")

    def _fail(self, name: str, reason: str) -> None:
        if not failure(self.workdir / name):  # the job wrote no reason
            write_text(self.workdir / name / ERROR, reason + "\n")
        del self.waiting[name]
        self.failed[name] = reason
        _print(name, f"failed: {reason}")


def _print(name: str, message: str) -> None:
    print(f"{name}: {message}", flush=True)
