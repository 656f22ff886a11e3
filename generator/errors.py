"""Errors that the user can fix, and how a command reports them."""

import argparse
import codecs
import math
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, NoReturn

_MAX_LENGTH = 2000  # characters of a message
# Replacements of characters that a terminal does not have; others are escaped.
_ASCII = {"±": "+/-", "→": "->", "←": "<-", "⇒": "=>", "“": '"', "”": '"'}


class InputError(Exception):
    """Input from the user that cannot be used: a file, a setting or an argument.

    The message is one line: what is wrong, where (file, row, column), and what was expected.
    Commands print it and end with exit code 2. It may quote arbitrary input: characters that
    cannot be printed are escaped, and a long message is cut in the middle.
    """

    def __init__(self, message: str):
        if len(message) > _MAX_LENGTH:
            message = f"{message[: _MAX_LENGTH // 2]} ... {message[-_MAX_LENGTH // 2 :]}"
        super().__init__("".join(c if c.isprintable() else ascii(c)[1:-1] for c in message))


class CellError(Exception):
    """A cell that cannot be parsed: its column, and the problem."""


def at(file: object, row: int | None = None, column: str | None = None) -> str:
    """A position in the input: `FILE, row 3, column "story"`. Row 1 follows the header."""
    of_row = "" if row is None else f", row {row}"
    return f"{file}{of_row}" + ("" if column is None else f', column "{column}"')


def first_line(error: Exception) -> str:
    """The first line of the message of an error, or its repr if it has no message."""
    return (str(error).strip() or repr(error)).splitlines()[0]


def one_line(error: Exception) -> str:
    """Returns an error as one line of text."""
    if isinstance(error, InputError):
        return str(error)
    # A locked ConfigDict adds all of its settings to the message.
    line = first_line(error).partition(" Other fields present")[0]
    return f"{type(error).__name__}: {line}"


def utf8(arguments: list[str]) -> list[str]:
    """Returns the arguments of a command, also in a locale of ASCII.

    Raises:
      InputError: an argument is not UTF-8.
    """
    if sys.getfilesystemencoding() == "ascii":
        arguments = [os.fsencode(a).decode(errors="surrogateescape") for a in arguments]
    check_utf8(*arguments)
    return arguments


def check_utf8(*names: object) -> None:
    """Raises InputError for the name of a file that is not UTF-8, which no report could hold."""
    for name in map(str, names):
        if name.encode(errors="replace").decode() != name:
            raise InputError(f"{name}: not a name in UTF-8, expected another")


def one_of(name: str, value: str, known: Iterable[str]) -> None:
    """Raises InputError unless a setting has one of the known values."""
    if value not in known:
        raise InputError(f'{name} "{value}": expected one of {", ".join(known)}')


def check_range(name: str, value: float, low: float, high: float = math.inf) -> None:
    """Raises InputError unless a setting is at least `low` and at most `high`."""
    if not low <= value <= high:
        expected = f"{low} or more" if high == math.inf else f"{low} to {high}"
        raise InputError(f"{name} {value}: expected {expected}")


class Parser(argparse.ArgumentParser):
    """Raises InputError for bad arguments, and prints a description of several lines as it is."""

    def __init__(self, *, description: str | None, **settings: Any):
        super().__init__(description=description, **settings)
        if "\n" in (description or ""):
            self.formatter_class = argparse.RawDescriptionHelpFormatter

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{self.prog}: {message}; see --help")


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replaces the characters that an encoding does not have: a handler of `str.encode`."""
    assert isinstance(error, UnicodeEncodeError)
    characters = error.object[error.start : error.end]
    return "".join(_ASCII.get(c, ascii(c)[1:-1]) for c in characters), error.end


codecs.register_error("clutrr.ascii", _in_ascii)


def printable(text: str) -> str:
    """Returns a text as stdout shows it, in ASCII where its encoding does not have a character."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "clutrr.ascii").decode(encoding)


def plain_text(rows: Sequence[Sequence[str]]) -> str:
    """Formats a table, header first: columns of words are left-aligned, others right-aligned."""
    rows = [[printable(cell) for cell in row] for row in rows]
    columns = list(zip(*rows, strict=True))
    width = [max(map(len, column)) for column in columns]
    words = [i == 0 or any(cell[:1].isalpha() for cell in c[1:]) for i, c in enumerate(columns)]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if left else cell.rjust(w)
            for cell, w, left in zip(row, width, words, strict=True)
        ).rstrip()
        for row in rows
    )


@contextmanager
def terminal() -> Iterator[None]:
    """Lets a command print on a terminal of any encoding, or into a pipe.

    Ends the process without a message when the reader of stdout is gone (`... | head -1`). The exit
    code is that of a process that SIGPIPE has ended.

    Raises:
      InputError: a name of a file that the encoding of the locale does not have.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="clutrr.ascii")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except UnicodeEncodeError as error:
        if sys.getfilesystemencoding() != "ascii":
            raise
        raise InputError(
            f"{error.object}: no name in ASCII, expected a locale of UTF-8, such as LC_ALL=C.UTF-8"
        ) from None
    except BrokenPipeError:
        # Python flushes stdout once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)


def run_command(main: Callable[[list[str]], int | None], argv: list[str]) -> int:
    """Runs a command and returns its exit code.

    An InputError is printed as one line, with exit code 2; Ctrl-C ends the command with 130.
    """
    try:
        with terminal():
            return main(utf8(argv)) or 0
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
