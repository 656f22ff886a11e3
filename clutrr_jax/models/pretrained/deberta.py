"""The encoder of DeBERTa-v2 and v3 (He et al. 2021), with disentangled attention.

Besides the content of two tokens, attention compares the content of each with an embedding of the
distance between them.

Shapes: B stories, T tokens, H hidden dimension, K heads, D = 2T - 1 distances from a key to a
query, T - 1 to 1 - T.
"""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from clutrr_jax.models.pretrained.encoder import Encoder, Layer, layer_norm
from clutrr_jax.models.pretrained.folder import DebertaConfig


class DebertaLayer(Layer):
    """Layer with disentangled attention."""

    def __init__(self, config: DebertaConfig, *, rngs: nnx.Rngs):
        super().__init__(config, rngs=rngs)
        self.terms = tuple(config.pos_att_type.split("|"))

        def own(term: str) -> nnx.Linear | None:
            if config.share_att_key or term not in self.terms:
                return None
            return nnx.Linear(config.hidden_size, config.hidden_size, rngs=rngs)

        self.distance_key, self.distance_query = own("c2p"), own("p2c")

    def bias(self, query: jax.Array, key: jax.Array, distances: Any) -> Any:
        """`distances` are the embeddings of the distances [D, H]."""
        scale = (query.shape[-1] * (1 + len(self.terms))) ** -0.5
        bias = jnp.zeros(())
        if "c2p" in self.terms:
            positions = self.split((self.distance_key or self.key)(distances))
            bias += by_pair(jnp.einsum("bqkh,dkh->bkqd", query, positions))
        if "p2c" in self.terms:
            positions = self.split((self.distance_query or self.query)(distances))
            # From the key the same distance has the opposite sign.
            opposite = jnp.einsum("btkh,dkh->bktd", key, positions[::-1])
            bias += by_pair(opposite).swapaxes(2, 3)
        return scale * bias, scale


class Deberta(Encoder):
    """Encoder whose layers see the embeddings of distances."""

    embedding_names: ClassVar = Encoder.embedding_names | {
        "distances": "encoder.rel_embeddings",
        "distance_norm": "encoder.LayerNorm",
    }
    layer_names: ClassVar = Encoder.layer_names | {
        "query": "attention.self.query_proj",
        "key": "attention.self.key_proj",
        "value": "attention.self.value_proj",
        "distance_query": "attention.self.pos_query_proj",
        "distance_key": "attention.self.pos_key_proj",
    }
    layer = DebertaLayer

    def __init__(self, config: DebertaConfig, *, rngs: nnx.Rngs):
        super().__init__(config, rngs=rngs)
        self.distances = nnx.Embed(2 * config.span, config.hidden_size, rngs=rngs)
        if config.norm_rel_ebd == "layer_norm":
            self.distance_norm = layer_norm(config, rngs)

    def embed_distances(self, steps: int) -> jax.Array:
        """Embeddings of the distances, [D, H]."""
        distances = self.distances(jnp.asarray(distance_ids(self.config, steps)))
        if self.config.norm_rel_ebd == "layer_norm":
            distances = self.distance_norm(distances)
        return distances


def distance_ids(config: DebertaConfig, steps: int) -> np.ndarray:
    """Row of the embedding of each distance between two of T tokens, [D]. Long distances share
    buckets of logarithmic width."""
    distance = np.arange(steps - 1, -steps, -1)
    middle = config.position_buckets // 2
    if config.position_buckets > 0:
        # In float32 as in the published implementation, for equal rounding at the bounds.
        ratio = np.maximum(np.abs(distance), middle).astype(np.float32) / np.float32(middle)
        longest = np.log(np.float32((config.max_distance - 1) / middle))
        bucket = np.ceil(np.log(ratio) / longest * np.float32(middle - 1)) + middle
        is_near = np.abs(distance) <= middle
        distance = np.where(is_near, distance, np.sign(distance) * bucket).astype(int)
    return np.clip(distance + config.span, 0, 2 * config.span - 1)


def by_pair(scores: jax.Array) -> jax.Array:
    """Scores of each position and distance [..., T, D] -> of each pair of positions [..., T, T].

    Entry [i, j] is that of position i and distance i - j, which is at index T - 1 - i + j.
    """
    i = np.arange(scores.shape[-2])[:, None]
    index = scores.shape[-2] - 1 - i + i.T
    return jnp.take_along_axis(scores, index.reshape(*[1] * (scores.ndim - 2), *index.shape), -1)
