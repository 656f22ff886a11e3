"""Inference: `map_batches` is the one loop over batches. Training lifts it to all replicas, for dev
accuracy and tests; `per_story` runs it for attention, extraction and frozen encoder states.

Shapes: C batches, B stories of a batch.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.data.batching import (
    InputKind,
    Shape,
    chunk,
    evaluation_batch,
    pack,
    pad_question,
    plan_shapes,
    question_shape,
    targets,
)
from generator.errors import InputError

Output = Callable[[Any, Any], Any]  # of a model and a batch; arrays with a leading axis B


def map_batches(
    output: Output, model: Any, shape: Shape, stories: StoryArrays, rows: jax.Array
) -> Any:
    """Outputs [C, B, ...] of a model in evaluation mode for batches of this shape, whose
    `rows` [C, B] are indices of stories, -1 at padding."""
    return jax.lax.map(lambda batch: output(model, pack(stories, batch, shape)), rows)


def relation_logits(
    model: Any, batch: Any, relations: int, variant: Output | None = None
) -> jax.Array:
    """Logits of a model, or of one of its variants (`Spec.variants`), float32 [B, relations]."""
    logits = variant(model, batch) if variant else model(batch)
    expected = len(targets(batch)[0]), relations
    if jnp.shape(logits) != expected:
        raise InputError(
            f"model {type(model).__name__}: logits of shape {jnp.shape(logits)}, expected "
            f"{expected}, one row per story and one column per relation"
        )
    return logits


def classify(
    model: Any, batch: Any, relations: int, variant: Output | None = None
) -> tuple[jax.Array, jax.Array]:
    """Predicted relation [B] and the probabilities [B, relations], which are 0 if the logits have
    none: one is NaN or infinity, or all are minus infinity."""
    logits = relation_logits(model, batch, relations, variant)
    valid = (logits < jnp.inf).all(axis=-1) & (logits > -jnp.inf).any(axis=-1)
    return logits.argmax(axis=-1), jnp.where(valid[:, None], nnx.softmax(logits), 0.0)


def grade(model: Any, batch: Any, relations: int) -> tuple[jax.Array, jax.Array]:
    """Returns 1 for a correct answer [B], and the cross-entropy [B]; both are 0 at padding."""
    logits = relation_logits(model, batch, relations)
    target, mask = targets(batch)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, target)
    return mask * (logits.argmax(axis=-1) == target), mask * losses


def test_batches(
    kind: InputKind, stories: StoryArrays, multiple: int = 1, batch_size: int | None = None
) -> list[tuple[Shape, np.ndarray]]:
    """Shapes and rows [C, B] of batches that hold every story once, C a multiple of `multiple`.

    Unlike in training, the graphs of a batch have similar numbers of people. A single story has one
    of few shapes, see `question_shape`.
    """
    if len(stories.target) == 1:
        return [(question_shape(kind, stories), chunk([0], 1, multiple))]
    kind = "pairs" if kind == "graph" else kind
    shapes, buckets = plan_shapes(
        kind, stories, min(batch_size or evaluation_batch(), len(stories.target))
    )
    return [(s, chunk(b, s.stories, multiple)) for b, s in zip(buckets, shapes, strict=True)]


def per_story(
    output: Output,
    model: nnx.Module,
    kind: InputKind,
    stories: StoryArrays,
    batch_size: int | None = None,
) -> Iterator[tuple[int, Any]]:
    """Yields the index of each story and its output of a single model, batch by batch. Outputs may
    differ in shape between stories: those of one batch are padded alike."""
    graphdef, state = nnx.split(model)
    stories = pad_question(stories)
    for shape, rows in test_batches(kind, stories, batch_size=batch_size):
        for batch in rows:
            outputs = _map_one(output, graphdef, shape, state, stories, batch[None])
            outputs = jax.tree.map(lambda array: np.asarray(array[0]), outputs)
            for i in np.flatnonzero(batch >= 0):
                yield int(batch[i]), jax.tree.map(lambda array, i=i: array[i], outputs)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _map_one(output, graphdef, shape, state, stories, rows):
    return map_batches(output, nnx.merge(graphdef, state), shape, stories, rows)
