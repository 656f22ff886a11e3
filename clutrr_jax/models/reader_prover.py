"""Reader and prover: extracts a graph of facts from the text and reasons over it.

Shapes: B stories, P people of the largest story, R relations, F facts.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.models import fact_reader, prover
from clutrr_jax.models.pretrained import load
from clutrr_jax.models.setting import Setting
from generator.relations.kinship import IS_RULE

# Extracted facts are uncertain, so the predictions are less certain too: a higher floor. A larger
# scale compensates for the learning rate, which is lower than that of a prover alone.
PROVER = {"floor": 0.02, "scale": 45.0, "share_genders": True, "rule_penalty": 0.05}
SETTINGS = fact_reader.SETTINGS | {
    "reasoner": Setting(
        "prover", "prover, or rules: the 16 given ones", choices=("prover", "rules")
    ),
    "gold": Setting(
        0.0, "weight of an additional loss on the stated facts", at_least=0, sweeps=True
    ),
    "prover": {
        name: setting._replace(default=PROVER.get(name, setting.default))
        for name, setting in prover.SETTINGS.items()
    },
}
TRAIN = {"learning_rate": 2e-3, "steps": 2000, "patience": 500}
BERT_SETTINGS = SETTINGS | load.SETTINGS
EPSILON = 1e-3  # added to probabilities in `fact_loss`, which bounds it


class GivenRules(prover.Prover):
    """Prover with the 16 rules of the benchmark and no parameters."""

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.rounds, self.floor = config.rounds, config.floor
        self.relations, self.rule_penalty = sizes.relations, 0.0
        self.algebra = sizes.algebra

    def rules(self) -> jax.Array:
        """[Q, Q, Q] 1 for each rule `first, second -> head` between predicates."""
        return jnp.asarray(IS_RULE)


class ReaderProver(nnx.Module):
    """Extracts facts from the text and composes them in one differentiable program, which is
    trained from answers and, with the setting `gold`, also from the stated facts.

    Facts extracted for the query pair itself are not used. Except in tasks 6 and 7 no story states
    the answer, and a reader that guesses it would not need to extract the other facts.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.gold, self.word_penalty = config.gold, config.relation_word_penalty
        self.encoder = load.new_encoder(sizes.encoder, rngs=rngs)
        self.reader = fact_reader.FactReader(config, sizes, rngs=rngs)
        reasoner = GivenRules if config.reasoner == "rules" else prover.Prover
        self.reasoner = reasoner(config.prover, sizes, rngs=rngs)

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """Relation logits [B, R]."""
        return self.answer(batch, self.read(batch))

    def read(self, batch: TokenBatch) -> jax.Array:
        """Extracted graph: probability of each fact, [B, P, P, R]."""
        return self.reader(load.encode(batch, self.encoder))

    def word_facts(self, batch: TokenBatch) -> tuple[jax.Array, jax.Array]:
        """Most probable fact that each word states [B, T, 3] and its probability [B, T], see
        `FactReader.word_facts`."""
        return self.reader.word_facts(load.encode(batch, self.encoder))

    def loss(self, batch: TokenBatch) -> jax.Array:
        """Training loss of each story, [B]."""
        graph, departure = self.reader.extract(load.encode(batch, self.encoder))
        losses = self.reasoner.penalized(self.answer(batch, graph), batch.target)
        losses += self.word_penalty * departure
        if self.gold:
            losses += self.gold * fact_loss(batch, graph)
        return losses

    def answer(self, batch: TokenBatch, graph: jax.Array, rules: Any = None) -> jax.Array:
        """Relation logits [B, R] from an extracted graph [B, P, P, R], by the rules of the reasoner
        or by others, see `Prover.reason`."""
        story = jnp.arange(len(graph))
        first, second = (batch.people[:, None] == batch.query[:, :, None]).argmax(axis=-1).T
        facts = graph.at[story, first, second].set(0).at[story, second, first].set(0)
        rounds = (batch.people >= 0).sum(axis=1) - 1
        return self.reasoner.reason(facts, rounds, graph.shape[1] - 1, first, second, rules)


def stated_graph(batch: TokenBatch, relations: int) -> jax.Array:
    """Graph of the stated facts, [B, P, P, R]. Several facts about a pair are equally probable."""
    size = batch.people.shape[1]
    first, second, relation = jnp.moveaxis(batch.facts, -1, 0)  # [B, F]
    # Index R is out of range and dropped: padding, unstated relations (which have index R
    # already), and facts about a person and themselves.
    relation = jnp.where((relation < 0) | (first == second), relations, relation)
    story = jnp.arange(len(first))[:, None]
    facts = jnp.zeros((len(first), size, size, relations))
    facts = facts.at[story, first, second, relation].add(1, mode="drop")
    return facts / jnp.maximum(facts.sum(axis=-1, keepdims=True), 1)


def answer_by_given_rules(model: ReaderProver, batch: TokenBatch) -> jax.Array:
    """Composes the extracted facts with the 16 given rules: all errors are reading errors."""
    return model.answer(batch, model.read(batch), IS_RULE)


def answer_from_stated_facts(
    model: ReaderProver, batch: TokenBatch, rules: Any = None
) -> jax.Array:
    """Reasons over the stated facts instead of extracted ones: all errors are reasoning errors."""
    return model.answer(batch, stated_graph(batch, model.reader.relations), rules)


# Other logits of the same model, without its reader, its reasoner, or both, and what these are
# given: all errors of the last one are ambiguous labels.
VARIANTS: dict[str, tuple[Callable[[ReaderProver, TokenBatch], jax.Array], str]] = {
    "given rules": (answer_by_given_rules, "rules"),
    "stated facts": (answer_from_stated_facts, "stated facts"),
    "stated facts, given rules": (
        partial(answer_from_stated_facts, rules=IS_RULE),
        "stated facts, rules",
    ),
}


def gives(settings: Mapping[str, Any]) -> list[str]:
    """Returns what a reader prover with these settings has besides its training stories."""
    prior, penalty = settings["relation_word_prior"], settings["relation_word_penalty"]
    found = ["predicates and genders"]  # the reader names the predicate and gender of a fact
    found += ["words for relations"] * (prior > 0 or penalty > 0)
    found += ["rules"] * (settings["reasoner"] == "rules")
    return found + ["facts as labels"] * (settings["gold"] > 0)


def fact_loss(batch: TokenBatch, graph: jax.Array) -> jax.Array:
    """Loss of an extracted graph against the stated facts: [B, P, P, R] -> [B].

    Sum of the negative log-probabilities of all stated facts, and of "no relation" for all pairs
    without a fact in either direction. Facts whose relation the data set does not give are ignored.
    """
    relations = graph.shape[-1]
    first, second, relation = jnp.moveaxis(batch.facts, -1, 0)  # [B, F]
    story = jnp.arange(len(graph))[:, None]
    is_fact = (relation >= 0) & (relation < relations)
    probability = graph[story, first, second, jnp.clip(relation, 0, relations - 1)]
    stated = -(jnp.log(probability + EPSILON) * is_fact).sum(axis=1)
    is_unstated = jnp.ones(graph.shape[:3]).at[story, first, second].min(1.0 * (relation < 0))
    is_unstated *= is_unstated.swapaxes(1, 2)
    log_none = jnp.log(1 - graph.sum(axis=-1) + EPSILON)
    return stated - (log_none * is_unstated).sum(axis=(1, 2))
