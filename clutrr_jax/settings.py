"""Settings of a run: defaults, from Sinha et al. 2019 (appendix 2.2), and validation."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from flax.traverse_util import flatten_dict
from ml_collections import ConfigDict, config_dict

from clutrr_jax.models import MODELS, Spec
from clutrr_jax.models.setting import Setting, Settings, check_values, defaults
from generator.config import Config
from generator.errors import InputError

_LARGEST = 2_000_000_000  # seed of the first replica, or patience: they are int32
# Entities of the people (Sinha et al. 2019, appendix 1.5). fixed: each story keeps the entities
# drawn for it, with random vectors; learned: the same with trained vectors; redrawn: the entities
# of each story are drawn again in every epoch.
ENTITY_POLICIES = ("fixed", "redrawn", "learned")
# Epoch whose parameters are tested: the last one, that with the lowest dev loss, or that with the
# best dev accuracy (Sinha et al. 2019). The score that ends a training if it does not improve is
# the dev loss, and with dev_accuracy the dev accuracy.
SELECTIONS = ("last", "dev_loss", "dev_accuracy")

RUN_SETTINGS = {
    "models": Setting("", "the models, joined by commas"),
    "data": Setting(
        "", "a .zip, folder, .csv, .csv.gz, .parquet or .jsonl; empty: generated stories"
    ),
    "seed": Setting(
        0, "of the first replica; replica i has seed + i", at_least=0, at_most=_LARGEST
    ),
    "tensorboard": Setting(False, "also write TensorBoard event files"),
    "only": Setting("*", "names of runs, joined by commas, with wildcards; none: the report only"),
}
TRAIN_SETTINGS = {
    "replicas": Setting(10, "trainings that differ in their seed", at_least=1),
    "steps": Setting(10_000, "steps at most, rounded up to whole epochs", at_least=1),
    "patience": Setting(
        1_000,
        "steps without a better dev loss after which a replica stops; 0: never",
        at_least=0,
        at_most=_LARGEST,
    ),
    "epochs": Setting(None, "passes over the train stories, instead of steps", at_least=1),
    "selection": Setting("last", "the epoch that is tested", choices=SELECTIONS),
    "entities": Setting("redrawn", "vectors of people", choices=ENTITY_POLICIES),
    "batch": Setting(100, "stories of a step", at_least=1),
    "microbatches": Setting(
        1, "parts of each batch, which devices can share; a divisor of batch", at_least=1
    ),
    "learning_rate": Setting(1e-3, "of Adam", above=0),
    "grad_clip_norm": Setting(5.0, "largest norm of a gradient", above=0),
    "ema_decay": Setting(
        0.999, "at most, of the averaged parameters that are tested", at_least=0, below=1
    ),
    "shuffle_sentences": Setting(
        0.5, "fraction of stories whose sentences are shuffled each epoch", at_least=0, at_most=1
    ),
    "dev_fraction": Setting(
        0.2, "of the train stories, not trained on: the dev stories", at_least=0, below=1
    ),
    "checkpoint_minutes": Setting(1.0, "between checkpoints; the last one is written", at_least=0),
}
TRAIN: dict[str, Any] = defaults(TRAIN_SETTINGS)
# Options of `python -m generator` that an experiment has too.
_OF_GENERATOR = {
    "train", "test", "train_rows", "test_rows", "seed", "hold_out", "equal_clauses",
    "unique_test_clauses", "ambiguous", "language", "bank",
}  # fmt: skip


def default_settings(name: str, models: str) -> ConfigDict:
    """Returns the settings of a run with the given name and comma-separated models.

    They are locked: an assignment to a setting that does not exist is an error. The settings
    `train.NAME` and `MODEL.train.NAME` are None unless they are assigned, see `train_settings`.

    Raises:
      InputError: a model that is not in the registry.
    """
    config = ConfigDict({"name": name} | defaults(RUN_SETTINGS))
    config.generate = ConfigDict(generate_settings())
    config.train = ConfigDict()
    return with_models(config.lock(), model_names(models) if models else [])


def generate_settings(config: Config | None = None) -> dict[str, Any]:
    """Returns the settings `generate` of an experiment, by default those of the paper."""
    values = (config or Config()).to_json()
    return {name: value for name, value in values.items() if name in _OF_GENERATOR}


def with_models(config: ConfigDict, models: Iterable[str]) -> ConfigDict:
    """Returns the settings of a run of these models, without the settings of others.

    The values of settings that remain are kept.
    """
    names = list(models)
    changed = config.copy_and_resolve_references()
    with changed.unlocked():
        changed.models = ",".join(names)
        for model in MODELS.keys() & set(changed) - set(names):
            del changed[model]
        for model in names:
            if model not in changed:
                changed[model] = MODELS[model].config | {"train": {}}
            changed[model].train = train_group([MODELS[model]], changed[model].train)
        changed.train = train_group([MODELS[model] for model in names], changed.train)
    return changed.lock()


def train_group(specs: Iterable[Spec], values: Mapping[str, Any]) -> ConfigDict:
    """Train settings that have an effect on one of these models, with those of the values."""
    specs = list(specs)
    group = ConfigDict({
        name: config_dict.placeholder(int if value is None else type(value))
        for name, value in TRAIN.items()
        if any(spec.has_effect(name) for spec in specs)
    })  # fmt: skip
    group.update({name: value for name, value in values.items() if name in group})
    return group


def model_names(models: str) -> list[str]:
    """Splits comma-separated model names and removes duplicates.

    Raises:
      InputError: a name that is not in the registry.
    """
    names = list(dict.fromkeys(name.strip() for name in models.split(",")))
    for name in names:
        if name not in MODELS:
            raise InputError(f'no model "{name}", expected some of {", ".join(MODELS)}')
    return names


def train_settings(config: Any, model: str) -> ConfigDict:
    """Returns the train settings that a model uses.

    Each is `MODEL.train.NAME` if that is set, else `train.NAME` if that is set, else the default of
    the model, else that in `TRAIN_SETTINGS`. A number of steps or a patience replaces a number of
    epochs that ranks lower.
    """
    used = dict(TRAIN)
    for _, level in _levels(config, model):
        if level.keys() & {"steps", "patience"}:
            used["epochs"] = None
        used |= level
    return ConfigDict(used)


def _levels(config: Any, model: str) -> list[tuple[str, dict[str, Any]]]:
    """Train settings that are set for a model, with the prefix of their names: its defaults, those
    of all models, and its own."""
    spec = MODELS[model]
    levels = (
        (f"{model}.train.", spec.train),
        ("train.", config.train),
        (f"{model}.train.", config[model].train),
    )
    return [
        (prefix, {n: v for n, v in level.items() if v is not None and spec.has_effect(n)})
        for prefix, level in levels
    ]


def check(config: Any, models: list[str]) -> None:
    """Checks the settings of a run for these models.

    Raises:
      InputError: for the first invalid setting.
    """
    RUN_SETTINGS["seed"].check("seed", config.seed)
    for model in models:
        check_values(MODELS[model].settings, config[model].to_dict(), f"{model}.")
        _check_train(config, model)


def _check_train(config: Any, model: str) -> None:
    full_name = {name: f"train.{name}" for name in TRAIN}
    for prefix, level in _levels(config, model):
        for name, value in level.items():
            full_name[name] = f"{prefix}{name}"
            TRAIN_SETTINGS[name].check(full_name[name], value)
        for name in ("steps", "patience"):
            if name in level and "epochs" in level:
                raise InputError(
                    f"{prefix}epochs {level['epochs']}: expected no {prefix}{name}, which is "
                    f"{level[name]}"
                )
    train = train_settings(config, model)
    if train.batch % train.microbatches:
        raise InputError(
            f"{full_name['microbatches']} {train.microbatches}: expected a divisor of "
            f"{full_name['batch']}, {train.batch}"
        )


def expected_instead(name: str, known: Iterable[str], models: Iterable[str]) -> str:
    """Returns what is expected in place of a setting that does not exist: those of its group, or
    its model among the models of the run; empty if it has no group.

    Args:
      known: names of all settings.
    """
    group = name.rpartition(".")[0]
    model = f"{name}.".removeprefix("config.").partition(".")[0]
    if model in MODELS and model not in models:
        return f"expected {model} among the models, which are {', '.join(models)}"
    near = [other for other in known if other.rpartition(".")[0] == group]
    return f"expected one of {', '.join(near)}" if near and group not in ("", "config") else ""


def describe(config: ConfigDict, more: Settings) -> Iterator[str]:
    """Lists the settings of a run, a line `--config.NAME=VALUE  MEANING (RANGE)` for each.

    Args:
      config: settings of an experiment, which trains the models `config.models`.
      more: settings that only experiments with scales have.
    """
    models = model_names(config.models)
    used = {model: train_settings(config, model).to_dict() for model in models}
    explicit = {name: value for name, value in config.train.items() if value is not None}
    usual = used[models[0]] if len(models) == 1 else TRAIN | explicit
    yield from _lines(RUN_SETTINGS | dict(more), config.to_dict())
    for model in models:
        yield f"\nModel {model}:\n"
        yield from _lines(MODELS[model].settings, config[model].to_dict(), f"{model}.")
        own = {name: value for name, value in used[model].items() if value != usual[name]}
        yield from _lines(TRAIN_SETTINGS, own, f"{model}.train.")
    yield "\nTraining; --config.MODEL.train.NAME sets the value of one model:\n"
    of_all = {name: usual[name] for name in config.train}
    yield from _lines(TRAIN_SETTINGS, of_all, "train.")
    yield "\nGenerated stories:\n"
    generator = {field.name: Setting(None, field.metadata["help"]) for field in fields(Config)}
    yield from _lines(generator, config.generate.to_dict(), "generate.")


def _lines(settings: Settings, values: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Lists the settings that have a value, which is empty if it is None."""
    values = flatten_dict(values, sep=".")
    for name, setting in flatten_dict(settings, sep=".").items():
        if name in values:
            value = "" if values[name] is None else values[name]
            limits = f" ({setting.range})" if setting.range else ""
            yield f"  --config.{prefix}{name}={value}".ljust(42) + f"  {setting.meaning}{limits}"
