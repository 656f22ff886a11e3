"""Validation of settings before a run starts."""

import re

import pytest
from flax import nnx
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models import MODELS, Spec
from clutrr_jax.settings import (
    TRAIN,
    _has_entities,
    check,
    check_effect,
    default_settings,
    train_settings,
)
from generator.errors import InputError

SIZES = Sizes(entities=20, tokens=40)


def test_default_settings_are_valid() -> None:
    check(default_settings("single", ""), list(MODELS))


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("seed", -1, "seed -1: expected 0 to 2000000000"),
        ("seed", 3_000_000_000, "seed 3000000000: expected 0 to"),
        ("train.replicas", 0, "train.replicas 0: expected 1 or more"),
        ("train.epochs", 0, "train.epochs 0: expected 1 or more"),
        ("train.patience", -1, "train.patience -1: expected 0 to"),
        ("train.patience", 10**12, "train.patience 1000000000000: expected 0 to"),
        ("train.batch", -5, "train.batch -5: expected 1 or more"),
        ("train.dev_fraction", 20.0, "train.dev_fraction 20.0: expected at least 0 and below 1"),
        ("train.dev_fraction", -0.1, "train.dev_fraction -0.1: expected at least 0"),
        ("train.entities", "random", 'train.entities "random": expected one of fixed, redrawn'),
        ("train.selection", "devloss", 'train.selection "devloss": expected one of last'),
        ("train.microbatches", 0, "train.microbatches 0: expected 1 or more"),
        ("train.microbatches", 7, "train.microbatches 7: expected a divisor of train.batch, 100"),
        ("train.ema_decay", 1.0, "train.ema_decay 1.0: expected at least 0 and below 1"),
        ("train.shuffle_sentences", 1.5, "train.shuffle_sentences 1.5: expected 0 to 1"),
        ("train.learning_rate", float("nan"), "train.learning_rate nan: expected a finite number"),
        ("train.grad_clip_norm", 0.0, "train.grad_clip_norm 0.0: expected a finite number above"),
        ("gat.train.epochs", 0, "gat.train.epochs 0: expected 1 or more"),
        ("gat.dropout", 30.0, "gat.dropout 30.0: expected at least 0"),
        ("gat.heads", 0, "gat.heads 0: expected 1 or more"),
        ("mac.dropout_mac", 1.0, "mac.dropout_mac 1.0: expected at least 0"),
        ("rn.shortest_sentence", 0, "rn.shortest_sentence 0: expected 1 or more"),
        (
            "bert.encoder_learning_rate",
            -1e-5,
            "bert.encoder_learning_rate -1e-05: expected a",
        ),
        ("bert.encoder_layer_decay", 1.1, "bert.encoder_layer_decay 1.1: expected above 0 and at"),
        ("bert.encoder_layer_decay", 0.0, "bert.encoder_layer_decay 0.0: expected above 0 and at"),
        ("reader_prover.prover.scale", -1.0, "reader_prover.prover.scale -1.0: expected a finite"),
        (
            "gat.train.microbatches",
            7,
            "gat.train.microbatches 7: expected a divisor of train.batch, 100",
        ),
        ("train.microbatches", 3, "train.microbatches 3: expected a divisor of train.batch, 100"),
        ("reader_prover.gold", -0.5, "reader_prover.gold -0.5: expected a finite number, 0 or"),
        ("reader_prover.prover.floor", -1.0, "reader_prover.prover.floor -1.0: expected 0 to 1"),
        ("reader_prover.prover.floor", 1.5, "reader_prover.prover.floor 1.5: expected 0 to 1"),
        ("reader_prover.prover.rounds", 0, "reader_prover.prover.rounds 0: expected 1 or more"),
    ],
)
def test_wrong_value_is_refused(setting: str, value: object, expected: str) -> None:
    config = default_settings("single", "")
    config.update_from_flattened_dict({setting: value})
    with pytest.raises(InputError, match=f"^{re.escape(expected)}"):
        check(config, ["gat", "mac", "rn", "bert", "reader_prover"])


def test_limits_of_a_name_are_for_fractions_only(monkeypatch) -> None:
    own = {"use_dropout": True, "dropout_layers": 2, "dropout_kind": "variational", "scale": "log"}
    monkeypatch.setitem(MODELS, "mine", Spec(nnx.Module, "graph", own))
    check(default_settings("single", ""), ["mine"])


def test_only_the_models_of_the_run_are_checked() -> None:
    config = default_settings("single", "")
    config.gat.heads = 0
    check(config, ["gcn"])


def test_integer_with_default_zero_may_be_zero(monkeypatch) -> None:
    own = MODELS["gat"]._replace(config={"hops": 0, "width": 3})
    monkeypatch.setitem(MODELS, "own", own)
    config = default_settings("single", "")
    check(config, ["own"])
    config.own.width = 0
    with pytest.raises(InputError, match=r"own\.width 0: expected 1 or more"):
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
    config = default_settings("single", "")
    config.update_from_flattened_dict(given)
    assert {name: train_settings(config, name).learning_rate for name in expected} == expected


@pytest.mark.parametrize("model", MODELS)
def test_no_default_of_a_model_hides_a_setting(model: str) -> None:
    config = default_settings("single", "")
    for settings in (config.train, config[model].train):
        for name in TRAIN:
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
    monkeypatch.setitem(MODELS, "own", Spec(nnx.Module, "graph", {"train": default}))
    config = default_settings("single", "")
    config.update_from_flattened_dict(given)
    assert train_settings(config, "own").epochs == expected


def test_a_global_setting_without_effect_on_some_models_is_printed(capsys) -> None:
    config = default_settings("single", "")
    given = {"train.shuffle_sentences": 0.0, "train.entities": "fixed", "train.batch": 7}
    given["gat.train.batch"] = 9
    config.update_from_flattened_dict(given)
    check_effect(config, ["gat", "prover", "bilstm_mean"], given)
    assert capsys.readouterr().out.splitlines() == [
        "train.shuffle_sentences: no effect on gat; expected a model that reads words",
        "train.shuffle_sentences: no effect on prover; expected a model that reads words",
        "train.entities: no effect on prover; expected a model with vectors of people",
        "train.batch: no effect on gat; expected no gat.train.batch, which is 9",
    ]


def test_models_with_vectors_of_people() -> None:
    """A model that reads names has them, except `bert`, which reads numbers by default."""
    config = default_settings("single", "")
    without = {name for name in MODELS if not _has_entities(config, name)}
    assert without == {
        "prover", "epignn", "ctp_linear", "ctp_attentive", "ctp_memory", "ncrl",
        "edge_transformer", "reader_prover", "reader_prover_bert", "bert",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("model", "changes", "expected"),
    [
        ("gat", {"directions": "reverse"}, 'directions "reverse": expected one of forward'),
        ("rgcn", {"directions": "reverse"}, 'directions "reverse": expected one of forward'),
        ("gat", {"heads": 3}, "node 100: expected a multiple of heads 3"),
        ("edge_attention", {"heads": 3}, "embedding 100: expected a multiple of heads 3"),
        ("edge_transformer", {"heads": 3}, "dim 200: expected a multiple of heads 3"),
        ("gnn_2018_mean", {"aggregation": "sum"}, 'aggregation "sum": expected one of mean'),
        ("reader_prover", {"reasoner": "gat"}, 'reasoner "gat": expected one of prover, rules'),
    ],
)
def test_model_refuses_invalid_settings(model: str, changes: dict, expected: str) -> None:
    spec = MODELS[model]
    with pytest.raises(InputError, match=f"^{re.escape(expected)}"):
        spec.model(ConfigDict(spec.config | changes), SIZES, rngs=nnx.Rngs(0))
