"""How fast it is, beside what the machine can do."""

import argparse


def whole(text: str) -> int:
    """A number of something, at least 1, on the command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}": expected 1 or more')
    return int(text)
