"""Command lines with settings `--config.NAME=VALUE`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import logging
from ml_collections import ConfigDict

from clutrr_jax.report.accuracy import accuracy_table
from clutrr_jax.report.results import REPORT_FILES
from clutrr_jax.report.tables import SMOKE, claims_text, notes
from clutrr_jax.settings import change
from clutrr_jax.training import distributed
from generator.errors import InputError, plain_text, terminal, utf8


def run_command_line(command: Callable[[list[str]], int], argv: list[str]) -> int:
    """Runs a command that trains, given the program name and its arguments, and returns its exit
    code. A wrong setting or file and a full disk are reported in one line, with code 2."""
    logging.set_verbosity(logging.WARNING)
    try:
        with terminal():
            return command([argv[0], *utf8(argv[1:])])
    except InputError as error:
        distributed.exit_with_error(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        distributed.exit_with_error(
            f"{where}{error.strerror or error}; then run the same command to resume"
        )
    except KeyboardInterrupt as error:
        distributed.abort(error)
        print("interrupted; the same command resumes", file=sys.stderr)
        return 130
    except Exception as error:
        distributed.abort(error)
        raise


def change_settings(settings: ConfigDict, arguments: Sequence[str]) -> None:
    """Changes the settings of groups, such as `config`, by arguments such as `--config.seed=1`."""
    rest = iter(arguments)
    for argument in rest:
        name, is_given, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--") or name.partition(".")[0] not in settings:
            names = " or ".join(f"--{group}.NAME=VALUE" for group in settings)
            raise InputError(f'command line: "{argument}": expected {names}; see --help')
        try:
            change(settings, name, value if is_given else next(rest, ""))
        except InputError as error:
            raise InputError(f"command line: {error}; see --help") from None


def print_results(results: dict[str, Any], failed: Mapping[str, str], workdir: Path) -> int:
    """Prints the table of an experiment and its failed runs. Returns the exit code: 1 if some runs
    failed, else 0."""
    if distributed.is_primary():
        parts = [
            plain_text(accuracy_table(results).texts()),
            "±: one standard error over replicas; the report has 95 % intervals.",
            SMOKE if results["scale"] == "smoke" else "",
            *notes(results),
            claims_text(results),
            f"Report: {workdir / REPORT_FILES[3]}",
        ]
        print("\n" + "\n\n".join(filter(None, parts)))
    for name, reason in failed.items():
        print(f"failed: {name}: {reason}", file=sys.stderr)
    return 1 if failed else 0
