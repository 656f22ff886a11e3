"""Validation of settings before a run starts."""

import re

import pytest
from flax import nnx
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models import MODELS, Spec
from clutrr_jax.settings import check, default_settings, train_settings
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


def test_train_settings_of_a_model_override_those_of_the_run() -> None:
    config = default_settings("single", "")
    config.train.epochs, config.gcn.train.epochs = 7, 9
    assert train_settings(config, "gat").epochs == 7
    assert train_settings(config, "gcn").epochs == 9


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
