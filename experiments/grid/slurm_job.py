"""What a job of a Slurm cluster does: one run of a grid, see `experiments.slurm`."""

import signal
import subprocess
import sys
from typing import Any


class Job:
    """Runs a command. Pre-empted or out of time, it is queued again, and runs the same command."""

    def __init__(self, command: list[str]):
        self.command = command

    def __call__(self) -> None:
        # In a process of its own: submitit acts on the signal at once here, and not only when
        # JAX returns from an epoch. Another exit code than 0 is the job's too, for Slurm's books.
        code = subprocess.call(self.command, preexec_fn=_unmoved)
        if code:
            sys.exit(code)

    def checkpoint(self) -> Any:
        """What is submitted in its stead: the run has its own checkpoints."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def _unmoved() -> None:
    """Slurm warns all processes of a job. The run has no use for it before it has begun, when it
    heeds SIGTERM itself."""
    for warning in (signal.SIGTERM, signal.SIGUSR2):
        signal.signal(warning, signal.SIG_IGN)
