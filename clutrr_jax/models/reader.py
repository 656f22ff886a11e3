"""BiLSTM over the tokens of a story, shared by the text models.

Shapes: B stories, T tokens, H hidden dimension of each direction.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.models.common import WORD_DROPOUT, dropout
from clutrr_jax.models.lstm import BiLSTM, TokenEmbedding
from clutrr_jax.models.setting import Setting

# Sinha et al. 2019, appendix 2.2, except for the dropout rates and `TRAIN`. The number of steps
# decides how well a BiLSTM reads; a step with fewer stories takes less time.
SETTINGS = {
    "embedding": Setting(100, "width of the embeddings of tokens", at_least=1),
    "hidden": Setting(100, "width of each direction of the BiLSTM", at_least=1),
    "layers": Setting(2, "layers of the BiLSTM", at_least=1),
    "dropout": dropout(0.3),
    "word_dropout": WORD_DROPOUT,
}
TRAIN = {"batch": 20, "steps": 20_000, "patience": 3000}


class Reader(nnx.Module):
    """Stack of BiLSTM layers over the tokens, with dropout before and after each layer."""

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.embed = TokenEmbedding(sizes, config.embedding, config.word_dropout, rngs=rngs)
        self.width = 2 * config.hidden
        dims = [config.embedding] + [self.width] * (config.layers - 1)
        self.layers = nnx.List(BiLSTM(dim, config.hidden, rngs=rngs) for dim in dims)
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)

    def __call__(self, tokens: jax.Array, mask: jax.Array) -> jax.Array:
        """Tokens and mask [B, T] -> states [T, B, 2H].

        Where the mask is False, states are zero and both directions start again, so that a masked
        token between two sentences separates them.
        """
        x = self.embed(tokens.T)  # [T, B, D]
        for layer in self.layers:
            x = layer(self.dropout(x), mask.T)
        return self.dropout(x)


def query_states(batch: TokenBatch, states: jax.Array) -> jax.Array:
    """Mean state over the mentions of each query person: [T, B, D] -> [2, B, D]."""
    weight = batch.mentions / jnp.maximum(batch.mentions.sum(-1, keepdims=True), 1)
    return jnp.einsum("bet,tbd->ebd", weight, states)


def is_any_of(tokens: jax.Array, ids: tuple[int, ...]) -> jax.Array:
    """True where a token is one of the given ids, bool [...]."""
    return jnp.isin(tokens, jnp.array(ids, jnp.int32))
