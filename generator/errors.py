"""The one exception for mistakes that a user can mend: wrong files, wrong settings."""

import argparse
from typing import NoReturn


class InputError(Exception):
    """Something the user gave cannot be used.

    The message is one line: what is wrong, where (file, row, column), and what was expected.
    Commands print it as it is and end with exit code 2.
    """


def at(file: object, row: int | None = None, column: str | None = None) -> str:
    """A place in the user's input: `FILE, row 3, column "story"`. Row 1 is below the header."""
    place = str(file)
    if row is not None:
        place += f", row {row}"
    if column is not None:
        place += f', column "{column}"'
    return place


class Parser(argparse.ArgumentParser):
    """Mistakes in the arguments of a command are InputErrors like any other."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{self.prog}: {message}; see --help")
