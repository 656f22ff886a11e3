"""Speed measurements.

    python -m benchmarks models      training and test speed of the models, against matmul peak
    python -m benchmarks lstm        training speed of a BiLSTM, next to PyTorch
    python -m benchmarks graphs      training speed of graph models, next to PyTorch Geometric
    python -m benchmarks generator   speed of the story generator

Each has its own options: `python -m benchmarks NAME --help`.
"""

import sys
from importlib import import_module

from generator.errors import InputError, run_command

BENCHMARKS = ("models", "lstm", "graphs", "generator")


def main(argv: list[str]) -> int:
    """Runs one benchmark and returns the exit code."""
    name, *rest = argv or ["--help"]
    if name in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    if name not in BENCHMARKS:
        raise InputError(f'unknown benchmark "{name}", expected {", ".join(BENCHMARKS)}')
    return import_module(f"benchmarks.{name}").main(rest)


if __name__ == "__main__":
    sys.exit(run_command(main, sys.argv[1:]))
