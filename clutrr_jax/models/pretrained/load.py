"""Pretrained encoders from a Hugging Face folder."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
from flax import nnx

from clutrr_jax.models.pretrained.deberta import Deberta
from clutrr_jax.models.pretrained.encoder import Encoder
from clutrr_jax.models.pretrained.folder import (
    DebertaConfig,
    EncoderConfig,
    read_config,
    read_tensors,
)


def new_encoder(config: EncoderConfig | None, dtype: str, *, rngs: nnx.Rngs) -> Any:
    """Encoder with random parameters, or None without a configuration.

    Args:
      config: its configuration.
      dtype: of the inputs of its matrix products, float32 or bfloat16.
      rngs: random numbers.
    """
    if config is None:
        return None
    if isinstance(config, DebertaConfig):
        return Deberta(config, dtype, rngs=rngs)
    return Encoder(config, dtype, rngs=rngs)


def load_encoder(folder: Path) -> Encoder | Deberta:
    """Pretrained encoder, see `load_parameters`."""
    return nnx.merge(nnx.graphdef(_abstract_encoder(folder)), load_parameters(folder))


def load_parameters(folder: Path) -> Any:
    """Parameters of a pretrained encoder.

    Args:
      folder: a Hugging Face folder with `config.json` and `model.safetensors`.
    Raises:
      InputError: a file is missing or damaged, or a tensor is missing or has another shape.
    """
    encoder = _abstract_encoder(folder)
    parameters = list(nnx.to_flat_state(nnx.state(encoder)))
    names = {path: _tensor_name(path, encoder) for path, _ in parameters}
    tensors = read_tensors(
        folder,
        {
            names[path]: value.shape[::-1] if path[-1] == "kernel" else value.shape
            for path, value in parameters
        },
    )
    loaded = []
    for path, parameter in parameters:
        # PyTorch stores the weight of a linear layer as [outputs, inputs].
        tensor = tensors[names[path]]
        tensor = tensor.T if path[-1] == "kernel" else tensor
        loaded.append((path, parameter.replace(jnp.asarray(tensor))))
    return nnx.from_flat_state(loaded)


def _abstract_encoder(folder: Path) -> Encoder | Deberta:
    """Encoder whose parameters have no values, so that none is allocated before the file is known
    to fit."""
    config = read_config(folder)
    return nnx.eval_shape(lambda: new_encoder(config, "float32", rngs=nnx.Rngs(0)))


def _tensor_name(path: tuple, encoder: Encoder | Deberta) -> str:
    """Name in a Hugging Face file of the parameter with this path in an encoder."""
    kind = "bias" if path[-1] == "bias" else "weight"
    if path[0] == "layers":
        return f"encoder.layer.{path[1]}.{encoder.layer_names[path[2]]}.{kind}"
    return f"{encoder.embedding_names[path[0]]}.{kind}"
