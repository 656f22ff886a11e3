"""Enumeration of all clauses of a given length, and their split into train and test clauses."""

from functools import lru_cache

import numpy as np

from generator.relations.deduction import derivable
from generator.relations.kinship import PREDICATE_ALGEBRA, RELATION_OF
from generator.stories.clause import held_out
from generator.stories.closure import KinshipGraph, kinship_graph, ranges
from generator.stories.config import Config
from generator.stories.family import FamilyShape

_MAX_COST = 4e5  # of an enumeration; keeps it within seconds


def is_listable(config: Config, k: int) -> bool:
    """Returns True if the clauses of k facts can be enumerated: k <= 5 in the default family."""
    return config.shape.max_people() * 6.0**k < _MAX_COST


def allowed_clauses(config: Config, split: str, k: int) -> np.ndarray:
    """Returns the clauses of k facts (listable) that may occur in a split.

    They are relations [C, k + 1], sorted: the facts, then the answer.
    """
    # The largest family that can be sampled contains the others, and so all of their clauses.
    shape = config.shape
    shape = shape._replace(min_child=shape.max_child, p_marry=float(shape.p_marry > 0))
    clauses = _all_clauses(shape, k, config.ambiguous == "drop")
    if config.holds_out_clauses(k):
        test_only = held_out(clauses[:, :k], config.clause_fraction, config.seed)
        clauses = clauses[test_only == (split == "test")]
    return clauses


@lru_cache(maxsize=32)
def _all_clauses(shape: FamilyShape, k: int, unambiguous: bool) -> np.ndarray:
    graph = kinship_graph(shape, 1, np.random.default_rng(0))
    facts, target = _all_chains(graph, k)
    people = graph.people(facts)  # [S, k + 1]
    head = graph.families.head[people]
    # A clause depends on the predicates, on which people are equal, and on which are partners.
    predicates = np.concatenate([graph.predicate[facts], graph.predicate[target][:, None]], axis=1)
    flipped = (head != people).astype(np.int64)
    kinds = np.concatenate([predicates, _first_equal(people), _first_equal(head), flipped], axis=1)
    kinds = np.unique(kinds, axis=0)
    predicates, person, head, flipped = np.split(kinds, [k + 1, 2 * k + 2, 3 * k + 3], axis=1)
    if unambiguous:
        edges = np.stack([person[:, :-1], person[:, 1:]], axis=2)
        query = person[:, [0, -1]]
        answers = derivable(edges, predicates[:, :k], query, k + 1, PREDICATE_ALGEBRA)
        keep = answers.sum(axis=1) == 1
        predicates, head, flipped = predicates[keep], head[keep], flipped[keep]
    # Each couple has either gender first (`head`), and its partner the other one. The answer is the
    # relation of the last person, whose gender it has.
    bits = np.arange(1 << (k + 1))[:, None] >> np.arange(k + 1) & 1  # [2 ** (k + 1), k + 1]
    gender = bits[:, head] ^ flipped  # [2 ** (k + 1), kinds, k + 1]
    gender = np.concatenate([gender[:, :, 1:], gender[:, :, -1:]], axis=2)  # of Y in each fact
    return np.unique(RELATION_OF[predicates, gender].reshape(-1, k + 1), axis=0)


def _all_chains(graph: KinshipGraph, k: int) -> tuple[np.ndarray, np.ndarray]:
    """All paths [S, k] and targets [S] that `clause.chain` can sample."""
    target = graph.target
    facts = target[:, None]
    used = graph.pair_id[facts]
    # The bodies of fact e are body[first[e]:last[e]].
    first = graph.group_offset[graph.rule_offset[:-1]]
    last = graph.group_offset[graph.rule_offset[1:]]
    for length in range(1, k):
        parts = []
        for position in range(length):
            row, application = ranges(first[facts[:, position]], last[facts[:, position]])
            body = graph.body[application]
            pair_id = graph.pair_id[body]
            new = ~(used[row][:, :, None] == pair_id[:, None]).any(axis=(1, 2))
            row, body, pair_id = row[new], body[new], pair_id[new]
            before, after = facts[row, :position], facts[row, position + 1 :]
            parts.append((
                np.concatenate([before, body, after], axis=1),
                np.concatenate([used[row], pair_id], axis=1),
                target[row],
            ))  # fmt: skip
        facts, used, target = (np.concatenate(a) for a in zip(*parts, strict=True))
        used.sort(axis=1)
        # Equal paths with equal used facts have equal continuations, whatever their proofs.
        unique = np.unique(np.concatenate([facts, used], axis=1), axis=0, return_index=True)[1]
        facts, used, target = facts[unique], used[unique], target[unique]
    return facts, target


def _first_equal(values: np.ndarray) -> np.ndarray:
    """For each column of each row, the first column with the same value."""
    return (values[:, :, None] == values[:, None, :]).argmax(axis=2)
