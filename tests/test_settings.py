"""Settings: those of the models of a run and no others, their ranges, and what ranks first."""

import re

import pytest
from flax import nnx
from flax.traverse_util import flatten_dict
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models import MODELS, Spec
from clutrr_jax.models.common import EntityVectors
from clutrr_jax.models.setting import Setting, as_settings
from clutrr_jax.settings import (
    TRAIN_SETTINGS,
    check,
    default_settings,
    describe,
    train_settings,
    with_models,
)
from generator.errors import InputError
from generator.kinship import KINSHIP

SIZES = Sizes(20, 40, KINSHIP, states=8)


def test_default_settings_are_valid() -> None:
    check(default_settings("single", ",".join(MODELS)), list(MODELS))


@pytest.mark.parametrize("model", MODELS)
def test_every_setting_has_a_meaning_in_one_line(model: str) -> None:
    for name, setting in flatten_dict(MODELS[model].settings | TRAIN_SETTINGS, sep=".").items():
        assert setting.meaning and len(setting.meaning) < 90, name
        setting.check(name, setting.default)


@pytest.mark.parametrize("model", MODELS)
def test_train_settings_of_a_model_are_those_with_an_effect(model: str) -> None:
    """`entities` if it has vectors of people, `shuffle_sentences` if it reads tokens."""
    spec = MODELS[model]
    built = nnx.eval_shape(lambda: spec.model(ConfigDict(spec.config), SIZES, rngs=nnx.Rngs(0)))
    expected = set(TRAIN_SETTINGS)
    expected -= set() if nnx.state(built, EntityVectors) else {"entities"}
    expected -= set() if spec.kind == "tokens" else {"shuffle_sentences"}
    config = default_settings("single", model)
    assert set(config.train) == set(config[model].train) == expected


def test_a_run_of_a_gat_has_at_most_40_settings() -> None:
    names = set(flatten_dict(default_settings("single", "gat").to_dict(), sep="."))
    names = {name for name in names if not name.startswith("gat.train.")}
    listed = re.findall(
        r"--config\.([\w.]+)=", "\n".join(describe(default_settings("", "gat"), {}))
    )
    assert set(listed) == names - {"name"} and len(listed) == len(set(listed))
    assert len(names) <= 40


def test_settings_are_those_of_the_models() -> None:
    config = default_settings("single", "gat,bilstm_mean")
    config.gat.heads, config.train.batch, config.train.shuffle_sentences = 5, 7, 0.0
    changed = with_models(config, ["gat", "prover"])
    assert MODELS.keys() & set(changed) == {"gat", "prover"} and changed.models == "gat,prover"
    assert (changed.gat.heads, changed.train.batch) == (5, 7)
    assert "shuffle_sentences" not in changed.train and "entities" not in changed.prover.train
    with pytest.raises(AttributeError):
        changed.ncrl.embedding = 3


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("seed", -1, "seed -1: expected at least 0 and at most 2000000000"),
        ("seed", 3_000_000_000, "seed 3000000000: expected at least 0 and at most"),
        ("train.replicas", 0, "train.replicas 0: expected at least 1"),
        ("train.epochs", 0, "train.epochs 0: expected at least 1"),
        ("train.patience", 10**12, "train.patience 1000000000000: expected at least 0 and at most"),
        ("train.dev_fraction", 20.0, "train.dev_fraction 20.0: expected at least 0 and below 1"),
        ("train.entities", "random", 'train.entities "random": expected one of fixed, redrawn'),
        ("train.microbatches", 7, "train.microbatches 7: expected a divisor of train.batch, 100"),
        ("train.learning_rate", float("nan"), "train.learning_rate nan: expected above 0"),
        ("train.learning_rate", float("inf"), "train.learning_rate inf: expected above 0"),
        ("gat.train.epochs", 0, "gat.train.epochs 0: expected at least 1"),
        (
            "gat.train.microbatches",
            7,
            "gat.train.microbatches 7: expected a divisor of train.batch, 100",
        ),
        ("gat.directions", "reverse", 'gat.directions "reverse": expected one of forward'),
        ("bert.people", "names", 'bert.people "names": expected one of numbers, hidden'),
        ("bert.encoder_layer_decay", 0.0, "bert.encoder_layer_decay 0.0: expected above 0 and at"),
        ("reader_prover.prover.floor", 1.5, "reader_prover.prover.floor 1.5: expected at least 0"),
    ],
)
def test_wrong_value_is_refused(setting: str, value: object, expected: str) -> None:
    models = ["gat", "bert", "reader_prover"]
    config = default_settings("single", ",".join(models))
    config.update_from_flattened_dict({setting: value})
    with pytest.raises(InputError, match=f"^{re.escape(expected)}"):
        check(config, models)


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
    check(config, ["own"])
    config.own.width = 0
    with pytest.raises(InputError, match=r"own\.width 0: expected at least 1"):
        check(config, ["own"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # The default of the model, or the usual one.
        ({}, {"gat": 1e-3, "prover": 3e-2}),
        # The global setting, also where it is the usual value.
        ({"train.learning_rate": 1e-4}, {"gat": 1e-4, "prover": 1e-4}),
        ({"train.learning_rate": 1e-3}, {"gat": 1e-3, "prover": 1e-3}),
        # The setting of the model, also where it is the default of the model.
        (
            {"train.learning_rate": 1e-4, "prover.train.learning_rate": 3e-2},
            {"gat": 1e-4, "prover": 3e-2},
        ),
        ({"gat.train.learning_rate": 1e-2}, {"gat": 1e-2, "prover": 3e-2}),
    ],
)
def test_what_is_set_ranks_before_defaults_and_models_before_all(
    given: dict, expected: dict
) -> None:
    config = default_settings("single", ",".join(expected))
    config.update_from_flattened_dict(given)
    assert {name: train_settings(config, name).learning_rate for name in expected} == expected


@pytest.mark.parametrize("model", MODELS)
def test_no_default_of_a_model_hides_a_setting(model: str) -> None:
    config = default_settings("single", model)
    for settings in (config.train, config[model].train):
        for name in settings:
            value = {"selection": "dev_loss", "entities": "learned"}.get(name, 7)
            settings[name] = value
            assert train_settings(config, model)[name] == value
            settings[name] = None


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
    ],
)
def test_steps_replace_epochs_that_rank_lower(
    default: dict, given: dict, expected: int | None, monkeypatch
) -> None:
    monkeypatch.setitem(MODELS, "own", Spec(nnx.Module, "graph", {}, default))
    config = default_settings("single", "own")
    config.update_from_flattened_dict(given)
    assert train_settings(config, "own").epochs == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"train.epochs": 3, "train.patience": 9}, "train.epochs 3: expected no train.patience"),
        (
            {"gat.train.epochs": 3, "gat.train.steps": 9},
            "gat.train.epochs 3: expected no gat.train.steps, which is 9",
        ),
    ],
)
def test_epochs_exclude_steps_of_the_same_level(given: dict, expected: str) -> None:
    config = default_settings("single", "gat")
    config.update_from_flattened_dict(given)
    with pytest.raises(InputError, match=f"^{re.escape(expected)}"):
        check(config, ["gat"])


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gat", "node 100: expected a multiple of heads 3"),
        ("edge_attention", "embedding 100: expected a multiple of heads 3"),
        ("edge_transformer", "dim 200: expected a multiple of heads 3"),
    ],
)
def test_model_refuses_other_numbers_of_heads(model: str, expected: str) -> None:
    spec = MODELS[model]
    with pytest.raises(InputError, match=f"^{re.escape(expected)}"):
        spec.model(ConfigDict(spec.config | {"heads": 3}), SIZES, rngs=nnx.Rngs(0))
