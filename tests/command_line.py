"""Runs `launch.py` in the process of the tests, or in one of its own."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clutrr_jax.command_line import run_command_line
from clutrr_jax.launch import launch as command

ROOT = Path(__file__).parent.parent


def harnesses() -> Path:
    """Returns the environment of the evaluation harnesses. Skips the test if there is none."""
    folder = ROOT / ".venv-harnesses"
    if not folder.exists():
        pytest.skip("no .venv-harnesses, which `make test-slow` creates")
    return folder


class Done(NamedTuple):
    """The result of a command."""

    code: int
    out: str
    err: str


def launch(*arguments: str, config: str | None = "single") -> Done:
    """Runs launch.py with these arguments and an experiment, by name or path."""
    if config and "/" not in config:
        config = str(ROOT / "experiments" / f"{config}.py")
    file = [f"--config={config}"] if config else []
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = run_command_line(command, ["launch.py", *file, *arguments])
        except SystemExit as end:
            code = int(end.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


def start(*arguments: str, config: str = "single", **settings: Any) -> subprocess.Popen:
    """Starts launch.py in a process of its own, whose output and errors are one stream."""
    return subprocess.Popen(
        [sys.executable, "launch.py", f"--config=experiments/{config}.py", *arguments],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **settings,
    )  # fmt: skip


def error_of(done: Done) -> str:
    """Returns the error of a command with exit code 2: one line, after lines about its data."""
    *notes, error = done.err.splitlines()
    assert done.code == 2 and error.startswith("error: "), done
    assert all(" stories " in note for note in notes), done.err
    return error
