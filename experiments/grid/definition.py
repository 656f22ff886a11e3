"""A grid: what a table or figure of the papers consists of, as many runs.

An experiment file lists trainings: a data set, and which cells of the table its tests fill. Every
model runs on every training. On released data a cell is one run with all replicas; on generated
data each replica is a run of its own, on a data set of its own seed, as in the papers.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict, config_dict

from clutrr_jax.data.prepare import GENERATE
from clutrr_jax.models import MODELS
from experiments.base import base
from experiments.grid.claims import Claim
from experiments.grid.measured import Key, variant_test
from experiments.grid.published import Accuracy
from experiments.grid.stories import write_stories
from generator.errors import InputError, at, one_of

MODEL = "MODEL"  # stands for the model's name in the keys of a training
SCALES = ("paper", "laptop", "smoke")
PAPER = (10, 100)  # replicas and epochs (Sinha et al. 2019, section 4.2 and appendix 2.2)
SMOKE = (1, 1)  # of the first model of the laptop scale
SMOKE_ROWS = {"generate.train_rows": 60, "generate.test_rows": 10}  # stories of each task


@dataclass(frozen=True)
class Training:
    """A data set that every model is trained on."""

    name: str
    settings: Mapping[str, Any]  # by dotted name, as on the command line: of the stories, mostly
    reads: Mapping[Key, tuple[str, ...]]  # cell of the table -> tests T.K, taken together
    release: str = ""  # the released data set of the same kind, if there is one
    epochs: Mapping[str, int] = field(default_factory=dict)  # of a model, instead of the scale's


@dataclass(frozen=True)
class Average:
    """A mean over cells of the table, for each series."""

    of: tuple[tuple[Any, Any], ...]  # (panel, x) of these cells
    published: Mapping[str, float]  # series -> as published


@dataclass(frozen=True)
class Grid:
    """A table, figure or several. Keys of its cells are (panel, x, series), one of them the model:
    a figure has a panel for each of the first and a line for each of the last."""

    heads: tuple[str, str, str]  # what the parts of a key are
    trainings: tuple[Training, ...]
    models: tuple[str, ...]  # of the paper
    # Replicas and epochs of the models that two cores train on released data in half an hour;
    # where nothing is released, on generated data.
    laptop: Mapping[str, tuple[int, int]]
    claims: Mapping[str, tuple[Claim, ...]]  # question -> the paper's answers
    published: Mapping[Key, Accuracy] = field(default_factory=dict)
    averages: Mapping[tuple[Any, Any], Average] = field(default_factory=dict)  # by (panel, x)
    # (panel, name) -> x -> accuracies of others, to show beside the measured ones
    references: Mapping[tuple[str, str], Mapping[Any, Accuracy]] = field(default_factory=dict)
    stories: Mapping[str, Any] = field(default_factory=dict)  # of `generate`, for all trainings
    write: Callable[[dict[str, Any], Path], None] = write_stories  # settings, folder
    heeds: tuple[str, ...] = ()  # those of `generate` that `write` looks at; none: all
    variants: bool = False  # whether the variants of the models, too, are series of the table
    note: str = ""  # what must be known to read the table


@dataclass(frozen=True)
class Counts:
    """A table without models: rows of (name, value here, value in the paper)."""

    rows: Callable[[], list[tuple[str, float, float]]]


@dataclass(frozen=True)
class Cell:
    """One run."""

    name: str  # and its folder within that of the grid
    model: str
    config: ConfigDict
    reads: Mapping[Key, tuple[str, ...]]


def grid_config(name: str, grid: Grid) -> ConfigDict:
    """The settings of a grid. Those that a scale decides are empty, until they are given."""
    config = base(name, "")  # empty models: those of the scale
    config.grid = grid
    config.scale = "laptop"
    config.only = "*"  # names of cells, comma-separated, with * and ?; none: the report alone
    config.generate.update(grid.stories)
    _empty(config.train, "replicas", "epochs")
    for model in {model for training in grid.trainings for model in training.epochs}:
        _empty(config[model].train, "epochs")
    return config


def _empty(settings: ConfigDict, *numbers: str) -> None:
    """Takes numbers away, until they are given."""
    for name in numbers:
        del settings[name]
        settings[name] = config_dict.placeholder(int)


def names(models: str) -> list[str]:
    """Comma-separated names of models, each once."""
    return list(dict.fromkeys(name.strip() for name in models.split(",")))


def cells(config: ConfigDict) -> list[Cell]:
    """All runs of a grid, those with the same data one after the other.

    Raises:
      InputError: an unknown scale or model, or data that cannot be those of the grid.
    """
    grid: Grid = config.grid
    one_of(config, "scale", *SCALES)
    amounts = {
        "paper": dict.fromkeys(grid.models, PAPER),
        "laptop": dict(grid.laptop),
        "smoke": dict.fromkeys(list(grid.laptop)[:1], SMOKE),
    }[config.scale]
    models = names(config.models) if config.models else list(amounts)
    _check_given(config)
    found = []
    fresh = config.data == GENERATE
    if fresh and grid.write is not write_stories:
        raise InputError(
            f'data "{GENERATE}": {config.name} has a generator of its own; expected --config.data='
        )
    for training, data in _with_data("" if fresh else config.data, grid.trainings):
        for model in models:
            if model not in MODELS:
                raise InputError(f'no model "{model}", expected some of {", ".join(MODELS)}')
            one = _one_model(config, model, training)
            one.data = config.data if fresh else data
            own, amount = config[model].train, amounts.get(model, min(amounts.values()))
            replicas = own.replicas or config.train.replicas or amount[0]
            one.train.epochs = config.train.epochs or amount[1]
            asked = config.train.epochs or own.epochs
            if model in training.epochs and config.scale != "smoke" and not asked:
                one[model].train.epochs = training.epochs[model]
            reads = _reads(training, model, MODELS[model].variants if grid.variants else ())
            for seed in [config.seed] if data else range(config.seed, config.seed + replicas):
                name = f"{training.name}/{model}" + ("" if data else f"/{seed}")
                run = one.copy_and_resolve_references()
                run.name = f"{config.name}, {name}"
                run.seed = run.generate.seed = seed
                run.train.replicas = run[model].train.replicas = replicas if data else 1
                found.append(Cell(name, model, run, reads))
    return found


def _check_given(config: ConfigDict) -> None:
    """Raises InputError if a setting is given that the grid itself decides."""
    grid: Grid = config.grid
    decided = {name for training in grid.trainings for name in training.settings}
    decided |= {"generate.seed"} | (set(SMOKE_ROWS) if config.scale == "smoke" else set())
    if grid.heeds:
        decided |= {f"generate.{name}" for name in config.generate if name not in grid.heeds}
    usual = grid_config(config.name, grid)
    for name in sorted(decided):
        *parents, last = name.split(".")
        given, own = config, usual
        for parent in parents:
            given, own = given[parent], own[parent]
        if given[last] != own[last]:
            raise InputError(
                f'{name} "{given[last]}": expected to be left as it is, "{own[last]}"; '
                f"{config.name} itself decides it, for each of its runs"
            )


def _reads(training: Training, model: str, variants: Iterable[str]) -> dict[Key, tuple[str, ...]]:
    reads = {_with_model(key, model): tests for key, tests in training.reads.items()}
    for variant in variants:
        for key, tests in training.reads.items():
            named = tuple(variant_test(variant, test) for test in tests)
            reads[_with_model(key, f"{model}: {variant}")] = named
    return reads


def _with_model(key: Key, model: str) -> Key:
    panel, x, series = (model if part == MODEL else part for part in key)
    return panel, x, series


def chosen(config: ConfigDict, all_cells: list[Cell]) -> list[Cell]:
    """Those that `only` names. Raises InputError where there is none."""
    if config.only == "none":
        return []
    patterns = [pattern.strip() for pattern in config.only.split(",")]
    for pattern in patterns:
        if not any(fnmatchcase(cell.name, pattern) for cell in all_cells):
            raise InputError(
                f'only "{pattern}": no such cell, expected names such as {all_cells[0].name}, '
                "with * for any letters, or none"
            )
    return [c for c in all_cells if any(fnmatchcase(c.name, pattern) for pattern in patterns)]


def _with_data(data: str, trainings: tuple[Training, ...]) -> list[tuple[Training, str]]:
    """Each training with its released data set, or with none where stories are generated. Of a
    single data set, the training that is on it."""
    if not data:
        return [(training, "") for training in trainings]
    named = [
        t for t in trainings if t.release and Path(data).name.removesuffix(".zip") == t.release
    ]
    if named:
        if not Path(data).exists():
            raise InputError(f"{at(data)}: cannot be read (No such file or directory)")
        return [(training, data) for training in named]
    return [(training, _released(data, training)) for training in trainings]


def _released(folder: str, training: Training) -> str:
    """The file or folder of the released data set that the training is to have."""
    if not training.release:
        raise InputError(
            f'data "{folder}": no released data for {training.name}; leave --config.data empty to '
            "generate them"
        )
    for path in (Path(folder) / f"{training.release}.zip", Path(folder) / training.release):
        if path.exists():
            return str(path)
    raise InputError(
        f"{at(folder)}: no {training.release}.zip in it, expected the folder of the released data "
        "sets (for one data set: --config=experiments/single.py)"
    )


def _one_model(config: ConfigDict, model: str, training: Training) -> ConfigDict:
    """The settings of a single run, without those of the grid and of other models."""
    one = config.copy_and_resolve_references()
    with one.unlocked():
        for name in ("grid", "scale", "only", *(MODELS.keys() - {model})):
            del one[name]
    one.models = model
    one.update_from_flattened_dict(
        dict(training.settings) | (SMOKE_ROWS if config.scale == "smoke" else {})
    )
    return one
