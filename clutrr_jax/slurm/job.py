"""The function that a Slurm job executes: one run of an experiment."""

import signal
import subprocess
import sys
from typing import Any


class Job:
    """Runs a command. A preempted or timed-out job is requeued and runs the same command."""

    def __init__(self, command: list[str]):
        self.command = command

    def __call__(self) -> None:
        # In a subprocess, so that submitit handles its signal at once: this process would handle
        # it only when JAX returns from an epoch. Slurm records the exit code of the command.
        code = subprocess.call(self.command, preexec_fn=_ignore_warnings)
        if code:
            sys.exit(code)

    def checkpoint(self) -> Any:
        """Returns what submitit submits in place of this job. The run has its own checkpoints."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def _ignore_warnings() -> None:
    """Ignores the warning signals, which Slurm sends to all processes of a job.

    Once the run has started, it installs its own handler for SIGTERM.
    """
    for warning in (signal.SIGTERM, signal.SIGUSR2):
        signal.signal(warning, signal.SIG_IGN)
