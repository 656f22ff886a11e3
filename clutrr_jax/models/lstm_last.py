"""BiLSTM that represents a story by the last state of each direction.

Shapes: B stories, T tokens, H hidden dimension.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.models import reader
from clutrr_jax.models.common import Readout

CONFIG = reader.CONFIG | {"readout": 200}  # Sinha et al. 2019, appendix 2.2
CONFIG_2018 = CONFIG | {"hidden": 50}  # Sinha et al. 2018, section 4


class BiLSTMLast(nnx.Module):
    """Bidirectional LSTM over the story (Sinha et al. 2018, section 3.2, and 2019, appendix 1.1).

    The story vector is the last state of each direction; the vector of a person is the mean of the
    states at their mentions.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.reader = reader.Reader(config, sizes, rngs=rngs)
        self.readout = Readout(3 * self.reader.width, config, sizes, rngs=rngs)

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """Relation logits [B, relations]."""
        x = self.reader(batch.tokens, batch.mask)  # [T, B, 2H]
        hidden = self.reader.width // 2
        last = jnp.maximum(batch.mask.sum(axis=1) - 1, 0)  # [B]
        forward = x[last, jnp.arange(len(last)), :hidden]  # at the last token before padding
        backward = x[0, :, hidden:]
        story = jnp.concatenate([forward, backward], axis=-1)
        return self.readout(story, *reader.query_states(batch, x))
