"""Errors and exit codes of all commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clutrr_jax.command import folder_lock
from generator.errors import InputError, run_command

ROOT = Path(__file__).parent.parent


def test_a_message_is_one_short_line() -> None:
    message = str(InputError("x.csv: \x1b[2J\n\ud800 " + "a" * 10**6 + " expected b"))
    assert message.startswith("x.csv: \\x1b[2J\\n\\ud800 aaa") and message.endswith("expected b")
    assert message.isprintable() and len(message) < 2100


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [(InputError("x.csv: bad"), 2, "error: x.csv: bad\n"), (KeyboardInterrupt(), 130, "inter")],
)
def test_exit_codes(error: BaseException, code: int, message: str, capsys) -> None:
    def main(argv: list[str]) -> None:
        if argv:
            raise error

    assert run_command(main, []) == 0
    assert run_command(main, ["fail"]) == code
    assert capsys.readouterr().err.startswith(message)


def test_a_folder_that_cannot_be_locked_is_one_line(tmp_path, monkeypatch) -> None:
    def flock(*arguments):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    expected = r"cannot be locked \(No locks available\), expected"
    with pytest.raises(InputError, match=expected), folder_lock(tmp_path):
        pass


@pytest.mark.parametrize("command", [["-m", "generator", "audit"], ["launch.py", "--help"]])
def test_a_closed_pipe_ends_a_command_quietly(command: list[str], small_folder: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([sys.executable, *command, str(small_folder)], cwd=ROOT,
                          stdout=write_end, stderr=subprocess.PIPE, timeout=300)  # fmt: skip
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, b"")
