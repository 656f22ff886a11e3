"""Graph attention over the facts of a story.

Shapes: N nodes, E edges, B stories, H = node = message dimension, K heads, T types of edge.
"""

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models.common import (
    DIRECTIONS,
    Drawn,
    Dropout,
    EntityEmbedding,
    Readout,
    check_heads,
    messages,
    pool_people,
)
from clutrr_jax.ops.graph_attention import attend, head_columns
from generator.errors import one_of

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

    def weights(self, edge_table: jax.Array) -> tuple[jax.Array, ...]:
        """[T, edge] -> what `attend` takes besides nodes and edges: the same in every round."""
        node, table = self.node.kernel[...], self.edge(edge_table)
        to, start, edge = jnp.split(self.attend[...], 3, axis=1)
        ends = head_columns(jnp.concatenate([start, to], axis=1), self.heads)  # [H, 2 K]
        kernel = jnp.concatenate([node, node @ ends], axis=1)
        return kernel, table, table @ head_columns(edge, self.heads), self.bias[...]


class GAT(nnx.Module):
    """Graph attention network (Velickovic et al. 2018) whose attention also sees the relation of
    an edge, as in Sinha et al. 2019, appendix 1.1."""

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        check_heads(config, "node")
        self.directions = one_of(config, "directions", *DIRECTIONS)
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
        of_facts = self._people(batch)[1].reshape(-1, len(batch.senders)).mean(axis=0)  # [E]
        return of_facts[batch.globals["facts"][:-1]]

    def _people(self, batch: jraph.GraphsTuple) -> tuple[jax.Array, jax.Array]:
        """The last state of each node [N, H], and the mean weight of all that a message crosses."""
        entity = batch.nodes["entity"]
        edges = messages(batch, self.edge_types, self.directions)
        x = jnp.zeros((len(entity), self.dim)) if self.entity is None else self.entity(entity)

        weights = [step.weights(self.edge_table[...]) for step in self.steps]

        def one_round(x: jax.Array, drawn: list[Drawn | None]) -> tuple[jax.Array, jax.Array]:
            shares = []
            for own, kept in zip(weights, drawn, strict=True):
                x, share = attend(x, kept, *own, edges)  # [N, H], [E, K]
                shares.append(share.mean(axis=1))
            return x, jnp.stack(shares)

        count = len(weights)
        drawn = self.dropout.draw(self.rounds * count, *x.shape)
        if drawn[0] is None:  # all rounds are alike, and compiled as one
            x, shares = jax.lax.scan(
                lambda x, _: one_round(x, drawn[:count]), x, length=self.rounds
            )
        else:
            rounds = []
            for first in range(0, len(drawn), count):
                x, share = one_round(x, drawn[first : first + count])
                rounds.append(share)
            shares = jnp.stack(rounds)  # [rounds, steps, E]
        return x, shares.mean(axis=(0, 1))
