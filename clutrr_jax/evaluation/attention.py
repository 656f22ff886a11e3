"""Attention weights of a model on the test stories: the file `attention.npz` for the report page.

A model with attention weights to show has a method `attention(batch)`. It returns the weight of
each fact [B, F] or token [B, T] in the order of the story; padding may hold any value. Models over
a pretrained encoder have no file, because their tokens are not words of the story.
"""

import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.data.batching import GRAPHS, InputKind
from clutrr_jax.data.records import Records
from clutrr_jax.data.vocabulary import spans
from clutrr_jax.evaluation.predict import per_story
from generator.errors import InputError, at

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
    if not hasattr(model, "attention") or kind == "states":
        return
    weights = attention_weights(model, kind, stories).astype(np.float16)
    over = "facts" if kind in GRAPHS else "words"
    np.savez_compressed(folder / FILE, over=over, weights=weights)


def read_arrays(
    path: Path, names: tuple[str, ...], max_bytes: int, expected: str
) -> list[np.ndarray]:
    """Reads named arrays from an `.npz` file. An array that it does not have is returned as an
    empty float64 array.

    Args:
      path, names: the file, and the arrays to read.
      max_bytes: upper bound on the size of all arrays together.
      expected: what the file should hold, for the error message.
    Raises:
      InputError: the file is damaged or too large.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > max_bytes + 4096:  # 4096 for the headers of the arrays
            raise ValueError
        with np.load(path, allow_pickle=False) as file:
            return [file[name] if name in file else np.zeros(0) for name in names]
    except Exception:  # NumPy and zipfile raise a dozen kinds for damaged files
        raise InputError(f"{at(path)}: damaged, expected {expected}") from None


def read_attention(folder: Path, test: Records) -> Attention | None:
    """Reads the file of `write_attention` for the same stories; None if there is none.

    Raises:
      InputError: the file is damaged, or was written for other stories.
    """
    path = folder / FILE
    if not path.exists():
        return None
    facts, words = np.diff(test.edge_start), np.array([len(spans(s)) for s in test.stories])
    expected = "attention weights"
    max_bytes = 8 * int(facts.sum() + words.sum())
    over_array, flat = read_arrays(path, ("over", "weights"), max_bytes, expected)
    over = str(over_array)
    if (
        over not in ("facts", "words")
        or flat.dtype.kind != "f"
        or not (np.isfinite(flat) & (flat >= 0)).all()
    ):
        raise InputError(f"{at(path)}: damaged, expected {expected}")
    sizes = facts if over == "facts" else words
    if flat.shape != (sizes.sum(),):
        raise InputError(f"{at(path)}: written for other stories, expected {sizes.sum()} weights")
    return Attention(over, np.split(flat.astype(np.float32), np.cumsum(sizes)[:-1]))
