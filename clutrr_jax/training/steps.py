"""Training step, training epoch and prediction of one replica, as pure functions.

They run inside `Replicas.map`, whose axis "data" is the devices that share a batch. Random numbers
depend on the seed of the replica and the index of the epoch and step only, so that replica i of ten
equals a run with the same seed alone, and a resumed run equals an uninterrupted one: exactly on a
CPU, and up to rounding on a GPU, where XLA adds some sums in no fixed order.

Shapes: m microbatches of a batch on this device, b stories of a microbatch.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

from clutrr_jax.data.arrays import StoryArrays, redraw_entities, reorder_sentences
from clutrr_jax.data.batching import Shape, pack, targets
from clutrr_jax.evaluation.predict import Output, map_batches, relation_logits
from clutrr_jax.models.functional import ModelDef, has_method
from clutrr_jax.streams import Stream, jax_key
from clutrr_jax.training.state import TrainState, is_trained


@dataclass(frozen=True)
class Program:
    """Static arguments of the functions below.

    Attributes:
      model: the model.
      optimizer: from `create_optimizer`.
      shapes: shape of the microbatches of each bucket.
      train: train settings.
      patience: epochs without an equal or better dev score after which a replica stops; 0: never.
    """

    model: ModelDef
    optimizer: optax.GradientTransformation
    shapes: tuple[Shape, ...]
    train: Any
    patience: int


def loss_fn(
    params: Any, definition: ModelDef, buffers: Any, batch: Any, key: jax.Array
) -> jax.Array:
    """Sum of the losses of a batch. Models may have a method `loss(batch)` of their own, [b]."""
    model = definition.merge(params, buffers, key)
    model.train()
    target, mask = targets(batch)
    if has_method(model, "loss"):
        losses = model.loss(batch)
    else:
        logits = relation_logits(model, batch)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, target)
    return (losses * mask).sum()


def gradient(
    shape: Shape,
    program: Program,
    stories: StoryArrays,
    rows: jax.Array,
    state: TrainState,
    key: jax.Array,
) -> tuple[jax.Array, Any]:
    """Sum of the losses of a batch, and its gradient.

    Args:
      shape: of the microbatches.
      rows: [m, b] stories of those microbatches that this device computes, -1 at padding.
      key: of this batch. Every microbatch has random numbers of its own, whichever device computes
        it.
    """
    first = jax.lax.axis_index("data") * len(rows)

    def of_microbatch(microbatch):
        index, rows = microbatch
        batch, own_key = pack(stories, rows, shape), jax.random.fold_in(key, first + index)
        arguments = program.model, state.buffers, batch, own_key
        return jax.value_and_grad(loss_fn)(state.params, *arguments)

    sums = jax.lax.map(of_microbatch, (jnp.arange(len(rows)), rows))
    return jax.lax.psum(jax.tree.map(lambda x: x.sum(axis=0), sums), "data")


def train_step(
    program: Program,
    stories: StoryArrays,
    key: jax.Array,
    state: TrainState,
    rows: jax.Array,
    bucket: jax.Array,
) -> tuple[TrainState, tuple[jax.Array, jax.Array]]:
    """One optimizer step on a batch of one bucket.

    Args:
      stories: train stories of this epoch.
      key: of this epoch; the step is folded in.
      rows: [m, b] stories of the batch, -1 at padding.
      bucket: index of its shape.

    Returns:
      The new state, and the sum of the losses and the number of stories of the batch.
    """
    branches = [partial(gradient, shape, program) for shape in program.shapes]
    loss, grads = jax.lax.switch(
        bucket, branches, stories, rows, state, jax.random.fold_in(key, state.step)
    )
    count = jax.lax.psum((rows >= 0).sum(), "data")
    grads = jax.tree.map(lambda g: g / count, grads)
    updates, opt_state = program.optimizer.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    # The average covers the last tenth of the steps, so that it forgets the start, but not more
    # steps than `ema_decay` allows: 1,000 with 0.999.
    step_size = jnp.maximum(1 - program.train.ema_decay, 10 / (10 + state.step))
    state = state._replace(
        params=params,
        opt_state=opt_state,
        ema_params=optax.incremental_update(params, state.ema_params, step_size),
        step=state.step + 1,
    )
    return state, (loss, count)


def train_epoch(
    program: Program,
    stories: StoryArrays,
    epoch: jax.Array,
    buckets: jax.Array,
    seed: jax.Array,
    rows: jax.Array,
    state: TrainState,
) -> tuple[TrainState, jax.Array]:
    """One epoch of a replica.

    Args:
      stories: train stories.
      epoch: its index, counted from 1.
      buckets: [steps] bucket of each batch, the same for all replicas.
      seed: of the replica.
      rows: [steps, m, b] stories of each batch.
      state: before the epoch.

    Returns:
      The state after the epoch and the mean loss. If the loss or a parameter is not finite, or was
      not in an earlier epoch, or if the replica has stopped, the state stays what it was before the
      epoch and the loss is NaN.
    """

    def train(state: TrainState) -> tuple[TrainState, jax.Array]:
        return _run_steps(program, stories, epoch, buckets, seed, rows, state)

    def keep(state: TrainState) -> tuple[TrainState, jax.Array]:
        return state, jnp.float32(jnp.nan)

    # Sequential replicas compute one of the branches, vectorized ones both.
    return jax.lax.cond(is_trained(state, epoch, program.patience), train, keep, state)


def _run_steps(
    program: Program,
    stories: StoryArrays,
    epoch: jax.Array,
    buckets: jax.Array,
    seed: jax.Array,
    rows: jax.Array,
    state: TrainState,
) -> tuple[TrainState, jax.Array]:
    """The steps of an epoch; arguments and results as in `train_epoch`."""
    train, sizes = program.train, program.model.sizes
    if train.entities == "redrawn":
        entity_key = jax_key(Stream.REDRAWN_ENTITIES, seed, epoch)
        stories = redraw_entities(stories, sizes.entities, entity_key)
    if program.model.spec.kind == "tokens":
        sentence_key = jax_key(Stream.SENTENCES, seed, epoch)
        stories = reorder_sentences(
            stories, sizes.sentence_ends, train.shuffle_sentences, sentence_key
        )
    step_key = jax_key(Stream.DROPOUT, seed, epoch)

    def step(state: TrainState, batch: tuple) -> Any:
        return train_step(program, stories, step_key, state, *batch)

    new, (losses, counts) = jax.lax.scan(step, state, (rows, buckets))
    loss = losses.sum() / counts.sum()
    finite = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves((loss, new.params))]
    is_finite = jnp.stack(finite).all()
    new = jax.tree.map(partial(jnp.where, is_finite), new, state)
    diverged = jnp.where(is_finite, state.diverged_epoch, epoch)
    return new._replace(diverged_epoch=diverged), jnp.where(is_finite, loss, jnp.nan)


def predict(
    output: Output,
    model: ModelDef,
    shapes: tuple[Shape, ...],
    stories: StoryArrays,
    params: Any,
    buffers: Any,
    rows: list[jax.Array],
) -> list[Any]:
    """Outputs of a replica in evaluation mode for batches of stories, see `map_batches`."""
    module = model.merge(params, buffers, jax.random.key(0))
    module.eval()
    return map_batches(output, module, stories, rows, shapes)
