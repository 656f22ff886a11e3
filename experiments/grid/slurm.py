"""The runs of a grid as jobs of a Slurm cluster: `--launcher=slurm`.

They are one array of jobs, submitted through submitit. A job that is pre-empted or out of time is
queued again by submitit or Slurm, one that is lost (killed, its node gone) is submitted again from
here; either goes on from the run's last checkpoint. What a run came to is read from its folder, as
if it had run here; the queue only says whether a job still works on it. The folder also has the
job's id, so that the same command, started again, waits for the job and submits no second one.
"""

import contextlib
import io
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ml_collections import ConfigDict, config_dict

from experiments.grid.measured import is_finished
from experiments.grid.report import ERROR
from experiments.grid.slurm_job import Job
from generator.errors import InputError

JOB = "slurm_job.txt"  # in the folder of a run: the id of its last job
AGAIN = 3  # times that a lost job is submitted again
TIMEOUTS = 20  # times that a job may run out of its time
# Looks at the queue before an ended job without a result is lost: shared folders lag behind.
LOOKS = 4
PAUSES = (2.0, 30.0)  # seconds between two looks: after a change, and at most
# States that Slurm does not leave. GONE is ours: the queue has forgotten the job.
ENDED = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "GONE", "NODE_FAIL",
    "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT",
}  # fmt: skip
WORDS = {"PENDING": "queued", "RUNNING": "running", "SUSPENDED": "suspended"}
ROOT = Path(__file__).resolve().parents[2]


def settings() -> ConfigDict:
    """What a job asks for, by sbatch's names; where nothing is given, the cluster's own way."""
    placeholder = config_dict.placeholder
    return ConfigDict({
        "partition": placeholder(str),
        "account": placeholder(str),
        "qos": placeholder(str),
        "constraint": placeholder(str),
        "time": 240,  # minutes; a run that needs longer is queued again and goes on
        "cpus_per_task": placeholder(int),
        "mem": placeholder(str),  # such as 16GB
        "gpus_per_node": placeholder(int),
        "gres": placeholder(str),  # such as gpu:a100:1
        "array_parallelism": 256,  # how many jobs run at once
    })  # fmt: skip


class Slurm:
    """The cluster of this machine.

    Args:
      name: of the jobs.
      folder: for their logs, and what submitit keeps.
      asked: `settings`.
    Raises:
      InputError: submitit is not installed, or there is no Slurm.
    """

    def __init__(self, name: str, folder: Path, asked: ConfigDict):
        try:
            from submitit import SlurmExecutor
        except ImportError:
            raise InputError(
                "--launcher=slurm: submitit is not installed, expected it by "
                "pip install submitit==1.5.4"
            ) from None
        for program in ("sbatch", "squeue", "srun"):
            if not shutil.which(program):
                raise InputError(f"--launcher=slurm: no {program} here, expected a Slurm cluster")
        self.folder = folder
        self.executor = SlurmExecutor(folder, max_num_timeout=TIMEOUTS)
        given = {key: value for key, value in asked.items() if value is not None}
        if "cpus_per_task" in given:  # which srun does not take over from sbatch
            given["srun_args"] = [f"--cpus-per-task={given['cpus_per_task']}"]
        path = f"export PYTHONPATH={shlex.quote(str(ROOT))}${{PYTHONPATH:+:$PYTHONPATH}}"
        self.executor.update_parameters(
            **given, job_name=name, setup=[path], additional_parameters={"requeue": True}
        )

    def submit(self, jobs: list[Job]) -> list[str]:
        """Their ids."""
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        try:
            with contextlib.redirect_stderr(io.StringIO()):  # submitit prints what it raises
                return [job.job_id for job in self.executor.submit_array(jobs)]
        except (FailedJobError, FailedSubmissionError) as error:
            raise InputError(f"--launcher=slurm: {_last_line(str(error))}") from None

    def states(self) -> dict[str, str]:
        """Id of each of the user's jobs that the queue knows -> its state, by Slurm's name."""
        command = ["squeue", "--array", "--noheader", "--states=all", "--format=%i %T"]
        done = subprocess.run(
            [*command, f"--user={os.getuid()}"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise InputError(f"--launcher=slurm: {_last_line(done.stderr)}")
        return dict(line.split() for line in done.stdout.splitlines())

    def log(self, job: str) -> Path:
        """What the job wrote to its standard error."""
        return self.folder / f"{job}_0_log.err"


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["failed without a word"])[-1]


def run(names: Iterable[str], workdir: Path, command: list[str], cluster: Slurm) -> dict[str, str]:
    """Sees to it that each of the runs has a job, and waits for all of them. Ends the program when
    it is interrupted; the jobs go on.

    Args:
      names: of the runs, none of them finished.
      workdir: of the grid.
      command: what runs one of them, with its name appended.
    Returns:
      the runs that failed -> why.
    Raises:
      InputError: a mistake in what is asked of the cluster, or it does not answer.
    """
    jobs = _Jobs(workdir, command, cluster)
    try:
        jobs.start(list(names))
        jobs.wait()
    except KeyboardInterrupt:
        ids = " ".join(sorted({one.job.split("_")[0] for one in jobs.waiting.values()}))
        if ids:
            print(
                f"\nNo longer waiting. {len(jobs.waiting)} jobs go on (scancel {ids} ends them); "
                "the same command waits for them again.",
                flush=True,
            )
        sys.exit(130)
    return jobs.failed


@dataclass
class _Waiting:
    """The job of a run."""

    job: str
    state: str = "PENDING"  # the last that was told
    again: int = 0  # times that it was submitted again
    looks: int = 0  # in which it had ended and left no result


class _Jobs:
    """The jobs of the runs of a grid."""

    def __init__(self, workdir: Path, command: list[str], cluster: Slurm):
        self.workdir, self.command, self.cluster = workdir, command, cluster
        self.waiting: dict[str, _Waiting] = {}
        self.failed: dict[str, str] = {}

    def start(self, names: list[str]) -> None:
        """Submits the runs that have no job."""
        states = self.cluster.states()
        for name in names:
            job = self._noted(name)
            if states.get(job, "GONE") not in ENDED:
                self.waiting[name] = _Waiting(job)
                _tell(name, f"has job {job} already")
        self._submit([name for name in names if name not in self.waiting])

    def wait(self) -> None:
        """Until every job has ended, those that are submitted meanwhile included."""
        pause, trouble = PAUSES[0], ""
        while self.waiting:
            try:
                changed, trouble = self.look(), ""
            except InputError as error:  # a busy controller, or one that starts anew
                if str(error) != trouble:
                    print(f"{error}; asking again", file=sys.stderr, flush=True)
                changed, trouble = False, str(error)
            pause = PAUSES[0] if changed else min(PAUSES[1], 1.5 * pause)
            if self.waiting:
                time.sleep(pause)

    def look(self) -> bool:
        """One look at the queue; whether it was different from the last."""
        states, lost, changed = self.cluster.states(), [], False
        for name, one in list(self.waiting.items()):
            state = states.get(one.job, "GONE")
            if state not in ENDED:
                one.looks = 0
                if state != one.state and state in WORDS:
                    one.state, changed = state, True
                    _tell(name, f"{WORDS[state]}, job {one.job}")
                continue
            changed = True
            one.looks += 1
            error = self.workdir / name / ERROR
            if is_finished(self.workdir / name):
                del self.waiting[name]
                _tell(name, "finished")
            elif error.exists():
                self._fail(name, error.read_text(errors="replace").strip())
            elif self._noted(name) != one.job:  # submitted again by another one who waits
                one.job, one.looks = self._noted(name), 0
            elif one.looks < LOOKS:
                pass
            elif state == "CANCELLED":
                self._fail(name, f"job {one.job} was cancelled")
            elif one.again < AGAIN:
                _tell(name, f"job {one.job} ended without a result ({state})")
                lost.append(name)
            else:
                log = self.cluster.log(one.job)
                self._fail(name, f"{1 + AGAIN} jobs ended without a result ({state}); see {log}")
        self._submit(lost)
        return changed

    def _submit(self, names: list[str]) -> None:
        if not names:
            return
        for name in names:
            (self.workdir / name).mkdir(parents=True, exist_ok=True)
            (self.workdir / name / ERROR).unlink(missing_ok=True)
        ids = self.cluster.submit([Job([*self.command, name]) for name in names])
        for name, job in zip(names, ids, strict=True):
            (self.workdir / name / JOB).write_text(job + "\n")
            again = self.waiting[name].again + 1 if name in self.waiting else 0
            self.waiting[name] = _Waiting(job, again=again)
        for name in names:
            one = self.waiting[name]
            _tell(name, f"submitted{' again' if one.again else ''} as job {one.job}")

    def _fail(self, name: str, reason: str) -> None:
        (self.workdir / name / ERROR).write_text(reason + "\n")
        del self.waiting[name]
        self.failed[name] = reason
        _tell(name, f"failed: {reason}")

    def _noted(self, name: str) -> str:
        """The id of the run's last job; empty if there was none."""
        path = self.workdir / name / JOB
        return path.read_text().strip() if path.exists() else ""


def _tell(name: str, what: str) -> None:
    print(f"{name}: {what}", flush=True)
