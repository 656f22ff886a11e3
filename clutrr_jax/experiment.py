"""An experiment: a list of runs, and the table that their tests fill.

A run trains one model on one data set. An experiment lists its trainings: data sets, and the cells
of the table that their tests fill. Every model runs on every training. The experiment of most files
has one training, whose tests are shown by noise type and clause length: `SINGLE`. The experiments
behind a table or figure of a paper have several; on generated data each of their replicas is a run
of its own with a data set from its own seed, as in the papers.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flax.traverse_util import flatten_dict, unflatten_dict
from ml_collections import ConfigDict

from clutrr_jax.evaluation.claims import Evidence
from clutrr_jax.evaluation.published import Accuracy, Reference
from clutrr_jax.evaluation.scores import Measured
from clutrr_jax.models import MODELS
from clutrr_jax.models.setting import Setting, check_values, defaults
from clutrr_jax.models.swept import with_values
from clutrr_jax.settings import (
    LOGS,
    RUN_SETTINGS,
    TrainConfig,
    default_settings,
    generate_settings,
    model_names,
    sweep_of,
)
from generator.errors import InputError, one_of
from generator.named import find_data
from generator.stories.config import Config
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
SMOKE_ROWS = {"train_rows": 60, "test_rows": 10}  # stories per task

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


SINGLE = Experiment()
PATHS = Experiment(column_names=("paths", "k", "model"))  # `SINGLE` for tests bB.K of B paths


@dataclass(frozen=True)
class Run:
    """One model trained on one data set.

    Attributes:
      dataset: name of the data set, also its folder within that of the experiment: "", TRAINING or
        TRAINING/SEED.
      model: the model that it trains.
      config: its settings `data`, `seed`, `log`, `trace`, `generate` and MODEL, and `train`, a
        `TrainConfig`; those of a sweep are `Swept`. Nothing changes them.
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
    """Returns the settings of an experiment with scales.

    `config.models` is empty: the models are those of the scale.
    """
    config = default_settings(name, "")
    with config.unlocked():
        config.experiment = experiment
        config.scale = SCALE.default
        config.generate = ConfigDict(experiment.generate)
    return config


def experiment_of(config: ConfigDict) -> Experiment:
    """Returns the experiment that the settings of an experiment file belong to."""
    return config.get("experiment", SINGLE)


def models_of(config: ConfigDict) -> list[str]:
    """Returns the models of an experiment: those that are set, else those of its scale."""
    experiment = experiment_of(config)
    if experiment.laptop:
        SCALE.check("scale", config.scale)
    if not experiment.laptop or config.models:
        return model_names(config.models)
    laptop = list(experiment.laptop)
    return {"paper": list(experiment.models), "laptop": laptop, "smoke": laptop[:1]}[config.scale]


def runs(config: ConfigDict) -> list[Run]:
    """Returns all runs of an experiment; runs with the same data are adjacent.

    Raises:
      InputError: an unknown scale or model, a wrong setting, or data that it cannot use.
    """
    experiment = experiment_of(config)
    RUN_SETTINGS["seed"].check("seed", config.seed)
    _check_sweep(config)
    for name in filter(None, config.log.split(",")):
        one_of("log", name, LOGS)
    data_of_all = re.sub(r"(?<=[^/,])/+(?=,|$)", "", config.data)  # a shell adds "/" to folders
    found = [
        run
        for training, data in _trainings_with_data(data_of_all, experiment)
        for model in models_of(config)
        for run in _runs_of_model(config, model, training, data)
    ]
    order = list(dict.fromkeys(run.dataset for run in found))
    return sorted(found, key=lambda run: order.index(run.dataset))


def _check_sweep(config: ConfigDict) -> None:
    """Raises InputError if no run has a sweep that is set."""
    models = models_of(config)
    for name in flatten_dict(config.sweep.to_dict(), sep="."):
        if experiment_of(config).laptop:
            raise InputError(f'sweep "{name}": expected an experiment on one data set')
        if name.partition(".")[0] not in ("train", *models):
            raise InputError(f'sweep "{name}": no such model, expected one of {", ".join(models)}')
        owner, of_training, setting = name.rpartition("train.")
        if of_training:
            groups = [config[owner[:-1]]] if owner else [config, *(config[each] for each in models)]
            values = [group.train[setting] for group in groups]
        else:
            model, _, setting = name.partition(".")
            value, default = (
                flatten_dict(dict(settings), sep=".")[setting]
                for settings in (config[model].to_dict(), defaults(MODELS[model].settings))
            )
            values = [None if value == default else value]
        if given := [value for value in values if value is not None]:
            raise InputError(f'sweep "{name}": the setting is also {given[0]}, expected only one')


def _runs_of_model(config: ConfigDict, model: str, training: Training, data: str) -> list[Run]:
    """The runs of one model on one training."""
    spec, experiment = MODELS[model], experiment_of(config)
    own = with_values(config[model].to_dict(), sweep_of(config, model))
    own_train = own.pop("train")
    check_values(spec.settings, own, f"{model}.")
    decided = unflatten_dict(training.settings, sep=".")
    rows = SMOKE_ROWS if experiment.laptop and config.scale == "smoke" else {}
    generate = config.generate.to_dict() | decided.get("generate", {}) | rows
    levels = _train_of_scale(config, model), config.train, own_train, decided.get("train", {})
    train = TrainConfig.resolve(spec.train, *levels)

    def run(dataset: str, train: TrainConfig, seed: int, generate: dict[str, Any]) -> Run:
        settings = {"data": data, "seed": seed, "log": config.log, "trace": config.trace,
                    "generate": generate, "train": train, model: own}  # fmt: skip
        return Run(dataset, model, ConfigDict(settings), training)

    if data or not experiment.laptop:
        return [run(training.name, train, config.seed, generate)]
    found = []
    for seed in range(config.seed, config.seed + train.replicas):
        of_seed = generate | {"seed": seed}
        if experiment.write_stories is write_stories:
            Config.from_json(of_seed)  # checks them
        found.append(run(f"{training.name}/{seed}", replace(train, replicas=1), seed, of_seed))
    return found


def _train_of_scale(config: ConfigDict, model: str) -> dict[str, Any]:
    """Train settings of a model at the scale of the experiment, where the user sets no others."""
    laptop = experiment_of(config).laptop
    if not laptop:
        return {}
    if config.scale == "smoke":
        return {"replicas": 1, "epochs": 1}
    if config.scale == "laptop":
        return {"replicas": laptop.get(model, min(laptop.values()))}
    of_paper = {"replicas": PAPER_REPLICAS, "selection": "dev_accuracy"}
    return of_paper if "steps" in MODELS[model].train else of_paper | {"epochs": PAPER_EPOCHS}


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
    path = find_data(data)
    own = [training for training in trainings if training.release == path.name.removesuffix(".zip")]
    if own and path.exists():
        return [(training, data) for training in own]
    folder = path.parent if own else path
    return [(training, _released(folder, training)) for training in own or trainings]


def _released(folder: Path, training: Training) -> str:
    """The path of the released data set of a training."""
    for path in (folder / f"{training.release}.zip", folder / training.release):
        if training.release and path.exists():
            return str(path)
    missing = f"{training.release}.zip" if training.release else f"data for {training.name}"
    raise InputError(
        f"{folder}: no released {missing} in it, expected the folder of the released data sets; "
        "without --config.data stories are generated"
    )
