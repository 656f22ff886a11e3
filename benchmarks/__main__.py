"""Speed measurements.

    python -m benchmarks models      training and test speed of the models, against matmul peak
    python -m benchmarks lstm        training speed of a BiLSTM, next to PyTorch
    python -m benchmarks generator   speed of the story generator
    python -m benchmarks reading     time from a data file to padded batches

Without a name, `models` is run. Each has its own options: `python -m benchmarks NAME --help`.
"""

import sys
from importlib import import_module

from generator.errors import InputError, run_command

BENCHMARKS = ("models", "lstm", "generator", "reading")


def main(argv: list[str]) -> int:
    """Runs one benchmark and returns the exit code."""
    return run_command(_run, argv)


def _run(argv: list[str]) -> int:
    if argv and argv[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    name, rest = ("models", argv) if not argv or argv[0].startswith("-") else (argv[0], argv[1:])
    if name not in BENCHMARKS:
        raise InputError(f'unknown benchmark "{name}", expected {", ".join(BENCHMARKS)}')
    return import_module(f"benchmarks.{name}").main(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
