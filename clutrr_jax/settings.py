"""Settings of a run: defaults, from Sinha et al. 2019 (appendix 2.2), and validation."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from flax import nnx
from ml_collections import ConfigDict, config_dict

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.prepare import GENERATE
from clutrr_jax.models import MODELS
from clutrr_jax.models.common import EntityVectors
from generator.config import Config
from generator.errors import InputError, check_range, one_of

_LARGEST = 2_000_000_000  # seed of the first replica, or patience: they are int32
# Entities of the people (Sinha et al. 2019, appendix 1.5). fixed: each story keeps the entities
# drawn for it, with random vectors; learned: the same with trained vectors; redrawn: the entities
# of each story are drawn again in every epoch.
ENTITY_POLICIES = ("fixed", "redrawn", "learned")
# Epoch whose parameters are tested: the last one, that with the lowest dev loss, or that with the
# best dev accuracy (Sinha et al. 2019). The score that ends a training if it does not improve is
# the dev loss, and with dev_accuracy the dev accuracy.
SELECTIONS = ("last", "dev_loss", "dev_accuracy")


# Train settings of a model that has no others in its `CONFIG["train"]`.
TRAIN: dict[str, Any] = {
    "replicas": 10,
    "steps": 10_000,  # at most, rounded up to whole epochs
    "patience": 1_000,  # steps without a better dev loss after which a replica stops; 0: never
    "epochs": None,  # instead of `steps` and `patience`, if it is set
    "selection": "last",  # the epoch that is tested; dev_loss or dev_accuracy (as in the paper)
    "entities": "redrawn",  # every epoch; fixed (as in the paper) or learned
    "batch": 100,  # stories per step
    "microbatches": 1,  # parts of each batch, which devices can share
    "learning_rate": 1e-3,  # of Adam
    "grad_clip_norm": 5.0,
    "ema_decay": 0.999,  # at most, of the averaged parameters that are evaluated
    "shuffle_sentences": 0.5,  # fraction of stories whose sentences are shuffled each epoch
    "dev_fraction": 0.2,  # of the train stories, not trained on: the dev stories
    "checkpoint_minutes": 1.0,  # between checkpoints; one is always written at the end
}


def default_settings(name: str, models: str) -> ConfigDict:
    """Returns the settings of a run with the given name and comma-separated models.

    They are locked: an assignment to a setting that does not exist is an error. The settings
    `train.NAME` and `MODEL.train.NAME` are None unless they are assigned, see `train_settings`.
    """
    config = ConfigDict()
    config.name = name
    config.models = models
    config.tensorboard = False  # also write TensorBoard event files
    config.seed = 0  # of the first replica; replica i has seed + i

    # A .zip, folder, .csv, .csv.gz, .parquet or .jsonl. Empty: generate stories with the settings
    # `generate`. "generate": the same, with new train stories in every epoch. Several joined by
    # commas, such as "FILE,generate": the train rows of all, the test rows of the first.
    config.data = ""
    config.generate = ConfigDict(Config().to_json())

    config.train = _unset()
    for model, spec in MODELS.items():
        config[model] = ConfigDict({k: v for k, v in spec.config.items() if k != "train"})
        config[model].train = _unset()
    return config.lock()


def _unset() -> ConfigDict:
    """Train settings of which none is set."""
    return ConfigDict({
        name: config_dict.placeholder(int if value is None else type(value))
        for name, value in TRAIN.items()
    })  # fmt: skip


def train_settings(config: Any, model: str) -> ConfigDict:
    """Returns the train settings that a model uses.

    Each is `MODEL.train.NAME` if that is set, else `train.NAME` if that is set, else the default of
    the model, else that in `TRAIN`. A number of steps or a patience replaces a number of epochs
    that ranks lower.
    """
    used = dict(TRAIN)
    for level in (MODELS[model].train, config.train, config[model].train):
        given = {name: value for name, value in level.items() if value is not None}
        if given.keys() & {"steps", "patience"}:
            used["epochs"] = None
        used |= given
    return ConfigDict(used)


def check(config: Any, models: list[str]) -> None:
    """Checks the settings of a run for these models.

    Raises:
      InputError: for the first invalid setting.
    """
    check_range("seed", config.seed, 0, _LARGEST)
    for model in models:
        if config.data == GENERATE and MODELS[model].kind == "states":
            raise InputError(
                f'data "{GENERATE}": model "{model}" reads the tokens of a pretrained encoder, '
                "which are computed once for all epochs; expected --config.data= or a data set"
            )
        own, default = config[model].train, MODELS[model].train
        full_name = {
            name: f"{model}.train.{name}"
            if own[name] is not None or (name in default and config.train[name] is None)
            else f"train.{name}"
            for name in TRAIN
        }
        _check_train(train_settings(config, model), full_name)
        _check_model(f"{model}.", config[model], MODELS[model].config)
    if config.data == GENERATE and config.generate.dev_rows not in (0, "0"):
        raise InputError(
            f'data "{GENERATE}": generate.dev_rows is {config.generate.dev_rows}, expected 0: the '
            "dev stories are a fraction of the first train stories, train.dev_fraction"
        )


def _check_train(train: Any, full_name: Mapping[str, str]) -> None:
    for name, known in (("entities", ENTITY_POLICIES), ("selection", SELECTIONS)):
        one_of(train, name, *known, of=full_name[name].removesuffix(name))
    for name in ("replicas", "epochs", "steps", "batch", "microbatches"):
        if train[name] is not None:
            check_range(full_name[name], train[name], 1)
    if train.batch % train.microbatches:
        raise InputError(
            f"{full_name['microbatches']} {train.microbatches}: expected a divisor of "
            f"{full_name['batch']}, {train.batch}"
        )
    check_range(full_name["patience"], train.patience, 0, _LARGEST)
    check_range(full_name["checkpoint_minutes"], train.checkpoint_minutes, 0)
    check_range(full_name["shuffle_sentences"], train.shuffle_sentences, 0, 1)
    for name in ("learning_rate", "grad_clip_norm"):
        _check_positive(full_name[name], train[name])
    for name in ("dev_fraction", "ema_decay"):
        if not 0 <= train[name] < 1:
            raise InputError(f"{full_name[name]} {train[name]}: expected at least 0 and below 1")


def _check_positive(name: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise InputError(f"{name} {value}: expected a finite number above 0")


def _check_model(prefix: str, given: Mapping[str, Any], default: Mapping[str, Any]) -> None:
    """Checks the settings of a model. An integer whose default is 1 or more must be 1 or more; a
    float whose default is not negative must not be negative."""
    for name, usual in default.items():
        value, full_name = given[name], f"{prefix}{name}"
        if name == "train":
            continue
        if isinstance(usual, Mapping):
            _check_model(f"{full_name}.", value, usual)
        elif type(usual) is int and usual >= 1:
            check_range(full_name, value, 1)
        elif type(usual) is not float:
            continue
        elif name == "scale" and usual > 0:
            _check_positive(full_name, value)
        elif "dropout" in name and not 0 <= value < 1:
            raise InputError(f"{full_name} {value}: expected at least 0 and below 1")
        elif name == "encoder_layer_decay" and not 0 < value <= 1:
            raise InputError(f"{full_name} {value}: expected above 0 and at most 1")
        elif name == "floor":
            check_range(full_name, value, 0, 1)
        elif usual >= 0 and not (value >= 0 and math.isfinite(value)):
            raise InputError(f"{full_name} {value}: expected a finite number, 0 or more")


def check_effect(config: Any, models: list[str], given: Iterable[str]) -> None:
    """Checks that each of the given settings has an effect on a model of the run.

    Prints a line where a train setting of all models has no effect on one of them.

    Args:
      config: the settings of a run or a grid.
      models: the models that are trained.
      given: names of settings, such as `train.steps`.
    Raises:
      InputError: a setting has no effect.
    """
    for name in given:
        expected = {model: _effective(config, model, name) for model in models}
        if all(expected.values()):
            listed = next(iter(expected.values()))
            raise InputError(f"{name}: no effect on {', '.join(models)}; expected {listed}")
        for model in models if name.startswith("train.") else ():
            if expected[model]:
                print(f"{name}: no effect on {model}; expected {expected[model]}", flush=True)


def _effective(config: Any, model: str, name: str) -> str:
    """Returns what to set instead of a setting without effect on a model, or an empty string."""
    group, _, setting = name.rpartition(".")
    own = config[model].train
    if name.partition(".")[0] in MODELS.keys() - {model}:
        return f"{name.partition('.')[0]} among the models"
    if group not in ("train", f"{model}.train"):
        return ""
    if group == "train" and own[setting] is not None:
        return f"no {model}.{name}, which is {own[setting]}"
    if setting == "shuffle_sentences" and MODELS[model].kind != "tokens":
        return "a model that reads words"
    if setting == "entities" and not _has_entities(config, model):
        return "a model with vectors of people"
    epochs = train_settings(config, model).epochs
    if setting in ("steps", "patience") and epochs is not None:
        own_name = "" if own.epochs is None else f"{model}."
        return f"no {own_name}train.epochs, which is {epochs}"
    if setting == "epochs" and epochs is None:
        return f"no {model}.train.steps or {model}.train.patience"
    return ""


def _has_entities(config: Any, model: str) -> bool:
    """Returns whether a model has vectors of people, in a data set of any size."""
    spec, sizes = MODELS[model], Sizes(entities=2, tokens=9, states=8)
    built = nnx.eval_shape(lambda: spec.model(config[model], sizes, rngs=nnx.Rngs(0)))
    return bool(nnx.state(built, EntityVectors))
