"""A grid: the runs behind a table or figure of a paper.

An experiment file lists trainings: a data set and the table cells that its tests fill. Every model
runs on every training. On released data, one run trains all replicas. On generated data, each
replica is a run of its own with a data set from its own seed, as in the papers.
"""

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from flax.traverse_util import flatten_dict
from ml_collections import ConfigDict

from clutrr_jax.data.prepare import GENERATE
from clutrr_jax.models import MODELS
from clutrr_jax.models.setting import Setting, defaults
from clutrr_jax.run import WriteStories, write_stories
from clutrr_jax.settings import (
    TRAIN,
    check,
    default_settings,
    generate_settings,
    model_names,
    with_models,
)
from experiments.grid.claims import Claims
from experiments.grid.measured import Key
from experiments.published.clutrr import Accuracy
from experiments.published.systematic import Row
from generator.config import Config, parse_tasks
from generator.errors import InputError

MODEL = "MODEL"  # placeholder for the model's name in the keys of a training
SCALES = ("paper", "laptop", "smoke")
GRID_SETTINGS = {  # that only a grid has
    "scale": Setting("laptop", "replicas and length of the trainings", choices=SCALES),
    "only": Setting("*", "names of runs, joined by commas, with wildcards; none: the report only"),
}
PAPER_REPLICAS, PAPER_EPOCHS = 10, 100  # Sinha et al. 2019, section 4.2 and appendix 2.2
SMOKE_ROWS = {"generate.train_rows": 60, "generate.test_rows": 10}  # stories per task


@dataclass(frozen=True)
class Training:
    """A data set that every model is trained on.

    Attributes:
      name: the first part of the names of its cells.
      settings: by dotted name, mostly `generate.*`.
      tests_by_cell: key of a table cell -> tests T.K, which are evaluated as one test.
      release: the released data set of the same kind, if there is one.
    """

    name: str
    settings: Mapping[str, Any]
    tests_by_cell: Mapping[Key, tuple[str, ...]]
    release: str = ""


@dataclass(frozen=True)
class Average:
    """A mean over table cells, computed for each series.

    Attributes:
      cells: (panel, x) of the cells.
      published: series -> published mean.
    """

    cells: tuple[tuple[Any, Any], ...]
    published: Mapping[str, float]


class Reference(NamedTuple):
    """Published accuracies of other work, shown with the measured ones.

    Attributes:
      panel: the panel that it belongs to.
      row: the accuracies by x. The table shows it below the series of the same model.
      shown: whether plots show it. On the page of the grid, the reader can change this.
    """

    panel: Any
    row: Row
    shown: bool = False


@dataclass(frozen=True)
class Grid:
    """One or several tables or figures that share their runs.

    Table keys are (panel, x, series); one of the parts is the model. A figure has one panel per
    first part and one line per last part.

    Attributes:
      column_names: names of the three parts of a key.
      trainings: the data sets.
      models: the models of the paper.
      laptop: model -> replicas at the laptop scale. They are trained until the dev loss no longer
        improves (`train.patience`). The smoke scale trains the first model for one epoch.
      claims: question -> claims of the paper.
      published: published accuracies by key.
      averages: means over cells by (panel, x).
      references: published accuracies of other work, for figures.
      generate: all settings `generate.*` and their defaults.
      write_stories: writes the data set for these settings into a folder.
      variants: whether the variants of a model are series of the table too.
      note: a remark on how to read the table.
    Raises:
      InputError: a part of the grid refers to something that does not exist.
    """

    column_names: tuple[str, str, str]
    trainings: tuple[Training, ...]
    models: tuple[str, ...]
    laptop: Mapping[str, int]
    claims: Claims = field(default_factory=dict)
    published: Mapping[Key, Accuracy] = field(default_factory=dict)
    averages: Mapping[tuple[Any, Any], Average] = field(default_factory=dict)
    references: tuple[Reference, ...] = ()
    generate: Mapping[str, Any] = field(default_factory=generate_settings)
    write_stories: WriteStories = write_stories
    variants: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        keys = {key for training in self.trainings for key in training.tests_by_cell}
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
                used = {test for tests in training.tests_by_cell.values() for test in tests}
                unknown[f"test in {training.name}"] = used - set(map(str, written))
        for what, names in unknown.items():
            if names:
                raise InputError(f"grid: unknown {what}: {', '.join(sorted(map(str, names)))}")


@dataclass(frozen=True)
class Cell:
    """One run of a grid.

    Attributes:
      name: also its folder within the folder of the grid.
      model: the model that it trains.
      config: its settings.
      tests_by_cell: key of a table cell -> (model or "MODEL: VARIANT", test T.K) of the tests.
    """

    name: str
    model: str
    config: ConfigDict
    tests_by_cell: Mapping[Key, tuple[tuple[str, str], ...]]


def grid_config(name: str, grid: Grid) -> ConfigDict:
    """Returns the settings of a grid, with those of all its models. `config.models` is empty: the
    models are those of the scale."""
    config = default_settings(name, ",".join([*grid.models, *grid.laptop]))
    config.models = ""
    with config.unlocked():
        config.grid = grid
        config.update(defaults(GRID_SETTINGS))
        config.generate = ConfigDict(grid.generate)
    return config


def cells(config: ConfigDict) -> list[Cell]:
    """Returns all runs of a grid; runs with the same data are adjacent.

    Raises:
      InputError: an unknown scale or model, a wrong setting, or data that this grid cannot use.
    """
    grid: Grid = config.grid
    models = replicas(config)
    config = with_models(config, models)
    check_decided_settings(config)
    if config.data == GENERATE and grid.write_stories is not write_stories:
        raise InputError(
            f'data "{GENERATE}": {config.name} has its own generator; expected --config.data='
        )
    check(config, list(models))
    return [
        cell
        for training, data in _trainings_with_data(config.data, grid.trainings)
        for model, count in models.items()
        for cell in _cells_of_model(config, model, training, data, count)
    ]


def replicas(config: ConfigDict) -> dict[str, int]:
    """Returns the models of a grid with the number of replicas of its scale.

    Raises:
      InputError: an unknown scale or model.
    """
    GRID_SETTINGS["scale"].check("scale", config.scale)
    usual = {
        "paper": dict.fromkeys(config.grid.models, PAPER_REPLICAS),
        "laptop": dict(config.grid.laptop),
        "smoke": dict.fromkeys(list(config.grid.laptop)[:1], 1),
    }[config.scale]
    models = model_names(config.models) if config.models else usual
    return {model: usual.get(model, min(usual.values())) for model in models}


def _cells_of_model(
    config: ConfigDict, model: str, training: Training, data: str, count: int
) -> list[Cell]:
    """The runs of one model on one training. `count`: replicas of the scale."""
    own, everywhere = config[model].train, config.train
    count = own.replicas or everywhere.replicas or count
    single = with_models(config, [model])
    with single.unlocked():
        for name in ("grid", *GRID_SETTINGS):
            del single[name]
    single.data = data
    for name, value in training.settings.items():
        if name.startswith("train.") and not MODELS[model].has_effect(name[6:]):
            raise InputError(f"{config.name}: sets {name}, which has no effect on {model}")
        single.update_from_flattened_dict({name: value})
    if config.scale == "smoke":
        single.update_from_flattened_dict(SMOKE_ROWS)
    for name, value in _train_of_scale(config, model).items():
        if everywhere[name] is None:
            single.train[name] = value
    variants = MODELS[model].variants if config.grid.variants else ()
    tests_by_cell = {
        tuple(series if part == MODEL else part for part in key): tuple((series, t) for t in tests)
        for series in (model, *(f"{model}: {variant}" for variant in variants))
        for key, tests in training.tests_by_cell.items()
    }
    generates = data in ("", GENERATE)
    found = []
    for seed in range(config.seed, config.seed + count) if generates else [config.seed]:
        name = f"{training.name}/{model}" + (f"/{seed}" if generates else "")
        run = single.copy_and_resolve_references()
        run.name = f"{config.name}, {name}"
        run.seed = run.generate.seed = seed
        if generates and config.grid.write_stories is write_stories:
            Config.from_json(run.generate.to_dict())  # checks them
        run.train.replicas = run[model].train.replicas = 1 if generates else count
        found.append(Cell(name, model, run, tests_by_cell))  # type: ignore[arg-type]
    return found


def _train_of_scale(config: ConfigDict, model: str) -> dict[str, Any]:
    """Train settings of a model at the scale of the grid, where the user sets no others."""
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
    """Checks that the user sets nothing that the grid decides for each run.

    Args:
      config: the settings of the grid.
      given: names of settings that the user gave a value, perhaps the usual one.
    Raises:
      InputError: such a setting was given or changed.
    """
    grid: Grid = config.grid
    decided = {name for training in grid.trainings for name in training.settings}
    decided |= {
        f"{model}.{name}"
        for model in MODELS.keys() & set(config)
        for name in decided
        if name.startswith("train.")
    }
    decided |= {"generate.seed"} | (SMOKE_ROWS.keys() if config.scale == "smoke" else set())
    found, usual = (
        flatten_dict(settings.to_dict(), sep=".")
        for settings in (config, grid_config(config.name, grid))
    )
    changed = {name for name in decided if found.get(name) != usual.get(name)}
    for name in sorted(changed | (decided & set(given))):
        raise InputError(
            f'{name} "{found[name]}": expected not to be set; {config.name} sets it for each of '
            "its runs"
        )


def select(config: ConfigDict, all_cells: list[Cell]) -> list[Cell]:
    """Returns the cells that match `config.only`. Raises InputError for a pattern without one."""
    if config.only == "none":
        return []
    names = [cell.name for cell in all_cells]
    selected: set[str] = set()
    for pattern in config.only.split(","):
        matching = fnmatch.filter(names, pattern.strip())
        if not matching:
            raise InputError(
                f'only "{pattern.strip()}": no such run, expected names such as {names[0]}, '
                "which may contain wildcards (*), or none"
            )
        selected.update(matching)
    return [cell for cell in all_cells if cell.name in selected]


def _trainings_with_data(data: str, trainings: tuple[Training, ...]) -> list[tuple[Training, str]]:
    """Each training with its data: the setting itself if stories are generated, else the path of
    its released data set. If `data` is a single data set, only the training with that data set."""
    if data in ("", GENERATE):
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
        if path.exists():
            return str(path)
    raise InputError(
        f"{folder}: no {training.release}.zip in it, expected the folder of the released data "
        "sets (for one data set: --config=experiments/single.py)"
    )
