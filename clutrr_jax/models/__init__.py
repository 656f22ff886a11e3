"""The registry of models: a new model is one file and one line here.

A model is a Flax NNX module `Model(config, sizes, rngs=...)`, where `model(batch)` gives the
relation logits, float32 [B, relations], of a batch of its kind (see `clutrr_jax.data.batches`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from clutrr_jax.data.batches import InputKind
from clutrr_jax.models import gat, lstm


class Spec(NamedTuple):
    """A model by name: its class, the kind of batch that it reads, its default settings, and
    whether it reads the facts of a graph in the order in which the story states them."""

    model: Callable[..., Any]
    kind: InputKind
    config: dict[str, Any]
    ordered: bool = False


MODELS: dict[str, Spec] = {
    "gat": Spec(gat.GAT, "graph", gat.CONFIG),
    "bilstm_mean": Spec(lstm.BiLSTMModel, "tokens", lstm.CONFIG | {"pooling": "mean"}),
    "bilstm_attention": Spec(lstm.BiLSTMModel, "tokens", lstm.CONFIG | {"pooling": "attention"}),
}
