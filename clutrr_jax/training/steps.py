"""Training: one jitted program per epoch, for all replicas of a model.

Everything random follows from a replica's seed and the number of the epoch, so that replica i of
ten equals the same seed alone, and a resumed run equals an undisturbed one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.flatten_util import ravel_pytree

from clutrr_jax.data.arrays import Sizes, StoryArrays, redraw_entities, reorder_sentences
from clutrr_jax.data.batching import TEST_BATCH, Shape, chunk, pack, plan_shapes, targets
from clutrr_jax.data.streaming import Streaming
from clutrr_jax.models import Spec
from clutrr_jax.models.common import cross_entropy, split
from clutrr_jax.ops import threefry
from clutrr_jax.ops.matmul import PRODUCTS, rounded
from clutrr_jax.training.order import split_rows, steps_of_epoch
from clutrr_jax.training.replicas import Replicas
from generator.errors import InputError, one_of

# How people are told apart (Sinha et al. 2019, appendix 1.5): each story keeps the entities that
# were drawn for it, with random vectors (fixed) or trained ones (learned); or its entities, and so
# their vectors, are drawn anew each epoch (redrawn).
ENTITY_POLICIES = ("fixed", "redrawn", "learned")


class State(NamedTuple):
    """All that changes in training. Every array has a leading replica axis."""

    params: Any  # what is trained
    other: Any  # what is not: fixed embeddings, random number streams
    optimizer: Any
    average: Any  # the moving average of params: this is what is tested
    best_params: Any  # the average after the epoch with the best dev accuracy so far, the last such
    best_accuracy: jax.Array  # [R]
    best_epoch: jax.Array  # [R] counted from 1; 0 before the first
    stopped: jax.Array  # [R] the epoch that gave no numbers, after which nothing changes; or 0


_TREES = ("params", "average", "best_params")  # of a State, all alike


class Metrics(NamedTuple):
    """Of one epoch, [R] each."""

    loss: jax.Array  # mean over the train stories; NaN in and after an epoch that gave no numbers
    dev_accuracy: jax.Array


@dataclass(frozen=True)
class Programs:
    """The jitted programs of one model on one data set."""

    init: Callable[[], State]
    epoch: Callable[[State, int], tuple[State, Metrics]]
    predict: Callable[[Any, Any, StoryArrays], tuple[jax.Array, jax.Array]]


def part_size(train: Any, count: int) -> int:
    """How many of a batch's stories are packed together: of `count` there are, a part of each of
    train.batch.

    Raises:
      InputError: the parts would not be alike.
    """
    if train.microbatches < 1 or train.batch % train.microbatches:
        raise InputError(
            f"train.microbatches {train.microbatches}: expected a divisor of train.batch, "
            f"{train.batch}"
        )
    return min(train.batch, count + -count % train.microbatches) // train.microbatches


def parameter_count(params: Any) -> int:
    """How many numbers one replica learns. The arrays have a leading replica axis."""
    return sum(int(np.prod(p.shape[1:])) for p in jax.tree.leaves(params))


def build(
    spec: Spec,
    config: Any,
    train: Any,
    sizes: Sizes,
    stories: StoryArrays,
    replicas: Replicas,
    fresh: Streaming | None = None,
) -> Programs:
    """The programs that train `spec` on `stories`.

    Args:
      spec: the model, from the registry.
      config: the model's settings.
      train: epochs, batch, microbatches (see Replicas), products (see PRODUCTS), learning_rate,
        clip (global norm), average (decay of the average of the parameters, per step), entities
        (see ENTITY_POLICIES), reorder (share of the stories whose sentences are put in a new
        order, each epoch), curriculum (epochs at first that see the shortest clauses alone), dev
        (share of the train rows).
      sizes: of the data.
      stories: train stories.
      replicas: how many, and where.
      fresh: the train stories of every epoch, where they are drawn anew; `stories` are then those
        that the dev rows are taken from.
    """
    entities = one_of(train, "entities", *ENTITY_POLICIES, of="train.")
    products = one_of(train, "matmul_dtype", *PRODUCTS, of="train.")
    parts_of = partial(split, learn_entities=entities == "learned")
    part = part_size(train, len(stories.target))
    batch_size = part * train.microbatches
    if fresh:
        shapes = fresh.shapes
        own = split_rows(fresh.first_rows, replicas.seeds, train.dev_fraction)
        own = own._replace(train=[np.tile(r, (len(replicas.seeds), 1)) for r in fresh.rows])
    else:
        shapes, buckets = plan_shapes(spec.kind, stories, part)
        own = split_rows(buckets, replicas.seeds, train.dev_fraction)
    shortest = np.asarray(stories.clause_length).min()
    optimizer = optax.chain(
        optax.clip_by_global_norm(train.grad_clip_norm), optax.adam(train.learning_rate)
    )

    def make(key: jax.Array) -> nnx.Module:
        return spec.model(config, sizes, rngs=nnx.Rngs(key))

    # The structure of the model, once to train and once to test (no dropout).
    model = nnx.eval_shape(lambda: make(threefry.key(0)))
    model.train()
    train_graph, params, others = parts_of(model)
    unravel = partial(_unravel, params)
    model.eval()
    test_graph = parts_of(model)[0]

    # It runs but once for a replica, so that less of the time goes into compiling it for a CPU.
    quick = {"xla_backend_optimization_level": 1} if replicas.sequential else None

    @partial(jax.jit, compiler_options=quick)
    def draw(seed: jax.Array) -> tuple[Any, Any]:
        """The first parameters of a replica, and what is not trained, its keys as numbers."""
        _, params, other = parts_of(make(threefry.key(seed)))
        return params, jax.tree.map(threefry.numbers, other)

    def init() -> State:
        drawn = [draw(seed) for seed in replicas.seeds]
        params, other = jax.tree.map(lambda *each: np.stack(each), *drawn)
        moments = jax.eval_shape(lambda: optimizer.init(jnp.zeros(parameter_count(params))))
        count = len(replicas.seeds)
        none: Any = np.zeros(count, np.int32)
        state = State(
            params=params,
            other=other,
            # Adam begins with zeros.
            optimizer=jax.tree.map(lambda x: np.zeros((count, *x.shape), x.dtype), moments),
            average=params,
            best_params=params,
            best_accuracy=none - np.float32(1),
            best_epoch=none,
            stopped=none,
        )
        state = replicas.place(state)
        return state._replace(other=jax.tree.map(threefry.like, others, state.other))

    def loss(params: Any, other: Any, batch: Any, count: jax.Array) -> tuple[jax.Array, Any]:
        model = nnx.merge(train_graph, params, other, copy=True)
        target, mask = targets(batch)
        if hasattr(model, "loss"):
            losses = model.loss(batch)
        else:
            losses = cross_entropy(model(batch), target)
        other = parts_of(model)[2]
        return (losses * mask).sum() / count, other

    differentiate: Callable[..., Any] = jax.value_and_grad(loss, has_aux=True)
    if products == "bfloat16":
        differentiate = rounded(differentiate)

    def gradient_in(shape: Shape):
        """Loss, what is not trained, and gradient of a batch `rows` [B]; each part of the batch
        has its own random numbers."""

        def gradient_of(stories, params, other, count, rows):
            batch = pack(stories, rows, shape)
            return differentiate(params, other, batch, count)

        def gradient(stories, rows, params, other):
            count = jnp.maximum((rows >= 0).sum(), 1)
            if train.microbatches == 1:
                return gradient_of(stories, params, other, count, rows)

            def of_part(number, rows):
                own = jax.tree.map(lambda x: _fold(x, number), other)
                (value, after), grads = gradient_of(stories, params, own, count, rows)
                return (value, grads), after

            numbers = jnp.arange(train.microbatches)
            parts = rows.reshape(train.microbatches, part)
            sums, after = replicas.all(of_part, replicas.own(numbers), replicas.own(parts))
            value, grads = replicas.add(jax.tree.map(lambda x: x.sum(axis=0), sums))
            # Of the parts the keys alone differ, and keys stay as they are.
            other = jax.tree.map(lambda b, a: b if threefry.is_key(b) else a[0], other, after)
            return (value, other), grads

        return gradient

    gradients = [gradient_in(shape) for shape in shapes]

    def each_shape(of, shapes, stories, rows, params, other) -> Iterator[tuple[jax.Array, Any]]:
        """For each shape its `rows` [chunks, B], and of(logits, batch) of each chunk of them.
        Devices that share batches share the chunks."""
        model = nnx.merge(test_graph, params, other, copy=True)
        for shape, chunks in zip(shapes, map(replicas.own, rows), strict=True):

            def one(chunk_rows, shape=shape):
                batch = pack(stories, chunk_rows, shape)
                return of(model(batch), batch)

            yield chunks, jax.lax.map(one, chunks)

    def predict_one(shapes, shared, params, other) -> tuple[jax.Array, jax.Array]:
        """Predicted relation and its probability for each of the rows, at the place of its story
        [S]; 0 for the other stories."""

        def answer(logits, _):  # [B, relations]
            return logits.argmax(axis=-1), nnx.softmax(logits).max(axis=-1)

        stories, rows = shared
        relation = jnp.zeros(len(stories.target) + 1, jnp.int32)
        probability = jnp.zeros(len(stories.target) + 1)
        for chunks, (found, p) in each_shape(answer, shapes, stories, rows, params, other):
            place = jnp.where(chunks < 0, len(stories.target), chunks)
            relation = relation.at[place].set(found)
            probability = probability.at[place].set(p)
        return replicas.add((relation[:-1], probability[:-1]))

    def share_right(stories, rows, params, other) -> jax.Array:
        """Of the rows, the share whose relation is predicted."""

        def count(logits, batch):
            target, mask = targets(batch)
            return ((logits.argmax(axis=-1) == target) & mask).sum(), mask.sum()

        right, total = 0, 0
        for _, (found, all_rows) in each_shape(count, shapes, stories, rows, params, other):
            right, total = right + found.sum(), total + all_rows.sum()
        right, total = replicas.add((right, total))
        return right / jnp.maximum(total, 1)

    def epoch_one(shared, state, seed, rows, dev_rows) -> tuple[State, Metrics]:
        """What is trained is one vector here: the optimizer is then one loop over it, not one for
        each array, which takes as long to run and less to compile."""
        stories, dev_stories, number, buckets = shared
        key = jax.random.fold_in(threefry.key(seed), number)
        seen = stories
        if entities == "redrawn":
            seen = redraw_entities(seen, sizes.entities, jax.random.fold_in(key, len(shapes)))
        if spec.kind == "tokens":
            order = jax.random.fold_in(key, len(shapes) + 1)
            seen = reorder_sentences(seen, sizes.sentence_ends, train.shuffle_sentences, order)
        if train.curriculum:
            longer = stories.clause_length[rows] > shortest
            rows = jnp.where((number <= train.curriculum) & longer, -1, rows)

        def step(carry, now):
            params, other, opt_state, average, count = carry
            rows, bucket = now
            (value, other), grads = jax.lax.switch(
                bucket, gradients, seen, rows, unravel(params), other
            )
            updates, opt_state = optimizer.update(_flat(grads), opt_state, params)
            params = optax.apply_updates(params, updates)
            # Early on over the last tenth of the steps, so that it is not held back by the start.
            weight = jnp.maximum(1 - train.ema_decay, 10.0 / (10.0 + count))
            average += weight * (params - average)
            after = (params, other, opt_state, average, count + 1)
            if train.curriculum:  # a batch may have no stories yet: then it is no step
                after = jax.tree.map(partial(jnp.where, (rows >= 0).any()), after, carry)
            return after, value

        done = (number - 1) * len(rows)
        carry = (state.params, state.other, state.optimizer, state.average, done)
        (params, other, opt_state, average, _), losses = jax.lax.scan(step, carry, (rows, buckets))
        accuracy = share_right(dev_stories, dev_rows, unravel(average), other)
        # Of epochs that are equally good the last: a model goes on learning after its dev rows
        # are all right.
        better = accuracy >= state.best_accuracy
        after = State(
            params=params,
            other=other,
            optimizer=opt_state,
            average=average,
            best_params=jnp.where(better, average, state.best_params),
            best_accuracy=jnp.where(better, accuracy, state.best_accuracy),
            best_epoch=jnp.where(better, number, state.best_epoch),
            stopped=state.stopped,
        )
        counts = (rows >= 0).sum(axis=1)
        loss = (losses * counts).sum() / jnp.maximum(counts.sum(), 1)
        # A replica whose loss or parameters are no numbers any more stays as it was before. A
        # product is a number only if all that goes into it are.
        goes_on = jnp.isfinite(loss) & jnp.isfinite(params @ average) & (state.stopped == 0)
        stopped = jnp.where(goes_on | (state.stopped > 0), state.stopped, number)
        state = jax.tree.map(lambda a, b: jnp.where(goes_on, a, b), after, state)
        loss = jnp.where(goes_on, loss, jnp.nan)
        return state._replace(stopped=stopped), Metrics(loss, accuracy)

    def epoch_some(shared, state, *each) -> tuple[State, Metrics]:
        state = state._replace(**{name: jax.vmap(_flat)(getattr(state, name)) for name in _TREES})
        state, metrics = replicas.all(partial(epoch_one, shared), state, *each)
        trees = {name: jax.vmap(unravel)(getattr(state, name)) for name in _TREES}
        return state._replace(**trees), metrics

    epoch_all = replicas.spread(epoch_some, donate=True)
    seeds = replicas.place(replicas.seeds)
    dev_rows = replicas.place(
        [np.stack([chunk(r, part, replicas.sharing) for r in rows]) for rows in own.dev]
    )
    shared = replicas.share(stories)

    @lru_cache(maxsize=1)
    def order(number: int) -> tuple[np.ndarray, np.ndarray]:
        return steps_of_epoch(number, replicas.seeds, own.train, batch_size)

    def epoch(state: State, number: int) -> tuple[State, Metrics]:
        now = replicas.share(fresh(number)) if fresh else shared
        rows, buckets = order(number)
        given = replicas.share((now, shared, np.int32(number), buckets))
        after = epoch_all(given, state, seeds, replicas.place(rows), dev_rows)
        order(number + 1)  # while the devices are at work
        return after

    @cache
    def predict_in(shapes: tuple[Shape, ...]) -> Callable[..., Any]:
        return replicas.map(partial(predict_one, shapes))

    def predict(params: Any, other: Any, test: StoryArrays) -> tuple[jax.Array, jax.Array]:
        test_shapes, test_buckets = plan_shapes(spec.kind, test, min(TEST_BATCH, len(test.target)))
        chunks = [
            chunk(rows, shape.stories, replicas.sharing)
            for rows, shape in zip(test_buckets, test_shapes, strict=True)
        ]
        program = predict_in(tuple(test_shapes))
        return program(replicas.share((test, chunks)), params, other)

    return Programs(init, epoch, predict)


def _flat(tree: Any) -> jax.Array:
    """All its numbers in one vector."""
    return ravel_pytree(tree)[0]


def _unravel(like: Any, vector: jax.Array) -> Any:
    """A tree of the given shapes from the vector of all its numbers."""
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([leaf.size for leaf in leaves])
    parts = jnp.split(vector, ends[:-1])
    shaped = [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, shaped)


def _fold(x: jax.Array, number: jax.Array) -> jax.Array:
    """A random key with the number folded in; anything else as it is."""
    return jax.random.fold_in(x, number) if threefry.is_key(x) else x
