"""State of a training run."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from clutrr_jax.models.functional import ModelDef
from clutrr_jax.streams import Stream, jax_key
from clutrr_jax.training.replicas import Replicas


class TrainState(NamedTuple):
    """Everything that changes in training. Every array has a leading replica axis R."""

    params: Any
    buffers: Any  # arrays that are never trained, such as fixed entity embeddings
    opt_state: Any
    ema_params: Any  # exponential moving average of the parameters, which is evaluated
    tested_params: Any  # `ema_params` after the selected epoch, see `settings.SELECTIONS`
    step: jax.Array  # [R] optimizer steps taken
    best_score: jax.Array  # [R] best dev score of an epoch so far
    best_epoch: jax.Array  # [R] the latest with that score, from 1; 0 before the first epoch
    diverged_epoch: jax.Array  # [R] epoch with a non-finite loss, after which nothing changes; or 0


def create_optimizer(
    train: Any, config: Any = None, encoder: Any = None
) -> optax.GradientTransformation:
    """Adam with gradient clipping by global norm.

    Args:
      train: train settings.
      config: settings of the model.
      encoder: configuration of its pretrained encoder, if that is trained: it has learning rates of
        its own.
    """

    def scale(path: tuple, update: jax.Array) -> jax.Array:
        names = tuple(key.key for key in path if isinstance(key, jax.tree_util.DictKey))
        if names[0] != "encoder":
            return update
        layer = int(names[2]) if names[1] == "layers" else -1  # -1 for the embeddings
        decay = config.encoder_layer_decay ** (encoder.num_hidden_layers - 1 - layer)
        return update * (config.encoder_learning_rate * decay / train.learning_rate)

    steps = [optax.clip_by_global_norm(train.grad_clip_norm), optax.adam(train.learning_rate)]
    if encoder:
        steps.append(optax.stateless(lambda u, _: jax.tree_util.tree_map_with_path(scale, u)))
    return optax.chain(*steps)


def init_state(
    model: ModelDef, optimizer: optax.GradientTransformation, seed: jax.Array, pretrained: Any
) -> TrainState:
    """Initial state of one replica; `pretrained` is as for `ModelDef.init`."""
    params, buffers = model.init(jax_key(Stream.PARAMETERS, seed), pretrained)
    zero = jnp.int32(0)
    return TrainState(
        params=params,
        buffers=buffers,
        opt_state=optimizer.init(params),
        ema_params=params,
        tested_params=params,
        step=zero,
        best_score=jnp.float32(-jnp.inf),
        best_epoch=zero,
        diverged_epoch=zero,
    )


def create_state(
    model: ModelDef, optimizer: optax.GradientTransformation, replicas: Replicas
) -> TrainState:
    """Initial state of all replicas, on their devices. Each depends on its own seed only."""
    init = jax.jit(partial(init_state, model, optimizer))
    pretrained = model.load_pretrained()
    states = [init(seed, pretrained) for seed in replicas.seeds]
    return replicas.place(jax.tree.map(lambda *leaves: np.stack(leaves), *states))


def has_stopped(best_epoch: Any, epoch: Any, patience: int) -> Any:
    """Returns whether a replica whose best score is that of `best_epoch` stops after an epoch.

    The three arguments have the same unit, epochs or steps.
    """
    return (epoch - best_epoch >= patience) & (patience > 0)


def is_trained(state: TrainState, epoch: Any, patience: int) -> jax.Array:
    """Returns whether a replica is trained in an epoch: it has not diverged or stopped before."""
    return (state.diverged_epoch == 0) & ~has_stopped(state.best_epoch, epoch - 1, patience)


def select_epoch(
    state: TrainState, score: jax.Array, epoch: int, last: bool, patience: int
) -> TrainState:
    """Updates the best score, and the parameters that are tested.

    Of equally good epochs the latest is the best: a model goes on improving after its dev accuracy
    has reached 1.

    Args:
      state: after the epoch.
      score: [R] dev scores.
      epoch: counted from 1.
      last: whether the parameters of the last epoch are tested, not those of the best.
      patience: epochs without an equal or better score after which a replica stops; 0: never.
    """
    # The score of a replica that has stopped can change by rounding, on a GPU or another device.
    better = (score >= state.best_score) & is_trained(state, epoch, patience)

    def choose(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(better.reshape(-1, *[1] * (old.ndim - 1)), new, old)

    best = jax.tree.map(choose, state.ema_params, state.tested_params)
    return state._replace(
        tested_params=state.ema_params if last else best,
        best_score=choose(score, state.best_score),
        best_epoch=choose(jnp.int32(epoch), state.best_epoch),
    )


def replica_model(model: ModelDef, state: TrainState) -> Any:
    """Model of the first replica with its tested parameters, in evaluation mode, on this host."""

    def first(array: jax.Array) -> np.ndarray:
        return np.asarray(array.addressable_data(0)[0])

    params, buffers = jax.tree.map(first, (state.tested_params, state.buffers))
    found = model.merge(params, buffers, jax.random.key(0))
    found.eval()
    return found
