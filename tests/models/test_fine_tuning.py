"""Encoders that are trained with the model that reads their states."""

import json
import shutil
from functools import cache, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from ml_collections import ConfigDict

from clutrr_jax.data.batching import pack, targets
from clutrr_jax.models import MODELS
from clutrr_jax.models.functional import ModelDef
from clutrr_jax.models.pretrained.load import load_encoder
from clutrr_jax.training.loop import Trainer
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.steps import create_optimizer
from tests.models.small import shape_for, small_config
from tests.tiny_bert import DEBERTA, write_encoder
from tests.training.small import TRAIN, leaves

SLOW = {"reader_prover_bert"}  # to compile
NAMES = [
    pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
    for name, spec in MODELS.items()
    if spec.encoder
]
ROWS = [3, 70, 20]


@pytest.fixture(scope="module")
def tiny_deberta(tiny_bert, tmp_path_factory) -> Path:
    """Folder of a random DeBERTa with the vocabulary of `tiny_bert`."""
    vocab_size = json.loads((tiny_bert / "config.json").read_text())["vocab_size"]
    sizes = {"vocab_size": vocab_size, "max_position_embeddings": 512}
    folder = write_encoder(tmp_path_factory.mktemp("deberta"), DEBERTA | sizes)
    shutil.copy(tiny_bert / "tokenizer.json", folder)
    return folder


class FineTuned:
    """Small model with an encoder that is trained, with the parameters of its start.

    The other parameters are changed at random, because a prover knows no rules at the start.
    """

    def __init__(self, name: str, folder: Path, small_for):
        self.config = small_config(name, folder=str(folder), train_encoder=True)
        self.data = small_for(name, folder=str(folder), train_encoder=True)
        self.definition = ModelDef(MODELS[name], self.config, self.data.sizes)
        self.params, self.buffers = jax.jit(self.definition.init)(
            jax.random.key(0), self.definition.load_pretrained()
        )
        rng = np.random.default_rng(0)
        for part in self.params:
            if part != "encoder":
                self.params[part] = jax.tree.map(
                    lambda p: p + 0.2 * rng.normal(size=p.shape).astype("f4"), self.params[part]
                )

    def logits(self, params, batch) -> jax.Array:
        return self.definition.evaluated(params, self.buffers)(batch)


@pytest.fixture(scope="module")
def fine_tuned(small_for):
    """Function from the name of a model and the folder of its encoder to a `FineTuned`."""
    return cache(partial(FineTuned, small_for=small_for))


def batch_of(data, rows: list[int] = ROWS, extra: int = 0):
    """Batch of these train stories, with a shape that fits `ROWS` and `extra` more of all sizes."""
    shape = shape_for("tokens", data, ROWS, extra)
    return jax.jit(pack, static_argnums=2)(data.train_stories, jnp.array(rows), shape)


@pytest.mark.parametrize("name", NAMES)
def test_logits_at_the_start_equal_those_over_frozen_states(
    name: str, fine_tuned, small_for, tiny_bert
) -> None:
    """Up to the rounding of frozen states to float16, in batches of another size too."""
    model, frozen = fine_tuned(name, tiny_bert), small_for(name)
    definition = ModelDef(MODELS[name], model.config, frozen.sizes)
    params = nnx.State({part: model.params[part] for part in model.params if part != "encoder"})

    @jax.jit
    def frozen_logits(batch) -> jax.Array:
        return definition.evaluated(params, model.buffers)(batch)

    batch = batch_of(model.data, [*ROWS, -1], extra=7)
    assert batch.states is None and batch_of(frozen).pieces is None
    *found, padding = jax.jit(model.logits)(model.params, batch)
    np.testing.assert_allclose(found, frozen_logits(batch_of(frozen)), rtol=2e-3, atol=4e-3)
    assert np.isfinite(padding).all()
    assert np.ptp(found, axis=0).max() > 0.05


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("bert", "tiny_bert"),
        pytest.param("reader_prover_bert", "tiny_bert", marks=pytest.mark.slow),
        ("bert", "tiny_deberta"),
    ],
)
def test_gradient_reaches_every_parameter(name, folder, fine_tuned, request) -> None:
    """Including the embedding of each token of the stories, and of no other token."""
    model = fine_tuned(name, request.getfixturevalue(folder))
    batch = batch_of(model.data, [*ROWS, -1])

    @jax.jit
    @jax.grad
    def gradient(params):
        target, mask = targets(batch)
        logits = model.logits(params, batch)
        return (optax.softmax_cross_entropy_with_integer_labels(logits, target) * mask).sum()

    for path, gradients in nnx.to_flat_state(gradient(model.params)["encoder"]):
        values = np.asarray(gradients[...])
        assert np.isfinite(values).all()
        if path == ("tokens", "embedding"):
            reached = np.flatnonzero(np.abs(values).max(axis=1))
            seen = np.unique(np.asarray(batch.pieces)[np.asarray(batch.mask)])
            np.testing.assert_array_equal(reached, seen)
        # The bias of the keys adds the same to all scores of a query, unless distances are
        # compared with the keys too.
        elif path[2:] != ("key", "bias") or folder == "tiny_deberta":
            assert np.abs(values).max() > 1e-6, path


@pytest.mark.parametrize("rate", [1e-4, 0.0])
def test_rates_decay_by_layer(rate: float, fine_tuned, tiny_bert) -> None:
    """Adam's first step is the learning rate, whatever the gradient."""
    model = fine_tuned("bert", tiny_bert)
    settings = ConfigDict({"encoder_learning_rate": rate, "encoder_layer_decay": 0.5})
    optimizer = create_optimizer(ConfigDict(TRAIN), settings, model.data.sizes.encoder)
    ones = jax.tree.map(jnp.ones_like, model.params)
    steps, _ = jax.jit(lambda p: optimizer.update(ones, optimizer.init(p)))(model.params)
    for path, step in nnx.to_flat_state(steps):
        if path[0] != "encoder":
            expected = 1e-3
        elif path[1] == "layers":
            expected = {0: 0.5 * rate, 1: rate}[path[2]]
        else:
            expected = 0.25 * rate
        np.testing.assert_allclose(-step[...], expected, rtol=1e-3)


@pytest.mark.slow
def test_replicas_start_from_the_pretrained_parameters_and_train_all(small_for, tiny_bert) -> None:
    data = small_for("bert", folder=str(tiny_bert), train_encoder=True)
    config = small_config("bert", folder=str(tiny_bert), train_encoder=True)
    train = ConfigDict(TRAIN | {"batch": 64, "epochs": 1})
    trainer = Trainer(MODELS["bert"], config, train, data, Replicas(2))
    state, pretrained = trainer.init(), leaves(nnx.state(load_encoder(tiny_bert)))
    for found, expected in zip(leaves(state.params["encoder"]), pretrained, strict=True):
        np.testing.assert_array_equal(found, np.stack([expected, expected]))
    state, _ = trainer.epoch(state, 1)
    for found, expected in zip(leaves(state.params["encoder"]), pretrained, strict=True):
        assert (found[0] != expected).any() and (found[0] != found[1]).any()
