"""All runs of an experiment, and their report.

The folder of an experiment holds the report and the folders of its runs, see `clutrr_jax.run`.
"""

from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from clutrr_jax.data.prepare import GENERATE, Prepare, Prepared, data_sets, prepare_run
from clutrr_jax.devices import device_name
from clutrr_jax.experiment import DATA, experiment_of, runs, select
from clutrr_jax.report.results import REPORT_FILES
from clutrr_jax.report.write import write_report
from clutrr_jax.run import run_all, say
from clutrr_jax.training import distributed, preemption
from clutrr_jax.training.writers import NOTHING, Own
from generator.errors import InputError
from generator.files import read_json


def run_experiment(
    config: ConfigDict,
    workdir: Path,
    prepare: Prepare | None = None,
    start: tuple[Any, Any] | None = None,
    own: Own = NOTHING,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Trains and tests the unfinished runs of an experiment, and writes its report.

    On several hosts every host calls this function. The first host writes the folder; the others
    get a temporary folder for their data, and return no results. `start` are parameters and buffers
    that the replicas start from, `own` the writers and the callback of a user. Returns the results,
    and {name of a failed run: reason}.
    """
    all_runs = runs(config)
    selected = select(config.only, all_runs)
    with preemption.handled():
        say(f"Running on {device_name()}.")
        prepare = prepare or prepare_with(config)
        if distributed.is_primary():
            check_folder(workdir, config.name)
        failed = run_all(selected, workdir, prepare, start, own)
        if not distributed.is_primary():
            return {}, failed
        return write_report(config, all_runs, workdir, prepare), failed


def prepare_with(config: ConfigDict) -> Prepare:
    """Returns the function that reads or generates the data sets of an experiment. It keeps the
    last one, for the report."""
    last: dict[Path, Prepared] = {}

    def prepare(config_of_run: ConfigDict, folder: Path) -> Prepared:
        if folder not in last:
            last.clear()
            if GENERATE in data_sets(config_of_run.data):
                if not folder.exists():
                    say(f"Generating stories in {folder}")
                experiment_of(config).write_stories(config_of_run.generate.to_dict(), folder)
            last[folder] = prepare_run(config_of_run.data, folder)
        return last[folder]

    return prepare


def check_folder(workdir: Path, name: str) -> None:
    """Raises InputError if the folder of an experiment holds another one, or other files."""
    results = workdir / REPORT_FILES[0]
    if results.exists():
        if (other := read_json(results).get("name")) != name:
            raise InputError(f"{workdir}: holds the report of {other}, expected another folder")
        return
    is_ours = any(any(workdir.glob(depth + DATA)) for depth in ("", "*/", "*/*/"))
    for file in () if is_ours else filter(Path.exists, (workdir / name for name in REPORT_FILES)):
        raise InputError(f"{file}: not of an experiment, expected another --workdir")
