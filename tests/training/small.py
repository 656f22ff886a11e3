"""Small models and train settings for the tests."""

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from clutrr_jax.models import MODELS
from clutrr_jax.settings import TRAIN as USUAL
from clutrr_jax.training.loop import Trainer
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.steps import TrainState
from tests.models.small import small_config

TRAIN = USUAL | {"epochs": 3, "patience": 0, "batch": 32}
NAMES = ("gat", pytest.param("bilstm_mean", marks=pytest.mark.slow))  # of graphs and of text


def make_trainer(
    name: str, data, replicas: Replicas, changes: dict | None = None, **settings
) -> Trainer:
    """Trainer of a small model of the registry, with `changes` of its settings."""
    config, settings = small_config(name, **changes or {}), ConfigDict(TRAIN | settings)
    return Trainer(MODELS[name], config, settings, data, replicas)


def train(name: str, data, replicas: Replicas, epochs: int) -> tuple[Trainer, TrainState]:
    """Trains a small model for some epochs."""
    trainer = make_trainer(name, data, replicas)
    state = trainer.init()
    for epoch in range(1, epochs + 1):
        state, _ = trainer.epoch(state, epoch)
    return trainer, state


def leaves(tree) -> list[np.ndarray]:
    """Arrays of a tree, on the host."""
    return [np.asarray(x) for x in jax.tree.leaves(tree)]
