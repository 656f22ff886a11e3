"""Conditional theorem provers: backward chaining with rules that are computed from the goal.

Shapes: B stories, P people of the largest story, R relations, Q predicates (or relations), G goals,
H rules per goal, D dimension of the embeddings. The innermost axis of scores is that of the
stories, along which a CPU computes several at a time.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import targets
from clutrr_jax.models.common import pair_index, query_positions
from clutrr_jax.models.prover import pair_states, shared_view, with_gender
from clutrr_jax.models.setting import Setting

# The authors' settings for CLUTRR, except for rules (theirs: 3), rule_dropout, logit_penalty, depth
# (4 in tests) and the optimizer (Adagrad, learning rate 0.1, batches of 32, 5 epochs).
SETTINGS = {
    "embedding": Setting(20, "width of the embeddings of relations", at_least=1),
    "rules": Setting(6, "rules of each goal", at_least=1),
    "rule_dropout": Setting(
        0.1,
        "fraction of rules that the proofs of a training story lack",
        at_least=0,
        below=1,
        sweeps=True,
    ),
    "share_genders": Setting(False, "True: goals are predicates, and rules hold for all genders"),
    "depth": Setting(2, "levels of subgoals; the time grows twelvefold with each", at_least=0),
}
ATTENTIVE_SETTINGS = SETTINGS | {
    "logit_penalty": Setting(
        1e-3, "on the mean square of the logits of the attention weights", at_least=0, sweeps=True
    )
}
MEMORY_SETTINGS = ATTENTIVE_SETTINGS | {"memory": Setting(256, "rules in the memory", at_least=1)}
TRAIN = {"learning_rate": 3e-2, "steps": 2000, "patience": 1000}
# Subgoals of all levels that are proved at once, at most: more do not fit the cache of a CPU core.
MOST_SUBGOALS = 500
NEAREST = 3  # relations, as which a subgoal is proved
EPSILON = 1e-6  # keeps roots and logarithms finite


class CTP(nnx.Module):
    """Conditional theorem prover (Minervini et al. 2020, arXiv 2007.06477).

    To prove a goal (X, r, Y), each of H reformulators maps the embedding of r to the embeddings of
    two subgoals, r1 and r2. A proof finds a person Z and proves (X, r1, Z) and (Z, r2, Y). A fact
    (X, s, Y) proves the goal with score exp(-|r - s|), where |r - s| is the distance of the
    embeddings. The score of a proof is the minimum over its facts, the score of a goal the maximum
    over its proofs. Training minimizes the binary cross-entropies of the scores of all relations of
    the query people.

    The subclasses differ in their reformulators (section 4.2 of the paper): "linear" is a linear
    layer, "attentive" an average of the embeddings of relations with attention weights, and
    "memory" an average of rules of a memory.

    Only the best proof gets a gradient. So a reformulator that starts far from every rule would
    never learn one, while another settles between two rules. In training, each story is therefore
    proved without some of the reformulators (`config.rule_dropout`), which the authors do not do.
    Attention weights near 1 have no gradient either: two reformulators with the same rule would
    both keep it. `config.logit_penalty` keeps the weights smaller.

    The authors represent people by random vectors, which match only approximately, and keep the
    five best people Z of each step. Here a person matches only themselves, and all people are kept.

    The authors reformulate goals on 2 levels in training and on 4 in tests; with 4 levels, some
    chains of 7 or more facts have no exact proof. Here goals are reformulated on `config.depth`
    levels. A subgoal below them is proved as one of the three most similar relations: its score is
    the minimum of the similarity of both and of the score of that relation by rules. The latter are
    computed once for all subgoals, level by level, for any bracketing of a chain of all people.

    The authors have three reformulators. Without the genders, a relation such as "grandson" needs
    six rules: a son or daughter of a son or daughter, ... With `config.share_genders` the goals are
    predicates, which need half as many, and the answer has the gender of the second query person,
    as in `clutrr_jax.models.prover`.
    """

    reformulator = "linear"

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.relations, self.rules = sizes.relations, config.rules
        self.logit_penalty = config.get("logit_penalty", 0.0)
        self.depth, dim = config.depth, config.embedding
        self.view = shared_view(config.share_genders, sizes.algebra)
        goals = len(self.view.algebra.relations) if self.view else self.relations
        self.dropout = nnx.Dropout(config.rule_dropout, rngs=rngs)
        self.goal = nnx.Param(jax.random.normal(rngs.params(), (goals, dim)))
        shape: tuple[int, ...] = (self.rules, 2, dim if self.reformulator == "linear" else goals)
        if self.reformulator == "memory":
            self.memory = nnx.Param(jax.random.normal(rngs.params(), (config.memory, 2, dim)))
            shape = (self.rules, config.memory)
        self.reformulate = nnx.LinearGeneral(dim, shape, rngs=rngs)

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Logarithms of the scores of the relations, [B, R]."""
        scores = self.scores(batch)
        if self.view:
            facts = pair_states(batch, self.relations)
            scores = with_gender(scores, facts, query_positions(batch)[1], self.view)
        return jnp.log(scores)

    def loss(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Mean binary cross-entropy over the goals, plus the penalty on logits, [B]."""
        scores, target = self.scores(batch), targets(batch)[0]
        if self.view:
            target = jnp.asarray(self.view.predicate)[target]
        is_target = target[:, None] == jnp.arange(scores.shape[1])
        losses = -jnp.log(jnp.where(is_target, scores, 1 - scores)).mean(axis=-1)
        return losses + self.logit_penalty * (self.reformulate(self.goal[...]) ** 2).mean()

    def scores(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Scores of the goals for the query people, [B, Q]."""
        stories, size = batch.globals["people"][:-1].shape
        story, first_person, second_person = pair_index(batch)
        types = batch.edges["relation"]
        is_stated = (types < self.relations) & (batch.senders != batch.receivers)
        fact_goals = jnp.minimum(types, self.relations - 1)
        if self.view:
            fact_goals = jnp.asarray(self.view.predicate)[fact_goals]
        steps = batch.n_node[:-1] - 1  # facts of the longest chain
        depth = max(min(self.depth, size - 2), 0)
        is_kept = self.dropout(jnp.ones((self.rules, 1, 1, stories))) > 0

        def stated(goals: jax.Array) -> jax.Array:
            """Scores of the goals [G, D] as facts, [G, P, P, B]."""
            score = kernel(goals[:, None], self.goal[...])[:, fact_goals] * is_stated
            facts = jnp.zeros((len(goals), size, size, stories))
            return facts.at[:, first_person, second_person, story].max(score, mode="drop")

        def derived(goals: jax.Array, level: int | jax.Array, prove: Any) -> jax.Array:
            """Scores of the goals by rules, whose subgoals have this level, [G, P, P, B]."""
            rules = self.subgoals(goals)  # [G, H, 2, D]
            parts = prove(rules.reshape(-1, rules.shape[-1]))
            parts = parts.reshape(*rules.shape[:-1], size, size, stories)
            first, second = jnp.where(is_kept, parts[:, :, 0], 0), parts[:, :, 1]
            scores = best(first[..., None, :], second[:, :, None], (1, 3))
            # The depth depends on the size of the story alone, not on the padding.
            return jnp.where(level < steps, scores, 0)

        def unified(goals: jax.Array, table: jax.Array) -> jax.Array:
            """Scores of the goals as the most similar relations, given theirs by rules,
            [Q, P, P, B]."""
            similarity = kernel(goals[:, None], self.goal[...])  # [G, Q]
            similarity, nearest = jax.lax.top_k(similarity, min(NEAREST, len(table)))
            return best(similarity[..., None, None, None], table[nearest], (1,))

        def next_table(table: jax.Array, level: jax.Array) -> tuple[jax.Array, None]:
            """Scores of the relations by rules, whose proofs have one more level."""

            def prove(goals: jax.Array) -> jax.Array:
                return jnp.maximum(stated(goals), unified(goals, table))

            return jnp.maximum(table, derived(self.goal[...], level, prove)), None

        def prove(goals: jax.Array, level: int) -> jax.Array:
            """Scores of the goals [G, D] for all pairs of people, [G, P, P, B]."""
            subgoals = len(goals) * (2 * self.rules) ** (depth - level)
            if subgoals > MOST_SUBGOALS and len(goals) > 1:
                return jax.lax.map(lambda goal: prove(goal[None], level)[0], goals)
            if level < depth:
                by_rules = derived(goals, level + 1, lambda parts: prove(parts, level + 1))
            elif size - 2 > depth:
                by_rules = unified(goals, table)
            else:
                return stated(goals)
            return jnp.maximum(stated(goals), by_rules)

        table = derived(self.goal[...], depth + 1, stated)
        table, _ = jax.lax.scan(next_table, table, jnp.arange(depth + 2, size - 1))
        scores = prove(self.goal[...], 0)[:, *query_positions(batch), jnp.arange(stories)].T
        return jnp.clip(scores, EPSILON, 1 - EPSILON)

    def subgoals(self, goals: jax.Array) -> jax.Array:
        """Embeddings of the two subgoals of each rule, [G, D] -> [G, H, 2, D]."""
        rules = self.reformulate(goals)
        if self.reformulator == "attentive":
            return nnx.softmax(rules) @ self.goal[...]
        if self.reformulator == "memory":
            return jnp.einsum("ghm,mid->ghid", nnx.softmax(rules), self.memory[...])
        return rules


class CTPAttentive(CTP):
    """CTP whose subgoals are averages of the embeddings of relations."""

    reformulator = "attentive"


class CTPMemory(CTP):
    """CTP whose rules are averages of the rules of a memory."""

    reformulator = "memory"


def kernel(x: jax.Array, y: jax.Array) -> jax.Array:
    """Similarity exp(-|x - y|) of vectors [..., D], in (0, 1]."""
    return jnp.exp(-jnp.sqrt(((x - y) ** 2).sum(axis=-1) + EPSILON))


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def best(first: jax.Array, second: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """Maximum over some axes of the minimum of two arrays, which are broadcast.

    The gradient is that of the minimum and the maximum. It is computed again from the values here,
    which takes a CPU a fifth of the time of JAX's own rules for them.
    """
    return jnp.minimum(first, second).max(axis=axes)


def _best_forward(first: jax.Array, second: jax.Array, axes: tuple[int, ...]) -> Any:
    found = best(first, second, axes)
    return found, (first, second, found)


def _best_backward(axes: tuple[int, ...], saved: Any, gradient: jax.Array) -> Any:
    first, second, found = saved
    found, gradient = jnp.expand_dims(found, axes), jnp.expand_dims(gradient, axes)
    by_first = (first == found) & (second >= found)
    by_second = (second == found) & (first > found)
    return _sum_to(first, by_first, gradient), _sum_to(second, by_second, gradient)


def _sum_to(value: jax.Array, chosen: jax.Array, gradient: jax.Array) -> jax.Array:
    """Gradient of a value that was broadcast, where it was chosen."""
    over = [axis for axis, length in enumerate(value.shape) if length == 1]
    return jnp.where(chosen, gradient, 0).sum(axis=over, keepdims=True)


best.defvjp(_best_forward, _best_backward)
