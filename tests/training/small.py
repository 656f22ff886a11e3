"""Small models and train settings for the tests."""

import jax
import numpy as np
from ml_collections import ConfigDict

from clutrr_jax.models import MODELS
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.state import TrainState
from clutrr_jax.training.trainer import Trainer
from tests.models.small import small_config

TRAIN = {
    "epochs": 3,
    "steps": 100,
    "patience": 0,
    "selection": "dev_loss",
    "batch": 32,
    "microbatches": 1,
    "learning_rate": 1e-3,
    "grad_clip_norm": 5.0,
    "ema_decay": 0.999,
    "shuffle_sentences": 0.5,
    "curriculum": 0,
    "entities": "redrawn",
    "dev_fraction": 0.2,
}
NAMES = ("gat", "bilstm_mean")  # a graph model and a text model that train quickly


def make_trainer(name: str, data, replicas: Replicas, **settings) -> Trainer:
    """Trainer of a small model of the registry."""
    config, settings = small_config(name), ConfigDict(TRAIN | settings)
    return Trainer(MODELS[name], config, settings, data.sizes, data.train_stories, replicas)


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
