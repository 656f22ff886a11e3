"""Edge Transformer: a state for every pair of people, updated by triangular attention.

Shapes: B stories, P people of the largest story, D state dimension, K heads, R relations.
"""

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models.common import check_heads, dropout, pair_index, query_positions
from clutrr_jax.models.setting import Setting

# The authors' code for CLUTRR, without its learning rate schedule.
SETTINGS = {
    "dim": Setting(200, "width of the state of a pair of people", at_least=1),
    "heads": Setting(4, "attention heads, a divisor of dim", at_least=1),
    "layers": Setting(8, "layers, with shared weights", at_least=1),
    "dropout": dropout(0.2),
}
TRAIN = {"learning_rate": 5e-4, "steps": 2000, "patience": 500, "grad_clip_norm": 1.0}
WIDENING = 4  # of the feed-forward layer


class EdgeTransformer(nnx.Module):
    """Edge Transformer (Bergen et al. 2021, arXiv 2112.00578).

    The state of a pair starts from the embedding of its stated relation, or from one more embedding
    where the story has no fact about the pair; people have no identity. Several facts about a pair
    are averaged, and one whose relation is not stated counts only where no other is. The answer is
    predicted from the last state of the query pair.

    The authors resample dropout for each pair and layer, and also drop attention weights. Here one
    mask per story and feature serves all pairs and layers, as the layers share their weights (Gal
    and Ghahramani 2016, arXiv 1512.05287).
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        check_heads(config, "dim")
        self.layers, self.unstated = config.layers, sizes.relations
        glorot = nnx.initializers.glorot_uniform()
        # A row for each edge type; the last row is for pairs without a fact.
        self.table = nnx.Param(glorot(rngs.params(), (sizes.edge_types + 1, config.dim)))
        self.layer = Layer(config, rngs=rngs)
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)
        self.hidden = nnx.Linear(config.dim, config.dim, rngs=rngs)
        self.out = nnx.Linear(config.dim, sizes.relations, rngs=rngs)

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Relation logits [B, R]."""
        stories, size = batch.globals["people"][:-1].shape
        states = self.states(batch)  # [B, P, P, D]
        first, second = query_positions(batch)
        is_person = jnp.arange(size) < batch.n_node[:-1, None]  # [B, P]
        dim = states.shape[-1]
        widths = (dim, self.layer.wide.shape[1], dim)
        masks = [self.dropout(jnp.ones((stories, 1, 1, width))) for width in widths]
        for _ in range(self.layers):
            states = self.layer(states, is_person, masks)
        query = states[jnp.arange(stories), first, second]  # [B, D]
        return self.out(nnx.relu(self.hidden(query)))

    def states(self, batch: jraph.GraphsTuple) -> jax.Array:
        """States of all pairs before the first layer, [B, P, P, D]."""
        stories, size = batch.globals["people"][:-1].shape
        counts = jnp.zeros((stories, size, size, len(self.table[...])))
        # Edges of the padding graph are out of range and dropped.
        counts = counts.at[*pair_index(batch), batch.edges["relation"]].add(1, mode="drop")
        is_stated = counts[..., : self.unstated].any(axis=-1)
        counts = counts.at[..., self.unstated].multiply(~is_stated)
        total = counts.sum(axis=-1)
        counts = counts.at[..., -1].set(total == 0)
        return counts / jnp.maximum(total, 1)[..., None] @ self.table[...]


class Layer(nnx.Module):
    """Triangular attention and a feed-forward layer. As in the authors' code, the residual
    connections add to the normalized state.

    The output weights of both residual branches start smaller by a factor of sqrt(layers). With
    the authors' initialization and no learning rate warm-up, three of four replicas still predicted
    the most frequent labels after ten epochs.
    """

    def __init__(self, config, *, rngs: nnx.Rngs):
        dim, wide = config.dim, WIDENING * config.dim
        gain = config.layers**-0.5
        glorot = nnx.initializers.glorot_uniform()

        def weights(*shapes: tuple[int, int], gain: float = 1.0) -> nnx.Param:
            return nnx.Param(gain * jnp.hstack([glorot(rngs.params(), shape) for shape in shapes]))

        self.heads = config.heads
        self.norm = nnx.LayerNorm(dim, rngs=rngs)
        self.left = weights((dim, dim), (dim, dim))  # key and value
        self.right = weights((dim, dim), (dim, dim))
        self.out = weights((dim, dim), gain=gain)
        self.wide_norm = nnx.LayerNorm(dim, rngs=rngs)
        self.wide = weights((dim, wide))
        self.wide_bias = nnx.Param(jnp.zeros(wide))
        self.narrow = weights((wide, dim), gain=gain)
        self.narrow_bias = nnx.Param(jnp.zeros(dim))

    def __call__(
        self, states: jax.Array, is_person: jax.Array, masks: list[jax.Array]
    ) -> jax.Array:
        """States of all pairs [B, P, P, D], mask of people [B, P] -> new states. `masks` are the
        dropout masks of the attention, the wide layer and the narrow layer."""
        states = self.norm(states)
        left, right = states @ self.left[...], states @ self.right[...]
        attended = triangular_attention(left, right, is_person, self.heads)
        states = states + attended @ self.out[...] * masks[0]
        states = self.wide_norm(states)
        wide = nnx.relu(states @ self.wide[...] + self.wide_bias[...])
        narrow = wide * masks[1] @ self.narrow[...] + self.narrow_bias[...]
        return states + narrow * masks[2]


def triangular_attention(
    left: jax.Array, right: jax.Array, is_person: jax.Array, heads: int
) -> jax.Array:
    """Attention of the pairs (x, y) over third people z (Bergen et al. 2021, equation 2).

    The dot product of the keys of (x, z) and (z, y) scores z; the elementwise product of their
    values is what z contributes. Each head has its own D / K features.

    Keys and values of (x, z), and of (z, y), [B, P, P, 2 D] each; mask of people [B, P] ->
    [B, P, P, D].
    """

    def split(sides: jax.Array) -> tuple[jax.Array, jax.Array]:
        """[..., 2 D] -> keys and values, [..., K, D / K] each."""
        key, value = jnp.split(sides, 2, axis=-1)
        shape = (*key.shape[:-1], heads, -1)
        return key.reshape(shape), value.reshape(shape)

    (left_key, left_value), (right_key, right_value) = split(left), split(right)
    score = jnp.einsum("bxzkd,bzykd->bxyzk", left_key, right_key) / left_key.shape[-1] ** 0.5
    weight = jax.nn.softmax(jnp.where(is_person[:, None, None, :, None], score, -1e9), axis=3)
    out = jnp.einsum("bxyzk,bxzkd,bzykd->bxykd", weight, left_value, right_value)
    return out.reshape(*out.shape[:3], -1)
