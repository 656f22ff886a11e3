"""Trains and tests models on CLUTRR: an experiment is a list of runs and one report.

  COMMAND --workdir=runs/first --config.models=gat,prover --config.data=FILE
  COMMAND --config=my_experiment.py --workdir=runs/mine

--config is an experiment, a Python file whose function get_config() returns its settings, such as
clutrr_jax.settings.default_settings("mine", "gat,prover"). Without it, the models are trained on
one data set. Any setting can be changed on the command line. With --help and --config or
--config.models it lists them, with the settings of these models:

  --config.data=FILE         a CLUTRR data set: .zip, folder, .csv, .csv.gz, .parquet or .jsonl,
                             or a name such as clutrr-v1/gen23
                             (empty: generate stories with the settings --config.generate.*;
                             FILE,generate: also train on stories that are generated once)
  --config.models=A,B        the models, see the list below
  --config.seed=N            seed of the first replica; replica i has seed N + i
  --config.train.replicas=N  number of replicas, which differ in their seed
  --config.train.steps=N     optimizer steps at most; a replica stops earlier if it does not improve
  --config.train.epochs=N    passes over the train stories instead, without stopping early
  --config.gat.dropout=X     a setting of one model
  --config.gat.train.epochs=N  a train setting for one model only, before --config.train.epochs
  --config.log=A,B           where metrics also go: tensorboard (needs tensorboardX), wandb
  --config.sweep.NAME=X,Y    train several values of a setting such as gat.dropout in one program;
                             those of several settings are a grid. Dev loss chooses one
  --config.trace=DIR         write a profiler trace of the first epoch
  --config.only=A,B          train only these runs; names may contain wildcards, such as */gat*.
                             none: only write the report

Settings of experiments with several data sets, such as the tables and figures of the papers:

  --config.scale=S           paper, laptop or smoke
  --config.data=DIR          folder with the released data sets data_*.zip, or one of them
                             (empty: generate stories, with another seed for each replica)

On a cluster:

  --launcher=slurm           submit the runs as Slurm jobs and wait for them (needs submitit)
  --slurm.partition=P        an sbatch option of the jobs, see the list below
  --hosts=auto               several hosts train each run; start the same command on each of them.
                             Detects the hosts through Slurm, Cloud TPU, GKE, Kubernetes or MPI
  --hosts=HOST:PORT          address of the first host, with
  --host_count=N             the number of hosts and
  --host_number=I            the index of this host, from 0

--workdir receives the report (report.html, results.*, curve.*) and one folder per
run. The same command resumes an interrupted run.
"""

import sys
from argparse import Namespace
from pathlib import Path
from textwrap import fill

from ml_collections import ConfigDict

from clutrr_jax.command_line import change_settings, print_results, run_command_line
from clutrr_jax.counts import write_counts
from clutrr_jax.experiment import SCALE, models_of
from clutrr_jax.models import MODELS
from clutrr_jax.run import configure_jax
from clutrr_jax.runs import run_experiment
from clutrr_jax.settings import default_settings, describe
from clutrr_jax.slurm import launcher
from clutrr_jax.training import distributed
from clutrr_jax.user_files import load_experiment
from generator.errors import InputError, Parser


def main(arguments: list[str], command: str = "python -m clutrr_jax train") -> int:
    """Runs a command line and returns its exit code, see `run_command_line`."""
    configure_jax()
    return run_command_line(launch, [command, *arguments])


def help_text(argv: list[str]) -> str:
    """Returns the settings of the experiment in a command line; without one the module docstring
    with the lists of models and Slurm options."""
    if any(argument.startswith(("--config=", "--config.")) for argument in argv):
        config = parse([*argv, "--workdir=DIR"])[1]
        if "models" in config:
            config.models = ",".join(models_of(config))
            return "\n".join(describe(config, {"scale": SCALE} if "scale" in config else {}))
    lists = {"Models": MODELS, "Slurm options (time in minutes)": launcher.settings()}
    parts = [f"{title}:\n\n{fill(', '.join(names), 100)}" for title, names in lists.items()]
    return "\n\n".join([(__doc__ or "").strip().replace("COMMAND", argv[0]), *parts])


def launch(argv: list[str]) -> int:
    """Runs an experiment and returns the exit code: 1 if some runs failed, else 0."""
    others = [argument for argument in argv if argument not in ("--help", "-h")]
    if others != argv:
        print(help_text(others))
        return 0
    options, config, slurm_settings = parse(argv)
    workdir = Path(options.workdir)
    if "counts" in config:
        print(write_counts(config.name, config.counts(), workdir))
        return 0
    if options.hosts:
        distributed.initialize(options.hosts, options.host_count, options.host_number)
    if options.launcher == "job":
        launcher.run_job(config, workdir)
        return 0
    if options.launcher == "slurm":
        command = [sys.executable, "-m", "clutrr_jax", "train", *argv[1:]]
        results, failed = launcher.run_on_cluster(config, workdir, slurm_settings, command)
    else:
        results, failed = run_experiment(config, workdir)
    return print_results(results, failed, workdir)


def parse(argv: list[str]) -> tuple[Namespace, ConfigDict, ConfigDict]:
    """Parses the command line and executes the experiment file. Returns the plain flags, the
    settings of the experiment, and the options of Slurm jobs."""
    parser = Parser(prog="command line", description=None, add_help=False, allow_abbrev=False)
    for name in ("config", "workdir", "hosts"):
        parser.add_argument(f"--{name}")
    for name in ("host_count", "host_number"):
        parser.add_argument(f"--{name}", type=int)
    # job: one run, started by a Slurm job.
    parser.add_argument("--launcher", default="local", choices=["local", "slurm", "job"])
    options, rest = parser.parse_known_args(argv[1:])
    if not options.workdir:
        raise InputError("--workdir=DIR is required; see --help")
    if options.hosts == "":
        raise InputError("--hosts: empty, expected HOST:PORT or auto")
    if options.hosts and options.launcher != "local":
        raise InputError(f"--hosts={options.hosts}: expected no --launcher={options.launcher}")
    if {options.host_count, options.host_number} != {None} and options.hosts in (None, "auto"):
        raise InputError("--host_count, --host_number: expected --hosts=HOST:PORT as well")
    if options.launcher == "local" and any(name.startswith("--slurm.") for name in rest):
        raise InputError("--slurm.*: expected --launcher=slurm as well")
    if options.config is None:
        config = default_settings("single", "gat")
    else:
        config = load_experiment(options.config)
    settings = ConfigDict({"config": config, "slurm": launcher.settings()})
    change_settings(settings, rest)
    return options, settings.config, settings.slurm
