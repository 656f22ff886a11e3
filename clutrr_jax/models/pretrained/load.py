"""Pretrained encoders from a Hugging Face folder."""

import re
from pathlib import Path
from typing import Any

import jax
import ml_dtypes  # noqa: F401 (NumPy needs it for bfloat16)
import numpy as np
from flax import nnx
from safetensors import safe_open

from clutrr_jax.models.pretrained.deberta import Deberta
from clutrr_jax.models.pretrained.encoder import Encoder
from clutrr_jax.models.pretrained.folder import (
    DebertaConfig,
    EncoderConfig,
    read_config,
    reading,
)

MAX_BYTES = 4 << 30  # of model.safetensors; that of BERT-large has 1.3 GB
DTYPES = ("F32", "F16", "BF16")


def new_encoder(config: EncoderConfig | None, *, rngs: nnx.Rngs) -> Any:
    """Encoder with random parameters, or None without a configuration."""
    if config is None:
        return None
    if isinstance(config, DebertaConfig):
        return Deberta(config, rngs=rngs)
    return Encoder(config, rngs=rngs)


def load_encoder(folder: Path) -> Encoder:
    """Pretrained encoder, see `load_parameters`."""
    return nnx.merge(nnx.graphdef(_abstract_encoder(folder)), load_parameters(folder))


def load_parameters(folder: Path) -> Any:
    """Parameters of a pretrained encoder.

    Args:
      folder: a Hugging Face folder with `config.json` and `model.safetensors`.
    Raises:
      InputError: a file is missing, damaged or too large, or a tensor is missing or has another
        shape or dtype.
    """
    encoder = _abstract_encoder(folder)
    path = folder / "model.safetensors"
    loaded = []
    with reading(path):
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"over {MAX_BYTES:,} bytes")
        with safe_open(path, framework="np") as file:
            # The prefix is that of a model with a head. The first release had gamma and beta.
            stored_name = {
                re.sub(r"^(bert|roberta|deberta)\.", "", name)
                .replace(".gamma", ".weight")
                .replace(".beta", ".bias"): name
                for name in file.keys()  # noqa: SIM118 (not a dict)
            }
            for place, parameter in nnx.to_flat_state(nnx.state(encoder)):
                name = _tensor_name(place, encoder)
                if name not in stored_name:
                    raise ValueError(f'no tensor "{name}"')
                tensor = file.get_slice(stored_name[name])
                # PyTorch stores the weight of a linear layer as [outputs, inputs].
                is_kernel = place[-1] == "kernel"
                expected = parameter.shape[::-1] if is_kernel else parameter.shape
                dtype, shape = tensor.get_dtype(), tuple(tensor.get_shape())
                if dtype not in DTYPES or shape != expected:
                    raise ValueError(
                        f'tensor "{name}" is {dtype} {shape}, expected {" or ".join(DTYPES)} '
                        f"{expected}"
                    )
                values = file.get_tensor(stored_name[name]).astype(np.float32)
                values = jax.device_put(values.T if is_kernel else values)
                loaded.append((place, parameter.replace(values)))
    return nnx.from_flat_state(loaded)


def _abstract_encoder(folder: Path) -> Encoder:
    """Encoder whose parameters have no values, so that none is allocated before the file is known
    to fit."""
    config = read_config(folder)
    return nnx.eval_shape(lambda: new_encoder(config, rngs=nnx.Rngs(0)))


def _tensor_name(path: tuple, encoder: Encoder) -> str:
    """Name in a Hugging Face file of the parameter with this path in an encoder."""
    kind = "bias" if path[-1] == "bias" else "weight"
    if path[0] == "layers":
        return f"encoder.layer.{path[1]}.{encoder.layer_names[path[2]]}.{kind}"
    return f"{encoder.embedding_names[path[0]]}.{kind}"
