"""Graph convolutions over the facts of a story: GCN and R-GCN.

Shapes: N nodes, E messages, B stories, H = node dimension, K bases, T message types.
"""

from typing import Any

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models.common import (
    DIRECTIONS,
    EntityEmbedding,
    Messages,
    Readout,
    messages,
    pool_people,
)
from generator.errors import one_of

# Sizes and dropout as for the GAT; two layers in a round as in Minervini et al. 2020.
CONFIG = {
    "node": 100,
    "edge": 20,  # dimension of a relation's embedding
    "rounds": 3,  # every round has the same weights
    "steps": 2,  # layers in a round
    "readout": 200,
    "dropout": 0.5,
    "directions": "forward",  # messages run from X to Y of a fact: forward, backward or both
    "entities": True,  # False: all nodes start alike, and nobody has an identity
}
RELATIONAL_CONFIG = {name: value for name, value in CONFIG.items() if name != "edge"} | {
    "bases": 10,  # the matrices of which every relation's is a sum
    "directions": "both",  # Schlichtkrull et al. 2018: a relation and its reverse are two
}


def count(groups: jax.Array, total: int) -> jax.Array:
    """How many messages each of `total` groups has."""
    return jraph.segment_sum(jnp.ones(len(groups)), groups, total)


class GCNLayer(nnx.Module):
    """Convolution (Kipf and Welling 2017) whose messages carry the embedding e of their relation
    (Minervini et al. 2020): the sum of W [x_j, e] / sqrt(d_i d_j) over the neighbours j of i and i
    itself, d the number of messages that a node receives or sends, and the one to itself."""

    def __init__(self, config, types: int, *, rngs: nnx.Rngs):
        self.node = nnx.Linear(config.node, config.node, rngs=rngs)
        self.edge = nnx.Linear(config.edge, config.node, use_bias=False, rngs=rngs)
        self.table = nnx.Param(jax.random.normal(rngs.params(), (types, config.edge)))

    def weights(self, m: Messages, nodes: int) -> tuple[jax.Array, jax.Array]:
        """Of each message [E, 1], and of a node's own to itself [N, 1]."""
        sent = jax.lax.rsqrt(1 + count(m.senders, nodes))[:, None]
        received = jax.lax.rsqrt(1 + count(m.receivers, nodes))[:, None]
        return sent[m.senders] * received[m.receivers], sent * received

    def __call__(self, x: jax.Array, m: Messages, weights: tuple[jax.Array, jax.Array]):
        """[N, H] -> [N, H]."""
        weight, own = weights
        bias: Any = self.node.bias
        node = x @ self.node.kernel[...]  # [N, H]
        message = (node[m.senders] + self.edge(self.table[...])[m.types]) * weight  # [E, H]
        return jraph.segment_sum(message, m.receivers, len(x)) + own * node + bias[...]


class RGCNLayer(nnx.Module):
    """Relational convolution (Schlichtkrull et al. 2018): W_0 x_i + the mean over the neighbours
    of each relation r of W_r x_j, summed over r, where W_r is a sum of K shared matrices."""

    def __init__(self, config, types: int, *, rngs: nnx.Rngs):
        self.own = nnx.Linear(config.node, config.node, rngs=rngs)
        self.bases = nnx.Linear(config.node, config.bases * config.node, use_bias=False, rngs=rngs)
        shares = jax.random.normal(rngs.params(), (types, config.bases)) / config.bases**0.5
        self.shares = nnx.Param(shares)

    def weights(self, m: Messages, nodes: int) -> jax.Array:
        """Of each message [E]: 1 / the number of messages of its type to its receiver."""
        types = len(self.shares)
        group = m.receivers * types + m.types
        return 1 / count(group, nodes * types)[group]

    def __call__(self, x: jax.Array, m: Messages, weights: jax.Array) -> jax.Array:
        """[N, H] -> [N, H]."""
        share = self.shares[...][m.types] * weights[:, None]  # [E, K]
        basis = self.bases(x).reshape(len(x), share.shape[1], -1)  # [N, K, H]
        message = jnp.einsum("ek,ekh->eh", share, basis[m.senders])
        return jraph.segment_sum(message, m.receivers, len(x)) + self.own(x)


class GCN(nnx.Module):
    """Rounds of convolutions; the story is the mean of its people."""

    layer: type[GCNLayer] | type[RGCNLayer] = GCNLayer

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.directions = one_of(config, "directions", *DIRECTIONS)
        self.rounds = config.rounds
        self.edge_types = sizes.edge_types
        self.entity = (
            EntityEmbedding(sizes.entities, config.node, rngs=rngs) if config.entities else None
        )
        self.start: Any = None if config.entities else nnx.Param(jnp.ones(config.node))
        self.steps: Any = nnx.List(
            self.layer(config, 2 * sizes.edge_types, rngs=rngs) for _ in range(config.steps)
        )
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)
        self.readout = Readout(
            3 * config.node, config.readout, sizes.relations, config.dropout, rngs=rngs
        )

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Relation logits [B, relations]."""
        entity = batch.nodes["entity"]
        m = messages(batch, self.edge_types, self.directions)
        weights = self.steps[0].weights(m, len(entity))
        if self.entity is None:
            x = jnp.tile(self.start[...], (len(entity), 1))
        else:
            x = self.entity(entity)
        for _ in range(self.rounds):
            for step in self.steps:
                x = nnx.elu(step(self.dropout(x), m, weights))  # [N, H]

        return self.readout(*pool_people(x, batch))


class RGCN(GCN):
    """The same rounds of relational convolutions."""

    layer = RGCNLayer
