"""Trains and tests models on one data set: `python -m clutrr_jax train`.

  python -m clutrr_jax train --workdir=runs/first --config.models=gat,prover --config.data=FILE

It is the experiment `single` of launch.py: the same settings, folder and report. With --help and
--config.models=A,B it lists the settings of these models. The same command resumes.
"""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from absl import flags
from ml_collections import ConfigDict

from clutrr_jax.cli import run
from clutrr_jax.command_line import (
    choose_models,
    parse_flags,
    print_results,
    run_command_line,
    without_help,
)
from clutrr_jax.models import MODELS
from clutrr_jax.run import configure_jax, run_experiment
from clutrr_jax.settings import default_settings, describe
from generator.errors import InputError


def main(arguments: list[str]) -> int:
    """Trains and tests models; returns the exit code, see `run_command_line`."""
    return run_command_line(train, ["python -m clutrr_jax train", *arguments])


def train(argv: list[str]) -> int:
    """Runs a command line and returns its exit code: 1 if a run failed, else 0.

    Raises:
      InputError: a wrong flag, setting or data file.
    """
    arguments = without_help(argv)
    options = flags.FlagValues()
    flags.DEFINE_string("workdir", None, "", flag_values=options)

    def groups_of(rest: Sequence[str]) -> dict[str, ConfigDict]:
        return {"config": choose_models(default_settings("single", "gat"), rest)}

    groups, _ = parse_flags(arguments, options, groups_of)
    if arguments != argv:
        names = fill(", ".join(MODELS), 100)
        print("\n".join([__doc__, f"Models:\n\n{names}\n", *describe(groups["config"], {})]))
        return 0
    if not options.workdir:
        raise InputError("--workdir=DIR is required; see --help")
    configure_jax()
    results, failed = run_experiment(groups["config"], Path(options.workdir))
    return print_results(results, failed, Path(options.workdir))


if __name__ == "__main__":
    run(main)
