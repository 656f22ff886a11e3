"""Command lines with settings `--config.NAME=VALUE`."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import flags, logging
from flax.traverse_util import flatten_dict
from ml_collections import ConfigDict, config_flags

from clutrr_jax.experiment import replicas
from clutrr_jax.run import print_report
from clutrr_jax.settings import expected_instead, with_models
from clutrr_jax.training import distributed
from generator.errors import InputError, first_line, terminal, utf8


def run_command_line(command: Callable[[list[str]], int], argv: list[str]) -> int:
    """Runs a command that trains, and returns its exit code.

    A wrong setting or file and a full disk are reported in one line, with exit code 2.

    Args:
      command: function of a command line that returns an exit code.
      argv: the program name and its arguments.
    """
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


def without_help(argv: list[str]) -> list[str]:
    """Returns the arguments other than `--help`."""
    return [argument for argument in argv if argument not in ("--help", "-h", "-help")]


def parse_flags(
    argv: list[str],
    options: flags.FlagValues,
    groups_of: Callable[[Sequence[str]], dict[str, ConfigDict]],
) -> tuple[dict[str, ConfigDict], list[str]]:
    """Parses plain flags, and then the settings of groups.

    Args:
      argv: the program name and its arguments.
      options: defined plain flags, which receive their values.
      groups_of: function of the arguments that are no plain flags to the groups of settings by
        name, such as `config`.
    Returns:
      The groups with the values of the command line, and the arguments that are no plain flags.
    Raises:
      InputError: an unknown flag or setting, or a wrong value.
    """
    settings = flags.FlagValues()
    options.set_gnu_getopt(True)  # also parse flags after unknown ones such as `--config.seed 1`
    try:
        rest = options(argv, known_only=True)
        groups = groups_of(rest)
        check_names(rest, groups)
        for name, group in groups.items():
            config_flags.DEFINE_config_dict(name, group, flag_values=settings, sys_argv=rest)
        unknown = settings(rest)[1:]
    except (flags.Error, ValueError, TypeError) as error:
        reason = re.sub("invalid literal for int.*", "expected an integer", first_line(error))
        reason = re.sub(".*Non-boolean argument.*", "expected True or False", reason)
        reason = re.sub("could not convert string to float.*", "expected a number", reason)
        raise InputError(f"command line: {reason}; see --help") from None
    if unknown:
        raise InputError(f'command line: "{unknown[0]}": expected --NAME=VALUE, with the "="')
    return groups, rest


def flag_name(argument: str) -> str:
    """Returns the name in an argument such as `--config.seed=1`."""
    return argument.lstrip("-").partition("=")[0]


def choose_models(config: ConfigDict, arguments: Sequence[str]) -> ConfigDict:
    """Returns the settings of an experiment with those of the models that the arguments choose."""
    if "models" not in config:
        return config
    given = {flag_name(argument): argument.partition("=")[2] for argument in arguments}
    for name in ("models", "scale"):
        if f"config.{name}" in given and name in config:
            config[name] = given[f"config.{name}"]
    return with_models(config, replicas(config))


def check_names(arguments: Sequence[str], groups: dict[str, ConfigDict]) -> None:
    """Raises InputError for an argument such as `--config.gat.bogus=1` that names no setting."""
    known = flatten_dict({name: group.to_dict() for name, group in groups.items()}, sep=".")
    for argument in arguments:
        name = flag_name(argument)
        if name.partition(".")[0] in groups and name not in known:
            models = groups["config"].get("models", "").split(",")
            expected = expected_instead(name, known, models) or "see --help"
            raise InputError(f'command line: no setting "{name}"; {expected}')


def print_results(results: Mapping[str, Any], failed: Mapping[str, str], workdir: Path) -> int:
    """Prints the table of an experiment and its failed runs. Returns the exit code: 1 if some runs
    failed, else 0."""
    if distributed.is_primary():
        print_report(dict(results), workdir)
    for name, reason in failed.items():
        print(f"failed: {name}: {reason}", file=sys.stderr)
    return 1 if failed else 0
