"""What a model attends to in each test story, kept for the report page.

A model that has attention to look at has a method `attention(batch)`: the weights of the facts of
each story [B, F], or of its tokens [B, T], in the order of the story; anything for padding.
"""

import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import nnx

from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.data.batching import GRAPHS, TEST_BATCH, InputKind, chunk, pack, plan_shapes
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.data.records import Records
from clutrr_jax.data.vocabulary import spans
from clutrr_jax.models import Spec
from clutrr_jax.training.steps import State
from generator.errors import InputError, at

FILE = "attention.npz"
# What NumPy and zipfile raise for files that are not what they seem.
_DAMAGED = (
    OSError, ValueError, KeyError, EOFError, TypeError, MemoryError, RuntimeError, SyntaxError,
    zipfile.BadZipFile, zlib.error, tokenize.TokenError,
)  # fmt: skip


class Attention(NamedTuple):
    """Of one model on all test stories."""

    over: str  # facts or words
    weights: list[np.ndarray]  # of each story, over its facts or its tokens


def by_story(
    look: Callable[[Any, Any], jax.Array], model: Any, kind: InputKind, stories: StoryArrays
) -> Iterator[tuple[int, np.ndarray]]:
    """What `look(model, batch)`, [B, ...], gives of each story, with the story's number.

    Args:
      look: of a model and a batch.
      model: of the registry.
      kind: of the batches that it reads.
      stories: what it reads.
    """
    graph, state = nnx.split(model)
    most = min(TEST_BATCH, len(stories.target))
    for shape, rows in zip(*plan_shapes(kind, stories, most), strict=True):

        @jax.jit
        def seen(state, stories, rows, shape=shape):
            return look(nnx.merge(graph, state), pack(stories, rows, shape))

        for some in chunk(rows, shape.stories):
            for row, array in zip(some, np.asarray(seen(state, stories, some)), strict=True):
                if row >= 0:
                    yield int(row), array


def attend(model: Any, kind: InputKind, stories: StoryArrays) -> np.ndarray:
    """The weights over all facts [E] or tokens [M] of the stories, flat as these are.

    Args:
      model: of the registry, with the method `attention`.
      kind: of the batches that it reads.
      stories: what it reads.
    """
    graphs = kind in GRAPHS
    start = np.asarray(stories.edge_start if graphs else stories.token_start)
    size = np.asarray(stories.n_edge if graphs else stories.n_token)
    flat = np.zeros(size.sum(), np.float32)
    for row, weights in by_story(lambda m, batch: m.attention(batch), model, kind, stories):
        flat[start[row] : start[row] + size[row]] = weights[: size[row]]
    return flat


def first_replica(spec: Spec, config: Any, data: Prepared, state: State) -> Any:
    """The model of the first replica as it is tested, after its epoch with the best dev accuracy.

    Args:
      spec: the model, from the registry.
      config: its settings.
      data: that it was trained on.
      state: after training.
    """
    # Not drawn, since all of it is replaced: that would compile a program for every shape.
    model = nnx.eval_shape(lambda: spec.model(config, data.sizes, rngs=nnx.Rngs(0)))
    here = jax.tree.map(lambda array: array.addressable_data(0), (state.best_params, state.other))
    for part in jax.jit(partial(jax.tree.map, lambda array: array[0]))(here):
        nnx.update(model, part)
    model.eval()
    return model


def write_attention(folder: Path, spec: Spec, config: Any, data: Prepared, state: State) -> None:
    """`attention.npz` of a trained model, of its first replica, if it has attention.

    Args:
      folder: the model's.
      spec: the model, from the registry.
      config: its settings.
      data: with the test stories.
      state: after training.
    """
    if not hasattr(spec.model, "attention"):
        return
    model = first_replica(spec, config, data, state)
    weights = attend(model, spec.kind, data.test_stories).astype(np.float16)
    over = "facts" if spec.kind in GRAPHS else "words"
    np.savez_compressed(folder / FILE, over=over, weights=weights)


def read_arrays(path: Path, names: tuple[str, ...], most: int, what: str) -> list[np.ndarray]:
    """Arrays of a file of `np.savez`, of bytes in all as stated at most. Raises InputError."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > most + 4096:  # the heads of the arrays
            raise ValueError
        with np.load(path, allow_pickle=False) as file:
            return [file[name] for name in names]
    except _DAMAGED:
        raise InputError(f"{at(path)}: damaged, expected {what}") from None


def read_attention(folder: Path, test: Records) -> Attention | None:
    """What `write_attention` wrote for these stories; None if it wrote nothing.

    Raises:
      InputError: the file is damaged, or of other stories.
    """
    path = folder / FILE
    if not path.exists():
        return None
    facts, words = np.diff(test.edge_start), np.array([len(spans(s)) for s in test.stories])
    what = "the weights of a model"
    most = 8 * int(facts.sum() + words.sum())
    named, weights = read_arrays(path, ("over", "weights"), most, what)
    try:
        over, flat = str(named), weights.astype(np.float32, casting="same_kind")
        if over not in ("facts", "words") or not (np.isfinite(flat) & (flat >= 0)).all():
            raise ValueError
    except _DAMAGED:
        raise InputError(f"{at(path)}: damaged, expected {what}") from None
    sizes = facts if over == "facts" else words
    if flat.shape != (sizes.sum(),):
        raise InputError(f"{at(path)}: of other stories, expected {sizes.sum()} weights")
    return Attention(over, np.split(flat, np.cumsum(sizes)[:-1]))
