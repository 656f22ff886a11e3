"""`python -m generator [COMMAND] ...`: generates data, or runs one of the commands below."""

import sys
from importlib import import_module

from generator.errors import InputError

_COMMANDS = {
    "audit": "generator.audit",
    "stats": "generator.paraphrases.statistics",
    "import-paraphrases": "generator.paraphrases.importer",
    "workshop": "generator.workshop.command",
}


def main(argv: list[str]) -> int:
    """Runs a command; what the user can mend is told in one line, with exit code 2."""
    is_command = bool(argv) and argv[0] in _COMMANDS
    try:
        if argv and not is_command and not argv[0].startswith("-"):
            known = ", ".join(_COMMANDS)
            raise InputError(f'unknown command "{argv[0]}"; there are {known}, or options alone')
        module = import_module(_COMMANDS[argv[0]] if is_command else "generator.command")
        return module.main(argv[1:] if is_command else argv)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
