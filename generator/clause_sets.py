"""All clauses of a given length, and which of them are for training and which for tests."""

from functools import lru_cache

import numpy as np

from generator.clause import held_out
from generator.closure import KinshipGraph, kinship_graph
from generator.config import Config
from generator.family import FamilyShape
from generator.kinship import RELATION_OF
from generator.prover import derivable

_MAX_SEARCH = 4e5  # of the search for all clauses; it takes seconds


def is_listable(config: Config, k: int) -> bool:
    """Whether there are few enough clauses of k facts: up to k = 5 in families as released."""
    return config.shape.max_people() * 6.0**k < _MAX_SEARCH


def allowed_clauses(config: Config, split: str, k: int) -> np.ndarray:
    """The clauses of k facts (if listable) that stories of a split may have.

    Returns:
      [C, k + 1] relations: the facts, then the answer; sorted.
    """
    shape = config.shape
    shape = shape._replace(min_child=shape.max_child, p_marry=float(shape.p_marry > 0))
    clauses = _all_clauses(shape, k, config.ambiguous == "drop")
    if config.holds_out_clauses(k):
        tests_only = held_out(clauses[:, :k], config.clause_fraction, config.seed)
        clauses = clauses[tests_only == (split == "test")]
    return clauses


@lru_cache(maxsize=32)
def _all_clauses(shape: FamilyShape, k: int, unambiguous: bool) -> np.ndarray:
    graph = kinship_graph(shape, 1, np.random.default_rng(0))
    facts, target = _all_chains(graph, k)
    people = np.concatenate([graph.start[facts], graph.end[facts[:, -1:]]], axis=1)  # [S, k + 1]
    head = graph.families.head[people]
    # Chains differ for a clause only in predicates, in who is whom, and in who is whose partner.
    predicates = np.concatenate([graph.predicate[facts], graph.predicate[target][:, None]], axis=1)
    flipped = (head != people).astype(np.int64)
    kinds = np.concatenate([predicates, _first_equal(people), _first_equal(head), flipped], axis=1)
    kinds = np.unique(kinds, axis=0)
    predicates, person, head, flipped = np.split(kinds, [k + 1, 2 * k + 2, 3 * k + 3], axis=1)
    if unambiguous:
        steps = np.stack([person[:, :-1], person[:, 1:]], axis=2)
        found = derivable(steps, predicates[:, :k], person[:, [0, -1]], k + 1)
        keep = found.sum(axis=1) == 1
        predicates, head, flipped = predicates[keep], head[keep], flipped[keep]
    bits = np.arange(1 << (k + 1))[:, None] >> np.arange(k + 1) & 1  # [2 ** (k + 1), k + 1]
    gender = bits[:, head] ^ flipped  # [2 ** (k + 1), kinds, k + 1]
    led_to = np.concatenate([gender[:, :, 1:], gender[:, :, -1:]], axis=2)
    return np.unique(RELATION_OF[predicates, led_to].reshape(-1, k + 1), axis=0)


def _all_chains(graph: KinshipGraph, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The facts [S, k] and the target [S] of everything that `clause.chain` may draw."""
    target = graph.target
    facts = target[:, None]
    used = graph.either[facts]
    first, last = graph.member[graph.rule[:-1]], graph.member[graph.rule[1:]]  # rows of `body`
    for length in range(1, k):
        parts = []
        for position in range(length):
            count = last[facts[:, position]] - first[facts[:, position]]
            row = np.repeat(np.arange(len(facts)), count)
            offset = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
            body = graph.body[first[facts[row, position]] + offset]
            either = graph.either[body]
            new = ~(used[row][:, :, None] == either[:, None]).any(axis=(1, 2))
            row, body, either = row[new], body[new], either[new]
            before, after = facts[row, :position], facts[row, position + 1 :]
            parts.append((
                np.concatenate([before, body, after], axis=1),
                np.concatenate([used[row], either], axis=1),
                target[row],
            ))  # fmt: skip
        facts, used, target = (np.concatenate(a) for a in zip(*parts, strict=True))
        used.sort(axis=1)
        # The same facts with the same ones used have the same future, whatever their proofs.
        same = np.unique(np.concatenate([facts, used], axis=1), axis=0, return_index=True)[1]
        facts, used, target = facts[same], used[same], target[same]
    return facts, target


def _first_equal(values: np.ndarray) -> np.ndarray:
    """The first column of each row that holds the same value, for each column."""
    return (values[:, :, None] == values[:, None, :]).argmax(axis=2)
