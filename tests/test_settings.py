"""Settings: their ranges, what ranks first, and how they are changed."""

import re

import pytest
from flax import nnx
from flax.traverse_util import flatten_dict
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.experiment import runs
from clutrr_jax.models import MODELS, Spec
from clutrr_jax.models.setting import Setting, as_settings
from clutrr_jax.settings import TRAIN_SETTINGS, TrainConfig, change, default_settings, describe
from generator.errors import InputError
from generator.relations.kinship import KINSHIP

SIZES = Sizes(20, 40, KINSHIP, states=8)


def resolved(model: str, given: dict) -> TrainConfig:
    """The train settings of a run with these settings."""
    config = default_settings("single", model)
    config.update_from_flattened_dict(given)
    (run,) = runs(config)
    return run.config.train


def test_default_settings_are_valid() -> None:
    assert [run.model for run in runs(default_settings("single", ",".join(MODELS)))] == [*MODELS]


@pytest.mark.parametrize("model", MODELS)
def test_every_setting_has_a_meaning_in_one_line(model: str) -> None:
    for name, setting in flatten_dict(MODELS[model].settings | TRAIN_SETTINGS, sep=".").items():
        assert setting.meaning and len(setting.meaning) < 90, name
        setting.check(name, setting.default)


def test_help_lists_every_setting_of_a_run_once() -> None:
    names = set(flatten_dict(default_settings("single", "gat").to_dict(), sep="."))
    others = tuple(f"{model}." for model in MODELS.keys() - {"gat"})
    expected = {name for name in names if not name.startswith((*others, "gat.train."))} - {"name"}
    lines = "\n".join(describe(default_settings("", "gat"), {}))
    listed = re.findall(r"--config\.([\w.]+)=", lines)
    assert set(listed) == expected and len(listed) == len(set(listed))


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("seed", 3_000_000_000, "seed 3000000000: expected at least 0 and at most 2000000000"),
        ("train.replicas", 0, "train.replicas 0: expected at least 1"),
        ("train.entities", "random", 'train.entities "random": expected one of fixed, redrawn'),
        ("train.microbatches", 7, "train.microbatches 7: expected a divisor of train.batch, 100"),
        ("train.learning_rate", float("nan"), "train.learning_rate nan: expected above 0"),
        ("gat.train.epochs", 0, "train.epochs 0: expected at least 1"),
        ("gat.directions", "reverse", 'gat.directions "reverse": expected one of forward'),
        ("reader_prover.prover.floor", 1.5, "reader_prover.prover.floor 1.5: expected at least 0"),
    ],
)
def test_wrong_value_is_refused(setting: str, value: object, expected: str) -> None:
    config = default_settings("single", "gat,reader_prover")
    config.update_from_flattened_dict({setting: value})
    with pytest.raises(InputError, match=f"^{re.escape(expected)}"):
        runs(config)


@pytest.mark.parametrize(
    ("setting", "right", "wrong"),
    [
        (Setting(1, at_least=1), [1, 2], [0, -1]),
        (Setting(1.0, above=0), [1e-9], [0.0, float("nan"), float("inf")]),
        (Setting(0.5, at_least=0, below=1), [0.0, 0.99], [-0.1, 1.0]),
        (Setting(0.5, above=0, at_most=1), [0.1, 1.0], [0.0, 1.1]),
        (Setting("a", choices=("a", "b")), ["a", "b"], ["c", ""]),
        (Setting(0.0), [-1e9, float("inf")], []),
        (Setting(None, at_least=1), [None, 1], [0]),
    ],
)
def test_ranges(setting: Setting, right: list, wrong: list) -> None:
    for value in right:
        setting.check("x", value)
    for value in wrong:
        with pytest.raises(InputError, match=f"expected {setting.range}"):
            setting.check("x", value)


def test_plain_values_are_settings_without_a_range(monkeypatch) -> None:
    own = {"dropout": 3.0, "kind": "log", "width": Setting(3, at_least=1), "group": {"scale": -1}}
    monkeypatch.setitem(MODELS, "own", Spec(nnx.Module, "graph", as_settings(own)))
    assert MODELS["own"].config == own | {"width": 3}
    config = default_settings("single", "own")
    config.own.update({"dropout": -3.0, "kind": "", "group": {"scale": -2}})
    runs(config)
    config.own.width = 0
    with pytest.raises(InputError, match=r"own\.width 0: expected at least 1"):
        runs(config)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("gat.heads", 5, 5),
        ("gat.dropout", 1, 1.0),
        ("gat.dropout", ".25", 0.25),
        ("gat.entities", "False", False),
        ("train.epochs", "3", 3),
        ("train.epochs", None, None),
        ("data", "x.zip", "x.zip"),
        ("gat.heads", "many", "setting \"gat.heads\": 'many', expected int"),
        ("gat.heads", 1.5, 'setting "gat.heads": 1.5, expected int'),
        ("gat.heads", None, 'setting "gat.heads": None, expected int'),
        ("gat.entities", "maybe", "setting \"gat.entities\": 'maybe', expected bool"),
        ("gat.head", 5, 'no setting "gat.head"; expected one of gat.directions, '),
        ("gat", 5, 'no setting "gat"; expected one of data, log, models, '),
        ("gta.heads", 5, 'no setting "gta.heads"; expected one of data, log, models, '),
        ("train.epochs.x", 5, 'no setting "train.epochs.x"; expected one of train.batch, '),
    ],
)
def test_a_setting_is_changed_by_its_name(name: str, value: object, expected: object) -> None:
    config = default_settings("single", "gat")
    if isinstance(expected, str) and " " in expected:
        with pytest.raises(InputError, match=f"^{re.escape(expected)}"):
            change(config, name, value)
    else:
        change(config, name, value)
        assert flatten_dict(config.to_dict(), sep=".")[name] == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # The default of the model, or the usual one.
        ({}, {"gat": 1e-3, "prover": 3e-2}),
        # The global setting, also where it is the usual value.
        ({"train.learning_rate": 1e-3}, {"gat": 1e-3, "prover": 1e-3}),
        # The setting of the model, also where it is the default of the model.
        (
            {"train.learning_rate": 1e-4, "prover.train.learning_rate": 3e-2},
            {"gat": 1e-4, "prover": 3e-2},
        ),
        ({"gat.train.learning_rate": 1e-2}, {"gat": 1e-2, "prover": 3e-2}),
    ],
)
def test_what_is_set_ranks_before_defaults_and_models_before_all(given, expected) -> None:
    assert {name: resolved(name, given).learning_rate for name in expected} == expected


@pytest.mark.parametrize("model", MODELS)
def test_no_default_of_a_model_hides_a_setting(model: str) -> None:
    for group in ("train", f"{model}.train"):
        values = dict.fromkeys(TRAIN_SETTINGS, 1) | {
            "selection": "dev_loss", "entities": "learned", "dev_fraction": 0.7, "ema_decay": 0.7
        }  # fmt: skip
        found = resolved(model, {f"{group}.{name}": value for name, value in values.items()})
        assert {name: getattr(found, name) for name in values} == values


@pytest.mark.parametrize(
    ("default", "given", "expected"),
    [
        ({}, {"train.epochs": 3}, 3),
        ({"steps": 9}, {"train.epochs": 3}, 3),
        ({"epochs": 5}, {}, 5),
        ({"epochs": 5}, {"train.steps": 9}, None),
        ({"epochs": 5}, {"train.batch": 9}, 5),
        ({}, {"train.epochs": 3, "own.train.patience": 9}, None),
        ({}, {"train.patience": 9, "own.train.epochs": 3}, 3),
        ({}, {"train.epochs": 3, "train.patience": 9}, 3),
    ],
)
def test_steps_replace_epochs_that_rank_lower(default, given, expected, monkeypatch) -> None:
    monkeypatch.setitem(MODELS, "own", Spec(nnx.Module, "graph", {}, train=default))
    assert resolved("own", given).epochs == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gat", "node 100: expected a multiple of heads 3"),
        ("edge_attention", "embedding 100: expected a multiple of heads 3"),
        ("edge_transformer", "dim 200: expected a multiple of heads 3"),
        ("transformer", "dim 64: expected a multiple of heads 3"),
    ],
)
def test_model_refuses_other_numbers_of_heads(model: str, expected: str) -> None:
    spec = MODELS[model]
    with pytest.raises(InputError, match=f"^{re.escape(expected)}"):
        spec.model(ConfigDict(spec.config | {"heads": 3}), SIZES, rngs=nnx.Rngs(0))
