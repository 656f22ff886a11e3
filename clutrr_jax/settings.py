"""Settings of a run: defaults, from Sinha et al. 2019 (appendix 2.2), and validation."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial, reduce
from itertools import product
from numbers import Integral, Real
from operator import getitem
from typing import Any

from flax.traverse_util import flatten_dict, unflatten_dict
from ml_collections import ConfigDict, config_dict

from clutrr_jax.models import MODELS
from clutrr_jax.models.setting import Setting, Settings, defaults
from clutrr_jax.models.swept import Swept
from generator.errors import InputError
from generator.stories.config import Config

_LARGEST = 2_000_000_000  # seed of the first replica, or patience: they are int32
# Entities of the people (Sinha et al. 2019, appendix 1.5). fixed: each story keeps the entities
# drawn for it, with random vectors; learned: the same with trained vectors; redrawn: the entities
# of each story are drawn again in every epoch.
ENTITY_POLICIES = ("fixed", "redrawn", "learned")
# Epoch whose parameters are tested: the last one, that with the lowest dev loss, or that with the
# best dev accuracy (Sinha et al. 2019). The score that ends a training if it does not improve is
# the dev loss, and with dev_accuracy the dev accuracy.
SELECTIONS = ("last", "dev_loss", "dev_accuracy")

LOGS = ("tensorboard", "wandb")

RUN_SETTINGS = {
    "models": Setting("", "the models, joined by commas"),
    "data": Setting(
        "", "a .zip, folder, .csv, .csv.gz, .parquet or .jsonl; empty: generated stories"
    ),
    "seed": Setting(
        0, "of the first replica; replica i has seed + i", at_least=0, at_most=_LARGEST
    ),
    "log": Setting("", "where metrics also go: tensorboard, wandb, or both joined by a comma"),
    "trace": Setting("", "folder for a profiler trace of the first epoch"),
    "only": Setting("*", "names of runs, joined by commas, with wildcards; none: the report only"),
}


def _setting(default: Any, meaning: str, **limits: Any) -> Any:
    """A field of `TrainConfig`."""
    return field(default=default, metadata={"setting": Setting(default, meaning, **limits)})


_swept = partial(_setting, sweeps=True)


@dataclass(frozen=True)
class TrainConfig:
    """Train settings of one model.

    A replica trains for `epochs` passes; if that is None, for `steps` steps, or until it has not
    improved for `patience` steps.

    Raises:
      InputError: a value that is not in the range of its setting.
    """

    replicas: int = _setting(10, "trainings that differ in their seed", at_least=1)
    steps: int = _setting(10_000, "steps at most, rounded up to whole epochs", at_least=1)
    patience: int = _setting(
        1_000,
        "steps without a better dev loss after which a replica stops; 0: never",
        at_least=0,
        at_most=_LARGEST,
    )
    epochs: int | None = _setting(
        None, "passes over the train stories, instead of steps", at_least=1
    )
    selection: str = _setting("last", "the epoch that is tested", choices=SELECTIONS)
    entities: str = _setting("redrawn", "vectors of people", choices=ENTITY_POLICIES)
    batch: int = _setting(100, "stories of a step", at_least=1)
    microbatches: int = _setting(
        1, "parts of each batch, which devices can share; a divisor of batch", at_least=1
    )
    learning_rate: float = _swept(1e-3, "of Adam", above=0)
    grad_clip_norm: float = _swept(5.0, "largest norm of a gradient", above=0)
    ema_decay: float = _swept(
        0.999, "at most, of the averaged parameters that are tested", at_least=0, below=1
    )
    shuffle_sentences: float = _swept(
        0.5, "fraction of stories whose sentences are shuffled each epoch", at_least=0, at_most=1
    )
    dev_fraction: float = _setting(
        0.2, "of the train stories, not trained on: the dev stories", at_least=0, below=1
    )
    checkpoint_minutes: float = _setting(
        1.0, "between checkpoints; the last one is written", at_least=0
    )

    def __post_init__(self) -> None:
        for name, setting in TRAIN_SETTINGS.items():
            setting.check(f"train.{name}", getattr(self, name))
        if self.batch % self.microbatches:
            raise InputError(
                f"train.microbatches {self.microbatches}: expected a divisor of train.batch, "
                f"{self.batch}"
            )

    @classmethod
    def resolve(cls, *levels: Mapping[str, Any]) -> "TrainConfig":
        """Returns the settings of the highest level that has them, else the usual ones.

        Args:
          levels: of ascending rank. None is a setting that is not set. A number of steps or a
            patience replaces a number of epochs that ranks lower.
        Raises:
          InputError: see `TrainConfig`.
          TypeError: a setting that does not exist.
        """
        found: dict[str, Any] = {}
        for level in levels:
            given = {name: value for name, value in level.items() if value is not None}
            if given.keys() & {"steps", "patience"}:
                found.pop("epochs", None)
            found |= given
        return cls(**found)


TRAIN_SETTINGS: dict[str, Setting] = {
    each.name: each.metadata["setting"] for each in fields(TrainConfig)
}
TRAIN: dict[str, Any] = defaults(TRAIN_SETTINGS)
# Options of `python -m generator` that an experiment has too.
_OF_GENERATOR = {
    "train", "test", "train_rows", "test_rows", "seed", "hold_out", "equal_clauses",
    "unique_test_clauses", "ambiguous", "language", "bank",
}  # fmt: skip


def default_settings(name: str, models: str) -> ConfigDict:
    """Returns the settings of an experiment with the given name and comma-separated models.

    They are those of all models of the registry, and locked: an assignment to a setting that does
    not exist is an error. The settings `train.NAME` and `MODEL.train.NAME` are None unless they
    are assigned, see `TrainConfig.resolve`.
    """
    groups = {model: spec.config | {"train": _unset()} for model, spec in MODELS.items()}
    run = defaults(RUN_SETTINGS) | {"name": name, "models": models}
    others = {"generate": generate_settings(), "train": _unset(), "sweep": {}}
    config = ConfigDict(run | groups | others)
    return config.lock()


def _unset() -> dict[str, Any]:
    """Train settings without a value, which have the type of their default."""
    kinds = {name: int if value is None else type(value) for name, value in TRAIN.items()}
    return {name: config_dict.placeholder(kind) for name, kind in kinds.items()}


def generate_settings(config: Config | None = None) -> dict[str, Any]:
    """Returns the settings `generate` of an experiment, by default those of the paper."""
    values = (config or Config()).to_json()
    return {name: value for name, value in values.items() if name in _OF_GENERATOR}


def model_names(models: str) -> list[str]:
    """Splits comma-separated names of models in the registry, without duplicates."""
    names = list(dict.fromkeys(name.strip() for name in models.split(",")))
    for name in names:
        if name not in MODELS:
            raise InputError(f'no model "{name}", expected some of {", ".join(MODELS)}')
    return names


def change(config: ConfigDict, name: str, value: Any) -> None:
    """Changes a setting, given by its dotted name. Text is converted to the type of the setting.

    `sweep.NAME` are the values of setting NAME in a sweep: a sequence, or text with commas.
    """
    groups, is_sweep, swept = name.partition("sweep.")
    if is_sweep and groups in ("", "config."):
        return _change_sweep(config, groups, swept, value)
    group, last = _find(config, name)
    kind = group.get_type(last)
    try:
        if isinstance(value, str):
            value = _value(kind, value)
        if value is None and group[last] is not None:
            raise TypeError
        group[last] = value
    except (TypeError, ValueError, KeyError):
        raise InputError(f'setting "{name}": {value!r}, expected {kind.__name__}') from None


def _value(kind: type, value: Any) -> Any:
    """A value of this type, from text or a value that fits. Raises KeyError, OverflowError,
    TypeError or ValueError if it is none."""
    if isinstance(value, str):
        return _BOOLEANS[value.lower()] if kind is bool else kind(value)
    numbers: dict[type, type] = {float: Real, int: Integral}
    fits = isinstance(value, numbers.get(kind, kind))
    if not fits or isinstance(value, bool) != (kind is bool):
        raise TypeError
    return kind(value)


def _find(config: ConfigDict, name: str) -> tuple[ConfigDict, str]:
    """The group of a setting and its name there."""
    known = flatten_dict(config.to_dict(), sep=".")
    group_of = {each: each.rpartition(".")[0] for each in known}
    if name not in known:
        group = name.rpartition(".")[0]
        while group and group not in group_of.values():
            group = group.rpartition(".")[0]
        near = ", ".join(each for each, of in group_of.items() if of == group)
        raise InputError(f'no setting "{name}"; expected one of {near}')
    *parents, last = name.split(".")
    return reduce(getitem, parents, config), last


def _change_sweep(config: ConfigDict, groups: str, name: str, values: Any) -> None:
    """Sets the values of a setting in a sweep. `groups` are those around the experiment: "" or
    "config."."""
    group, last = _find(config, groups + name)
    kind = group.get_type(last)
    own = {model: dict(spec.settings) | {"train": TRAIN_SETTINGS} for model, spec in MODELS.items()}
    setting = flatten_dict({"train": TRAIN_SETTINGS} | own, sep=".").get(name)
    if not setting or not setting.sweeps:
        raise InputError(
            f'sweep "{name}": may change shapes, so that each value needs a program of its own; '
            "expected a loop over runs: for x in A B; do COMMAND --workdir=runs/$x "
            f'--config.{name}=$x; done, or in Python train(..., settings={{"{name}": x}})'
        )
    try:
        each = values.split(",") if isinstance(values, str) else values
        found = [_value(kind, value) for value in each]
        if not found or isinstance(values, bytes):
            raise ValueError
    except (TypeError, ValueError, KeyError, OverflowError):
        expected = f"expected values of type {kind.__name__}"
        raise InputError(f'sweep "{name}": {values!r}, {expected}') from None
    setting.check(f'sweep "{name}":', Swept(found))
    sweep = reduce(getitem, [*groups.split(".")[:-1], "sweep"], config)
    with sweep.unlocked():
        sweep.update(unflatten_dict({name: tuple(dict.fromkeys(found))}, sep="."))


def sweep_of(config: ConfigDict, model: str) -> dict[str, Swept]:
    """Returns the swept settings of a model by dotted name: its own ones rank before those of all
    models. Several of them are a grid, whose last setting changes first."""
    given = flatten_dict(config.sweep.to_dict(), sep=".")
    values = {name: given[name] for name in given if name.startswith("train.")}
    values |= {name.removeprefix(f"{model}."): given[name]
               for name in given if name.startswith(f"{model}.")}  # fmt: skip
    grid = zip(*product(*values.values()), strict=True)
    return {name: Swept(column) for name, column in zip(values, grid, strict=True)}


_BOOLEANS = {"true": True, "false": False}


def describe(config: ConfigDict, more: Settings) -> Iterator[str]:
    """Lists the settings of an experiment and of its models, a line for each: `--config.NAME=VALUE
    MEANING (RANGE)`. `more` are those that only experiments with scales have."""
    usual = asdict(TrainConfig.resolve(config.train))
    yield from _lines(RUN_SETTINGS | dict(more), config.to_dict())
    for model in model_names(config.models):
        yield f"\nModel {model}:\n"
        spec, own = MODELS[model], config[model]
        yield from _lines(spec.settings, own.to_dict(), f"{model}.")
        used = asdict(TrainConfig.resolve(spec.train, config.train, own.train))
        changed = {name: value for name, value in used.items() if value != usual[name]}
        yield from _lines(TRAIN_SETTINGS, changed, f"{model}.train.")
    yield "\nTraining; --config.MODEL.train.NAME sets the value of one model:\n"
    yield from _lines(TRAIN_SETTINGS, usual, "train.")
    yield "\nGenerated stories:\n"
    generator = {each.name: Setting(None, each.metadata["help"]) for each in fields(Config)}
    yield from _lines(generator, config.generate.to_dict(), "generate.")


def _lines(settings: Settings, values: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Lists the settings that have a value, which is empty if it is None."""
    values = flatten_dict(values, sep=".")
    for name, setting in flatten_dict(settings, sep=".").items():
        if name in values:
            value = "" if values[name] is None else values[name]
            about = "; ".join(filter(None, [setting.range, "sweeps" * setting.sweeps]))
            limits = f" ({about})" if about else ""
            yield f"  --config.{prefix}{name}={value}".ljust(42) + f"  {setting.meaning}{limits}"
