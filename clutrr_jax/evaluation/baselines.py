"""Symbolic and constant baselines.

    given rules     prover with the benchmark's 16 rules
    induced rules   prover with rules induced from the training rows
    majority label  most frequent label of each test set

A gendered rule is three relations `first, second -> head` for (X, first, Z), (Z, second, Y).
"""

import numpy as np

from clutrr_jax.data.records import UNSTATED, Records, by_people, tasks
from clutrr_jax.evaluation.predictions import Predictions
from generator.deduction import closure
from generator.kinship import (
    NUM_RELATIONS,
    PREDICATE_ID,
    RELATION_OF,
    RULE_TABLE,
    UNKNOWN_GENDER,
)

BASELINES = ("given rules", "induced rules", "majority label")


def given_rules() -> np.ndarray:
    """The 16 rules for both genders of Z and of Y, [64, 3]."""
    gender_z, gender_y = np.repeat([0, 1], 2), np.tile([0, 1], 2)
    first, second, head = RULE_TABLE.T[:, :, None]
    rules = (
        RELATION_OF[first, gender_z],
        RELATION_OF[second, gender_y],
        RELATION_OF[head, gender_y],
    )
    return np.stack(rules, axis=-1).reshape(-1, 3)


def induced_rules(train: Records) -> np.ndarray:
    """Rules induced from training rows, [rules, 3].

    A row supports the rule `first, second -> label` if two stated facts with these relations lead
    from the first person of its query to the second. For each body the most frequent head is kept.
    """
    count = np.zeros((NUM_RELATIONS,) * 3, int)
    for part in map(train.select, by_people(train)):
        facts = stated_facts(part)
        x, y = part.query.T
        story = np.arange(len(part))
        from_x, to_y = facts[story, x], facts[story, :, y]  # [S, P, R]: X to Z, Z to Y
        s, z, first = np.nonzero(from_x)
        pair, second = np.nonzero(to_y[s, z])
        np.add.at(count, (first[pair], second, part.target[s[pair]]), 1)
    first, second = np.nonzero(count.any(axis=-1))
    return np.stack([first, second, count[first, second].argmax(axis=-1)], axis=-1)


def stated_facts(records: Records) -> np.ndarray:
    """[S, P, P, R] bool, true where Y is stated to be the r of X."""
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


def stated_predicates(records: Records) -> np.ndarray:
    """`stated_facts` without genders, [S, P, P, 11]."""
    male, female = np.moveaxis(stated_facts(records)[..., RELATION_OF], -1, 0)
    return male | female


def predict_with_rules(test: Records, rules: np.ndarray) -> Predictions:
    """The relation that gendered rules [rules, 3] derive for each query pair.

    If several relations follow, the lowest-numbered one is predicted, with probability 1 / their
    number. If none follows, the prediction is a sibling-in-law relation, which is the head of no
    rule, with probability 0.
    """
    follows = np.zeros((len(test), NUM_RELATIONS), bool)
    for rows in by_people(test):
        part = test.select(rows)
        x, y = part.query.T
        follows[rows] = closure(stated_facts(part), rules)[np.arange(len(part)), x, y]
    count = follows.sum(axis=-1)
    gender = test.genders[test.node_start[:-1] + test.query[:, 1]]
    no_answer = RELATION_OF[PREDICATE_ID["sibling-in-law"], gender % UNKNOWN_GENDER]
    best = np.where(count, follows.argmax(axis=-1), no_answer)[None]
    return Predictions(best, best, (np.minimum(count, 1) / np.maximum(count, 1))[None])


def majority(records: Records) -> Predictions:
    """The most frequent label of each test set: the best constant prediction."""
    best = np.zeros((1, len(records)), int)
    for _, stories in tasks(records):
        best[:, stories] = np.bincount(records.target[stories]).argmax()
    return Predictions(best, best, np.ones(best.shape))
