"""Graph convolutions over the facts of a story: GCN and R-GCN.

Shapes: N nodes, E messages, B stories, H = node dimension, K bases, T message types.
"""

from typing import Any

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.models import gat
from clutrr_jax.models.common import GraphNetwork, Messages, pool_people

# As for the GAT; two layers in a round as in Minervini et al. 2020.
SETTINGS = {name: setting for name, setting in gat.SETTINGS.items() if name != "heads"}
# Both directions as in Schlichtkrull et al. 2018, with own weights per direction.
RELATIONAL_SETTINGS = {name: setting for name, setting in SETTINGS.items() if name != "edge"} | {
    "directions": SETTINGS["directions"]._replace(default="both")
}
BASES = 10  # basis matrices; the matrix of each relation is a linear combination of them


def count(groups: jax.Array, total: int) -> jax.Array:
    """Number of messages in each of `total` groups, float32 [total]."""
    return jraph.segment_sum(jnp.ones(len(groups)), groups, total)


class GCNLayer(nnx.Module):
    """Graph convolution (Kipf and Welling 2017) whose messages contain the relation embedding
    (Minervini et al. 2020).

    x_i' = sum_j W [x_j, e_ij] / sqrt(d_i d_j) + b over the neighbors j of i and i itself, where d_i
    counts the messages that i receives and d_j those that j sends, each including the message of a
    node to itself, which has e = 0.
    """

    def __init__(self, config, types: int, *, rngs: nnx.Rngs):
        self.node = nnx.Linear(config.node, config.node, rngs=rngs)
        self.edge = nnx.Linear(config.edge, config.node, use_bias=False, rngs=rngs)
        self.table = nnx.Param(jax.random.normal(rngs.params(), (types, config.edge)))

    def weights(self, m: Messages, nodes: int) -> tuple[jax.Array, jax.Array]:
        """Weight of each message [E, 1] and of the message of each node to itself [N, 1]."""
        sent = jax.lax.rsqrt(1 + count(m.senders, nodes))[:, None]
        received = jax.lax.rsqrt(1 + count(m.receivers, nodes))[:, None]
        return sent[m.senders] * received[m.receivers], sent * received

    def __call__(self, x: jax.Array, m: Messages, weights: tuple[jax.Array, jax.Array]):
        """Node states [N, H] -> [N, H]."""
        weight, own = weights
        bias: Any = self.node.bias
        node = x @ self.node.kernel[...]  # [N, H]
        message = (node[m.senders] + self.edge(self.table[...])[m.types]) * weight  # [E, H]
        return jraph.segment_sum(message, m.receivers, len(x)) + own * node + bias[...]


class RGCNLayer(nnx.Module):
    """Relational graph convolution with basis decomposition (Schlichtkrull et al. 2018, arXiv
    1703.06103, equations 2 and 3).

    x_i' = W_0 x_i + b + sum_r mean_j W_r x_j over the neighbors j of i by relation r, where W_r is
    a linear combination of K shared matrices.
    """

    def __init__(self, config, types: int, *, rngs: nnx.Rngs):
        self.own = nnx.Linear(config.node, config.node, rngs=rngs)
        self.bases = nnx.Linear(config.node, BASES * config.node, use_bias=False, rngs=rngs)
        shape = (types, BASES)
        self.coefficients = nnx.Param(jax.random.normal(rngs.params(), shape) / BASES**0.5)

    def weights(self, m: Messages, nodes: int) -> jax.Array:
        """Weight of each message [E]: 1 / number of messages of the same type and receiver."""
        types = len(self.coefficients)
        group = m.receivers * types + m.types
        return 1 / count(group, nodes * types)[group]

    def __call__(self, x: jax.Array, m: Messages, weights: jax.Array) -> jax.Array:
        """Node states [N, H] -> [N, H]."""
        coefficients = self.coefficients[...][m.types] * weights[:, None]  # [E, K]
        bases = self.bases(x).reshape(len(x), coefficients.shape[1], -1)  # [N, K, H]
        message = jnp.einsum("ek,ekh->eh", coefficients, bases[m.senders])
        return jraph.segment_sum(message, m.receivers, len(x)) + self.own(x)


class GCN(GraphNetwork):
    """Rounds of graph convolutions. The story vector is the mean of the node states."""

    layer: type[GCNLayer] | type[RGCNLayer] = GCNLayer

    def layers(self, config, rngs: nnx.Rngs) -> list[Any]:
        self.node: Any = None if config.entities else nnx.Param(jnp.ones(config.node))
        return [self.layer(config, 2 * self.edge_types, rngs=rngs) for _ in range(config.steps)]

    @property
    def start(self) -> jax.Array:
        return self.node[...]

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Relation logits [B, relations]."""
        x, edges = self.begin(batch)
        weights = self.steps[0].weights(edges, len(x))
        x = self.propagate(x, lambda step, x: nnx.elu(step(x, edges, weights)))
        return self.readout(*pool_people(x, batch))


class RGCN(GCN):
    """Rounds of relational graph convolutions."""

    layer = RGCNLayer
