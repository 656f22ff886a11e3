"""What rules alone answer, without any training: the 16 given, or those read off the train rows.

A gendered rule is three relations `first, second -> head` for (X, first, Z), (Z, second, Y).
"""

import numpy as np

from clutrr_jax.data.records import UNSTATED, Records, by_people
from clutrr_jax.evaluation.metrics import Predictions
from generator.kinship import NUM_RELATIONS, PREDICATE_ID, RELATION_OF, RULE_TABLE


def given_rules() -> np.ndarray:
    """The 16 rules for all genders of Z and Y, [64, 3]."""
    gender_z, gender_y = np.repeat([0, 1], 2), np.tile([0, 1], 2)
    first, second, head = RULE_TABLE.T[:, :, None]
    rules = (
        RELATION_OF[first, gender_z],
        RELATION_OF[second, gender_y],
        RELATION_OF[head, gender_y],
    )
    return np.stack(rules, axis=-1).reshape(-1, 3)


def read_rules(train: Records) -> np.ndarray:
    """The rules that train rows show: two stated facts lead from the one asked person to the
    other, and the label is their head; of several heads the most frequent. [rules, 3]"""
    count = np.zeros((NUM_RELATIONS,) * 3, int)
    for part in map(train.select, by_people(train)):
        facts = stated_facts(part)
        x, y = part.query.T
        story = np.arange(len(part))
        # [S, P, R]: what Z is to the first, and what the second is to Z.
        from_x, to_y = facts[story, x], facts[story, :, y]
        s, z, first = np.nonzero(from_x)
        pair, second = np.nonzero(to_y[s, z])
        np.add.at(count, (first[pair], second, part.target[s[pair]]), 1)
    first, second = np.nonzero(count.any(axis=-1))
    return np.stack([first, second, count[first, second].argmax(axis=-1)], axis=-1)


def stated_facts(records: Records) -> np.ndarray:
    """[S, P, P, R] True where it is stated what Y is to X."""
    sizes = np.diff(records.edge_start)
    story = np.repeat(np.arange(len(records)), sizes)
    people = int(np.diff(records.node_start).max())
    facts = np.zeros((len(records), people, people, NUM_RELATIONS), bool)
    stated = (records.relations != UNSTATED) & (records.senders != records.receivers)
    facts[
        story[stated],
        records.senders[stated],
        records.receivers[stated],
        records.relations[stated],
    ] = True
    return facts


def derive(facts: np.ndarray, rules: np.ndarray) -> np.ndarray:
    """All that follows from facts [S, P, P, R] by any bracketing. Nobody is anything to himself."""
    known = np.moveaxis(facts, -1, 0).astype(np.float32)  # [R, S, P, P]
    others = 1 - np.eye(facts.shape[1], dtype=np.float32)
    active = np.arange(len(facts))
    while len(active):
        before = known[:, active]
        after = before.copy()
        for first, second, head in rules:
            # The newest are used at once: fewer rounds.
            after[head] = np.maximum(after[head], (after[first] @ after[second] > 0) * others)
        known[:, active] = after
        active = active[(after != before).any(axis=(0, 2, 3))]
    return np.moveaxis(known, 0, -1) > 0


def answer(test: Records, rules: np.ndarray) -> Predictions:
    """What the rules derive for each asked pair. Of several readings the first by number is said,
    each being equally probable; of none, sibling-in-law, which no rule derives, with probability 0.
    """
    readings = np.zeros((len(test), NUM_RELATIONS), bool)
    for rows in by_people(test):
        part = test.select(rows)
        x, y = part.query.T
        readings[rows] = derive(stated_facts(part), rules)[np.arange(len(part)), x, y]
    count = readings.sum(axis=-1)
    gender = test.genders[test.node_start[:-1] + test.query[:, 1]]
    nothing = RELATION_OF[PREDICATE_ID["sibling-in-law"], gender]
    best = np.where(count, readings.argmax(axis=-1), nothing)[None]
    return Predictions(best, best, (np.minimum(count, 1) / np.maximum(count, 1))[None])


def rules_given(test: Records) -> Predictions:
    """The prover with the 16 rules."""
    return answer(test, given_rules())


def rules_read(train: Records, test: Records) -> Predictions:
    """The prover with the rules that the train rows show."""
    return answer(test, read_rules(train))
