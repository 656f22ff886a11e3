"""Edge Transformer: a state for every pair of people, updated by triangular attention.

Shapes: B stories, P people, D state dimension, K heads.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.data.stories import Sizes

# The code of Bergen et al. 2021 for CLUTRR.
CONFIG = {
    "dim": 200,
    "heads": 4,
    "layers": 8,  # the same weights in each
    "widening": 4,  # of the feed-forward layer
    "dropout": 0.2,
}


class Layer(nnx.Module):
    """Triangular attention: the pair (x, y) attends over the people z; the states of (x, z) and
    (z, y) score z, and the product of their values is what z gives (Bergen et al. 2021).
    A feed-forward layer follows. What is added to is, as in their code, the normalised state."""

    def __init__(self, config, *, rngs: nnx.Rngs):
        dim, wide = config.dim, config.widening * config.dim

        def linear(inputs: int, outputs: int, bias: bool) -> nnx.Linear:
            glorot = nnx.initializers.glorot_uniform()
            return nnx.Linear(inputs, outputs, use_bias=bias, kernel_init=glorot, rngs=rngs)

        self.heads = config.heads
        self.norm = nnx.LayerNorm(dim, rngs=rngs)
        self.parts = nnx.List(linear(dim, dim, bias=False) for _ in range(4))
        self.out = linear(dim, dim, bias=False)
        self.wide_norm = nnx.LayerNorm(dim, rngs=rngs)
        self.wide = linear(dim, wide, bias=True)
        self.narrow = linear(wide, dim, bias=True)

    def __call__(self, states: jax.Array, real: jax.Array, kept: "Kept") -> jax.Array:
        """[B, P, P, D], [B, P] True for a person -> [B, P, P, D]."""
        states = self.norm(states)
        states = states + self.out(self.attend(states, real)) * kept.attended
        states = self.wide_norm(states)
        wide = nnx.relu(self.wide(states)) * kept.wide
        return states + self.narrow(wide) * kept.narrow

    def attend(self, states: jax.Array, real: jax.Array) -> jax.Array:
        """The values of all z, weighted."""
        shape = (*states.shape[:3], self.heads, -1)
        left_key, right_key, left, right = (
            part(states).reshape(shape) for part in self.parts
        )  # [B, P, P, K, D / K]
        score = jnp.einsum("bxzkd,bzykd->bxyzk", left_key, right_key) * left.shape[-1] ** -0.5
        weight = nnx.softmax(jnp.where(real[:, None, None, :, None], score, -1e9), axis=3)
        # Summed person by person: no array of all triangles times D is built.
        total = jnp.zeros(shape[:4] + left.shape[4:])
        for z in range(states.shape[1]):
            total += weight[:, :, :, z, :, None] * left[:, :, z, None] * right[:, z, None]
        return total.reshape(states.shape)


class Kept(NamedTuple):
    """Dropout of a batch: what is kept, divided by its share, for each story and feature; the same
    for all layers, as their weights are (Gal and Ghahramani 2016), and for all pairs of a story.
    Bergen et al. draw it anew for each pair and layer, and for the attention's weights too."""

    attended: jax.Array  # [B, 1, 1, D]
    wide: jax.Array  # [B, 1, 1, widening * D]
    narrow: jax.Array  # [B, 1, 1, D]


class EdgeTransformer(nnx.Module):
    """Edge Transformer (Bergen et al. 2021, arXiv 2112.00578). A pair starts from its relation or,
    where none is stated, from a state of its own; people have no identity. The answer is read off
    the asked pair's last state."""

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.layers = config.layers
        normal = nnx.initializers.normal(config.dim**-0.5)
        # One row for each edge type, and the last for pairs of which nothing is stated.
        self.table = nnx.Param(normal(rngs.params(), (sizes.edge_types + 1, config.dim)))
        self.layer = Layer(config, rngs=rngs)
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)
        self.widths = (config.dim, config.widening * config.dim, config.dim)
        self.hidden = nnx.Linear(config.dim, config.dim, rngs=rngs)
        self.out = nnx.Linear(config.dim, sizes.relations, rngs=rngs)

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Relation logits [B, relations]."""
        people = batch.globals["people"][:-1]  # [B, P]
        stories, size = people.shape
        nodes = len(batch.nodes["entity"])
        real = jnp.arange(size) < batch.n_node[:-1, None]
        # A node's place among those of all stories; the padding's is behind them all.
        places = jnp.where(real, jnp.arange(people.size).reshape(people.shape), people.size)
        place = jnp.full(nodes, people.size).at[people].set(places)

        def pair(first: jax.Array, second: jax.Array) -> jax.Array:
            return place[first] * size + place[second] % size

        stated = pair(batch.senders, batch.receivers)  # [E]
        states = jnp.zeros((people.size * size, self.table.shape[1]))
        states = states.at[stated].add(self.table[...][batch.edges["relation"]], mode="drop")
        is_stated = jnp.zeros(len(states), bool).at[stated].set(True, mode="drop")
        states = jnp.where(is_stated[:, None], states, self.table[...][-1])
        states = states.reshape(stories, size, size, -1)
        kept = Kept(*(self.dropout(jnp.ones((stories, 1, 1, width))) for width in self.widths))
        states, _ = jax.lax.scan(
            lambda states, _: (self.layer(states, real, kept), None),
            states,
            length=self.layers,
        )
        asked = pair(*batch.globals["query"][:-1].T)
        answer = states.reshape(-1, states.shape[-1])[asked]
        return self.out(nnx.relu(self.hidden(answer)))
