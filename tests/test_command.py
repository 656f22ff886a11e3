"""Errors and exit codes of all commands."""

import os
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from clutrr_jax.command_line import run_command_line
from clutrr_jax.score import main as score
from generator.__main__ import main as generator
from generator.errors import InputError, plain_text, run_command
from tests.command_line import error_of, launch

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


def test_a_name_that_is_not_utf_8_is_one_line(small_folder: Path, capsys) -> None:
    """The operating system accepts any bytes; reports and messages are UTF-8."""
    name = os.fsdecode(b"na\xefve")
    expected = "error: na\\udcefve: not a name in UTF-8, expected another"
    for arguments in (["--out", name], ["audit", name]):
        assert generator(arguments) == 2 and capsys.readouterr() == ("", f"{expected}\n")
    options = ["--data", str(small_folder), "--predictions"]
    for arguments in ([*options, name], [*options, "p.csv", "--out", name], ["--data", name]):
        assert run_command(score, arguments) == 2 and capsys.readouterr() == ("", f"{expected}\n")
    assert error_of(launch(f"--config.data={small_folder}", "--workdir", name)) == expected
    assert not os.path.exists(name)


@pytest.mark.parametrize("command", [["-m", "generator", "audit"], ["launch.py", "--help"]])
def test_a_closed_pipe_ends_a_command_quietly(command: list[str], small_folder: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([sys.executable, *command, str(small_folder)], cwd=ROOT,
                          stdout=write_end, stderr=subprocess.PIPE, timeout=300)  # fmt: skip
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("run", [run_command, run_command_line])
def test_a_terminal_without_a_character_shows_it_in_ascii(run, monkeypatch) -> None:
    """Columns stay aligned, in an encoding with some of the characters as well."""

    def main(argv: list[str]) -> None:
        print(plain_text([["model", "k=2", "k=3"], ["é→", ".90 ±.01", "1.00"], ["b", "1", "中"]]))
        print("±", file=sys.stderr)

    printed = {}
    for encoding in ("ascii", "latin-1", "utf-8"):
        out, err = (TextIOWrapper(BytesIO(), encoding=encoding) for _ in range(2))
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        assert run(main, ["program"]) in (0, None)
        err.flush()
        printed[encoding] = [s.buffer.getvalue().decode(encoding) for s in (out, err)]
    assert printed["ascii"] == [
        "model          k=2     k=3\n"
        "\\xe9->  .90 +/-.01    1.00\n"
        "b                1  \\u4e2d\n", "+/-\n",
    ]  # fmt: skip
    assert printed["latin-1"][0].splitlines()[1] == "é->    .90 ±.01    1.00"
    assert printed["utf-8"][0].splitlines()[1] == "é→     .90 ±.01  1.00"


def test_names_in_a_locale_of_ascii(tmp_path) -> None:
    """Arguments are read as UTF-8; a file that only a locale of UTF-8 can name is refused."""
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for arguments, expected in (
        (["né"], b'error: unknown command "n\\xe9"; expected'),
        (["--out", str(tmp_path / "né"), "--train-rows", "1", "--test-rows", "1"],
         b"config.json: no name in ASCII, expected a locale of UTF-8, such as LC_ALL=C.UTF-8"),
    ):  # fmt: skip
        command = [sys.executable, "-m", "generator", *arguments]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **locale},
                              capture_output=True, timeout=300)  # fmt: skip
        assert done.returncode == 2 and expected in done.stderr
        assert done.stderr.count(b"\n") == 1
