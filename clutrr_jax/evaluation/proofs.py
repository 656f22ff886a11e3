"""Proofs of a story's label from its stated facts, and of a model's prediction from the facts that
it extracted."""

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np

from clutrr_jax.data.records import Records
from generator.relations.algebra import Algebra
from generator.relations.deduction import Fact, Proof, RuleHeads, Step, prove, rule_heads


@cache
def _given(algebra: Algebra) -> RuleHeads:
    """The rules of an algebra."""
    rules = np.zeros(algebra.composition.shape)
    rules[tuple(algebra.rules.T)] = 1
    return rule_heads(rules)


def facts_of(records: Records, story: int) -> list[Fact]:
    """The facts of a story over predicates, -1 where the relation is not stated."""
    edges = slice(records.edge_start[story], records.edge_start[story + 1])
    predicates = np.append(records.algebra.coarse.predicate, -1)[records.relations[edges]]
    facts = np.stack([records.senders[edges], predicates, records.receivers[edges]], axis=1)
    return [Fact(*fact) for fact in facts.tolist()]


def prove_label(records: Records, story: int) -> list[Step] | None:
    """A shortest proof of the label of a story by the rules of the algebra, over predicates.

    People are indexed within the story. The proof has no steps if the label is stated, and is None
    if it does not follow.
    """
    stated = {fact: 1.0 for fact in facts_of(records, story) if fact.relation >= 0}
    x, y = records.query[story].tolist()
    view = records.algebra.coarse
    goal = Fact(x, view.predicate[records.target[story]], y)
    proof = prove(stated, _given(view.algebra), goal)
    return None if proof is None else proof.steps


def in_sentences(steps: Iterable[Step], say: Callable[[Fact], str]) -> list[str]:
    """Returns a sentence for each step of a proof; `say` puts a fact into words."""
    return [f"{say(step.first)} and {say(step.second)}, so {say(step.head)}." for step in steps]


def prove_extracted(
    relation: np.ndarray, probability: np.ndarray, heads: RuleHeads, goal: Fact
) -> Proof | None:
    """The most probable proof of a relation from facts that a model extracted.

    A fact is derived for a pair of people only as far as the model extracted none for that pair:
    its probability is multiplied by 1 - the probability of the extracted fact. `relation` and
    `probability` are the most probable relation of each pair [P, P], `heads` rules over relations.
    """
    pairs = np.argwhere(probability > 0).tolist()
    facts = {Fact(x, int(relation[x, y]), y): float(probability[x, y]) for x, y in pairs}
    return prove(facts, heads, goal, 1 - probability)
