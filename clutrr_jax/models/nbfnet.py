"""Neural Bellman-Ford network: states of all people relative to the first query person.

Shapes: N nodes, E messages, B stories, D = width, T message types.
"""

from typing import Any

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models.common import Messages, messages
from clutrr_jax.models.gcn import count
from clutrr_jax.models.setting import Setting

# The authors' settings and learning rate, except that they have 6 layers, too few for a chain of 7
# facts.
SETTINGS = {
    "width": Setting(32, "width of the states", at_least=1),
    "layers": Setting(10, "iterations; a chain of n facts needs n", at_least=1),
}
TRAIN = {"learning_rate": 5e-3, "steps": 2000, "patience": 500}
STATISTICS, SCALERS = 4, 3  # of the messages of a node
SMALLEST_VARIANCE = 1e-6
SMALLEST_SCALE = 1e-2  # whose reciprocal is a scaler


class Iteration(nnx.Module):
    """Layer of the network: one Bellman-Ford iteration with parameters of its own."""

    def __init__(self, width: int, types: int, *, rngs: nnx.Rngs):
        self.relation = nnx.Param(jax.random.normal(rngs.params(), (types, width)))
        self.update = nnx.Linear((1 + STATISTICS * SCALERS) * width, width, rngs=rngs)
        self.norm = nnx.LayerNorm(width, epsilon=1e-5, use_fast_variance=False, rngs=rngs)

    def __call__(
        self, x: jax.Array, boundary: jax.Array, edges: Messages, scalers: jax.Array
    ) -> jax.Array:
        """New states [N, D] from states, those before the first iteration, which are a further
        message of each node, the other messages, and factors of the statistics [N, SCALERS]."""
        sent = x[edges.senders] * self.relation[...][edges.types]
        sent = jnp.concatenate([sent, boundary])
        receivers = jnp.concatenate([edges.receivers, jnp.arange(len(x))])
        found = statistics(sent, receivers, len(x))
        scaled = jnp.einsum("nsd,nc->nscd", found, scalers).reshape(len(x), -1)
        new = self.norm(self.update(jnp.concatenate([x, scaled], axis=-1)))
        return x + nnx.relu(new)


class NBFNet(nnx.Module):
    """Neural Bellman-Ford network (Zhu et al. 2021, arXiv 2106.06935), as the authors' code has it
    for inductive knowledge graphs: products as messages (DistMult), principal neighborhood
    aggregation, layer normalization and residual connections.

    The first query person starts with a learned vector, all other people with zeros. In every
    iteration a fact, and its inverse, multiplies the state of its sender by a vector of its type.
    The relation is read from the final state of the second query person, which depends on the
    first only if a chain of at most `layers` facts connects them.

    The authors predict people, and their start vector and the vectors of the types are functions of
    the relation of the query. Here this relation is the answer, so each layer has one vector for
    each type, and all stories have the same start vector. Khalid and Schockaert (2025, arXiv
    2407.17396) compare the network on relations too. The authors' code divides the degrees by
    their mean over a batch, which is one graph. Here a story is one, so it does not matter which
    stories share a batch.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        width, self.edge_types = config.width, sizes.edge_types
        self.start = nnx.Param(jax.random.normal(rngs.params(), (width,)))
        self.layers: Any = nnx.List(
            Iteration(width, 2 * sizes.edge_types, rngs=rngs) for _ in range(config.layers)
        )
        self.hidden = nnx.Linear(width, width, rngs=rngs)
        self.out = nnx.Linear(width, sizes.relations, rngs=rngs)

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Relation logits [B, relations]."""
        query, people = batch.globals["query"], len(batch.nodes["story"])
        edges = messages(batch, self.edge_types, "both")
        scalers = degree_scalers(batch, edges.receivers)
        boundary = jnp.zeros((people, len(self.start))).at[query[:, 0]].set(self.start[...])
        x = boundary
        for layer in self.layers:
            x = layer(x, boundary, edges, scalers)
        return self.out(nnx.relu(self.hidden(x[query[:-1, 1]])))


def statistics(sent: jax.Array, receivers: jax.Array, nodes: int) -> jax.Array:
    """Mean, maximum, minimum and standard deviation of the messages to each node, [E, D] ->
    [N, STATISTICS, D]. Every node has a message."""
    number = count(receivers, nodes)[:, None]
    mean = jraph.segment_sum(sent, receivers, nodes) / number
    variance = jraph.segment_sum((sent - mean[receivers]) ** 2, receivers, nodes) / number
    deviation = jnp.sqrt(jnp.maximum(variance, SMALLEST_VARIANCE))
    most = jraph.segment_max(sent, receivers, nodes)
    least = jraph.segment_min(sent, receivers, nodes)
    return jnp.stack([mean, most, least, deviation], axis=1)


def degree_scalers(batch: jraph.GraphsTuple, receivers: jax.Array) -> jax.Array:
    """Factors 1, s and 1 / s of each node, [N, SCALERS], where s is log(1 + messages received)
    divided by its mean over the people of the story (Corso et al. 2020, arXiv 2004.05718)."""
    story = batch.nodes["story"]
    degree = jnp.log1p(count(receivers, len(story)))
    mean = jraph.segment_sum(degree, story, len(batch.n_node)) / jnp.maximum(batch.n_node, 1)
    # Without facts all degrees are 0.
    scale = degree / jnp.where(mean > 0, mean, 1)[story]
    return jnp.stack([jnp.ones_like(scale), scale, 1 / jnp.maximum(scale, SMALLEST_SCALE)], axis=1)
