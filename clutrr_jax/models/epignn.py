"""A graph network whose states say what may be true.

Shapes: N people, E facts, B stories, F facets, W values of a facet, R relations.
"""

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.data.arrays import Sizes

# The authors' settings for CLUTRR; the first values are drawn from a wider range here, from which
# all seeds learn.
CONFIG = {
    "facets": 8,  # distributions that a state consists of
    "width": 8,  # of a facet
    "rounds": 9,  # at most; nobody is further away than the others of a story are many
    "init": 0.5,  # largest logit at the start
    "train": {"learning_rate": 1e-2, "epochs": 15},
}
TINY = 1e-12  # keeps logarithms finite


class EpiGNN(nnx.Module):
    """Epistemic graph network (Khalid and Schockaert 2025, arXiv 2407.17396), pooling by minimum.

    A state consists of distributions: of what somebody may be to the first of the asked people
    (forward), or the second to somebody (backward). A relation is such a state too. Facts compose
    the states of their people with their relation by one learned table per facet, in which the
    first value means "the same person" and changes nothing. What several facts say must be possible
    by each of them, and so must what all people say who stand between the asked two.

    The authors train with a margin between the cross-entropies of the answer with the right and
    with a wrong relation; here the cross-entropies with all relations are the logits of the common
    loss. Where they follow one shortest path, everybody counts who was reached from both sides, and
    who was not reached sends nothing: on a chain without noise that is the same.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        facets, width = config.facets, config.width
        self.rounds = config.rounds
        self.relations = sizes.relations

        def logits(*shape: int) -> nnx.Param:
            low, high = -config.init, config.init
            return nnx.Param(jax.random.uniform(rngs.params(), shape, minval=low, maxval=high))

        self.relation = logits(sizes.edge_types, facets, width)
        self.table = logits(facets, width - 1, width - 1, width)

    def composition(self) -> jax.Array:
        """[F, W, W, W]: the distribution that two values compose to."""
        facets, _, _, width = self.table.shape
        table = jnp.zeros((facets, width, width, width))
        table = table.at[:, 1:, 1:].set(nnx.softmax(self.table[...]))
        same = jnp.eye(width)
        return table.at[:, 0].set(same).at[:, :, 0].set(same)

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Relation logits [B, R]."""
        relation = nnx.softmax(self.relation[...])  # [types, F, W]
        table = self.composition()
        then = jnp.einsum("rfj,fijk->rfik", relation, table)  # a state, then the relation
        before = jnp.einsum("rfi,fijk->rfjk", relation, table)
        query, kind = batch.globals["query"], batch.edges["relation"]
        forward, reached = self._spread(
            batch, query[:, 0], then[kind], batch.senders, batch.receivers
        )
        backward, reaches = self._spread(
            batch, query[:, 1], before[kind], batch.receivers, batch.senders
        )
        said = jnp.einsum("nfi,fijk,nfj->nfk", forward, table, backward)
        answer = possible(said, reached & reaches, batch.nodes["story"], len(batch.n_node))[:-1]
        return jnp.einsum("bfk,rfk->br", answer, jnp.log(relation[: self.relations] + TINY))

    def _spread(
        self,
        batch: jraph.GraphsTuple,
        start: jax.Array,
        steps: jax.Array,
        senders: jax.Array,
        receivers: jax.Array,
    ) -> tuple[jax.Array, jax.Array]:
        """What is known after the rounds, and whether anything is: [N, F, W], [N].

        Args:
          start: the person of each story that states are about, [B + 1].
          steps: what a fact makes of each value of its sender, [E, F, W, W].
          senders, receivers: who tells whom, [E].
        """
        people, (facets, width) = len(batch.nodes["entity"]), steps.shape[1:3]
        is_start = jnp.zeros(people, bool).at[start].set(True)
        same = jnp.broadcast_to(jnp.arange(width) == 0, (people, facets, width))
        state = jnp.where(is_start[:, None, None], same, 1 / width)
        # StoryArrays that have had their rounds stay, so that padding changes nothing.
        rounds = (batch.n_node - 1)[batch.nodes["story"]]

        def round_(carry, number):
            state, reached = carry
            told = reached[senders]
            said = (state[senders][..., None] * steps).sum(axis=2)
            new = possible(said, told, receivers, people)
            heard = jax.ops.segment_max(told.astype(jnp.int32), receivers, people) > 0
            heard &= ~is_start & (number < rounds)
            return (jnp.where(heard[:, None, None], new, state), reached | heard), None

        needed = min(self.rounds, batch.globals["people"].shape[1] - 1)
        return jax.lax.scan(round_, (state, is_start), jnp.arange(needed))[0]

    def reason(
        self, facts: jax.Array, people: jax.Array, first: jax.Array, second: jax.Array
    ) -> jax.Array:
        """As that of the prover, from relation logits: of a pair of which little is known, what is
        said by it rules little out."""
        relation = nnx.softmax(self.relation[...])  # [types, F, W]
        table, stated = self.composition(), relation[: self.relations]
        mass = facts.sum(axis=-1)  # [B, P, P]
        then = jnp.einsum("bxyr,rfj,fijk->bxyfik", facts, stated, table)
        before = jnp.einsum("byxr,rfi,fijk->bxyfjk", facts, stated, table)
        forward, reached = self._spread_all(then, mass, people, first)
        backward, reaches = self._spread_all(before, mass.swapaxes(1, 2), people, second)
        said = jnp.einsum("bpfi,fijk,bpfj->bpfk", forward, table, backward)
        both = (reached * reaches)[..., None, None]
        answer = _all_possible(both * said + (1 - both))
        return jnp.einsum("bfk,rfk->br", answer, jnp.log(stated + TINY))

    def _spread_all(
        self, steps: jax.Array, mass: jax.Array, people: jax.Array, start: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """As `_spread`, between all people of a story: [B, P, F, W], [B, P].

        Args:
          steps: what pairs make of each value of their sender, [B, P, P, F, W, W].
          mass: how sure it is that they say anything, [B, P, P].
          people: of each story, [B].
          start: the person of each story that states are about, [B].
        """
        size, (facets, width) = mass.shape[1], steps.shape[3:5]
        is_start = jnp.arange(size) == start[:, None]  # [B, P]
        same = jnp.arange(width) == 0
        state = jnp.where(is_start[..., None, None], same, 1 / width)
        state = jnp.broadcast_to(state, (*is_start.shape, facets, width))

        def round_(carry, number):
            state, reached = carry
            told = reached[:, :, None] * mass  # [B, P, P]
            said = jnp.einsum("bxfi,bxyfik->bxyfk", state, steps)
            said = reached[:, :, None, None, None] * said + (1 - told)[..., None, None]
            heard = 1 - (1 - told).prod(axis=1)
            moves = ~is_start & (number < people[:, None] - 1)
            state = jnp.where(moves[..., None, None], _all_possible(said), state)
            return (state, jnp.where(moves, heard, reached)), None

        start_state = (state, is_start.astype(mass.dtype))
        return jax.lax.scan(round_, start_state, jnp.arange(min(self.rounds, size - 1)))[0]


def _all_possible(states: jax.Array) -> jax.Array:
    """What all states [B, M, ...] of a row allow: their minimum as distributions [B, ...]."""
    least = jnp.minimum(states.min(axis=1), 1.0) + TINY
    return least / least.sum(axis=-1, keepdims=True)


def possible(states: jax.Array, counts: jax.Array, owner: jax.Array, count: int) -> jax.Array:
    """What all states [M, F, W] of an owner allow: their minimum as distributions [count, F, W].

    Only those that `counts` [M] are heard; an owner of none knows nothing: all is possible.
    """
    states = jnp.where(counts[:, None, None], states, 1.0)
    least = jnp.minimum(jax.ops.segment_min(states, owner, count), 1.0) + TINY
    return least / least.sum(axis=-1, keepdims=True)
