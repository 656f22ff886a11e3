"""Proofs of labels and of predictions: sound, and only of facts that follow."""

import numpy as np
import pytest

from clutrr_jax.data.records import concatenate
from clutrr_jax.evaluation.proofs import facts_of, prove_extracted, prove_label
from clutrr_jax.language_models.prompts import sentences
from generator.relations.deduction import Fact, rule_heads
from generator.relations.kinship import (
    KINSHIP,
    NUM_RELATIONS,
    PREDICATE_OF,
    PREDICATES,
    RELATION_ID,
    RELATIONS,
    RULES,
)
from tests.data.test_records import records_of


def test_proofs_are_sound_and_end_in_the_label(small) -> None:
    """Each step is one of the 16 rules and rests on stated facts or earlier steps; the last one is
    the label. Every generated story has a proof."""
    records = concatenate([small.train, small.test])
    for story in range(len(records)):
        proof = prove_label(records, story)
        assert proof
        known = set(facts_of(records, story))
        for first, second, head in proof:
            assert {first, second} <= known and head not in known
            assert (first.x, first.y, second.y) == (head.x, second.x, head.y)
            body = PREDICATES[first.relation], PREDICATES[second.relation]
            assert RULES[body] == PREDICATES[head.relation]
            known.add(head)
        x, y = records.query[story]
        assert proof[-1].head == Fact(x, PREDICATE_OF[records.target[story]], y)
        said = sentences(records, story, proof)
        assert len(said) == len(proof) and said[-1].endswith(
            f"so {records.names[records.node_start[story] + y]} is the "
            f"{RELATIONS[records.target[story]]} of {records.names[records.node_start[story] + x]}."
        )


def test_a_label_that_does_not_follow_has_no_proof(small) -> None:
    wrong = small.train.select(np.arange(5))
    wrong.target[:] = (wrong.target + 2) % len(RELATIONS)
    for story in range(5):
        if PREDICATE_OF[wrong.target[story]] != PREDICATE_OF[small.train.target[story]]:
            assert prove_label(wrong, story) is None


def test_nobody_is_their_own_sibling() -> None:
    """Bob's mother's son is Bob, so his daughter is not his niece."""
    change = {
        "story": "[Ann] [Bob] [Cy]",
        "query": "('Bob', 'Cy')",
        "story_edges": "[(1, 0), (0, 1), (1, 2)]",
        "edge_types": "['mother', 'son', 'daughter']",
        "query_edge": "(1, 2)",
    }
    records = records_of(*(change | {"target": target} for target in ("daughter", "niece")))
    assert prove_label(records, 0) == [] and prove_label(records, 1) is None
    assert sentences(records, 0, []) == ["The story says what Cy is to Bob."]


def test_proof_from_extracted_facts_by_hand() -> None:
    """Two chains from person 0 to person 3, through 1 and through 2."""
    son, grandson = RELATION_ID["son"], RELATION_ID["grandson"]
    rules = np.zeros((NUM_RELATIONS,) * 3)
    rules[tuple(KINSHIP.rules.T)] = 0.8
    heads, goal = rule_heads(rules), Fact(0, grandson, 3)
    relation, probability = np.full((4, 4), son), np.zeros((4, 4))
    probability[0, 1], probability[1, 3] = 0.9, 0.5
    probability[0, 2], probability[2, 3] = 0.7, 0.7
    proof = prove_extracted(relation, probability, heads, goal)
    assert proof.steps == [((0, son, 2), (2, son, 3), goal)]
    assert proof.probability == pytest.approx(0.8 * 0.7 * 0.7)
    # A fact extracted for the pair leaves less probability for derived ones.
    probability[0, 3] = 0.25
    proof = prove_extracted(relation, probability, heads, goal)
    assert proof.probability == pytest.approx(0.75 * 0.8 * 0.7 * 0.7)
    assert prove_extracted(relation, 0 * probability, heads, goal) is None
