"""Attention weights of a model on the test stories: the file `attention.npz` for the report page.

A model with attention weights to show has a method `attention(batch)`. It returns the weight of
each fact [B, F] or token [B, T] in the order of the story; padding may hold any value. Models over
a pretrained encoder have no file, because their tokens are not words of the story.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.data.batching import GRAPHS, InputKind
from clutrr_jax.data.records import Records
from clutrr_jax.data.vocabulary import spans
from clutrr_jax.evaluation.predict import per_story
from clutrr_jax.models import has_method
from generator.files import read_arrays

FILE = "attention.npz"


class Attention(NamedTuple):
    """Attention weights of one model on all test stories."""

    over: str  # "facts" or "words"
    weights: list[np.ndarray]  # per story, one weight for each fact or token


def attention_weights(model: Any, kind: InputKind, stories: StoryArrays) -> np.ndarray:
    """Attention weights of a model in evaluation mode over all facts [E] or tokens [M] of the
    stories, in their flat order."""
    graphs = kind in GRAPHS
    start = np.asarray(stories.edge_start if graphs else stories.token_start)
    size = np.asarray(stories.n_edge if graphs else stories.n_token)
    flat = np.zeros(size.sum(), np.float32)
    for story, weights in per_story(type(model).attention, model, kind, stories):
        flat[start[story] : start[story] + size[story]] = weights[: size[story]]
    return flat


def write_attention(folder: Path, model: Any, kind: InputKind, stories: StoryArrays) -> None:
    """Writes the file of a model with attention weights, see `attention_weights`."""
    if not has_method(model, "attention") or stories.of_encoder:
        return
    weights = attention_weights(model, kind, stories).astype(np.float16)
    over = "facts" if kind in GRAPHS else "words"
    np.savez_compressed(folder / FILE, over=over, weights=weights)


def read_attention(folder: Path, test: Records) -> Attention | None:
    """Reads the file of `write_attention` for the same stories, see `read_arrays`."""
    arrays = read_arrays(folder / FILE)
    if arrays is None:
        return None
    over = str(arrays["over"])
    if over == "facts":
        sizes = np.diff(test.edge_start)
    else:
        sizes = np.array([len(spans(story)) for story in test.stories])
    return Attention(over, np.split(arrays["weights"].astype(np.float32), np.cumsum(sizes)[:-1]))
