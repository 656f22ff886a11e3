"""A differentiable prover: what everybody is to everybody, composed by learned rules.

Shapes: B stories, P people of the largest, R relations, E facts.
"""

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.data.arrays import Sizes

CONFIG = {
    "rounds": 6,  # at most; a story of n people needs n - 1 for certain, and seldom so many
    "unknown": 3.0,  # logit of "nothing follows" at the start: about half the mass
    "scale": 3.0,  # logits are this times the parameters: Adam's steps are larger by as much
    "floor": 1e-4,  # share of the answer that goes to all relations alike
    # Longer training only adds rules that explain a stray label or a bracketing without a proof.
    "train": {"learning_rate": 3e-2, "epochs": 2},
}


class Prover(nnx.Module):
    """A soft CKY over the graph: every bracketing of every chain of facts at once, in the spirit of
    the conditional theorem provers (Minervini et al. 2020, arXiv 2007.06477).

    The state of a pair of people is a distribution over relations and "unknown". A round sets
    (X, Y) to what the rules make of (X, Z) and (Z, Y), averaged over all Z, each weighted by how
    sure it is: by its squared mass, so that neither "unknown" nor a mass spread over many relations
    counts. What is stated stays as it is.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        relations = sizes.relations
        self.rounds, self.scale, self.floor = config.rounds, config.scale, config.floor
        start = jnp.zeros((relations, relations, relations + 1))
        self.table = nnx.Param(start.at[..., -1].set(config.unknown / config.scale))

    def rules(self) -> jax.Array:
        """[R, R, R]: the chance that `first, second -> head`; what is missing to 1 is unknown."""
        return learned_rules(self.table[...], self.scale)

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Log-probabilities of the relations, [B, R]."""
        facts, place = pair_states(batch, self.table.shape[0])  # [B, P, P, R], [N]
        first, second = place[batch.globals["query"][:-1]].T
        return self.reason(facts, batch.n_node[:-1], first, second)

    def reason(
        self, facts: jax.Array, people: jax.Array, first: jax.Array, second: jax.Array
    ) -> jax.Array:
        """Log-probabilities of what the second person is to the first, [B, R].

        Args:
          facts: what is known of each pair, at most 1 in all for each, [B, P, P, R].
          people: how many each story has, [B].
          first, second: their numbers within the story, [B].
        """
        rules = self.rules()
        relations, size = len(rules), facts.shape[1]
        # What may be derived: what is not known, and of nobody to himself.
        unknown = 1 - facts.sum(axis=-1, keepdims=True)
        unknown *= ~jnp.eye(size, dtype=bool)[..., None]
        rounds = people[:, None, None, None] - 1

        @jax.checkpoint
        def round_(state: jax.Array, number: jax.Array) -> tuple[jax.Array, None]:
            """StoryArrays that have had their rounds stay, so that padding changes nothing."""
            half = jnp.einsum("BXZa,abc->BXZbc", state, rules)
            by = jnp.einsum("BXZbc,BZYb->BZXYc", half, state)  # what follows by way of Z
            sure = (by**2).sum(axis=-1, keepdims=True)
            derived = (by * sure).sum(axis=1) / (sure.sum(axis=1) + 1e-6)
            return jnp.where(number < rounds, facts + unknown * derived, state), None

        state, _ = jax.lax.scan(round_, facts, jnp.arange(min(self.rounds, size - 1)))
        answer = state[jnp.arange(len(state)), first, second]  # [B, R]
        answer += (1 - answer.sum(axis=-1, keepdims=True)) / relations
        return jnp.log((1 - self.floor) * answer + self.floor / relations)


def learned_rules(table: jax.Array, scale: float) -> jax.Array:
    """Parameters [..., R, R, R + 1] -> chances [..., R, R, R] of `first, second -> head`."""
    return nnx.softmax(scale * table, axis=-1)[..., :-1]


def pair_states(batch: jraph.GraphsTuple, relations: int) -> tuple[jax.Array, jax.Array]:
    """The stated facts as distributions for every pair of people of each story, [B, P, P, R], zero
    where nothing is stated; and the place of each node within its story, [N].

    Of several facts of a pair each counts alike. An edge whose relation is not stated is no fact.
    """
    graphs = len(batch.n_node)
    size = batch.globals["people"].shape[1]
    owner, place = batch.nodes["story"], batch.nodes["place"]
    facts = jnp.zeros((graphs - 1, size, size, relations))
    # Out of range, and so dropped: the padding graph, and the edge type of what is not stated.
    first, second = place[batch.senders], place[batch.receivers]
    index = (owner[batch.senders], first, second, batch.edges["relation"])
    facts = facts.at[index].add(1, mode="drop")
    facts *= ~jnp.eye(size, dtype=bool)[..., None]
    return facts / jnp.maximum(facts.sum(axis=-1, keepdims=True), 1), place
