"""Path consistency against all models of small networks, and against the prover of kinship."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from clutrr_jax.data.dataset import load
from clutrr_jax.evaluation.baselines import answers
from generator.relations.algebras import find_algebra
from generator.relations.kinship import KINSHIP
from generator.relations.path_consistency import possible_relations
from tests.generator.relations.test_algebras import intervals, regions

# Facts of networks of four elements, of which the query pair is (0, 3).
SHAPES = [
    [(0, 1), (1, 3)],
    [(1, 0), (1, 2), (3, 2)],
    [(0, 1), (1, 3), (0, 2), (2, 3)],
    [(0, 1), (1, 2), (2, 0), (2, 3)],
]


@pytest.mark.parametrize("edges", SHAPES)
@pytest.mark.parametrize("name", ["interval", "rcc8"])
def test_possible_relations_are_those_of_the_models(name: str, edges: list) -> None:
    """Never fewer, and exactly those on paths: of intervals, and of three regions. Four regions
    may need more cells than these models have."""
    algebra = find_algebra(name)
    relation = intervals(8) if name == "interval" else regions()
    is_exact = edges in (SHAPES[:3] if name == "interval" else SHAPES[:1])
    size = len(algebra.relations)
    holds = relation == np.arange(size)[:, None, None]
    rng = np.random.default_rng(0)
    facts = rng.integers(size, size=(60, len(edges)))
    stated = np.array([edges] * len(facts))
    query = np.array([[0, 3]] * len(facts))
    found = possible_relations(stated, facts, query, algebra)
    shuffled = rng.permutation(4)
    again = possible_relations(shuffled[stated], facts, shuffled[query], algebra)
    np.testing.assert_array_equal(again, found)
    modelled = 0
    for labels, possible in zip(facts, found, strict=True):
        # Which values of the elements 0 and 3 the facts allow, element by element
        allowed = {edge: holds[r].astype(np.float32) for edge, r in zip(edges, labels, strict=True)}
        pairs = _pairs(allowed, len(relation))
        true = np.zeros(size, bool)
        true[np.unique(relation[pairs])] = True
        modelled += true.any()
        assert (possible >= true).all()
        if true.any() and is_exact:
            assert (possible == true).all()
    assert modelled > 5


def _pairs(allowed: dict, values: int) -> np.ndarray:
    """Pairs of values of elements 0 and 3 for which the others have values, bool [V, V]."""
    full = np.ones((values, values), np.float32)

    def of(x: int, y: int) -> np.ndarray:
        return allowed.get((x, y), full) * allowed.get((y, x), full.T).T

    found = np.zeros((values, values), bool)
    for first in range(values):
        one, two = of(0, 1)[first], of(0, 2)[first]
        both = one[:, None] * two * of(1, 2)  # values of elements 1 and 2
        if both.any():
            found[first] = np.einsum("ij,iv,jv->v", both, of(1, 3), of(2, 3)) > 0
    return found & (of(0, 3) > 0)


def test_on_kinship_it_equals_the_prover(small_folder: Path) -> None:
    """Unless the facts contradict each other, by the two rules that make parents of
    parents-in-law: then nothing is left."""
    test = load(small_folder).records("test")
    derived = answers(test)
    edges = np.zeros((len(test), int(np.diff(test.edge_start).max()), 2), int)
    relations = np.full(edges.shape[:2], -1)
    for s, (start, end) in enumerate(zip(test.edge_start, test.edge_start[1:], strict=False)):
        edges[s, : end - start] = np.stack([test.senders, test.receivers], axis=1)[start:end]
        relations[s, : end - start] = test.relations[start:end]
    possible = possible_relations(edges, relations, test.query, KINSHIP)
    decided = derived.sum(axis=1) == 1
    assert decided.mean() > 0.9
    decided &= possible.any(axis=1)
    assert decided.mean() > 0.85
    np.testing.assert_array_equal(possible[decided], derived[decided])


def test_a_contradiction_leaves_nothing_and_unstated_facts_say_nothing() -> None:
    rcc8 = find_algebra("rcc8")
    dc, ec = rcc8.index["DC"], rcc8.index["EC"]
    edges, query = np.array([[[0, 1], [1, 0]]]), np.array([[0, 1]])
    for (first, second), left in {(dc, ec): 0, (dc, dc): 1, (dc, -1): 1, (-1, -1): 8}.items():
        found = possible_relations(edges, np.array([[first, second]]), query, rcc8)
        assert found.sum() == left
    for first, second in product(range(8), repeat=2):  # facts against their direction
        backward = possible_relations(
            np.array([[[1, 0], [2, 1]]]), np.array([[first, second]]), np.array([[0, 2]]), rcc8
        )
        inverse = rcc8.inverse.argmax(axis=1)
        heads = rcc8.composition[inverse[first], inverse[second]]
        np.testing.assert_array_equal(backward[0], heads if heads.any() else ~heads)
