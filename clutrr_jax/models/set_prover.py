"""Differentiable path consistency: a distribution over relations for every person, combined over
paths by their product.

Shapes: B stories, N people, E facts, R relations.
"""

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models.common import spread
from clutrr_jax.models.setting import Setting

SETTINGS = {
    "rounds": Setting(40, "facts of the longest path that is followed", at_least=1),
    "scale": Setting(
        3.0, "logits are parameters times this, which makes Adam's steps larger", above=0
    ),
    "floor": Setting(
        1e-4, "fraction of the probability that is spread over all relations", above=0, at_most=1
    ),
}
TRAIN = {"learning_rate": 3e-2, "steps": 2000, "patience": 500}


class SetProver(nnx.Module):
    """Prover for algebras whose compositions have several heads, such as RCC-8.

    A learned table has a distribution over the heads of each pair of relations. The state of a
    person is a distribution over their relations to the first query person: that of one path is
    composed fact by fact, in the direction of the facts, and those of several paths are multiplied
    and normalized. A relation remains probable only if no path excludes it. So with a table that is
    uniform over the heads of the algebra, the model is path consistency along the paths from the
    first query person.

    This is the prover of `clutrr_jax.models.prover` with a product in place of its mean, and paths
    in place of its bracketings, as composition is associative in such algebras.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.rounds, self.scale, self.floor = config.rounds, config.scale, config.floor
        self.relations = sizes.relations
        self.table = nnx.Param(jnp.zeros((sizes.relations,) * 3))

    def rules(self) -> jax.Array:
        """Probabilities of the heads of each pair of relations, [R, R, R]."""
        return nnx.softmax(self.scale * self.table[...])

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Log-probabilities of the relations, [B, R]."""
        size, people, types = self.relations, len(batch.nodes["story"]), batch.edges["relation"]
        first, second = batch.globals["query"][:, 0], batch.globals["query"][:, 1]
        is_first = jnp.zeros(people, bool).at[first].set(True)
        uniform = jnp.full((1, size), 1 / size)
        stated = jnp.concatenate([jnp.eye(size), uniform])[types]  # [E, R]; the last is not stated
        # Composition of each relation of the sender with the fact, [E, R, R]
        table = jnp.concatenate([self.rules(), jnp.full((size, 1, size), 1 / size)], axis=1)
        steps = table.swapaxes(0, 1)[types]

        def update(state: jax.Array, is_sent: jax.Array) -> jax.Array:
            message = jnp.einsum("er,ers->es", state[batch.senders], steps)
            message = jnp.where(is_first[batch.senders][:, None], stated, message)
            logs = jnp.log((1 - self.floor) * message + self.floor / size) * is_sent[:, None]
            return nnx.softmax(jax.ops.segment_sum(logs, batch.receivers, people))

        initial = jnp.broadcast_to(uniform, (people, size))
        state, _ = spread(
            update, initial, is_first, batch, batch.senders, batch.receivers, self.rounds
        )
        return jnp.log((1 - self.floor) * state[second[:-1]] + self.floor / size)
