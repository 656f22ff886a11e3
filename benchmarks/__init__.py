"""Speed measurements: `python -m benchmarks --help`."""

import argparse


def positive_int(text: str) -> int:
    """Parses a command-line value that must be a whole number, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}": expected 1 or more')
    return int(text)
