"""The encoder of BERT (Devlin et al. 2018): a frozen stack of transformer layers, made of weights.

Shapes: B stories, T word pieces, H hidden dimension, heads K.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.models.common import Fixed
from clutrr_jax.models.pretrained.folder import BertConfig, Weights, read_config

_ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "gelu": partial(nnx.gelu, approximate=False),
    "gelu_new": nnx.gelu,
    "relu": nnx.relu,
}


class Dense(nnx.Module):
    """x W^T + b."""

    def __init__(self, weights: Weights, name: str, inputs: int, outputs: int):
        self.weight = Fixed(jnp.asarray(weights.take(f"{name}.weight", (outputs, inputs))))
        self.bias = Fixed(jnp.asarray(weights.take(f"{name}.bias", (outputs,))))

    def __call__(self, x: jax.Array) -> jax.Array:
        return x @ self.weight[...].T + self.bias[...]


class Norm(nnx.Module):
    """Layer normalization (Ba et al. 2016)."""

    def __init__(self, weights: Weights, name: str, config: BertConfig):
        self.weight = Fixed(jnp.asarray(weights.take(f"{name}.weight", (config.hidden_size,))))
        self.bias = Fixed(jnp.asarray(weights.take(f"{name}.bias", (config.hidden_size,))))
        self.epsilon = config.layer_norm_eps

    def __call__(self, x: jax.Array) -> jax.Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = jnp.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.epsilon)
        return centred / deviation * self.weight[...] + self.bias[...]


class Layer(nnx.Module):
    """Self-attention, then two dense layers, each added to its input and normalized."""

    def __init__(self, weights: Weights, name: str, config: BertConfig):
        hidden, between = config.hidden_size, config.intermediate_size
        self.heads = config.num_attention_heads
        self.query = Dense(weights, f"{name}.attention.self.query", hidden, hidden)
        self.key = Dense(weights, f"{name}.attention.self.key", hidden, hidden)
        self.value = Dense(weights, f"{name}.attention.self.value", hidden, hidden)
        self.mix = Dense(weights, f"{name}.attention.output.dense", hidden, hidden)
        self.mix_norm = Norm(weights, f"{name}.attention.output.LayerNorm", config)
        self.up = Dense(weights, f"{name}.intermediate.dense", hidden, between)
        self.activation = config.hidden_act
        self.down = Dense(weights, f"{name}.output.dense", between, hidden)
        self.down_norm = Norm(weights, f"{name}.output.LayerNorm", config)

    def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        """[B, T, H], [B, T] -> [B, T, H]."""

        def by_head(layer: Dense) -> jax.Array:
            return layer(x).reshape(*x.shape[:2], self.heads, -1)  # [B, T, K, H/K]

        query, key, value = by_head(self.query), by_head(self.key), by_head(self.value)
        score = jnp.einsum("btkd,bskd->bkts", query, key) / query.shape[-1] ** 0.5
        weight = nnx.softmax(jnp.where(mask[:, None, None], score, -1e9))  # [B, K, T, T]
        attended = jnp.einsum("bkts,bskd->btkd", weight, value).reshape(x.shape)
        x = self.mix_norm(x + self.mix(attended))
        return self.down_norm(x + self.down(_ACTIVATIONS[self.activation](self.up(x))))


class Bert(nnx.Module):
    """Word pieces -> the states of the last layer. Nothing of it is ever trained: no dropout."""

    def __init__(self, folder: Path):
        """Raises:
        InputError: a file of the folder is missing or damaged, or a tensor of another shape.
        """
        self.config = config = read_config(folder)
        weights = Weights(folder)

        def table(name: str, rows: int) -> Fixed:
            shape = (rows, config.hidden_size)
            return Fixed(jnp.asarray(weights.take(f"embeddings.{name}_embeddings.weight", shape)))

        self.word = table("word", config.vocab_size)
        self.position = table("position", config.max_position_embeddings)
        self.type = table("token_type", config.type_vocab_size)
        self.norm = Norm(weights, "embeddings.LayerNorm", config)
        self.layers = nnx.List(
            Layer(weights, f"encoder.layer.{number}", config)
            for number in range(config.num_hidden_layers)
        )

    def __call__(self, pieces: jax.Array, mask: jax.Array) -> jax.Array:
        """Pieces [B, T] and mask, T at most `max_position_embeddings` -> states [B, T, H]."""
        x = self.word[...][pieces] + self.position[: pieces.shape[1]]
        x = self.norm(x + self.type[0])  # a story is all of the first type
        for layer in self.layers:
            x = layer(x, mask)
        return x
