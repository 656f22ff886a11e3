"""Proofs of the labels, graphs extracted by a model and proofs of its predictions, as the JSON
values of the run page."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from clutrr_jax.data.records import Records
from clutrr_jax.evaluation.extraction import THRESHOLD, Extraction
from clutrr_jax.evaluation.ground_truth import RIGHT
from clutrr_jax.evaluation.proofs import facts_of, prove_extracted, prove_label
from generator.relations.deduction import Fact, Proof, Step, rule_heads

SHOWN = 0.1  # smallest probability of a fact that a word states on the page
# Kinds of facts on the page: the verdicts of `clutrr_jax.evaluation.ground_truth`, in their order,
# and facts that are stated but not extracted.
FACT_KINDS = ("right", "follows", "wrong", "unjudged", "missing")
MISSING = FACT_KINDS.index("missing")


def label_proof(test: Records, story: int) -> list[list[int]] | None:
    """Returns the steps of a proof of the label, see `encode_steps`; None if it does not follow.

    The facts are those of the story, in its order. R + 1 + the predicate stands for a relation to a
    person whose gender is not known.
    """
    steps = prove_label(test, story)
    if steps is None:
        return None
    relation_of = test.algebra.coarse.relation
    genders = np.minimum(test.genders[test.node_start[story] :], relation_of.shape[1])
    either = test.unstated + 1 + np.arange(len(relation_of))
    relation_of = np.column_stack([relation_of, either])
    return [
        [x, int(relation_of[predicate, genders[y]]), y, *premises]
        for x, predicate, y, *premises in encode_steps(facts_of(test, story), steps)
    ]


def encode_steps(facts: Sequence[Fact], steps: Sequence[Step]) -> list[list[int]]:
    """Encodes the steps of a proof as integers: x, relation and y of the derived fact, and the
    indices of its two premises. Indices count the facts, of equal ones the first, then the steps.
    """
    index = {fact: i for i, fact in reversed(list(enumerate(facts)))}
    encoded = []
    for i, (first, second, head) in enumerate(steps):
        encoded.append([*head, index[first], index[second]])
        index[head] = len(facts) + i
    return encoded


def extracted_graphs(
    extraction: Extraction, test: Records, order: np.ndarray, predicted: np.ndarray
) -> dict[str, list[Any] | None]:
    """Returns the facts that a model extracts from each story and the proof of its prediction.

    Args:
      order: indices of the stories in the order of the result, int[S].
      predicted: relation predicted for each story, int[S].
    Returns:
      "extracted": for each story, its facts as lists of x, relation, y, index in FACT_KINDS, and
        probability in percent. Extracted facts come first, then stated facts that were not
        extracted, then other premises of the proof.
      "proofs": for each story, the steps of the most probable proof (see `encode_steps`), or None
        if the prediction does not follow.
      "proofProbability": for each story, the probability of that proof in percent, or None.
      "wordFacts": for each story, the facts that its words state with a probability of at least
        SHOWN: the index of the word, then as in "extracted".
      They are None if the model has no rules, or if the facts are not known for words.
    """
    heads = None if extraction.rules is None else rule_heads(extraction.rules)
    graphs, proofs, percents, words = [], [], [], []
    for story in order:
        x, y = test.query[story].tolist()
        relation, probability = extraction.relation[story], extraction.probability[story].copy()
        np.fill_diagonal(probability, 0)
        probability[x, y] = probability[y, x] = 0
        goal = Fact(x, int(predicted[story]), y)
        proof = prove_extracted(relation, probability, heads, goal) if heads is not None else None
        facts = _facts(relation, probability, extraction.verdict[story], proof)
        graphs.append([[*fact, *values] for fact, values in facts.items()])
        proofs.append(proof and encode_steps(list(facts), proof.steps))
        percents.append(proof and round(100 * proof.probability, 1))
        words.append(_word_facts(extraction, story))
    return {
        "extracted": graphs,
        "proofs": None if heads is None else proofs,
        "proofProbability": None if heads is None else percents,
        "wordFacts": None if extraction.word_fact is None else words,
    }


def _word_facts(extraction: Extraction, story: int) -> list[list[int]]:
    if extraction.word_fact is None or extraction.word_probability is None:
        return []
    probability = extraction.word_probability[story]
    (word,) = np.nonzero(probability >= SHOWN)
    x, relation, y = extraction.word_fact[story][word].T
    kind = extraction.verdict[story][x, y, relation]
    percent = np.rint(100 * probability[word]).astype(int)
    return np.stack([word, x, relation, y, kind, percent], axis=1).tolist()


def _facts(
    relation: np.ndarray, probability: np.ndarray, verdict: np.ndarray, proof: Proof | None
) -> dict[Fact, tuple[int, int]]:
    """Facts of one story -> (kind, probability in percent, rounded up: > 50 is > THRESHOLD)."""
    extracted = probability > THRESHOLD
    listed = [Fact(x, int(relation[x, y]), y) for x, y in np.argwhere(extracted).tolist()]
    listed += [Fact(x, r, y) for x, y, r in np.argwhere(verdict == RIGHT).tolist()]
    if proof is not None:
        derived = {step.head for step in proof.steps}
        premises = [fact for step in proof.steps for fact in (step.first, step.second)]
        listed += [fact for fact in premises if fact not in derived]

    def describe(x: int, r: int, y: int) -> tuple[int, int]:
        most_probable = relation[x, y] == r
        kind = int(verdict[x, y, r])
        if kind == RIGHT and not (most_probable and extracted[x, y]):
            kind = MISSING
        return kind, math.ceil(100 * float(probability[x, y])) if most_probable else 0

    return {fact: describe(*fact) for fact in listed}
