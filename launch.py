"""Trains models on CLUTRR, tests them, and draws the curve of accuracy against clause length.

  python launch.py --config=experiments/single.py --workdir=runs/first
  python launch.py --config=experiments/figure5.py --workdir=runs/figure5 --config.scale=laptop

An experiment is a file of settings: of one run, or of a grid of runs, which is a table or a figure
of the papers. Every setting can be given on the command line instead:

  --config.data=FILE         a CLUTRR data set: .zip, folder, .csv or .parquet
                             (empty: stories are generated, as --config.generate.* says;
                             generate: the same, and new train stories in every epoch)
  --config.models=A,B        which models, of: {models}
  --config.seed=N            seed of the first replica; the others have the next numbers
  --config.train.replicas=N  how many seeds are trained at once
  --config.train.epochs=N    passes over the train stories, where a model has no number of its own
  --config.gat.dropout=X     any setting of a model, by its name
  --config.gat.train.epochs=N  a train setting for one model alone
  --config.tensorboard=True  TensorBoard event files beside the metrics (needs tensorboardX)

and of a grid:

  --config.scale=S           how much of it: paper, laptop or smoke
  --config.data=DIR          the folder with the released data sets, data_*.zip, or one of them
                             (empty: stories are generated, for each replica its own; generate:
                             the same, and new train stories in every epoch)
  --config.only=A,B          these runs alone, by names such as supporting/gat, with * for any
                             letters; none: nothing is run, the report is drawn from what is there
  --launcher=slurm           its runs are jobs of a Slurm cluster (local: they run here); needs
                             submitit. Stopped, the same command waits for them again
  --slurm.partition=P        what a job asks for, by sbatch's names, time in minutes; of:
                             {slurm}.
                             Others as sbatch's environment variables, such as SBATCH_RESERVATION

and of many hosts, each of which runs the same command (see clutrr_jax/hosts.py):

  --hosts=auto               Slurm, Cloud TPU, GKE or MPI tell which hosts there are
  --hosts=HOST:PORT          of the first host, where they meet; with these two:
  --host_count=N             how many there are
  --host_number=I            which one this is, from 0: the first one reads and writes --workdir

All settings stand in experiments/base.py and at the top of each file in clutrr_jax/models/.

The run's folder, --workdir, receives report.html, results.md, results.json, curve.png, and a folder
for each model with its checkpoints, metrics and predictions. The same command again goes on where
the last one ended. In a grid each run has such a folder, and the grid itself has the first four; a
run that fails is told of, and the others go on. It runs on what JAX finds: CPU, GPU or TPU.
"""

# ruff: noqa: E402 - the first statement is about the imports
import gc

gc.disable()  # nothing of what is imported goes away: to look for it would be a fifth of the time

import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from textwrap import fill
from traceback import extract_tb
from typing import Any

import jax
from absl import app, flags, logging
from ml_collections import config_flags

from clutrr_jax.command import FolderLocked, cache_folder, folder_lock
from clutrr_jax.data.prepare import GENERATE, Prepared, prepare_run
from clutrr_jax.models import MODELS
from clutrr_jax.report import curve, page, results
from clutrr_jax.training import distributed, preemption
from clutrr_jax.training.loop import device_name, run_model
from clutrr_jax.training.settings import check
from experiments.grid import definition, report, slurm
from experiments.grid.measured import is_finished
from experiments.grid.stories import write_stories
from generator.errors import InputError, at, quiet_broken_pipe
from generator.files import read_json, write_text

gc.freeze()
gc.enable()

__doc__ = __doc__.replace("{models}", ", ".join(MODELS))
__doc__ = __doc__.replace(
    "{slurm}", fill(", ".join(slurm.settings()), 70).replace("\n", "\n" + 29 * " ")
)

_CONFIG = config_flags.DEFINE_config_file("config", None, "The experiment: a file of settings.")
_WORKDIR = flags.DEFINE_string("workdir", None, "The run's folder.")
# job: one run of a grid, by a job of the cluster while others run; nothing is written but its own.
_LAUNCHER = flags.DEFINE_enum("launcher", "local", ["local", "slurm", "job"], "Where runs run.")
_HOSTS = flags.DEFINE_string("hosts", None, "Where the hosts meet: auto or HOST:PORT.")
_HOST_COUNT = flags.DEFINE_integer("host_count", None, "How many hosts.")
_HOST_NUMBER = flags.DEFINE_integer("host_number", None, "Which host this is, from 0.")


def run(config, workdir: Path, write=write_stories) -> None:
    """One run, from its settings to its report.

    Args:
      config: its settings.
      workdir: its folder.
      write: generates the stories that config.generate asks for, into a folder.
    """
    models = definition.names(config.models)
    for name in models:
        if name not in MODELS:
            raise InputError(f'no model "{name}", expected some of {", ".join(MODELS)}')
        if config.data == GENERATE and MODELS[name].kind == "states":
            raise InputError(
                f'data "{GENERATE}": model "{name}" reads the states of a frozen BERT, which are '
                "computed once for all epochs; expected --config.data= or a data set"
            )
    if config.data == GENERATE and config.generate.dev_rows not in (0, "0"):
        raise InputError(
            f'data "{GENERATE}": generate.dev_rows is {config.generate.dev_rows}, expected 0: the '
            "dev rows are a share of the first train stories, train.dev_fraction"
        )
    check(config, models)
    say(f"Runs on {device_name()}.")
    preemption.install_handler()
    if distributed.first():
        with folder_lock(workdir):
            _run(config, models, workdir, write)
    else:
        with TemporaryDirectory() as folder:
            _train_and_test(config, models, workdir, Path(folder), write)


def _run(config, models: list[str], workdir: Path, write) -> None:
    claim(workdir / "config.json", identity(config))
    if config.data in ("", GENERATE):
        say(f"The stories: {workdir / 'data'}")
    data = _train_and_test(config, models, workdir, workdir / "data", write)
    found = results.collect(models, config.to_dict(), data, workdir, device_name())
    results.write(found, workdir)
    curve.draw(found, workdir / "curve.png")
    page.write(found, data.test, workdir)
    print(f"\n{results.plain_text(results.table(found))}\n\nThe report: {workdir / 'report.html'}")


def _train_and_test(config, models: list[str], workdir: Path, stories: Path, write) -> Prepared:
    """On every host; each of them reads the data, or generates the same to the folder `stories`,
    and the first one alone knows the run's folder."""
    if config.data in ("", GENERATE):
        write(config.generate.to_dict(), stories)
    data = prepare_run(config.data, config.generate.to_dict(), stories)
    say(f"Read {len(data.train):,} train and {len(data.test):,} test stories.")
    if distributed.first():
        claim(workdir / "data.json", {"stories": data.fingerprint})
    distributed.meet("data")
    distributed.check(identity(config) | {"data": data.fingerprint})
    for name in models:
        run_model(name, config, data, workdir / name)
        distributed.meet(f"end of {name}")
    return data


def say(text: str) -> None:
    """To the user, once for all hosts."""
    if distributed.first():
        print(text, flush=True)


def run_grid(config, workdir: Path) -> int:
    """The runs of a grid that are not finished, and its table; how many of them failed."""
    cells = definition.cells(config)
    chosen = definition.chosen(config, cells)
    for cell in chosen:
        check(cell.config, [cell.model])
    if _LAUNCHER.value == "job":
        return len(run_here(chosen, workdir, config.grid.write))
    for cell in cells:
        if (workdir / cell.name / "config.json").exists():
            claim(workdir / cell.name / "config.json", identity(cell.config))
    if _LAUNCHER.value == "slurm":
        failed = run_on_slurm(config.name, chosen, workdir)
    else:
        failed = run_here(chosen, workdir, config.grid.write)
    found, table = report.write(config, cells, workdir)
    print(f"\n{results.plain_text(table)}\n\n{report.claims_text(found['claims'])}")
    print(f"\nThe report: {workdir / 'report.html'}")
    for name, reason in failed.items():
        print(f"failed: {name}: {reason}", file=sys.stderr)
    return len(failed)


def run_here(cells: list[definition.Cell], workdir: Path, write) -> dict[str, str]:
    """Those of the runs that are not finished, one after the other; those that failed -> why."""
    failed = {}
    for number, cell in enumerate(cells, start=1):
        folder = workdir / cell.name
        if is_finished(folder):
            continue
        print(f"\n[{number}/{len(cells)}] {cell.name}", flush=True)
        (folder / report.ERROR).unlink(missing_ok=True)
        try:
            run(cell.config, folder, write)
        except FolderLocked:
            print("Another process is running it.", flush=True)
        except BrokenPipeError:
            raise
        except Exception as error:  # whatever it is, the others go on
            failed[cell.name] = _one_line(error)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / report.ERROR).write_text(failed[cell.name] + "\n")
            print(f"failed: {failed[cell.name]}", file=sys.stderr, flush=True)
    return failed


def run_on_slurm(name: str, cells: list[definition.Cell], workdir: Path) -> dict[str, str]:
    """Those of the runs that are not finished, each as a job; those that failed -> why."""
    left = [cell.name for cell in cells if not is_finished(workdir / cell.name)]
    if not left:
        return {}
    again = [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:]]
    cluster = slurm.Slurm(name, workdir / "slurm", flags.FLAGS.slurm)
    return slurm.run(left, workdir, [*again, "--launcher=job", "--config.only"], cluster)


def _one_line(error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error)
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def claim(path: Path, settings: dict) -> None:
    """Notes what the run is of, or checks that it still is.

    Raises:
      InputError: the folder holds a run of something else, or cannot be written.
    """
    settings = json.loads(json.dumps(settings))  # as it is read back: lists for tuples
    try:
        if path.exists():
            before = read_json(path)
            for name in {**before, **settings}:
                if before.get(name) != settings.get(name):
                    raise InputError(
                        f"{at(path)}: a run of another configuration: {name} was "
                        f'"{before.get(name)}", now "{settings.get(name)}"; expected the same, or '
                        "another --workdir"
                    )
            return
        write_text(path, json.dumps(settings, indent=1) + "\n")
    except OSError as error:
        raise InputError(f"{at(path)}: cannot be written ({error.strerror})") from None


def identity(config) -> dict:
    """The settings that a run consists of, by dotted name: all but what it writes besides."""
    flat = _flat(config.to_dict())
    del flat["tensorboard"]
    return flat


def _flat(config: dict, prefix: str = "") -> dict:
    """Nested settings -> {dotted name: value}."""
    flat: dict = {}
    for name, value in config.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def main(argv: list[str]) -> int:
    """The exit code."""
    logging.set_verbosity(logging.WARNING)
    if argv[1:]:
        raise InputError(f'command line: "{argv[1]}": expected --NAME=VALUE, with the "="')
    if flags.FLAGS["config"].value is None or _WORKDIR.value is None:
        raise InputError("--config=FILE and --workdir=DIR must be given; see --help")
    config = _CONFIG.value
    workdir = Path(_WORKDIR.value)
    _check_partners(config)
    if _HOSTS.value:
        if "grid" in config:
            raise InputError(
                f"--hosts={_HOSTS.value}: {config.name} is a grid, expected a single run; the runs "
                "of a grid are spread over hosts by --launcher=slurm"
            )
        distributed.start(_HOSTS.value, _HOST_COUNT.value, _HOST_NUMBER.value)
    if "counts" in config:
        print(report.write_counts(config.name, config.counts, workdir))
        return 0
    if "grid" not in config and _LAUNCHER.value != "local":
        raise InputError(
            f"--launcher={_LAUNCHER.value}: {config.name} is a single run, expected a grid; as a "
            "job it is given to sbatch"
        )
    if "grid" in config:
        return 1 if run_grid(config, workdir) else 0
    run(config, workdir)
    return 0


def _check_partners(config) -> None:
    """Raises InputError if a flag is given that does nothing without another."""
    given = [name for name in flags.FLAGS if flags.FLAGS[name].present]
    generates = config.get("data", "") in ("", GENERATE)
    for start, heeded, partner in (
        ("slurm.", _LAUNCHER.value != "local", "--launcher=slurm beside it"),
        ("host_", _HOSTS.value, "--hosts=HOST:PORT beside it"),
        ("config.generate.", generates, "no --config.data=FILE beside it"),
    ):
        for name in given:
            if name.startswith(start) and not heeded:
                raise InputError(f"--{name}: expected {partner}")


def parse_flags(argv: list[str]) -> list[str]:
    """The command line; a mistake in it, or in the experiment, is the user's, and one line."""
    if {"--help", "-h", "-help"} & set(argv):
        print(__doc__.strip())
        sys.exit(0)
    file = experiment_file(argv)
    try:
        # Looks at the command line at once, and runs the experiment.
        config_flags.DEFINE_config_dict("slurm", slurm.settings(), "What a job asks for.")
        return flags.FLAGS(argv)
    except Exception as error:  # whatever the experiment raises, too
        wrong = (str(error).splitlines() or [""])[0]
    known = {"slurm": slurm.settings()} | ({"config": run_experiment(file)} if file else {})
    for argument in argv:  # all that is said of --config.gat.bogus=1 is "'bogus'"
        name = argument.lstrip("-").partition("=")[0]
        place: Any = known
        for part in name.split(".") if name.partition(".")[0] in known else ():
            if not hasattr(place, "keys") or part not in place:
                raise InputError(f'command line: no setting "{name}"; see --help')
            place = place[part]
    raise InputError(f"command line: {wrong}; see --help")


def experiment_file(argv: list[str]) -> str:
    """The experiment on the command line, "" for none. Raises InputError if it is not there."""
    words = [word for argument in argv for word in argument.split("=", 1)]
    files = [file for flag, file in pairwise(words) if flag in ("--config", "-config")]
    file = files[-1] if files else ""
    if file and not Path(file.split(":", 1)[0]).is_file():
        raise InputError(f"{at(file)}: no such file, expected an experiment")
    return file


def run_experiment(file: str) -> Any:
    """The settings that an experiment, FILE or FILE:ARGUMENT, has before those of the command line.

    Raises:
      InputError: it cannot be run.
    """
    file, *given = file.split(":", 1)
    try:
        return run_path(file)["get_config"](*given)
    except InputError:
        raise
    except Exception as error:
        frames = extract_tb(error.__traceback__)
        own = [frame.lineno for frame in frames if frame.filename == file]
        line = getattr(error, "lineno", None) or (own or [1])[-1]
        raise InputError(
            f"{at(file)}, line {line}: {_one_line(error)}; expected an experiment with get_config()"
        ) from None


def cores() -> int:
    """How many this process may use; in a job of Slurm, how many it was given."""
    given = os.environ.get("SLURM_CPUS_ON_NODE")
    if given:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    # One device for each core, before JAX looks: replicas are spread over devices.
    jax.config.update("jax_num_cpu_devices", cores())
    jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
    # Small programs too, such as the one that draws first parameters; else those of a second alone.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    try:
        with quiet_broken_pipe():
            app.run(main, flags_parser=parse_flags)
    except InputError as error:
        distributed.leave(str(error))
    except OSError as error:  # a full disk, most likely
        where = f"{error.filename}: " if error.filename else ""
        again = "once that is mended, the same command goes on"
        distributed.leave(f"{where}{error.strerror or error}; {again}")
    except (Exception, KeyboardInterrupt) as error:
        distributed.fail(error)
        raise
