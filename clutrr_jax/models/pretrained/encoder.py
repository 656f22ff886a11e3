"""The encoder of BERT (Devlin et al. 2018) and RoBERTa (Liu et al. 2019).

Shapes: B stories, T tokens, H hidden dimension, K heads.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.models.pretrained.folder import EncoderConfig

_ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "gelu": partial(nnx.gelu, approximate=False),
    "gelu_new": nnx.gelu,
    "relu": nnx.relu,
}


class Layer(nnx.Module):
    """Self-attention and a feed-forward network, with residuals and layer normalization."""

    def __init__(self, config: EncoderConfig, *, rngs: nnx.Rngs):
        hidden, between = config.hidden_size, config.intermediate_size
        self.heads = config.num_attention_heads
        self.query = nnx.Linear(hidden, hidden, rngs=rngs)
        self.key = nnx.Linear(hidden, hidden, rngs=rngs)
        self.value = nnx.Linear(hidden, hidden, rngs=rngs)
        self.attention_out = nnx.Linear(hidden, hidden, rngs=rngs)
        self.attention_norm = layer_norm(config, rngs)
        self.up = nnx.Linear(hidden, between, rngs=rngs)
        self.activation = config.hidden_act
        self.down = nnx.Linear(between, hidden, rngs=rngs)
        self.norm = layer_norm(config, rngs)

    def split(self, x: jax.Array) -> jax.Array:
        """Splits states among the heads: [..., H] -> [..., K, H/K]."""
        return x.reshape(*x.shape[:-1], self.heads, -1)

    def __call__(self, x: jax.Array, mask: jax.Array, distances: Any) -> jax.Array:
        """States [B, T, H], mask [B, T], result of `Encoder.embed_distances` -> [B, T, H]."""
        query, key, value = (self.split(layer(x)) for layer in (self.query, self.key, self.value))
        bias, scale = self.bias(query, key, distances)
        attended = jax.nn.dot_product_attention(
            query, key, value, bias=bias, mask=mask[:, None, None, :], scale=scale
        )
        x = self.attention_norm(x + self.attention_out(attended.reshape(x.shape)))
        return self.norm(x + self.down(_ACTIVATIONS[self.activation](self.up(x))))

    def bias(self, query: jax.Array, key: jax.Array, distances: Any) -> Any:
        """Bias of the attention logits [B, K, T, T] and their scale; None: no bias, usual scale."""
        return None, None


class Encoder(nnx.Module):
    """Token ids -> states of the last layer. It has no dropout."""

    # Names of modules in a Hugging Face file.
    embedding_names: ClassVar = {
        "tokens": "embeddings.word_embeddings",
        "positions": "embeddings.position_embeddings",
        "types": "embeddings.token_type_embeddings",
        "norm": "embeddings.LayerNorm",
    }
    layer_names: ClassVar = {
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "attention_out": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "up": "intermediate.dense",
        "down": "output.dense",
        "norm": "output.LayerNorm",
    }
    layer: type[Layer] = Layer

    def __init__(self, config: EncoderConfig, *, rngs: nnx.Rngs):
        self.config: Any = config
        hidden = config.hidden_size
        self.tokens = nnx.Embed(config.vocab_size, hidden, rngs=rngs)
        if config.position_biased_input:
            self.positions = nnx.Embed(config.max_position_embeddings, hidden, rngs=rngs)
        if config.type_vocab_size:
            self.types = nnx.Embed(config.type_vocab_size, hidden, rngs=rngs)
        self.norm = layer_norm(config, rngs)
        self.layers: Any = nnx.List(
            self.layer(config, rngs=rngs) for _ in range(config.num_hidden_layers)
        )

    def __call__(self, ids: jax.Array, mask: jax.Array) -> jax.Array:
        """Token ids and mask [B, T], T at most `config.max_tokens` -> states [B, T, H].

        Padding is on the right. All tokens have type 0, since a story is one segment.
        """
        config, x = self.config, self.tokens(ids)
        if config.position_biased_input:
            positions = config.first_position + jnp.arange(ids.shape[1])
            # Batches may be padded beyond the last position.
            x += self.positions(jnp.minimum(positions, config.max_position_embeddings - 1))
        if config.type_vocab_size:
            x += self.types.embedding[...][0]
        x, distances = self.norm(x), self.embed_distances(ids.shape[1])
        for layer in self.layers:
            x = layer(x, mask, distances)
        return x

    def embed_distances(self, steps: int) -> Any:
        """Embeddings of the distances between this number of tokens; None if they have none."""
        return None


def layer_norm(config: EncoderConfig, rngs: nnx.Rngs) -> nnx.LayerNorm:
    """Layer normalization of the hidden dimension."""
    return nnx.LayerNorm(
        config.hidden_size, epsilon=config.layer_norm_eps, use_fast_variance=False, rngs=rngs
    )
