"""BiLSTMs over the tokens of a story, which differ in their pooling.

Shapes: B stories, T tokens, H hidden dimension.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.models import reader
from clutrr_jax.models.common import READOUT, Readout

SETTINGS = reader.SETTINGS | {"readout": READOUT}  # Sinha et al. 2019, appendix 2.2
SETTINGS_2018 = SETTINGS | {  # Sinha et al. 2018, section 4
    "hidden": SETTINGS["hidden"]._replace(default=50)
}


class BiLSTMModel(nnx.Module):
    """Bidirectional LSTM over the story (Sinha et al. 2018, section 3.2, and 2019, appendix 1.1).

    The story vector is the mean state, an attention-weighted mean that depends on the query pair,
    or the last state of each direction. The vector of a person is the mean of the states at their
    mentions.
    """

    pooling = "mean"

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.reader = reader.Reader(config, sizes, rngs=rngs)
        width = self.reader.width
        if self.pooling == "attention":
            self.key = nnx.Linear(width, config.hidden, use_bias=False, rngs=rngs)
            self.query = nnx.Linear(2 * width, config.hidden, rngs=rngs)
            self.score = nnx.Linear(config.hidden, 1, use_bias=False, rngs=rngs)
        self.readout = Readout(3 * width, config, sizes, rngs=rngs)

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """Relation logits [B, relations]."""
        x, people = self._read(batch)
        if self.pooling == "last":
            hidden = self.reader.width // 2
            last = jnp.maximum(batch.mask.sum(axis=1) - 1, 0)  # [B] last token before padding
            forward, backward = x[last, jnp.arange(len(last)), :hidden], x[0, :, hidden:]
            story = jnp.concatenate([forward, backward], axis=-1)
        else:
            story = jnp.einsum("tb,tbh->bh", self._weights(batch, x, people), x)
        return self.readout(story, *people)

    def _read(self, batch: TokenBatch) -> tuple[jax.Array, jax.Array]:
        """States of the tokens [T, B, 2H] and of the query pair [2, B, 2H]."""
        x = self.reader(batch.tokens, batch.mask)
        return x, reader.query_states(batch, x)

    def _weights(self, batch: TokenBatch, x: jax.Array, people: jax.Array) -> jax.Array:
        """Weights of the tokens [T, B], given the states that `_read` returns."""
        mask = batch.mask.T
        if self.pooling != "attention":
            return mask / jnp.maximum(mask.sum(axis=0), 1)
        query = self.query(jnp.concatenate([*people], axis=-1))  # [B, H]
        score = self.score(jnp.tanh(self.key(x) + query))[..., 0]  # [T, B]
        return nnx.softmax(jnp.where(mask, score, -1e9), axis=0) * mask


class BiLSTMLast(BiLSTMModel):
    """BiLSTM whose story vector is the last state of each direction."""

    pooling = "last"


class BiLSTMAttention(BiLSTMModel):
    """BiLSTM with attention pooling, whose attention weights can be inspected."""

    pooling = "attention"

    def attention(self, batch: TokenBatch) -> jax.Array:
        """Attention weight of each token, [B, T]."""
        return self._weights(batch, *self._read(batch)).T
