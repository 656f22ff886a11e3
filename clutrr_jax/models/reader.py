"""What the text models share: words and their places, a BiLSTM over them, and who is mentioned.

Shapes: B stories, T tokens, H hidden dimension of each direction.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.models.common import Dropout
from clutrr_jax.models.lstm import BiLSTM, TokenEmbedding

# Sinha et al. 2019, appendix 2.2; dropout and the share of words made unknown are not in the paper.
CONFIG = {
    "embedding": 100,
    "hidden": 100,
    "layers": 2,
    "dropout": 0.3,
    "word_dropout": 0.05,
    "matmul_dtype": "bfloat16",  # of the inputs of the LSTMs in training; tested in float32
}


class Reader(nnx.Module):
    """A stack of BiLSTM layers over the tokens, with dropout before and after each."""

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.embed = TokenEmbedding(sizes, config.embedding, config.word_dropout, rngs=rngs)
        self.width = 2 * config.hidden
        dims = [config.embedding] + [self.width] * (config.layers - 1)
        self.layers = nnx.List(
            BiLSTM(dim, config.hidden, config.matmul_dtype, rngs=rngs) for dim in dims
        )
        self.dropout = Dropout(config.dropout, rngs=rngs)

    def __call__(self, tokens: jax.Array, mask: jax.Array) -> jax.Array:
        """Tokens and mask [B, T] -> states [T, B, 2H], zero where the mask is False. Both
        directions start anew there, so a False between two sentences parts them."""
        x = self.embed(tokens.T)  # [T, B, D]
        for layer in self.layers:
            x = layer(self.dropout(x), mask.T)
        return self.dropout(x)


def asked(batch: TokenBatch, states: jax.Array) -> jax.Array:
    """The mean state over the mentions of each asked person. [T, B, D] -> [2, B, D]."""
    weight = batch.mentions / jnp.maximum(batch.mentions.sum(-1, keepdims=True), 1)
    return jnp.einsum("bet,tbd->ebd", weight, states)


def is_one_of(tokens: jax.Array, some: tuple[int, ...]) -> jax.Array:
    """Where a token is one of some few. [...] -> bool [...]."""
    return jnp.isin(tokens, jnp.array(some, jnp.int32))
