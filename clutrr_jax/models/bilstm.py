"""BiLSTMs that pool over all tokens of a story.

Shapes: B stories, T tokens, H hidden dimension.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.models import reader
from clutrr_jax.models.common import MatmulLinear, Readout
from generator.errors import one_of

CONFIG = reader.CONFIG | {"readout": 200}  # Sinha et al. 2019, appendix 2.2


class BiLSTMModel(nnx.Module):
    """Bidirectional LSTM over the story with pooling over its tokens (Sinha et al. 2019, appendix
    1.1): the mean state, or an attention-weighted mean that depends on the query pair."""

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.pooling = one_of(config, "pooling", "mean", "attention")
        self.reader = reader.Reader(config, sizes, rngs=rngs)
        width = self.reader.width
        if self.pooling == "attention":
            self.key = MatmulLinear(width, config.hidden, config.matmul_dtype, rngs=rngs)
            self.query = nnx.Linear(2 * width, config.hidden, rngs=rngs)
            self.score = nnx.Linear(config.hidden, 1, use_bias=False, rngs=rngs)
        self.readout = Readout(3 * width, config, sizes, rngs=rngs)

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """Relation logits [B, relations]."""
        weight, x, first, second = self._read(batch)
        return self.readout(jnp.einsum("tb,tbh->bh", weight, x), first, second)

    def _read(self, batch: TokenBatch) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """Weights [T, B] and states [T, B, 2H] of the tokens, states of the query pair [B, 2H]."""
        mask = batch.mask.T  # [T, B]
        x = self.reader(batch.tokens, batch.mask)  # [T, B, 2H]
        first, second = reader.query_states(batch, x)
        if self.pooling == "attention":
            query = self.query(jnp.concatenate([first, second], axis=-1))  # [B, H]
            score = self.score(jnp.tanh(self.key(x) + query))[..., 0]  # [T, B]
            weight = nnx.softmax(jnp.where(mask, score, -1e9), axis=0) * mask
        else:
            weight = mask / jnp.maximum(mask.sum(axis=0), 1)
        return weight, x, first, second


class BiLSTMAttention(BiLSTMModel):
    """BiLSTM with attention pooling, whose attention weights can be inspected."""

    def attention(self, batch: TokenBatch) -> jax.Array:
        """Attention weight of each token, [B, T]."""
        return self._read(batch)[0].T
