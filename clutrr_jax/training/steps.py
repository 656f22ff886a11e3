"""State, optimizer, step, epoch and selection of one replica, as pure functions.

`Setup` holds what never changes in a training, `TrainState` what every step changes.

They run inside `Replicas.map`, whose axis "data" is the devices that share a batch. Random numbers
depend on the seed of the replica and the index of the epoch and step only, so that replica i of ten
equals a run with the same seed alone, and a resumed run equals an uninterrupted one: exactly on a
CPU, and up to rounding on a GPU, where XLA adds some sums in no fixed order.

Shapes: m microbatches of a batch on this device, b stories of a microbatch.
"""

import operator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from clutrr_jax.data.arrays import StoryArrays, redraw_entities, reorder_sentences
from clutrr_jax.data.batching import Shape, pack, targets
from clutrr_jax.evaluation.predict import grade, relation_logits
from clutrr_jax.models import has_method
from clutrr_jax.models.functional import ModelDef
from clutrr_jax.models.swept import in_single_precision
from clutrr_jax.streams import Stream, jax_key


class Setup(NamedTuple):
    """Everything that never changes in a training, except arrays."""

    model: ModelDef
    optimizer: optax.GradientTransformation
    train: Any  # train settings
    shapes: tuple[Shape, ...]  # of the microbatches of each bucket
    patience: int  # epochs without a better score after which a replica stops; 0: never


class Segment(NamedTuple):
    """Values that all replicas share in a segment of an epoch: its batches `start` to `stop` - 1.

    The batches of an epoch are its train batches, one per step, and then its dev batches.
    """

    epoch: Any  # counted from 1
    buckets: Any  # [steps] bucket of each train batch
    start: Any
    stop: Any


class Batches(NamedTuple):
    """Seed of a replica, and the stories of its batches in an epoch, -1 at padding."""

    seed: Any
    train: Any  # [steps, m, b]
    dev: Any  # of each bucket, [C, b]
    drawn: Any = ()  # arrays of the train stories in this epoch, see `draw_epoch`


class TrainState(NamedTuple):
    """Everything that changes in training. `Replicas` stacks the states of all replicas."""

    params: Any
    buffers: Any  # arrays that are never trained, such as fixed entity embeddings
    opt_state: Any
    ema_params: Any  # exponential moving average of the parameters, which is evaluated
    best_params: Any  # `ema_params` after the best epoch; None if those of the last are tested
    step: jax.Array  # optimizer steps taken
    best_score: jax.Array  # best dev score of an epoch so far
    best_epoch: jax.Array  # the latest with that score, from 1; 0 before the first epoch
    diverged_epoch: jax.Array  # epoch with a non-finite loss, after which nothing changes; or 0

    @property
    def tested_params(self) -> Any:
        """Parameters that are tested, see `settings.SELECTIONS`."""
        return self.ema_params if self.best_params is None else self.best_params


class EpochState(NamedTuple):
    """State of a replica within an epoch, and the results of the batches so far."""

    state: Any  # TrainState
    losses: Any  # [steps] sum of the losses of each train batch
    counts: Any  # [steps] number of its stories
    graded: Any  # of each bucket: correct answers and losses of its dev stories, [C, b] each


def create_optimizer(
    train: Any, config: Any = None, encoder: Any = None
) -> optax.GradientTransformation:
    """Adam with gradient clipping by global norm. A pretrained encoder that is trained, with this
    configuration, has learning rates of its own, from the settings of the model."""

    def scale(path: tuple, update: jax.Array) -> jax.Array:
        names = tuple(key.key for key in path if isinstance(key, jax.tree_util.DictKey))
        if names[0] != "encoder":
            return update * (-1 * train.learning_rate)
        layer = int(names[2]) if names[1] == "layers" else -1  # -1 for the embeddings
        decay = config.encoder_layer_decay ** (encoder.num_hidden_layers - 1 - layer)
        factor = config.encoder_learning_rate * decay / train.learning_rate
        return update * in_single_precision(operator.mul, -1 * train.learning_rate, factor)

    adam = optax.adam(train.learning_rate)
    if encoder:
        rates = optax.stateless(lambda u, _: jax.tree_util.tree_map_with_path(scale, u))
        adam = optax.chain(optax.scale_by_adam(), rates)
    return optax.chain(optax.clip_by_global_norm(train.grad_clip_norm), adam)


def init_state(setup: Setup, seed: Any, pretrained: Any) -> TrainState:
    """Initial state of a replica, which depends on its own seed only; `pretrained` is as for
    `ModelDef.init`."""
    params, buffers = setup.model.init(jax_key(Stream.PARAMETERS, seed), pretrained)
    zero = jnp.int32(0)
    return TrainState(
        params=params,
        buffers=buffers,
        opt_state=setup.optimizer.init(params),
        ema_params=params,
        best_params=None if setup.train.selection == "last" else params,
        step=zero,
        best_score=jnp.float32(-jnp.inf),
        best_epoch=zero,
        diverged_epoch=zero,
    )


def loss_fn(params: Any, model: ModelDef, buffers: Any, batch: Any, key: jax.Array) -> jax.Array:
    """Sum of the losses of a batch. Models may have a method `loss(batch)` of their own, [b]."""
    module = model.merge(params, buffers, key)
    module.train()
    target, mask = targets(batch)
    if has_method(module, "loss"):
        losses = module.loss(batch)
    else:
        logits = relation_logits(module, batch, model.sizes.relations)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, target)
    return (losses * mask).sum()


def gradient(
    shape: Shape,
    model: ModelDef,
    stories: StoryArrays,
    rows: jax.Array,
    state: TrainState,
    key: jax.Array,
) -> tuple[jax.Array, Any]:
    """Sum of the losses of a batch, and its gradient. `rows` [m, b] are the stories of those
    microbatches that this device computes, -1 at padding. Every microbatch has random numbers of
    its own, whichever device computes it."""
    first = jax.lax.axis_index("data") * len(rows)

    def of_microbatch(microbatch):
        index, rows = microbatch
        own_key = jax.random.fold_in(key, first + index)
        with jax.named_scope("pack"):
            batch = pack(stories, rows, shape)

        def loss(params):
            return loss_fn(params, model, state.buffers, batch, own_key)

        with jax.named_scope("forward"):
            value, pull_back = jax.vjp(loss, state.params)
        with jax.named_scope("backward"):
            return value, *pull_back(jnp.ones_like(value))

    sums = jax.lax.map(of_microbatch, (jnp.arange(len(rows)), rows))
    return jax.lax.psum(jax.tree.map(lambda x: x.sum(axis=0), sums), "data")


def train_step(
    setup: Setup,
    stories: StoryArrays,
    key: jax.Array,
    state: TrainState,
    batch: tuple[jax.Array, jax.Array],
) -> tuple[TrainState, tuple[jax.Array, jax.Array]]:
    """One optimizer step on a batch: rows [m, b] of its stories, -1 at padding, and its bucket. The
    index of the step is folded into `key`. Returns the new state, and the sum of the losses and the
    number of stories of the batch."""
    rows, bucket = batch
    branches = [partial(gradient, shape, setup.model) for shape in setup.shapes]
    loss, grads = jax.lax.switch(
        bucket, branches, stories, rows, state, jax.random.fold_in(key, state.step)
    )
    count = jax.lax.psum((rows >= 0).sum(), "data")
    with jax.named_scope("update"):
        grads = jax.tree.map(lambda g: g / count, grads)
        updates, opt_state = setup.optimizer.update(grads, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        # The average covers the last tenth of the steps, so that it forgets the start, but not more
        # steps than `ema_decay` allows: 1,000 with 0.999.
        least = jnp.asarray(1 - setup.train.ema_decay)
        step_size = jnp.maximum(least, 10 / (10 + state.step))
        state = state._replace(
            params=params,
            opt_state=opt_state,
            ema_params=optax.incremental_update(params, state.ema_params, step_size),
            step=state.step + 1,
        )
    return state, (loss, count)


def draw_epoch(
    setup: Setup, stories: StoryArrays, epoch: jax.Array, seed: jax.Array
) -> dict[str, jax.Array]:
    """Arrays of the train stories that a replica draws anew for each epoch: entities, and for
    models of text the words."""
    kind, sizes, train, drawn = setup.model.spec.kind, setup.model.sizes, setup.train, stories
    if train.entities == "redrawn":
        key = jax_key(Stream.REDRAWN_ENTITIES, seed, epoch)
        drawn = redraw_entities(drawn, sizes.entities, key)
    if kind == "tokens":
        key = jax_key(Stream.SENTENCES, seed, epoch)
        drawn = reorder_sentences(drawn, sizes.sentence_ends, train.shuffle_sentences, key)
    names = ("entity", "tokens") if kind == "tokens" else ("entity",)
    return {name: getattr(drawn, name) for name in names
            if getattr(drawn, name) is not getattr(stories, name)}  # fmt: skip


def begin_epoch(steps: int, dev: list[jax.Array], state: TrainState) -> EpochState:
    """A replica at the start of an epoch of this many steps, given the rows of its dev stories."""
    graded = [(jnp.zeros(rows.shape, bool), jnp.zeros(rows.shape)) for rows in dev]
    return EpochState(state, jnp.zeros(steps), jnp.zeros(steps, jnp.int32), graded)


def train_segment(
    setup: Setup,
    stories: StoryArrays,
    segment: Segment,
    batches: Batches,
    before: TrainState,
    within: EpochState,
) -> tuple[EpochState, dict[str, jax.Array]]:
    """A segment of an epoch of a replica: steps, dev stories, and the choice of its parameters.

    `before` is the state before the epoch. Returns the new `within` and, after the last segment,
    the metrics of the epoch. If the loss over the train stories or a parameter is not finite, or
    was not in an earlier epoch, or if the replica has stopped, the state is `before` at the end,
    but for the epoch of divergence, and the loss is NaN.
    """
    trained, steps = is_trained(before, segment.epoch, setup.patience), len(segment.buckets)
    # Sequential replicas compute one of the branches, vectorized ones both.
    state, losses, counts = jax.lax.cond(
        trained,
        partial(train_steps, setup, stories, segment, batches),
        lambda *unchanged: unchanged,
        *within[:3],
    )
    loss = losses.sum() / counts.sum()
    finite = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves((loss, state.params))]
    has_last_step = (segment.start < steps) & (segment.stop >= steps)
    diverges = trained & has_last_step & ~jnp.stack(finite).all()
    kept = before._replace(diverged_epoch=jnp.int32(segment.epoch))
    state = jax.tree.map(partial(jnp.where, diverges), kept, state)
    loss = jnp.where(trained & (state.diverged_epoch == 0), loss, jnp.nan)
    graded = grade_dev(setup, stories, segment, batches.dev, state, within.graded)
    accuracy, dev_loss = dev_metrics(segment, batches.dev, graded)
    state = select_epoch(setup, segment.epoch, accuracy, dev_loss, state)
    metrics = {"loss": loss, "dev_accuracy": accuracy, "dev_loss": dev_loss}
    return EpochState(state, losses, counts, graded), metrics


def train_steps(
    setup: Setup,
    stories: StoryArrays,
    segment: Segment,
    batches: Batches,
    state: TrainState,
    losses: jax.Array,
    counts: jax.Array,
) -> tuple[TrainState, jax.Array, jax.Array]:
    """The steps of a segment, see `EpochState`."""
    stories = stories._replace(**dict(batches.drawn))
    key = jax_key(Stream.DROPOUT, batches.seed, segment.epoch)

    def step(i: jax.Array, progress: tuple) -> tuple:
        state, losses, counts = progress
        batch = batches.train[i], segment.buckets[i]
        state, (loss, count) = train_step(setup, stories, key, state, batch)
        return state, losses.at[i].set(loss), counts.at[i].set(count)

    stop = jnp.minimum(segment.stop, len(segment.buckets))
    return jax.lax.fori_loop(segment.start, stop, step, (state, losses, counts))


def grade_dev(
    setup: Setup,
    stories: StoryArrays,
    segment: Segment,
    rows: list[jax.Array],
    state: TrainState,
    graded: list[Any],
) -> list[Any]:
    """Answers of the averaged parameters to the dev stories of a segment, see `EpochState`; `rows`
    are the dev stories of the batches of each bucket, [C, b], -1 at padding."""
    model = setup.model.evaluated(state.ema_params, state.buffers)
    found, first = [], len(segment.buckets)
    for shape, own, of_bucket in zip(setup.shapes, rows, graded, strict=True):

        def grade_batch(i: jax.Array, of_bucket: Any, shape: Shape = shape, own: Any = own) -> Any:
            answers = grade(model, pack(stories, own[i], shape), setup.model.sizes.relations)
            return jax.tree.map(lambda array, new: array.at[i].set(new), of_bucket, answers)

        start, stop = (jnp.clip(i - first, 0, len(own)) for i in (segment.start, segment.stop))
        if len(own):
            of_bucket = jax.lax.fori_loop(start, stop, grade_batch, of_bucket)
        found.append(of_bucket)
        first += len(own)
    return found


def dev_metrics(
    segment: Segment, rows: list[jax.Array], graded: list[Any]
) -> tuple[jax.Array, jax.Array]:
    """Dev accuracy and mean loss, given the answers to all dev stories; NaN before the last
    segment of an epoch."""
    correct, loss = (sum(x.sum() for x in of_bucket) for of_bucket in zip(*graded, strict=True))
    count = sum((own >= 0).sum() for own in rows)
    correct, loss, count = jax.lax.psum((correct, loss, count), "data")
    is_last = segment.stop == len(segment.buckets) + sum(map(len, rows))
    accuracy, loss = correct / jnp.maximum(count, 1), loss / jnp.maximum(count, 1)
    return jnp.where(is_last, accuracy, jnp.nan), jnp.where(is_last, loss, jnp.nan)


def is_trained(state: TrainState, epoch: Any, patience: int) -> Any:
    """Returns whether a replica is trained in an epoch: it has not diverged before, and an epoch
    since `patience` epochs was the best so far."""
    has_stopped = (epoch - 1 - state.best_epoch >= patience) & (patience > 0)
    return (state.diverged_epoch == 0) & ~has_stopped


def select_epoch(
    setup: Setup, epoch: Any, accuracy: jax.Array, loss: jax.Array, state: TrainState
) -> TrainState:
    """Updates the best score, given the dev accuracy and loss of an epoch, and the parameters of
    the best epoch if they are tested, see `settings.SELECTIONS`.

    Of equally good epochs the latest is the best: a model goes on improving after its dev accuracy
    has reached 1.
    """
    score = accuracy if setup.train.selection == "dev_accuracy" else -loss
    # The score of a replica that has stopped can change by rounding, on a GPU or another device.
    better = (score >= state.best_score) & is_trained(state, epoch, setup.patience)
    best, score, epoch = jax.tree.map(
        partial(jnp.where, better),
        (state.best_params and state.ema_params, score, epoch),
        (state.best_params, state.best_score, state.best_epoch),
    )
    return state._replace(best_params=best, best_score=score, best_epoch=epoch)
