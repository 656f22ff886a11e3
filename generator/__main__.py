"""`python -m generator [COMMAND] ...`: generates data, or runs one of the commands below."""

import sys
from importlib import import_module

from generator.errors import InputError, run_command

_COMMANDS = {
    "audit": "generator.audit",
    "stats": "generator.paraphrases.statistics",
    "import-paraphrases": "generator.paraphrases.importer",
    "workshop": "generator.workshop.data_set",
}


def _dispatch(argv: list[str]) -> int:
    if argv and argv[0] in _COMMANDS:
        return import_module(_COMMANDS[argv[0]]).main(argv[1:])
    if argv and not argv[0].startswith("-"):
        raise InputError(
            f'unknown command "{argv[0]}"; expected {", ".join(_COMMANDS)}, or options only'
        )
    return import_module("generator.command").main(argv)


def main(argv: list[str]) -> int:
    """Runs a command and returns its exit code: 2 after an error that the user can fix."""
    return run_command(_dispatch, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
