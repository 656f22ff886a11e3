"""Graph attention over the facts of a story.

Shapes: N nodes, E edges, B stories, F facts of a story, H = node = message dimension, K heads,
T edge types. The last edge type is that of the edge from every node to itself.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.models.common import (
    DIRECTIONS,
    READOUT,
    GraphNetwork,
    Messages,
    check_heads,
    dropout,
    pool_people,
)
from clutrr_jax.models.setting import Setting

SLOPE = 0.2  # negative slope of the leaky ReLU (Velickovic et al. 2018, section 2.1)

# Sizes: Sinha et al. 2019, appendix 2.2. Heads, steps per round, dropout and direction are not in
# the paper; the authors' code has 3 heads, two steps per round and dropout 0.6.
SETTINGS = {
    "node": Setting(100, "width of nodes and messages", at_least=1),
    "edge": Setting(20, "width of the embeddings of relations", at_least=1),
    "rounds": Setting(3, "rounds of messages, with shared weights", at_least=1),
    "steps": Setting(2, "layers of each round", at_least=1),
    "heads": Setting(10, "attention heads, a divisor of node", at_least=1),
    "readout": READOUT,
    "dropout": dropout(0.5),
    "directions": Setting("forward", "of messages, from X to Y of a fact", choices=DIRECTIONS),
    "entities": Setting(True, "False: all nodes start alike, so that people have no identity"),
}


def softmax_with_self(
    score: jax.Array, own: jax.Array, receivers: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Softmax over the incoming edges of each node and the edge from the node to itself.

    Logits of the edges [E, K] and of those from a node to itself [N, K], node that an edge leads to
    [E] -> weights [E, K] and [N, K].
    """
    nodes = len(own)
    largest = jnp.maximum(own, jraph.segment_max(score, receivers, nodes))
    largest = jax.lax.stop_gradient(largest)
    score, own = jnp.exp(score - largest[receivers]), jnp.exp(own - largest)
    total = own + jraph.segment_sum(score, receivers, nodes)
    return score / total[receivers], own / total


class AttentionStep(nnx.Module):
    """Attention layer: every node attends over its incoming edges and the edge from itself.

    The score a . [W x_i, W x_j, e] is a sum of three dot products, so that no array of E edges
    times the concatenated width is needed.
    """

    def __init__(self, dim: int, edge_dim: int, heads: int, *, rngs: nnx.Rngs):
        self.node = nnx.Linear(dim, dim, use_bias=False, rngs=rngs)
        self.edge = nnx.Linear(edge_dim, dim, use_bias=False, rngs=rngs)
        glorot = nnx.initializers.glorot_uniform()
        self.attend = nnx.Param(glorot(rngs.params(), (dim // heads, 3 * heads)))
        self.bias = nnx.Param(jnp.zeros(dim))

    def __call__(
        self, x: jax.Array, table: jax.Array, edges: Messages
    ) -> tuple[jax.Array, jax.Array]:
        """New node states [N, H], and the attention weight of each edge [E, K], from node states
        [N, H], embeddings of the edge types and the edges without those from a node to itself."""
        senders, receivers, types = edges
        features = self.attend.shape[0]

        def by_head(x: jax.Array) -> jax.Array:
            return x.reshape(len(x), -1, features)

        value, relation = by_head(self.node(x)), by_head(self.edge(table))  # [N, K, H/K], [T, ...]
        to_score = jnp.split(self.attend[...], 3, axis=1)  # of receiver, sender and edge type
        incoming, outgoing, edge_score = (
            jnp.einsum("nkd,dk->nk", part, vectors)
            for part, vectors in zip((value, value, relation), to_score, strict=True)
        )
        score = outgoing[senders] + incoming[receivers] + edge_score[types]
        score = jax.nn.leaky_relu(score, SLOPE)  # [E, K]
        own = jax.nn.leaky_relu(outgoing + incoming + edge_score[-1], SLOPE)  # [N, K]
        weight, own_weight = softmax_with_self(score, own, receivers)
        messages = (value[senders] + relation[types]) * weight[..., None]
        received = jraph.segment_sum(messages, receivers, len(x))
        received += (value + relation[-1]) * own_weight[..., None]
        return jax.nn.elu(received.reshape(x.shape) + self.bias[...]), weight


class GAT(GraphNetwork):
    """Graph attention network (Velickovic et al. 2018) whose attention also sees the relation of
    an edge (Sinha et al. 2019, appendix 1.1)."""

    def layers(self, config, rngs: nnx.Rngs) -> Iterator[AttentionStep]:
        check_heads(config, "node")
        # A row per relation, per reversed relation, and one for the edge from a node to itself.
        normal = nnx.initializers.normal(1.0)
        self.edge_table = nnx.Param(normal(rngs.params(), (2 * self.edge_types + 1, config.edge)))
        for _ in range(config.steps):
            yield AttentionStep(config.node, config.edge, config.heads, rngs=rngs)

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Relation logits [B, relations]."""
        return self.readout(*pool_people(self._propagate(batch)[0], batch))

    def attention(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Attention weight of each fact, mean over layers, heads and directions, [B, F]."""
        weight = self._propagate(batch)[1].reshape(-1, len(batch.senders)).mean(axis=0)  # [E]
        return weight[batch.globals["facts"][:-1]]

    def _propagate(self, batch: jraph.GraphsTuple) -> tuple[jax.Array, jax.Array]:
        """Final node states [N, H] and mean attention weight of each message."""
        x, edges = self.begin(batch)
        attention = []

        def layer(step: AttentionStep, x: jax.Array) -> jax.Array:
            x, weight = step(x, self.edge_table[...], edges)  # [N, H], [E, K]
            attention.append(weight.mean(axis=1))
            return x

        return self.propagate(x, layer), jnp.stack(attention).mean(axis=0)
