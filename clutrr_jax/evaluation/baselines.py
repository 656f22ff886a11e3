"""Symbolic and constant baselines.

    given rules     what the algebra derives or leaves possible: for kinship, the 16 rules
    induced rules   the same with compositions induced from the training rows
    majority label  most frequent label of each test set, from the labels of the test

Rules with one head derive facts (`closure`). A composition table with several heads excludes
relations until one is left (path consistency).
"""

from dataclasses import replace

import numpy as np

from clutrr_jax.data.records import Records, by_people, tasks
from clutrr_jax.evaluation.predictions import UNMAPPED, Predictions
from generator.relations.algebra import Algebra
from generator.relations.deduction import closure
from generator.relations.path_consistency import possible_relations

# What each of them is given, as in `clutrr_jax.models.Spec.given`.
BASELINES = {
    "given rules": "rules",
    "induced rules": "nothing",
    "majority label": "labels of the test",
}


def induced(train: Records) -> Algebra:
    """The algebra whose compositions are those of training rows; inverses are not known.

    A row supports the rule `first, second -> label` if two stated facts with these relations lead
    from the first person of its query to the second. If the algebra has rules only, the most
    frequent head of each pair is kept, otherwise all of them.
    """
    algebra, size = train.algebra, train.unstated
    count = np.zeros((size,) * 3, int)
    for part in map(train.select, by_people(train)):
        facts = stated_facts(part)
        x, y = part.query.T
        story = np.arange(len(part))
        from_x, to_y = facts[story, x], facts[story, :, y]  # [S, P, R]: X to Z, Z to Y
        s, z, first = np.nonzero(from_x)
        pair, second = np.nonzero(to_y[s, z])
        np.add.at(count, (first[pair], second, part.target[s[pair]]), 1)
    if algebra.has_rules_only:
        count *= np.arange(size) == count.argmax(axis=-1, keepdims=True)
    heads = (tuple(np.flatnonzero(row).tolist()) for row in count.reshape(-1, size))
    return replace(algebra, heads=tuple(heads), inverses=(tuple(range(size)),) * size, view=None)


def stated_facts(records: Records) -> np.ndarray:
    """[S, P, P, R] bool, true where Y is stated to be the r of X."""
    sizes = np.diff(records.edge_start)
    story = np.repeat(np.arange(len(records)), sizes)
    people = int(np.diff(records.node_start).max())
    facts = np.zeros((len(records), people, people, records.unstated), bool)
    stated = (records.relations != records.unstated) & (records.senders != records.receivers)
    facts[
        story[stated],
        records.senders[stated],
        records.receivers[stated],
        records.relations[stated],
    ] = True
    return facts


def stated_predicates(records: Records) -> np.ndarray:
    """`stated_facts` in the coarser view of the algebra, [S, P, P, Q]."""
    return np.any(stated_facts(records)[..., records.algebra.coarse.relation], axis=-1)


def answers(records: Records, algebra: Algebra | None = None, coarse: bool = False) -> np.ndarray:
    """The relations of each query pair that the facts derive or leave possible, bool [S, R], or
    [S, Q] in the coarser view; by the compositions of `algebra`, by default that of the records."""
    used = algebra or records.algebra
    rules = used.coarse.algebra.rules if coarse else used.rules
    found = []
    groups = list(by_people(records))
    for part in map(records.select, groups):
        if records.algebra.has_rules_only:
            facts = stated_predicates(part) if coarse else stated_facts(part)
            found.append(closure(facts, rules)[np.arange(len(part)), *part.query.T])
        else:
            edges, relations = _padded_facts(part)
            found.append(possible_relations(edges, relations, part.query, used))
    return np.concatenate(found)[np.argsort(np.concatenate(groups))]


def _padded_facts(records: Records) -> tuple[np.ndarray, np.ndarray]:
    """People [S, E, 2] and relations [S, E] of the facts; -1 at padding, and if not stated."""
    sizes = np.diff(records.edge_start)
    story = np.repeat(np.arange(len(records)), sizes)
    fact = np.arange(len(story)) - records.edge_start[story]
    edges = np.zeros((len(records), int(sizes.max()), 2), int)
    relations = np.full(edges.shape[:2], -1)
    edges[story, fact] = np.stack([records.senders, records.receivers], axis=1)
    relations[story, fact] = np.where(records.relations == records.unstated, -1, records.relations)
    return edges, relations


def predict_with(algebra: Algebra, test: Records) -> Predictions:
    """The relation that an algebra derives or leaves possible for each query pair.

    One of several relations is drawn, each with the same chance. Without any there is no answer.
    """
    follows = answers(test, algebra)
    chances = follows / np.maximum(follows.sum(axis=-1, keepdims=True), 1)
    best = np.where(follows.any(axis=-1), follows.argmax(axis=-1), UNMAPPED)[None]
    return Predictions(best, best, chances.max(axis=-1)[None], chances=chances[None])


def majority(records: Records) -> Predictions:
    """The most frequent label of each test set: the best constant prediction."""
    best = np.zeros((1, len(records)), int)
    for _, stories in tasks(records):
        best[:, stories] = np.bincount(records.target[stories]).argmax()
    return Predictions(best, best, np.ones(best.shape))
