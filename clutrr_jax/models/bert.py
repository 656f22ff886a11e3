"""Models on the states of a pretrained encoder: a readout, and an LSTM with a readout.

Shapes: B stories, T tokens of the encoder, D dimension of the states, H hidden dimension.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.data.vocabulary import FIRST_ENTITY
from clutrr_jax.models import reader
from clutrr_jax.models.common import READOUT, EntityEmbedding, Readout, dropout
from clutrr_jax.models.lstm import LSTM
from clutrr_jax.models.pretrained import load
from clutrr_jax.models.setting import Setting

# Sinha et al. 2019, appendix 2.2; dropout is not in the paper.
SETTINGS = load.SETTINGS | {
    "people": load.SETTINGS["people"]._replace(default="numbers"),
    "readout": READOUT,
    "dropout": dropout(0.0),
}
LSTM_SETTINGS = load.SETTINGS | {
    "hidden": Setting(100, "width of the LSTM", at_least=1),
    "layers": Setting(2, "layers of the LSTM", at_least=1),
    "readout": READOUT,
    "dropout": dropout(0.3),
}


def token_states(batch: TokenBatch, encoder: Any) -> jax.Array:
    """States of a batch over an encoder, [T, B, D]. The encoder is None if it is frozen."""
    states = load.encode(batch, encoder).states
    assert states is not None
    return states.swapaxes(0, 1)


def story_mean(batch: TokenBatch, states: jax.Array) -> jax.Array:
    """Mean state over the tokens of each story. [T, B, D] -> [B, D]."""
    weight = batch.mask / jnp.maximum(batch.mask.sum(axis=1, keepdims=True), 1)
    return jnp.einsum("bt,tbd->bd", weight, states)


class Bert(nnx.Module):
    """A readout of the mean of the states (Sinha et al. 2019, appendix 1.1)."""

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.encoder = load.new_encoder(sizes.encoder, rngs=rngs)
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)
        self.readout = Readout(3 * sizes.states, config, sizes, rngs=rngs)

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """Relation logits [B, relations]."""
        x = self.dropout(token_states(batch, self.encoder))  # [T, B, D]
        return self.readout(story_mean(batch, x), *reader.query_states(batch, x))


class BertLSTM(nnx.Module):
    """Unidirectional LSTM layers over the states (Sinha et al. 2019, appendices 1.1, 2.2).

    States of tokens that name a person are replaced by the person's fixed random vector.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.encoder = load.new_encoder(sizes.encoder, rngs=rngs)
        self.entity = EntityEmbedding(sizes.entities, sizes.states, rngs=rngs)
        dims = [sizes.states] + [config.hidden] * (config.layers - 1)
        self.layers = nnx.List(LSTM(dim, config.hidden, rngs=rngs) for dim in dims)
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)
        self.readout = Readout(3 * config.hidden, config, sizes, rngs=rngs)

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """Relation logits [B, relations]."""
        entity = batch.tokens.T - FIRST_ENTITY
        is_person = (entity >= 0) & (entity < len(self.entity.table[...]))
        people = self.entity(jnp.where(is_person, entity, 0))
        x = jnp.where(is_person[..., None], people, token_states(batch, self.encoder))  # [T, B, D]
        for layer in self.layers:
            x = layer(self.dropout(x), batch.mask.T)  # [T, B, H]
        x = self.dropout(x)
        return self.readout(story_mean(batch, x), *reader.query_states(batch, x))
