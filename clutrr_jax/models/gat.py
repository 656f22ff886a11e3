"""Graph attention over the facts of a story.

Shapes: N nodes, E edges, B stories, F facts of a story, H = node = message dimension, K heads,
T edge types. The last edge type is that of the edge from every node to itself.
"""

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
    check_heads,
    messages,
    pool_people,
)
from generator.errors import one_of

SLOPE = 0.2  # negative slope of the leaky ReLU (Velickovic et al. 2018, section 2.1)

# Sizes: Sinha et al. 2019, appendix 2.2. Heads, steps per round, dropout and direction are not in
# the paper; the authors' code has 3 heads, two steps per round and dropout 0.6.
CONFIG = {
    "node": 100,  # node and message dimension
    "edge": 20,  # dimension of the relation embedding
    "rounds": 3,  # with shared weights
    "steps": 2,  # attention layers per round
    "heads": 10,
    "readout": 200,
    "dropout": 0.5,
    "directions": "forward",  # messages run from X to Y of a fact: forward, backward or both
    "entities": True,  # False: every node starts from zero, so that people have no identity
}


def graph_attention(
    x: jax.Array,
    kernel: jax.Array,
    table: jax.Array,
    edge_score: jax.Array,
    bias: jax.Array,
    edges: Messages,
) -> tuple[jax.Array, jax.Array]:
    """Every node attends over its incoming edges and the edge from itself; then ELU.

    Args:
      x: [N, H] node states.
      kernel: [H, H + 2 K] projects a node to its value (H columns), to its contribution to the
        scores of its outgoing edges (K) and of its incoming edges (K).
      table: [T, H] contribution of each edge type to a message.
      edge_score: [T, K] contribution of each edge type to a score.
      bias: [H].
      edges: the edges without those from a node to itself.

    Returns:
      New node states [N, H], and the attention weight of each edge [E, K].
    """
    nodes, dim, heads = len(x), table.shape[1], edge_score.shape[1]
    senders, receivers, types = edges
    value, outgoing, incoming = jnp.split(x @ kernel, [dim, dim + heads], axis=1)
    score = outgoing[senders] + incoming[receivers] + edge_score[types]
    score = jax.nn.leaky_relu(score, SLOPE)  # [E, K]
    own = jax.nn.leaky_relu(outgoing + incoming + edge_score[-1], SLOPE)  # [N, K]
    # Softmax over the incoming edges of a node and the edge from itself.
    largest = jnp.maximum(own, jraph.segment_max(score, receivers, nodes))
    largest = jax.lax.stop_gradient(largest)
    score, own = jnp.exp(score - largest[receivers]), jnp.exp(own - largest)
    total = own + jraph.segment_sum(score, receivers, nodes)
    weight = score / total[receivers]

    def weighted(messages: jax.Array, weights: jax.Array) -> jax.Array:
        by_head = messages.reshape(-1, heads, dim // heads) * weights[..., None]
        return by_head.reshape(-1, dim)

    received = jraph.segment_sum(weighted(value[senders] + table[types], weight), receivers, nodes)
    return jax.nn.elu(received + weighted(value + table[-1], own / total) + bias), weight


def head_columns(vectors: jax.Array, heads: int) -> jax.Array:
    """Places one vector per head on the block diagonal: [H / K, n K] -> [H, n K].

    Column i then multiplies only the features of head i modulo K.
    """
    dim, columns = vectors.shape
    own = jnp.arange(columns) % heads == jnp.arange(heads)[:, None]  # [K, n K]
    return jnp.where(own[:, None], vectors, 0).reshape(heads * dim, columns)


class AttentionStep(nnx.Module):
    """Parameters of one attention layer.

    The score a . [W x_i, W x_j, e] is a sum of three dot products, so that no array of E edges
    times the concatenated width is needed.
    """

    def __init__(self, dim: int, edge_dim: int, heads: int, *, rngs: nnx.Rngs):
        self.heads = heads
        self.node = nnx.Linear(dim, dim, use_bias=False, rngs=rngs)
        self.edge = nnx.Linear(edge_dim, dim, use_bias=False, rngs=rngs)
        glorot = nnx.initializers.glorot_uniform()
        self.attend = nnx.Param(glorot(rngs.params(), (dim // heads, 3 * heads)))
        self.bias = nnx.Param(jnp.zeros(dim))

    def weights(self, edge_table: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """Edge embeddings [T, edge] -> kernel, table, edge scores and bias of `graph_attention`."""
        node, table = self.node.kernel[...], self.edge(edge_table)
        incoming, outgoing, edge = jnp.split(self.attend[...], 3, axis=1)
        ends = head_columns(jnp.concatenate([outgoing, incoming], axis=1), self.heads)  # [H, 2 K]
        kernel = jnp.concatenate([node, node @ ends], axis=1)
        return kernel, table, table @ head_columns(edge, self.heads), self.bias[...]


class GAT(nnx.Module):
    """Graph attention network (Velickovic et al. 2018) whose attention also sees the relation of
    an edge (Sinha et al. 2019, appendix 1.1)."""

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        check_heads(config, "node")
        self.directions = one_of(config, "directions", *DIRECTIONS)
        self.rounds = config.rounds
        self.edge_types = sizes.edge_types
        self.dim = config.node
        self.entity = (
            EntityEmbedding(sizes.entities, config.node, rngs=rngs) if config.entities else None
        )
        # A row per relation, per reversed relation, and one for the edge from a node to itself.
        normal = nnx.initializers.normal(1.0)
        self.edge_table = nnx.Param(normal(rngs.params(), (2 * sizes.edge_types + 1, config.edge)))
        self.steps = nnx.List(
            AttentionStep(config.node, config.edge, config.heads, rngs=rngs)
            for _ in range(config.steps)
        )
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)
        self.readout = Readout(3 * config.node, config, sizes, rngs=rngs)

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Relation logits [B, relations]."""
        return self.readout(*pool_people(self._propagate(batch)[0], batch))

    def attention(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Attention weight of each fact, mean over layers, heads and directions, [B, F]."""
        weight = self._propagate(batch)[1].reshape(-1, len(batch.senders)).mean(axis=0)  # [E]
        return weight[batch.globals["facts"][:-1]]

    def _propagate(self, batch: jraph.GraphsTuple) -> tuple[jax.Array, jax.Array]:
        """Final node states [N, H] and mean attention weight of each message."""
        entity = batch.nodes["entity"]
        edges = messages(batch, self.edge_types, self.directions)
        x = jnp.zeros((len(entity), self.dim)) if self.entity is None else self.entity(entity)
        layers = [step.weights(self.edge_table[...]) for step in self.steps]
        attention = []
        for _ in range(self.rounds):
            for layer in layers:
                x, weight = graph_attention(self.dropout(x), *layer, edges)  # [N, H], [E, K]
                attention.append(weight.mean(axis=1))
        return x, jnp.stack(attention).mean(axis=0)
