"""The one exception for mistakes that a user can mend: wrong files, wrong settings."""

import argparse
from typing import Any, NoReturn

_LONGEST = 2000  # characters of a message


class InputError(Exception):
    """Something the user gave cannot be used.

    The message is one line: what is wrong, where (file, row, column), and what was expected.
    Commands print it as it is and end with exit code 2. What it quotes of the input may be
    anything: signs that cannot be printed are escaped, and a long text is cut in the middle.
    """

    def __init__(self, message: str):
        if len(message) > _LONGEST:
            message = f"{message[: _LONGEST // 2]} ... {message[-_LONGEST // 2 :]}"
        super().__init__("".join(c if c.isprintable() else ascii(c)[1:-1] for c in message))


def at(file: object, row: int | None = None, column: str | None = None) -> str:
    """A place in the user's input: `FILE, row 3, column "story"`. Row 1 is below the header."""
    place = str(file)
    if row is not None:
        place += f", row {row}"
    if column is not None:
        place += f', column "{column}"'
    return place


def one_of(settings: Any, name: str, *known: str, of: str = "") -> str:
    """The setting of that name, which `of` says more of: `train.`. Raises InputError if it is none
    of the known words."""
    if settings[name] not in known:
        raise InputError(f'{of}{name} "{settings[name]}": expected one of {", ".join(known)}')
    return settings[name]


class Parser(argparse.ArgumentParser):
    """Mistakes in the arguments of a command are InputErrors like any other."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{self.prog}: {message}; see --help")
