"""Proofs: sound, and only of what follows."""

import numpy as np
import pytest

from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import UNSTATED, concatenate, parse
from clutrr_jax.evaluation.proofs import Fact, prove
from clutrr_jax.language_models.prompts import sentences
from generator.kinship import PREDICATE_OF, PREDICATES, RELATIONS, RULES
from tests.data.test_records import ROW


@pytest.fixture(scope="module")
def data(small_folder):
    return load(small_folder)


def test_proofs_are_sound_and_end_in_the_label(data) -> None:
    """Each step is one of the 16 rules and rests on stated facts or earlier steps; the last is the
    label. Every generated story has a proof."""
    records = concatenate([data.train, data.test])
    for story in range(len(records)):
        proof = prove(records, story)
        assert proof is not None
        edges = range(records.edge_start[story], records.edge_start[story + 1])
        known = {
            Fact(records.senders[e], PREDICATE_OF[records.relations[e]], records.receivers[e])
            for e in edges
            if records.relations[e] != UNSTATED
        }
        for step in proof:
            assert {step.first, step.second} <= known and step.head not in known
            body = PREDICATES[step.first.predicate], PREDICATES[step.second.predicate]
            assert RULES[body] == PREDICATES[step.head.predicate]
            assert (step.first.x, step.first.y, step.second.y) == (
                step.head.x, step.second.x, step.head.y,
            )  # fmt: skip
            known.add(step.head)
        x, y = records.query[story]
        assert Fact(x, PREDICATE_OF[records.target[story]], y) in known
        said = sentences(records, story, proof)
        assert said.endswith(
            f"so {records.names[records.node_start[story] + y]} is the "
            f"{RELATIONS[records.target[story]]} of {records.names[records.node_start[story] + x]}."
        )


def test_a_label_that_does_not_follow_has_no_proof(data) -> None:
    other = data.train.select(np.arange(5))
    wrong = (other.target + 2) % len(RELATIONS)
    for story in range(5):
        other.target[story] = wrong[story]
        if PREDICATE_OF[wrong[story]] != PREDICATE_OF[data.train.target[story]]:
            assert prove(other, story) is None


def test_nobody_is_his_own_sibling() -> None:
    """Bob's mother's son is Bob, so his daughter is not his niece."""
    row = ROW | {
        "story": "[Ann] [Bob] [Cy]",
        "query": "('Bob', 'Cy')",
        "story_edges": "[(1, 0), (0, 1), (1, 2)]",
        "edge_types": "['mother', 'son', 'daughter']",
        "query_edge": "(1, 2)",
    }
    rows = [list((row | {"target": target}).values()) for target in ("daughter", "niece")]
    records = parse("file", list(row), rows)
    assert prove(records, 0) == [] and prove(records, 1) is None
    assert sentences(records, 0, []) == "The story says what Cy is to Bob."
