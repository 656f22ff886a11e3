"""What the models share: the fixed entity embedding and the readout."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx


class Fixed(nnx.Variable):
    """A value that is drawn once and never trained: the optimizer sees `nnx.Param` alone."""


def split(model: nnx.Module) -> tuple[Any, Any, Any]:
    """The structure of a model, what of it is trained, and the rest; `nnx.merge` is the inverse."""
    parts: Any = nnx.split(model, nnx.Param, ...)
    return parts


class EntityEmbedding(nnx.Module):
    """Random vectors of length about 1 for the entities of the pool, fixed throughout
    (Sinha et al. 2019, appendix 1.5)."""

    def __init__(self, entities: int, dim: int, *, rngs: nnx.Rngs):
        self.table = Fixed(jax.random.normal(rngs.params(), (entities, dim)) / dim**0.5)

    def __call__(self, entity: jax.Array) -> jax.Array:
        return self.table[...][entity]


class Readout(nnx.Module):
    """(story, entity 1, entity 2) -> 2-layer MLP -> relation logits, shared by all models
    (Sinha et al. 2019, section 4.1)."""

    def __init__(self, dim: int, hidden: int, relations: int, dropout: float, *, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(dim, hidden, rngs=rngs)
        self.dropout = nnx.Dropout(dropout, rngs=rngs)
        self.out = nnx.Linear(hidden, relations, rngs=rngs)

    def __call__(self, story: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
        """[B, D1], [B, D2], [B, D2] -> [B, relations]."""
        hidden = nnx.relu(self.hidden(jnp.concatenate([story, first, second], axis=-1)))
        return self.out(self.dropout(hidden))
