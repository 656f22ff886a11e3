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
from clutrr_jax.models.functional import has_method
from generator.errors import InputError

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
    if not has_method(model, "attention") or kind == "states":
        return
    weights = attention_weights(model, kind, stories).astype(np.float16)
    over = "facts" if kind in GRAPHS else "words"
    np.savez_compressed(folder / FILE, over=over, weights=weights)


class Arrays:
    """Arrays of an `.npz` file, which are checked when they are used.

    Raises:
      InputError: the file is damaged, or its arrays have more than `max_bytes` together.
    """

    def __init__(self, path: Path, max_bytes: int):
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                size = sum(member.file_size for member in archive.infolist())
            if size > max_bytes + 4096:  # 4096 for the headers of the arrays
                raise ValueError
            with np.load(path, allow_pickle=False) as file:
                self.arrays = dict(file)
        except Exception:  # NumPy and zipfile raise a dozen kinds for damaged files
            raise InputError(f"{path}: damaged, expected NumPy arrays of a run") from None

    def get(self, name: str) -> np.ndarray:
        """Returns an array as it is, empty float64 if there is none."""
        return self.arrays.get(name, np.zeros(0))

    def numbers(self, name: str, kind: str, shape: tuple[int, ...], highest: Any) -> np.ndarray:
        """Returns an array of floats (kind "f") or unsigned integers ("u") from 0 to `highest`.

        Raises:
          InputError: it has another type or shape, or values out of range.
        """
        array = self.get(name)
        if (
            array.dtype.kind != kind
            or array.shape != shape
            or not ((array >= 0) & (array <= highest)).all()
        ):
            raise InputError(
                f"{self.path}: {name} is damaged or was written for other stories, expected "
                f"numbers of shape {shape}"
            )
        return array


def read_attention(folder: Path, test: Records) -> Attention | None:
    """Reads the file of `write_attention` for the same stories; None if there is none.

    Raises:
      InputError: the file is damaged, or was written for other stories.
    """
    path = folder / FILE
    if not path.exists():
        return None
    sizes = {
        "facts": np.diff(test.edge_start),
        "words": np.array([len(spans(story)) for story in test.stories]),
    }
    arrays = Arrays(path, 8 * int(sum(map(np.sum, sizes.values()))))
    over = str(arrays.get("over"))
    if over not in sizes:
        raise InputError(f'{path}: damaged, expected attention over "facts" or "words"')
    flat = arrays.numbers("weights", "f", (sizes[over].sum(),), np.finfo(np.float32).max)
    return Attention(over, np.split(flat.astype(np.float32), np.cumsum(sizes[over])[:-1]))
