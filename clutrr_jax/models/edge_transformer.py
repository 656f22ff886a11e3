"""Edge Transformer: a state for every pair of people, updated by triangular attention.

Shapes: B stories, P people of the largest, X and Y people whose pairs are updated, D state
dimension, K heads.
"""

from functools import partial

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models.common import Dropout, check_heads
from clutrr_jax.ops.matmul import product
from generator.errors import InputError

# The authors' code for CLUTRR; its learning rate also rises and falls.
CONFIG = {
    "dim": 200,
    "heads": 4,
    "layers": 8,  # the same weights in each
    "widening": 4,  # of the feed-forward layer
    "dropout": 0.2,
    "matmul_dtype": "bfloat16",  # inputs of the large matrix products in training
    "train": {"learning_rate": 5e-4, "epochs": 20, "grad_clip_norm": 1.0},
}


class EdgeTransformer(nnx.Module):
    """Edge Transformer (Bergen et al. 2021, arXiv 2112.00578). A pair starts from its relation or,
    where none is stated, from a state of its own; people have no identity. The answer is read off
    the asked pair's last state.

    The authors draw dropout anew for each pair and layer, and for the attention's weights too; here
    it is one mask per story and feature for all pairs and layers, as the layers share their weights
    (Gal and Ghahramani 2016, arXiv 1512.05287).
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        check_heads(config, "dim")
        if config.layers < 2:
            raise InputError(f"layers {config.layers}: expected 2 or more")
        self.layers, self.products = config.layers, config.matmul_dtype
        glorot = nnx.initializers.glorot_uniform()
        # One row for each edge type, and the last for pairs of which nothing is stated.
        self.table = nnx.Param(glorot(rngs.params(), (sizes.edge_types + 1, config.dim)))
        gain = config.layers**-0.5  # so that a state survives all layers at first
        self.layer = Layer(config.dim, config.heads, config.widening * config.dim, gain, rngs=rngs)
        self.dropout = Dropout(config.dropout, rngs=rngs)
        self.hidden = nnx.Linear(config.dim, config.dim, rngs=rngs)
        self.out = nnx.Linear(config.dim, sizes.relations, rngs=rngs)

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Relation logits [B, relations]."""
        stories, size = len(batch.n_node) - 1, batch.globals["people"].shape[1]
        owner, place = batch.nodes["story"], batch.nodes["place"]
        kinds = len(self.table[...])
        kind = jnp.full((stories, size, size), kinds - 1)
        # The padding graph is out of range, and so dropped.
        fact = (owner[batch.senders], place[batch.senders], place[batch.receivers])
        kind = kind.at[fact].set(batch.edges["relation"], mode="drop")
        first, second = place[batch.globals["query"][:-1]].T
        return self._attend(jax.nn.one_hot(kind, kinds), batch.n_node[:-1], first, second)

    def reason(
        self, facts: jax.Array, people: jax.Array, first: jax.Array, second: jax.Array
    ) -> jax.Array:
        """As that of the prover, from relation logits; a pair starts from the mean of the states of
        what it may be."""
        other = len(self.table[...]) - facts.shape[-1]  # edge types that are no relation, nothing
        nothing = 1 - facts.sum(axis=-1, keepdims=True)
        which = jnp.concatenate([facts, *[jnp.zeros_like(nothing)] * (other - 1), nothing], axis=-1)
        return self._attend(which, people, first, second)

    def _attend(
        self, which: jax.Array, people: jax.Array, first: jax.Array, second: jax.Array
    ) -> jax.Array:
        """Relation logits, where pairs start as `which` says, [B, P, P, kinds]."""
        stories, size = which.shape[:2]
        real = jnp.arange(size) < people[:, None]  # [B, P]
        dim, wide = self.layer.wide.shape
        kept = [self.dropout(jnp.ones((stories, 1, 1, width))) for width in (dim, wide, dim)]
        dtype = "float32" if self.dropout.deterministic else self.products
        # What the first layer sees of a pair is one of a few rows.
        rows = self.layer.sides(self.table[...], dtype)
        states, left, right = (product(which, row, dtype) for row in rows)
        for _ in range(self.layers - 2):
            states = self.layer(states, left, right, real, kept, dtype)
            states, left, right = self.layer.sides(states, dtype)
        # The last layer is needed at one pair only, and so the one before at a row and a column.
        story = jnp.arange(stories)
        row, row_left = (x[story, first][:, None] for x in (states, left))  # [B, 1, P, ...]
        column, column_right = (x[story, :, second][:, :, None] for x in (states, right))
        of_first = self.layer(row, row_left, right, real, kept, dtype)
        to_second = self.layer(column, left, column_right, real, kept, dtype)  # [B, P, 1, D]
        states, left, _ = self.layer.sides(of_first, dtype)
        _, _, right = self.layer.sides(to_second, dtype)
        asked = states[story, 0, second][:, None, None]  # [B, 1, 1, D]
        asked = self.layer(asked, left, right, real, kept, dtype)[:, 0, 0]
        return self.out(nnx.relu(self.hidden(asked)))


class Layer(nnx.Module):
    """Triangular attention, then a feed-forward layer. As in the authors' code, what is added to is
    the normalised state.

    `gain` scales the first weights of what is added. With 1, as in the authors' code, three of four
    replicas were still at the most frequent labels after ten epochs; the authors have the learning
    rate rise at first."""

    def __init__(self, dim: int, heads: int, wide: int, gain: float, *, rngs: nnx.Rngs):
        glorot = nnx.initializers.glorot_uniform()

        def weights(*shapes: tuple[int, int], gain: float = 1.0) -> nnx.Param:
            return nnx.Param(gain * jnp.hstack([glorot(rngs.params(), shape) for shape in shapes]))

        self.heads = heads
        self.norm = nnx.LayerNorm(dim, rngs=rngs)
        self.left = weights((dim, dim), (dim, dim))  # key and value
        self.right = weights((dim, dim), (dim, dim))
        self.out = weights((dim, dim), gain=gain)
        self.wide_norm = nnx.LayerNorm(dim, rngs=rngs)
        self.wide = weights((dim, wide))
        self.wide_bias = nnx.Param(jnp.zeros(wide))
        self.narrow = weights((wide, dim), gain=gain)
        self.narrow_bias = nnx.Param(jnp.zeros(dim))

    def sides(self, states: jax.Array, dtype: str) -> tuple[jax.Array, jax.Array, jax.Array]:
        """States [..., D] of pairs, normalised, and what they are as the left and as the right side
        of a triangle: key and value, [..., 2 D]."""
        states = self.norm(states)
        left, right = (product(states, side[...], dtype) for side in (self.left, self.right))
        return states, left, right

    def __call__(
        self,
        states: jax.Array,
        left: jax.Array,
        right: jax.Array,
        real: jax.Array,
        kept: list[jax.Array],
        dtype: str,
    ) -> jax.Array:
        """The new states of the pairs (x, y), [B, X, Y, D].

        Args:
          states: theirs, normalised, [B, X, Y, D].
          left, right: the sides (x, z), [B, X, P, 2 D], and (z, y), [B, P, Y, 2 D].
          real: True for a person z, [B, P].
          kept: what dropout keeps of the attention, the wide layer and the narrow one.
          dtype: to which the inputs of matrix products are rounded.
        """
        found = triangles(left, right, real, self.heads)
        states = states + product(found, self.out[...], dtype) * kept[0]
        states = self.wide_norm(states)
        wide = product(states, self.wide[...], dtype) + self.wide_bias[...]
        narrow = product(nnx.relu(wide) * kept[1], self.narrow[...], dtype) + self.narrow_bias[...]
        return states + narrow * kept[2]


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def triangles(left: jax.Array, right: jax.Array, real: jax.Array, heads: int) -> jax.Array:
    """Triangular attention [B, X, Y, D]: the pair (x, y) attends over the people z; the dot product
    of the keys of (x, z) and (z, y) scores z, and the product of their values is what z gives.

    The gradient is written by hand: the sums over people that autodiff makes of it run many times
    slower on a CPU than those of slices.

    Args:
      left: keys and values of (x, z), [B, X, P, 2 D].
      right: keys and values of (z, y), [B, P, Y, 2 D].
      real: True for a person z, [B, P].
      heads: each attends by its own part of D.
    """
    return _triangles_forward(left, right, real, heads)[0]


def _triangles_forward(left, right, real, heads):
    left_key, left_value = jnp.split(left, 2, axis=-1)
    right_key, right_value = jnp.split(right, 2, axis=-1)
    head = _head_of(left_key.shape[-1], heads)
    people = range(left.shape[2])
    score = jnp.stack([_pair(left_key, right_key, z) @ head for z in people])  # [P, B, X, Y, K]
    score *= (heads / len(head)) ** 0.5
    weight = nnx.softmax(jnp.where(real.T[:, :, None, None, None], score, -1e9), axis=0)
    total = sum(weight[z] @ head.T * _pair(left_value, right_value, z) for z in people)
    return total, (left, right, weight)


def _triangles_backward(heads, saved, gradient):
    left, right, weight = saved
    left_key, left_value = jnp.split(left, 2, axis=-1)
    right_key, right_value = jnp.split(right, 2, axis=-1)
    head = _head_of(left_key.shape[-1], heads)
    people = range(left.shape[2])
    by_weight = jnp.stack(
        [gradient * _pair(left_value, right_value, z) @ head for z in people]
    )  # [P, B, X, Y, K]
    by_score = weight * (by_weight - (weight * by_weight).sum(axis=0))
    by_score *= (heads / len(head)) ** 0.5

    by_left, by_right = [], []
    for z in people:
        key, value = by_score[z] @ head.T, gradient * (weight[z] @ head.T)  # [B, X, Y, D]
        over_y = [
            sum(part[:, :, y] * other[:, z, y, None] for y in range(gradient.shape[2]))
            for part, other in ((key, right_key), (value, right_value))
        ]
        over_x = [
            sum(part[:, x] * other[:, x, z, None] for x in range(gradient.shape[1]))
            for part, other in ((key, left_key), (value, left_value))
        ]
        by_left.append(jnp.concatenate(over_y, axis=-1))  # [B, X, 2 D]
        by_right.append(jnp.concatenate(over_x, axis=-1))  # [B, Y, 2 D]
    return jnp.stack(by_left, axis=2), jnp.stack(by_right, axis=1), None


triangles.defvjp(_triangles_forward, _triangles_backward)


def _pair(left: jax.Array, right: jax.Array, z: int) -> jax.Array:
    """What (x, z) and (z, y) have in common, feature by feature, [B, X, Y, D]."""
    return left[:, :, z, None] * right[:, z, None]


def _head_of(dim: int, heads: int) -> jax.Array:
    """[D, K]: 1 where the feature belongs to the head. Products with it sum over the features of
    each head, or spread a weight over them."""
    return jnp.repeat(jnp.eye(heads), dim // heads, axis=0)
