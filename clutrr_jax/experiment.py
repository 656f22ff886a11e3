"""An experiment: a list of runs, and the table that their tests fill.

A run trains one model on one data set. An experiment lists its trainings: data sets, and the cells
of the table that their tests fill. Every model runs on every training. The experiment of most files
has one training, whose tests are shown by noise type and clause length: `SINGLE`. The experiments
behind a table or figure of a paper have several; on generated data each of their replicas is a run
of its own with a data set from its own seed, as in the papers.
"""

import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flax.traverse_util import flatten_dict
from ml_collections import ConfigDict

from clutrr_jax.evaluation.claims import Evidence
from clutrr_jax.evaluation.published import Accuracy, Reference
from clutrr_jax.evaluation.scores import Measured
from clutrr_jax.models import MODELS
from clutrr_jax.models.setting import Setting
from clutrr_jax.settings import (
    TRAIN,
    check,
    default_settings,
    generate_settings,
    model_names,
    with_models,
)
from generator.config import Config, parse_tasks
from generator.errors import InputError
from generator.stories.noise import NOISE_TYPES
from generator.write import write_dataset

# Files in the folder of a run: of a finished one; of a failed one, the reason and, of a fault, the
# traceback; the id of its last Slurm job.
SUMMARY, ERROR, JOB_ID = "model.json", "error.txt", "slurm_job.txt"
DATA = "data.json"  # in the folder of a data set

MODEL = "MODEL"  # placeholder for the model's name in the keys of a training
NO_K = "no k"  # column of tests whose k is not known
SCALES = ("paper", "laptop", "smoke")
SCALE = Setting("laptop", "replicas and length of the trainings", choices=SCALES)
PAPER_REPLICAS, PAPER_EPOCHS = 10, 100  # Sinha et al. 2019, section 4.2 and appendix 2.2
SMOKE_ROWS = {"generate.train_rows": 60, "generate.test_rows": 10}  # stories per task

Key = tuple[Any, Any, Any]  # (panel, x, series) of a table cell
Measurements = dict[Key, Measured]
# question -> statement -> evidence on it. A KeyError: a cell that it needs was not measured.
Claims = Mapping[str, Mapping[str, Callable[[Measurements], Evidence]]]
# Writes the stories for the settings `config.generate` into a folder.
WriteStories = Callable[[dict[str, Any], Path], None]


def write_stories(settings: dict[str, Any], folder: Path) -> None:
    """Writes the data set for the settings `config.generate`: the default of an experiment."""
    write_dataset(Config.from_json(settings), folder)


@dataclass(frozen=True)
class Training:
    """A data set that every model is trained on.

    Attributes:
      name: the first part of the names of its runs; empty if it is the only one.
      settings: by dotted name, mostly `generate.*`.
      tests_by_cell: key of a table cell -> tests T.K, which are evaluated as one test. None: every
        test has a cell of its own, (noise type, k, MODEL).
      release: the released data set of the same kind, if there is one.
    """

    name: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    tests_by_cell: Mapping[Key, tuple[str, ...]] | None = None
    release: str = ""

    def cells(self, tests: Iterable[str]) -> Mapping[Key, tuple[str, ...]]:
        """Returns `tests_by_cell`, given the tests T.K of the data set."""
        if self.tests_by_cell is not None:
            return self.tests_by_cell
        split = (test.split(".") for test in tests)
        return {(noise_name(t), int(k) or NO_K, MODEL): (f"{t}.{k}",) for t, k in split}


def noise_name(task: str) -> str:
    """Returns what T of a task T.K, or bT of bT.K, stands for."""
    if not int(task.removeprefix("b")):
        return "unknown"
    if task.startswith("b"):
        return f"b = {task[1:]}"
    return NOISE_TYPES[int(task)].name if int(task) in NOISE_TYPES else f"task {task}"


@dataclass(frozen=True)
class Average:
    """A mean over table cells, computed for each series.

    Attributes:
      cells: (panel, x) of the cells.
      published: series -> published mean.
    """

    cells: tuple[tuple[Any, Any], ...]
    published: Mapping[str, float]


@dataclass(frozen=True)
class Experiment:
    """One or several tables or figures that share their runs.

    Table keys are (panel, x, series); one of the parts is the model. A figure has one panel per
    first part and one line per last part.

    Attributes:
      column_names: names of the three parts of a key.
      trainings: the data sets.
      models: the models of the paper.
      laptop: model -> replicas at the laptop scale. They are trained until the dev loss no longer
        improves (`train.patience`). The smoke scale trains the first model for one epoch. Empty: an
        experiment without scales, whose replicas share their data set.
      claims: question -> claims of the paper.
      published: published accuracies by key.
      averages: means over cells by (panel, x).
      references: published accuracies of other work, for figures.
      generate: all settings `generate.*` and their defaults.
      write_stories: writes the data set for these settings into a folder.
      note: a remark on how to read the table.
    Raises:
      InputError: a part of the experiment refers to something that does not exist.
    """

    column_names: tuple[str, str, str] = ("noise", "k", "model")
    trainings: Sequence[Training] = (Training(),)
    models: Sequence[str] = ()
    laptop: Mapping[str, int] = field(default_factory=dict)
    claims: Claims = field(default_factory=dict)
    published: Mapping[Key, Accuracy] = field(default_factory=dict)
    averages: Mapping[tuple[Any, Any], Average] = field(default_factory=dict)
    references: Sequence[Reference] = ()
    generate: Mapping[str, Any] = field(default_factory=generate_settings)
    write_stories: WriteStories = write_stories
    note: str = ""

    def __post_init__(self) -> None:
        keys = {key for training in self.trainings for key in training.tests_by_cell or ()}
        named = {key[:2] for key in self.published}
        named.update(*(average.cells for average in self.averages.values()))
        known = {f"train.{name}" for name in TRAIN}
        known |= {f"generate.{name}" for name in self.generate}
        unknown: dict[str, set[Any]] = {
            "setting": {name for t in self.trainings for name in t.settings} - known,
            "model": {*self.models, *self.laptop} - set(MODELS),
            "form of key, expected three parts with MODEL": {
                key for key in keys if len(key) != 3 or key.count(MODEL) != 1
            },
            "cell in published or averages": named - {key[:2] for key in keys},
            "panel in references": {r.panel for r in self.references} - {key[0] for key in keys},
        }
        if self.write_stories is write_stories:  # others may write more tests
            for training in self.trainings:
                written = parse_tasks(training.settings.get("generate.test", self.generate["test"]))
                used = {test for of in (training.tests_by_cell or {}).values() for test in of}
                unknown[f"test in {training.name}"] = used - set(map(str, written))
        for what, names in unknown.items():
            if names:
                raise InputError(
                    f"experiment: unknown {what}: {', '.join(sorted(map(str, names)))}"
                )


SINGLE = Experiment()
PATHS = Experiment(column_names=("paths", "k", "model"))  # `SINGLE` for tests bB.K of B paths


@dataclass(frozen=True)
class Run:
    """One model trained on one data set.

    Attributes:
      dataset: name of the data set, also its folder within that of the experiment: "", TRAINING or
        TRAINING/SEED.
      model: the model that it trains.
      config: its settings.
      training: the training that it belongs to.
    """

    dataset: str
    model: str
    config: ConfigDict
    training: Training

    @property
    def name(self) -> str:
        """Its folder within that of the experiment."""
        return run_name(self.dataset, self.model)


def run_name(dataset: str, model: str) -> str:
    """Returns the name of the run of a model on a data set."""
    return f"{dataset}/{model}" if dataset else model


def experiment_config(name: str, experiment: Experiment) -> ConfigDict:
    """Returns the settings of an experiment with scales, with those of all its models.

    `config.models` is empty: the models are those of the scale.
    """
    config = default_settings(name, ",".join([*experiment.models, *experiment.laptop]))
    config.models = ""
    with config.unlocked():
        config.experiment = experiment
        config.scale = SCALE.default
        config.generate = ConfigDict(experiment.generate)
    return config


def experiment_of(config: ConfigDict) -> Experiment:
    """Returns the experiment that the settings of an experiment file belong to."""
    return config.get("experiment", SINGLE)


def runs(config: ConfigDict) -> list[Run]:
    """Returns all runs of an experiment; runs with the same data are adjacent.

    Raises:
      InputError: an unknown scale or model, a wrong setting, or data that it cannot use.
    """
    experiment = experiment_of(config)
    models = replicas(config)
    config = with_models(config, models)
    check_decided_settings(config)
    config.data = re.sub(r"(?<=[^/,])/+(?=,|$)", "", config.data)  # a shell adds "/" to folders
    check(config, list(models))
    found = [
        run
        for training, data in _trainings_with_data(config.data, experiment)
        for model, count in models.items()
        for run in _runs_of_model(config, model, training, data, count)
    ]
    order = list(dict.fromkeys(run.dataset for run in found))
    return sorted(found, key=lambda run: order.index(run.dataset))


def replicas(config: ConfigDict) -> dict[str, int | None]:
    """Returns the models of an experiment with the number of replicas of its scale, if it has one.

    Raises:
      InputError: an unknown scale or model.
    """
    experiment = experiment_of(config)
    if not experiment.laptop:
        return dict.fromkeys(model_names(config.models))
    SCALE.check("scale", config.scale)
    usual = {
        "paper": dict.fromkeys(experiment.models, PAPER_REPLICAS),
        "laptop": dict(experiment.laptop),
        "smoke": dict.fromkeys(list(experiment.laptop)[:1], 1),
    }[config.scale]
    models = model_names(config.models) if config.models else usual
    return {model: usual.get(model, min(usual.values())) for model in models}


def _runs_of_model(
    config: ConfigDict, model: str, training: Training, data: str, count: int | None
) -> list[Run]:
    """The runs of one model on one training. `count`: replicas of the scale."""
    run_config = with_models(config, [model])
    with run_config.unlocked():
        for name in {"experiment", "scale", "only"} & set(run_config):
            del run_config[name]
    run_config.data = data
    for name, value in training.settings.items():
        if name.startswith("train.") and not MODELS[model].has_effect(name[6:]):
            raise InputError(f"{config.name}: sets {name}, which has no effect on {model}")
        run_config.update_from_flattened_dict({name: value})
    if count is None:
        return [Run(training.name, model, run_config, training)]
    if config.scale == "smoke":
        run_config.update_from_flattened_dict(SMOKE_ROWS)
    for name, value in _train_of_scale(config, model).items():
        if config.train[name] is None:
            run_config.train[name] = value
    count = config[model].train.replicas or config.train.replicas or count
    run_config[model].train.replicas = count
    if data:
        return [Run(training.name, model, run_config, training)]
    found = []
    for seed in range(config.seed, config.seed + count):
        of_seed = run_config.copy_and_resolve_references()
        of_seed.seed = of_seed.generate.seed = seed
        if experiment_of(config).write_stories is write_stories:
            Config.from_json(of_seed.generate.to_dict())  # checks them
        of_seed[model].train.replicas = 1
        found.append(Run(f"{training.name}/{seed}", model, of_seed, training))
    return found


def _train_of_scale(config: ConfigDict, model: str) -> dict[str, Any]:
    """Train settings of a model at the scale of the experiment, where the user sets no others."""
    found: dict[str, Any] = {}
    if config.scale == "paper":
        found["selection"] = "dev_accuracy"
    if config.train.steps is None and config.train.patience is None:
        if config.scale == "smoke":
            found["epochs"] = 1
        elif config.scale == "paper" and "steps" not in MODELS[model].train:
            found["epochs"] = PAPER_EPOCHS
    return found


def check_decided_settings(config: ConfigDict, given: Iterable[str] = ()) -> None:
    """Checks that the user sets nothing that the experiment decides for each run.

    Args:
      config: the settings of the experiment.
      given: names of settings that the user gave a value, perhaps the usual one.
    Raises:
      InputError: such a setting was given or changed.
    """
    experiment = experiment_of(config)
    if not experiment.laptop:
        return
    decided = {name for training in experiment.trainings for name in training.settings}
    decided |= {
        f"{model}.{name}"
        for model in MODELS.keys() & set(config)
        for name in decided
        if name.startswith("train.")
    }
    decided |= {"generate.seed"} | (SMOKE_ROWS.keys() if config.scale == "smoke" else set())
    found, usual = (
        flatten_dict(settings.to_dict(), sep=".")
        for settings in (config, experiment_config(config.name, experiment))
    )
    changed = {name for name in decided if found.get(name) != usual.get(name)}
    for name in sorted(changed | (decided & set(given))):
        raise InputError(
            f'{name} "{found[name]}": expected not to be set; {config.name} sets it for each of '
            "its runs"
        )


def select(only: str, all_runs: list[Run]) -> list[Run]:
    """Returns the runs that match `config.only`. Raises InputError for a pattern without one."""
    if only == "none":
        return []
    names = [run.name for run in all_runs]
    selected: set[str] = set()
    for pattern in only.split(","):
        matching = fnmatch.filter(names, pattern.strip())
        if not matching:
            raise InputError(
                f'only "{pattern.strip()}": no such run, expected names such as {names[0]}, '
                "which may contain wildcards (*), or none"
            )
        selected.update(matching)
    return [run for run in all_runs if run.name in selected]


def _trainings_with_data(data: str, experiment: Experiment) -> list[tuple[Training, str]]:
    """Each training with its data: the setting itself if stories are generated or if there is one
    training, else the path of its released data set. If `data` is a single released data set, only
    the training with that data set."""
    trainings = experiment.trainings
    if not data or not experiment.laptop:
        return [(training, data) for training in trainings]
    path = Path(data)
    own = [training for training in trainings if training.release == path.name.removesuffix(".zip")]
    if own and path.exists():
        return [(training, data) for training in own]
    folder = path.parent if own else path
    return [(training, _released(folder, training)) for training in own or trainings]


def _released(folder: Path, training: Training) -> str:
    """The path of the released data set of a training."""
    if not training.release:
        raise InputError(
            f'data "{folder}": no released data for {training.name}; leave --config.data empty to '
            "generate stories"
        )
    for path in (folder / f"{training.release}.zip", folder / training.release):
        if os.path.exists(path):
            return str(path)
    raise InputError(
        f"{folder}: no {training.release}.zip in it, expected the folder of the released data "
        "sets (for one data set, leave out --config)"
    )
