"""Settings of a run: defaults, from Sinha et al. 2019 (appendix 2.2), and validation."""

import math
from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict, config_dict

from clutrr_jax.models import MODELS
from clutrr_jax.models.common import MATMUL_DTYPES
from generator.config import Config
from generator.errors import InputError, check_range, one_of

_LAST_SEED = 2_000_000_000  # of the first replica; seeds are int32
# Entities of the people (Sinha et al. 2019, appendix 1.5). fixed: each story keeps the entities
# drawn for it, with random vectors; learned: the same with trained vectors; redrawn: the entities
# of each story are drawn again in every epoch.
ENTITY_POLICIES = ("fixed", "redrawn", "learned")
# Epoch whose parameters are tested: that with the lowest dev loss, that with the best dev accuracy
# (Sinha et al. 2019), or the last one.
SELECTIONS = ("dev_loss", "dev_accuracy", "last")


def default_settings(name: str, models: str) -> ConfigDict:
    """Returns the settings of a run with the given name and comma-separated models.

    They are locked: an assignment to a setting that does not exist is an error.
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

    config.train = ConfigDict({
        "replicas": 10,
        "steps": 10_000,  # at most
        "patience": 1_000,  # steps without a better dev score after which a replica stops; 0: never
        "epochs": config_dict.placeholder(int),  # instead of `steps` and `patience`, if it is set
        "selection": "dev_loss",  # the epoch that is tested; dev_accuracy (as in the paper) or last
        "entities": "redrawn",  # every epoch; fixed (as in the paper) or learned
        "batch": 100,  # stories per step
        "microbatches": 1,  # parts of each batch, which devices can share
        "learning_rate": 1e-3,  # of Adam
        "grad_clip_norm": 5.0,
        "ema_decay": 0.999,  # per step, of the averaged parameters that are evaluated
        "shuffle_sentences": 0.5,  # fraction of stories whose sentences are shuffled each epoch
        "dev_fraction": 0.2,  # of the train stories, to select the epoch that is tested
        "checkpoint_minutes": 1.0,  # between checkpoints; one is always written at the end
    })  # fmt: skip

    # Settings of each model. Its `train` settings override those above where they are set.
    for model, spec in MODELS.items():
        own = spec.config.get("train", {})
        config[model] = ConfigDict({k: v for k, v in spec.config.items() if k != "train"})
        config[model].train = ConfigDict({
            name: config_dict.placeholder(config.train.get_type(name)) for name in config.train
        })  # fmt: skip
        config[model].train.update(own)
    return config.lock()


def train_settings(config: Any, model: str) -> Any:
    """Train settings of a model: its own where it has them, else those of the run."""
    train = config.train.copy_and_resolve_references()
    for name, value in config[model].train.items():
        if value is not None:
            train[name] = value
    return train


def check(config: Any, models: list[str]) -> None:
    """Checks the settings of a run for these models. An integer whose default is 1 or more must be
    1 or more.

    Raises:
      InputError: for the first invalid setting.
    """
    check_range("seed", config.seed, 0, _LAST_SEED)
    for model in models:
        _check_train(train_settings(config, model))
        _check_model(f"{model}.", config[model], MODELS[model].config)


def _check_train(train: Any) -> None:
    one_of(train, "entities", *ENTITY_POLICIES, of="train.")
    one_of(train, "selection", *SELECTIONS, of="train.")
    for name in ("replicas", "epochs", "steps", "batch", "microbatches"):
        if train[name] is not None:
            check_range(f"train.{name}", train[name], 1)
    if train.batch % train.microbatches:
        raise InputError(
            f"train.microbatches {train.microbatches}: expected a divisor of train.batch, "
            f"{train.batch}"
        )
    for name in ("patience", "checkpoint_minutes"):
        check_range(f"train.{name}", train[name], 0)
    check_range("train.shuffle_sentences", train.shuffle_sentences, 0, 1)
    for name in ("learning_rate", "grad_clip_norm"):
        if not (train[name] > 0 and math.isfinite(train[name])):
            raise InputError(f"train.{name} {train[name]}: expected a finite number above 0")
    for name in ("dev_fraction", "ema_decay"):
        if not 0 <= train[name] < 1:
            raise InputError(f"train.{name} {train[name]}: expected at least 0 and below 1")


def _check_model(prefix: str, given: Mapping[str, Any], default: Mapping[str, Any]) -> None:
    for name, usual in default.items():
        value = given[name]
        if name == "train":
            continue
        if isinstance(usual, Mapping):
            _check_model(f"{prefix}{name}.", value, usual)
        elif "dropout" in name and not 0 <= value < 1:
            raise InputError(f"{prefix}{name} {value}: expected at least 0 and below 1")
        elif name == "encoder_learning_rate" and not (value >= 0 and math.isfinite(value)):
            raise InputError(f"{prefix}{name} {value}: expected a finite number, 0 or more")
        elif name == "encoder_layer_decay" and not 0 < value <= 1:
            raise InputError(f"{prefix}{name} {value}: expected above 0 and at most 1")
        elif name == "matmul_dtype":
            one_of(given, name, *MATMUL_DTYPES, of=prefix)
        elif type(usual) is int and usual >= 1:
            check_range(f"{prefix}{name}", value, 1)
