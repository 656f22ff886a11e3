import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.relations.kinship import COMPOSE, NUM_RELATIONS
from generator.stories.clause import Chains, chain, choose, clause_code, held_out
from generator.stories.closure import kinship_graph
from generator.stories.family import FamilyShape

GRAPH = kinship_graph(FamilyShape(), 1, np.random.default_rng(0))


@settings(max_examples=20)
@given(st.integers(2, 9), st.integers(0, 99))
def test_steps_prove_the_target_from_the_facts(k, seed):
    rng = np.random.default_rng(seed)
    predicate = rng.choice(GRAPH.provable_predicates(), 20)
    target = GRAPH.sample_target(predicate, rng)
    assert (GRAPH.predicate[target] == predicate).all()
    chains = chain(GRAPH, target, k, rng)
    complete = chains.complete
    assert complete.any()
    chains, target = Chains(*(a[complete] for a in chains)), target[complete]
    people = GRAPH.people(chains.facts)
    assert (people[:, 0] == GRAPH.start[target]).all()
    assert (people[:, -1] == GRAPH.end[target]).all()
    assert (GRAPH.end[chains.facts[:, :-1]] == GRAPH.start[chains.facts[:, 1:]]).all()
    for facts, steps, root in zip(chains.facts, chains.steps, target, strict=True):
        goals = [root]
        for head, first, second in steps:
            assert COMPOSE[GRAPH.predicate[first], GRAPH.predicate[second]] == GRAPH.predicate[head]
            goals.remove(head)
            goals += [first, second]
        assert sorted(goals) == sorted(facts)
        # No fact is repeated, in either direction.
        all_facts = [root, *steps[:, 1:].ravel()]
        pairs = {frozenset((GRAPH.start[f], GRAPH.end[f])) for f in all_facts}
        assert len(pairs) == len(all_facts) == 2 * k - 1


def test_choose_is_uniform_over_allowed_columns():
    allowed = np.tile([False, True, True, False, True], (30_000, 1))
    column, found = choose(allowed, np.random.default_rng(0))
    assert found.all()
    count = np.bincount(column, minlength=5)
    assert count[[0, 3]].tolist() == [0, 0]
    assert (abs(count[[1, 2, 4]] - 10_000) < 400).all()
    assert choose(np.zeros((1, 3), bool), np.random.default_rng(0))[1].tolist() == [False]


def test_distinct_clauses_have_distinct_codes():
    clauses = np.random.default_rng(0).integers(0, NUM_RELATIONS, (5000, 13))
    assert len(np.unique(clause_code(clauses))) == len(np.unique(clauses, axis=0))


@settings(max_examples=30)
@given(st.integers(0, 2**40), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_the_given_fraction_is_held_out(seed, fraction):
    clauses = np.random.default_rng(1).integers(0, NUM_RELATIONS, (4000, 3))
    mask = held_out(clauses, fraction, seed)
    assert abs(mask.mean() - fraction) < 0.05
    assert (held_out(clauses[::-1], fraction, seed) == mask[::-1]).all()
