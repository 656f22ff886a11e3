"""A single run: generate or read the data, train and test the models, write the report.

A run folder holds `config.json` (the settings), `data.json` (the fingerprint of the stories),
`data/` (the stories, if they are generated), one folder per model (see
`clutrr_jax.training.loop`), and the report: `report.html`, `results.md`, `results.json` and
`curve.png`. Running into the same folder again resumes where the last run ended.
"""

import json
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
from flax.traverse_util import flatten_dict

from clutrr_jax.command import cache_folder, folder_lock
from clutrr_jax.data.prepare import Prepared, generates, prepare_run
from clutrr_jax.devices import available_cores, device_name
from clutrr_jax.models import MODELS
from clutrr_jax.models.check import check_model
from clutrr_jax.report.tables import diverged, results_table
from clutrr_jax.report.write import write_report
from clutrr_jax.settings import check, model_names, train_settings
from clutrr_jax.training import distributed, preemption
from clutrr_jax.training.loop import run_model
from generator.cells import plain_text
from generator.config import Config
from generator.errors import InputError
from generator.files import read_json, write_text
from generator.write import write_dataset

# Writes the stories for the settings `config.generate` into a folder.
WriteStories = Callable[[dict[str, Any], Path], None]


def write_stories(settings: dict[str, Any], folder: Path) -> None:
    """Writes the data set for the settings `config.generate`; the default of `run`."""
    write_dataset(Config.from_json(settings), folder)


def run(config: Any, workdir: Path, write_stories: WriteStories = write_stories) -> None:
    """Trains and tests the models of a run, writes its report, and prints the table.

    Args:
      config: a ConfigDict with the settings in `clutrr_jax/settings.py`.
      workdir: the run folder. It is created if necessary.
      write_stories: called with `config.generate` as a dict and a folder, if stories are generated.
    Raises:
      FolderLocked: another process is running in this folder.
      InputError: a wrong setting, unreadable data, or a folder that holds another run.
    """

    def prepare(folder: Path) -> Prepared:
        if generates(config.data):
            _print(f"Generating stories in {workdir / 'data'}")
            write_stories(config.generate.to_dict(), folder)
        return prepare_run(config.data, config.generate.to_dict(), folder)

    preemption.install_handler()
    results = train_and_report(config, workdir, prepare)
    if results:
        table = plain_text(results_table(results))
        print("\n".join(["", table, "", *diverged(results), f"Report: {workdir / 'report.html'}"]))


def train_and_report(
    config: Any, workdir: Path, prepare: Callable[[Path], Prepared]
) -> dict[str, Any] | None:
    """Trains and tests the models of a run, and writes its report.

    On several hosts every host calls this function. The first host writes the run folder; the
    others get a temporary folder for their data.

    Args:
      config, workdir: as in `run`.
      prepare: called with a folder for the stories of this host, returns the data set.
    Returns:
      The results, see `clutrr_jax.report.results`; None on other hosts than the first.
    Raises:
      FolderLocked, InputError: as in `run`.
    """
    models = model_names(config.models)
    config.models = ",".join(models)
    config.data = re.sub(r"(?<=[^/,])/+(?=,|$)", "", config.data)  # a shell adds "/" to folders
    check(config, models)
    _print(f"Running on {device_name()}.")
    if not distributed.is_primary():
        with TemporaryDirectory() as folder:
            _train_and_test(config, models, workdir, prepare(Path(folder)))
        return None
    with folder_lock(workdir):
        claim_folder(workdir, identity(config))
        data = prepare(workdir / "data")
        _train_and_test(config, models, workdir, data)
        return write_report(models, config.to_dict(), data, workdir, device_name())


def configure_jax() -> None:
    """Caches compiled programs, and uses all CPU cores if JAX has not started yet."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    with suppress(RuntimeError):  # JAX has started
        # One CPU device per core: replicas are distributed over devices.
        jax.config.update("jax_num_cpu_devices", available_cores())


def _train_and_test(config: Any, models: list[str], workdir: Path, data: Prepared) -> None:
    """Runs on every host."""
    _print(f"Read {len(data.train):,} train and {len(data.test):,} test stories.")
    if distributed.is_primary():
        check_or_write_config(workdir / "data.json", {"stories": data.fingerprint})
    distributed.barrier("data")
    distributed.assert_same(identity(config) | {"data": data.fingerprint})
    for name in models:
        check_model(name, config, data)
    for name in models:
        if config[name].get("reasoner", "rules") != "rules" and not data.sizes.relation_words:
            _print(
                f"{name}: no English word for a relation in the train stories; to learn what words "
                f"mean, it needs the rules: --config.{name}.reasoner=rules"
            )
        run_model(name, config, data, workdir / name)
        distributed.barrier(f"end of {name}")


def _print(text: str) -> None:
    """Prints on the first host only."""
    if distributed.is_primary():
        print(text, flush=True)


def identity(config: Any) -> dict[str, Any]:
    """Returns the settings that determine a run's results, by dotted name: for each model that it
    trains, its own and the train settings that it uses, except how often it writes checkpoints."""
    settings = {
        name: value
        for name, value in config.to_dict().items()
        if name not in MODELS and name not in ("train", "tensorboard")
    }
    for model in model_names(config.models):
        train = train_settings(config, model).to_dict()
        del train["checkpoint_minutes"]
        settings[model] = config[model].to_dict() | {"train": train}
    return flatten_dict(settings, sep=".")


def claim_folder(workdir: Path, settings: dict[str, Any]) -> None:
    """Writes the settings of a run into its folder, or checks that they are those of the run in it.

    A run that ended before its first epoch, for example because of a wrong setting, leaves nothing
    to resume: its settings and the stories that it generated are replaced.

    Raises:
      InputError: the folder holds another run, other data, or other files that the run would
        replace, such as the report of a grid.
    """
    path, stories = workdir / "config.json", workdir / "data"
    if not path.exists():
        written = ["results.*", "report.html", "curve.png", "data.json"]
        written += [f"{model}/*" for model in settings["models"].split(",")]
        written += ["data/*"] if generates(settings["data"]) else []
        for file in (file for pattern in written for file in workdir.glob(pattern)):
            raise InputError(f"{file}: not of a run, expected another --workdir")
    elif not has_begun(workdir) and {"models", "data", "seed"} <= set(before := read_json(path)):
        if before != as_json(settings):
            path.unlink()
            if generates(before["data"]):
                shutil.rmtree(stories, ignore_errors=True)
        (workdir / "data.json").unlink(missing_ok=True)
    check_or_write_config(path, settings)


def has_begun(workdir: Path) -> bool:
    """Returns whether a model of the run in this folder has finished an epoch."""
    return any(workdir.glob("*/metrics.jsonl"))


def as_json(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns settings as a JSON file has them: with lists instead of tuples."""
    return json.loads(json.dumps(settings))


def check_or_write_config(path: Path, settings: dict[str, Any]) -> None:
    """Writes the settings as JSON, or checks that the existing file holds the same settings.

    Raises:
      InputError: the file holds other settings, is damaged, or cannot be written.
    """
    settings = as_json(settings)
    if not path.exists():
        write_text(path, json.dumps(settings, indent=1) + "\n")
        return
    before = read_json(path)
    for name in ("models", *(before | settings)):  # the settings of other models follow from it
        if before.get(name) != settings.get(name):
            raise InputError(
                f"{path}: belongs to a run with another configuration: {name} was "
                f'"{before.get(name)}", now "{settings.get(name)}"; expected the same settings, or '
                "another folder"
            )
