"""The encoder of BERT (Devlin et al. 2018) and RoBERTa (Liu et al. 2019), with pretrained weights.

Shapes: B stories, T tokens, H hidden dimension, K heads.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.models.pretrained.folder import EncoderConfig, read_config, read_tensors

_ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "gelu": partial(nnx.gelu, approximate=False),
    "gelu_new": nnx.gelu,
    "relu": nnx.relu,
}
# Names of the modules below in a Hugging Face file.
_EMBEDDING_NAMES = {
    "tokens": "word_embeddings",
    "positions": "position_embeddings",
    "types": "token_type_embeddings",
    "norm": "LayerNorm",
}
_LAYER_NAMES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm": "output.LayerNorm",
}


class Layer(nnx.Module):
    """Self-attention and a feed-forward network, each with a residual and layer normalization."""

    def __init__(self, config: EncoderConfig, *, rngs: nnx.Rngs):
        hidden, between = config.hidden_size, config.intermediate_size
        self.heads = config.num_attention_heads
        self.query = nnx.Linear(hidden, hidden, rngs=rngs)
        self.key = nnx.Linear(hidden, hidden, rngs=rngs)
        self.value = nnx.Linear(hidden, hidden, rngs=rngs)
        self.attention_out = nnx.Linear(hidden, hidden, rngs=rngs)
        self.attention_norm = _layer_norm(config, rngs)
        self.up = nnx.Linear(hidden, between, rngs=rngs)
        self.activation = config.hidden_act
        self.down = nnx.Linear(between, hidden, rngs=rngs)
        self.norm = _layer_norm(config, rngs)

    def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        """[B, T, H], [B, T] -> [B, T, H]."""
        query, key, value = (
            layer(x).reshape(*x.shape[:2], self.heads, -1)  # [B, T, K, H/K]
            for layer in (self.query, self.key, self.value)
        )
        attended = jax.nn.dot_product_attention(query, key, value, mask=mask[:, None, None, :])
        x = self.attention_norm(x + self.attention_out(attended.reshape(x.shape)))
        return self.norm(x + self.down(_ACTIVATIONS[self.activation](self.up(x))))


class Encoder(nnx.Module):
    """Token ids -> states of the last layer. It is used frozen, so it has no dropout."""

    def __init__(self, config: EncoderConfig, *, rngs: nnx.Rngs):
        self.config = config
        hidden = config.hidden_size
        self.tokens = nnx.Embed(config.vocab_size, hidden, rngs=rngs)
        self.positions = nnx.Embed(config.max_position_embeddings, hidden, rngs=rngs)
        self.types = nnx.Embed(config.type_vocab_size, hidden, rngs=rngs)
        self.norm = _layer_norm(config, rngs)
        self.layers = nnx.List(Layer(config, rngs=rngs) for _ in range(config.num_hidden_layers))

    def __call__(self, ids: jax.Array, mask: jax.Array) -> jax.Array:
        """Token ids and mask [B, T], T at most `config.max_tokens` -> states [B, T, H].

        Padding is on the right. All tokens have type 0, since a story is one segment.
        """
        positions = self.config.first_position + jnp.arange(ids.shape[1])
        # Batches may be padded beyond the last position.
        positions = jnp.minimum(positions, self.config.max_position_embeddings - 1)
        x = self.tokens(ids) + self.positions(positions) + self.types(jnp.zeros((), jnp.int32))
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x, mask)
        return x


def load_encoder(folder: Path) -> Encoder:
    """Loads a pretrained encoder.

    Args:
      folder: a Hugging Face folder with `config.json` and `model.safetensors`.
    Raises:
      InputError: a file is missing or damaged, or a tensor is missing or has another shape.
    """
    config = read_config(folder)
    # Parameters without values: nothing is allocated before the file is known to fit.
    graph, abstract = nnx.split(nnx.eval_shape(lambda: Encoder(config, rngs=nnx.Rngs(0))))
    parameters = list(nnx.to_flat_state(abstract))
    tensors = read_tensors(
        folder,
        {
            _tensor_name(path): value.shape[::-1] if path[-1] == "kernel" else value.shape
            for path, value in parameters
        },
    )
    loaded = []
    for path, parameter in parameters:
        tensor = tensors[_tensor_name(path)]
        # PyTorch stores the weight of a linear layer as [outputs, inputs].
        tensor = tensor.T if path[-1] == "kernel" else tensor
        loaded.append((path, parameter.replace(jnp.asarray(tensor))))
    return nnx.merge(graph, nnx.from_flat_state(loaded))


def _tensor_name(path: tuple) -> str:
    """Name in a Hugging Face file of the parameter with this path in `Encoder`."""
    kind = "bias" if path[-1] == "bias" else "weight"
    if path[0] == "layers":
        return f"encoder.layer.{path[1]}.{_LAYER_NAMES[path[2]]}.{kind}"
    return f"embeddings.{_EMBEDDING_NAMES[path[0]]}.{kind}"


def _layer_norm(config: EncoderConfig, rngs: nnx.Rngs) -> nnx.LayerNorm:
    return nnx.LayerNorm(
        config.hidden_size, epsilon=config.layer_norm_eps, use_fast_variance=False, rngs=rngs
    )
