"""Speed measurements: `python -m benchmarks --help`."""

import argparse

from generator.errors import Parser


def parser(name: str, description: str | None) -> Parser:
    """Returns the argument parser of a benchmark."""
    return Parser(prog=f"python -m benchmarks {name}", description=description)


def positive_int(text: str) -> int:
    """Parses a command-line value that must be a whole number, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}": expected 1 or more')
    return int(text)
