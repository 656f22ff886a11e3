"""Graph attention over the facts of a story.

Shapes: N nodes, E edges (self edges included), B stories, H = node = message dimension, K heads.
"""

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.data.stories import Sizes
from clutrr_jax.models.common import Dropout, EntityEmbedding, Readout, pool_people
from generator.errors import InputError

# Sizes: Sinha et al. 2019, appendix 2.2. Heads, the two steps of a round, dropout and the direction
# are not in the paper: the peers' code has 3 heads, two steps per round, dropout 0.6.
CONFIG = {
    "node": 100,  # node and message dimension
    "edge": 20,  # dimension of the relation's embedding
    "rounds": 3,  # every round has the same weights
    "steps": 2,  # attention layers in a round
    "heads": 10,
    "readout": 200,
    "dropout": 0.5,
    "directions": "forward",  # messages run from X to Y of a fact: forward, backward or both
    "entities": True,  # False: every node starts from zero, and nobody has an identity
}


class AttentionStep(nnx.Module):
    """Every node attends over the edges that end in it, the one from itself included.

    The score a . [W x_i, W x_j, e] is a sum of three dot products, so no array of edges times the
    concatenated width is built.
    """

    def __init__(self, dim: int, edge_dim: int, heads: int, *, rngs: nnx.Rngs):
        self.heads = heads
        self.node = nnx.Linear(dim, dim, use_bias=False, rngs=rngs)
        self.edge = nnx.Linear(edge_dim, dim, use_bias=False, rngs=rngs)
        glorot = nnx.initializers.glorot_uniform()
        self.attend = nnx.Param(glorot(rngs.params(), (dim // heads, 3 * heads)))
        self.bias = nnx.Param(jnp.zeros(dim))

    def __call__(self, x, edge_table, senders, receivers, edge_type):
        """x [N, H], edge_table [types, edge], senders, receivers, edge_type [E] -> [N, H], and the
        weight of each edge [E, K], which sum to 1 over those that end in a node."""
        n = x.shape[0]
        node = self.node(x).reshape(n, self.heads, -1)  # [N, K, H / K]
        table = self.edge(edge_table).reshape(len(edge_table), self.heads, -1)
        a_to, a_from, a_edge = jnp.split(self.attend[...], 3, axis=1)  # [H / K, K]

        def dot(values: jax.Array, a: jax.Array) -> jax.Array:
            return jnp.einsum("nkd,dk->nk", values, a)

        score = (
            dot(node, a_to)[receivers] + dot(node, a_from)[senders] + dot(table, a_edge)[edge_type]
        )
        weight = jraph.segment_softmax(nnx.leaky_relu(score, 0.2), receivers, n)  # [E, K]
        message = (node[senders] + table[edge_type]) * weight[..., None]
        return jraph.segment_sum(message, receivers, n).reshape(n, -1) + self.bias[...], weight


class GAT(nnx.Module):
    """Graph attention network (Velickovic et al. 2018) whose attention also sees the relation of
    an edge, as in Sinha et al. 2019, appendix 1.1."""

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        if config.node % config.heads:
            raise InputError(f"gat.node {config.node}: expected a multiple of heads {config.heads}")
        if config.directions not in ("forward", "backward", "both"):
            raise InputError(
                f'gat.directions "{config.directions}": expected forward, backward or both'
            )
        self.directions = config.directions
        self.rounds = config.rounds
        self.edge_types = sizes.edge_types
        self.dim = config.node
        self.entity = (
            EntityEmbedding(sizes.entities, config.node, rngs=rngs) if config.entities else None
        )
        # One row for each relation, for its reverse, and for the edge from a node to itself.
        normal = nnx.initializers.normal(1.0)
        self.edge_table = nnx.Param(normal(rngs.params(), (2 * sizes.edge_types + 1, config.edge)))
        self.steps = nnx.List(
            AttentionStep(config.node, config.edge, config.heads, rngs=rngs)
            for _ in range(config.steps)
        )
        self.dropout = Dropout(config.dropout, rngs=rngs)
        self.readout = Readout(
            3 * config.node, config.readout, sizes.relations, config.dropout, rngs=rngs
        )

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Relation logits [B, relations]."""
        return self.readout(*pool_people(self._people(batch)[0], batch))

    def attention(self, batch: jraph.GraphsTuple) -> jax.Array:
        """The weight of each fact of a story where it ends, mean over steps, heads and directions,
        [B, F]."""
        of_facts = self._people(batch)[1][len(batch.nodes["entity"]) :]
        of_facts = of_facts.reshape(-1, len(batch.senders)).mean(axis=0)  # [E]
        return of_facts[batch.globals["facts"][:-1]]

    def _people(self, batch: jraph.GraphsTuple) -> tuple[jax.Array, jax.Array]:
        """The last state of each node [N, H], and the mean weight of all that a message crosses."""
        entity = batch.nodes["entity"]
        edges = self._edges(batch)
        x = jnp.zeros((len(entity), self.dim)) if self.entity is None else self.entity(entity)

        layers = self.rounds * list(self.steps)
        weights = []
        for layer, drawn in zip(layers, self.dropout.draw(len(layers), *x.shape), strict=True):
            x, weight = layer(self.dropout(x, drawn), self.edge_table[...], *edges)
            x = nnx.elu(x)  # [N, H]
            weights.append(weight.mean(axis=1))
        return x, jnp.stack(weights).mean(axis=0)

    def _edges(self, batch: jraph.GraphsTuple) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Senders, receivers and types of all that a message crosses: facts, their reverses, and
        the edge from every node to itself."""
        nodes = jnp.arange(len(batch.nodes["entity"]))
        relation = batch.edges["relation"]
        parts = [(nodes, nodes, jnp.full_like(nodes, 2 * self.edge_types))]
        if self.directions in ("forward", "both"):
            parts.append((batch.senders, batch.receivers, relation))
        if self.directions in ("backward", "both"):
            parts.append((batch.receivers, batch.senders, relation + self.edge_types))
        senders, receivers, types = (jnp.concatenate(column) for column in zip(*parts, strict=True))
        return senders, receivers, types
