"""`python -m benchmarks [models|generator|reading|start] ...`; see `--help` of each."""

import sys
from importlib import import_module

from generator.errors import InputError

_COMMANDS = {name: f"benchmarks.{name}" for name in ("models", "generator", "reading", "start")}


def main(argv: list[str]) -> int:
    """Runs one benchmark; `models` is the default."""
    command, rest = ("models", argv) if not argv or argv[0].startswith("-") else (argv[0], argv[1:])
    try:
        if command not in _COMMANDS:
            raise InputError(f'unknown benchmark "{command}", expected {", ".join(_COMMANDS)}')
        return import_module(_COMMANDS[command]).main(rest)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
