"""Differentiable prover that composes the relations of all pairs of people by learned rules.

Shapes: B stories, P people of the largest story, R relations, N nodes.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import optax
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import targets
from clutrr_jax.models.common import pair_index, query_positions
from clutrr_jax.models.setting import Setting
from generator.errors import InputError
from generator.relations.algebra import Algebra, View

SETTINGS = {
    "rounds": Setting(40, "rounds at most; a path of n facts needs n - 1", at_least=1),
    "scale": Setting(
        3.0,
        "logits are parameters times this, which makes Adam's steps larger",
        above=0,
        sweeps=True,
    ),
    "share_genders": Setting(False, "True: rules between predicates, which hold for all genders"),
    "rule_penalty": Setting(
        0.005, "on the negative log-probabilities that there is no rule", at_least=0, sweeps=True
    ),
    "floor": Setting(
        1e-4,
        "fraction of the probability that is spread over all relations",
        at_least=0,
        at_most=1,
        sweeps=True,
    ),
}
TRAIN = {"learning_rate": 3e-2, "steps": 2000, "patience": 500}
TINY = 1e-6  # keeps quotients finite
UNKNOWN_LOGIT = 3.0  # initial logit of "no relation follows": about half of the probability


def gives(settings: Mapping[str, Any]) -> list[str]:
    """Returns what a prover with these settings has besides its training stories."""
    return ["predicates and genders"] * settings["share_genders"]


class Prover(nnx.Module):
    """Soft CKY parser that applies learned rules to every bracketing of every chain of facts at
    once, similar to conditional theorem provers (Minervini et al. 2020, arXiv 2007.06477).

    The state of a pair of people is a distribution over Q types and "unknown". The types are the R
    relations, and each gender needs its own rules. With `share_genders` the model is given more:
    the types are the 11 predicates, a rule holds whatever the genders, and the answer has the
    gender of the second query person.

    The state of (X, Y) is composed from those of (X, Z) and (Z, Y) under the rules, averaged over
    all Z. The weight of Z is the sum of the squared probabilities of its types, which is small for
    "unknown" and for distributions over many types. The average is multiplied by the least
    plausibility of each type over all Z, so that a type remains probable only if no path excludes
    it: with a table of the heads of an algebra such as RCC-8, this is path consistency along the
    paths. Stated facts do not change.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.rounds, self.scale, self.floor = config.rounds, config.scale, config.floor
        self.relations, self.rule_penalty = sizes.relations, config.rule_penalty
        self.algebra, view = sizes.algebra, shared_view(config.share_genders, sizes.algebra)
        size = len(view.algebra.relations) if view else sizes.relations
        start = jnp.zeros((size, size, size + 1))
        self.table = nnx.Param(start.at[..., -1].set(UNKNOWN_LOGIT / config.scale))

    def rules(self) -> jax.Array:
        """Probabilities of the rules `first, second -> head` between types, [Q, Q, Q]. A sum over
        heads below 1 leaves the rest to "unknown"."""
        return nnx.softmax(self.scale * self.table[...], axis=-1)[..., :-1]

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Log-probabilities of the relations, [B, R]."""
        facts = pair_states(batch, self.relations)  # [B, P, P, R]
        rules = self.rules()
        view = self.view(len(rules))
        stated, unknown = start(facts, view)
        size = stated.shape[-1]
        table = rules.reshape(size * size, size)

        def round_(state: jax.Array, steps: jax.Array) -> tuple[jax.Array, None]:
            story, x, z, y = steps.T  # [C]
            left = state.at[story, x, z].get(mode="fill", fill_value=0)
            right = state.at[story, z, y].get(mode="fill", fill_value=0)
            via = (left[:, :, None] * right[:, None]).reshape(-1, size * size) @ table  # [C, Q]
            weight = (via**2).sum(axis=-1, keepdims=True)
            pair = story, x, y
            parts = jnp.concatenate([via * weight, weight, jnp.ones_like(weight)], axis=1)
            sums = jnp.zeros((*state.shape[:3], size + 2)).at[*pair].add(parts, mode="drop")
            least = jnp.ones_like(state).at[*pair].min(self._plausible(via), mode="drop")
            mean = sums[..., :size] / (sums[..., size, None] + TINY)
            new = stated + unknown * self._intersect(mean, least * self._plausible(stated))
            return jnp.where(sums[..., size + 1, None] > 0, new, state), None

        state, _ = jax.lax.scan(round_, stated, batch.globals["steps"][: self.rounds])
        first, second = query_positions(batch)
        return self.log_probabilities(state, facts, first, second, view)

    def loss(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Training loss of each story, [B]."""
        return self.penalized(self(batch), targets(batch)[0])

    def penalized(self, logits: jax.Array, target: jax.Array) -> jax.Array:
        """Cross-entropy plus a penalty on rules, -log(probability of no rule) of all pairs, [B].

        The penalty removes rules that no answer needs, however certain they are: its gradient does
        not vanish like that of their probabilities. Its weight is small for stories that are not
        yet answered, so that all rules can be learned, and for stories whose answer is certain, so
        that a rule that few stories need recovers.
        """
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, target)
        if not self.rule_penalty:
            return losses
        correct = jax.lax.stop_gradient(jnp.exp(-losses))
        no_rule = nnx.log_softmax(self.scale * self.table[...])[..., -1]
        return losses - self.rule_penalty * correct * (1 - correct) * no_rule.sum()

    def reason(
        self,
        facts: jax.Array,
        rounds: jax.Array,  # [B]
        most: int,
        first: jax.Array,  # [B] position of a query person within the story
        second: jax.Array,
        rules: Any = None,  # [Q, Q, Q], instead of the learned ones
    ) -> jax.Array:
        """Log-probabilities of the relation of the second query person to the first, [B, R].

        The probabilities of the facts about two people [B, P, P, R] have a sum of at most 1. `most`
        is an upper bound of the rounds of the stories; composing a chain of n facts takes n - 1.
        """
        rules = self.rules() if rules is None else rules
        view = self.view(len(rules))
        stated, unknown = start(facts, view)
        rounds = rounds[:, None, None, None]

        @jax.checkpoint  # keeps [B, X, Z, Y, R] of no round for the gradient
        def round_(state: jax.Array, index: jax.Array) -> tuple[jax.Array, None]:
            half = jnp.einsum("BXZa,abc->BXZbc", state, rules)
            via = jnp.einsum("BXZbc,BZYb->BZXYc", half, state)  # type of X and Y derived via Z
            weight = (via**2).sum(axis=-1, keepdims=True)
            mean = (via * weight).sum(axis=1) / (weight.sum(axis=1) + TINY)
            least = smallest(self._plausible(via)) * self._plausible(stated)
            derived = self._intersect(mean, least)
            return jnp.where(index < rounds, stated + unknown * derived, state), None

        state, _ = jax.lax.scan(round_, stated, jnp.arange(min(self.rounds, most)))
        return self.log_probabilities(state, facts, first, second, view)

    def _plausible(self, state: jax.Array) -> jax.Array:
        """How compatible each relation is with a state [..., Q]: 1 for the most probable one, and
        for all if nothing is known."""
        known = (1 - self.floor) * state
        score = known + (1 - known.sum(axis=-1, keepdims=True)) / state.shape[-1]
        # Programs without optimization may round the maximum differently when they compute its
        # gradient, which is then infinite.
        return score / jax.lax.stop_gradient(score.max(axis=-1, keepdims=True))

    def _intersect(self, mean: jax.Array, least: jax.Array) -> jax.Array:
        """Excludes relations from a distribution [..., Q], given the least plausibility of each.

        Its sum stays the same, and so does a distribution that is as plausible itself: that of
        a single Z.
        """
        kept = mean * jnp.minimum(least / self._plausible(mean), 1)
        total, left = mean.sum(axis=-1, keepdims=True), kept.sum(axis=-1, keepdims=True)
        return kept * (total / (left + TINY))

    def view(self, types: int) -> View | None:
        """Rules between predicates, which may be other ones than the learned, have a view."""
        return None if types == self.relations else self.algebra.coarse

    def log_probabilities(
        self,
        state: jax.Array,  # [B, P, P, Q] of all pairs
        facts: jax.Array,  # [B, P, P, R]
        first: jax.Array,  # [B]
        second: jax.Array,
        view: View | None,
    ) -> jax.Array:
        """Log-probabilities of the relation of the second query person to the first, [B, R]."""
        answer = state[jnp.arange(len(facts)), first, second]  # [B, Q]
        if view:
            answer = with_gender(answer, facts, second, view)  # [B, R]
        answer += (1 - answer.sum(axis=-1, keepdims=True)) / self.relations
        return jnp.log((1 - self.floor) * answer + self.floor / self.relations)


def smallest(values: jax.Array) -> jax.Array:
    """Minimum over axis 1, whose gradient is shared by all values that equal it up to rounding.

    That of `jnp.min` is divided by how many equal it: none do in a program that computes them
    twice, here and for the gradient, and rounds differently.
    """
    least = jax.lax.stop_gradient(values.min(axis=1, keepdims=True))
    near = values <= least * (1 + 1e-5)
    return jnp.where(near, values, 0).sum(axis=1) / near.sum(axis=1)


def start(facts: jax.Array, view: View | None) -> tuple[jax.Array, jax.Array]:
    """Initial states of all pairs, and the probability that is left for derived relations."""
    stated = facts[..., view.relation].sum(axis=-1) if view else facts
    unknown = 1 - stated.sum(axis=-1, keepdims=True)
    # No relation of a person to themselves.
    unknown *= ~jnp.eye(stated.shape[1], dtype=bool)[..., None]
    return stated, unknown


def shared_view(share_genders: bool, algebra: Algebra) -> View | None:
    """Returns the view whose predicates rules are shared by, or None if they are not.

    Raises:
      InputError: the algebra has no view.
    """
    if share_genders and algebra.view is None:
        raise InputError(f"share_genders: expected False, {algebra.name} has no predicates")
    return algebra.view if share_genders else None


def with_gender(scores: jax.Array, facts: jax.Array, person: jax.Array, view: View) -> jax.Array:
    """Scores of the predicates of any person to `person` [B, Q] -> of the relations [B, R]: each is
    multiplied by the probability of its gender.

    A fact (X, r, Y) states the gender of Y; `facts` [B, P, P, R] are probabilities. Without facts
    about a person, which is a position [B] in the story, both are equally probable.
    """
    gender_of = np.array(view.property)
    of_gender = jax.nn.one_hot(gender_of, gender_of.max() + 1)  # [R, 2]
    about_person = facts[jnp.arange(len(facts)), :, person]  # [B, P, R]
    evidence = jnp.einsum("BXr,rg->Bg", about_person, of_gender) + 1e-6
    gender = evidence / evidence.sum(axis=-1, keepdims=True)
    return scores[:, np.array(view.predicate)] * gender[:, gender_of]


def pair_states(batch: jraph.GraphsTuple, relations: int) -> jax.Array:
    """Stated facts as distributions over relations, [B, P, P, R]; zero for pairs without a fact.

    Several facts about a pair have equal probability. An edge with an unstated relation is ignored.
    """
    stories, size = batch.globals["people"][:-1].shape
    facts = jnp.zeros((stories, size, size, relations))
    # The padding graph and the edge type of unstated relations are out of range and dropped.
    facts = facts.at[*pair_index(batch), batch.edges["relation"]].add(1, mode="drop")
    facts *= ~jnp.eye(size, dtype=bool)[..., None]
    return facts / jnp.maximum(facts.sum(axis=-1, keepdims=True), 1)


def gendered(rules: np.ndarray, algebra: Algebra) -> np.ndarray:
    """Rules [Q, Q, Q] between predicates as rules between relations, [R, R, R].

    A rule holds for both genders of Z and Y, and its head has the gender of Y. Rules between
    relations are returned as they are.
    """
    if len(rules) == len(algebra.relations):
        return rules
    predicate, gender = np.array(algebra.coarse.predicate), np.array(algebra.coarse.property)
    return rules[np.ix_(predicate, predicate, predicate)] * (gender[:, None] == gender)
