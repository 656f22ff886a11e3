"""The closure and its proofs agree with brute force, for the 16 rules and for any others."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.relations.deduction import (
    MIN_PROBABILITY,
    Fact,
    closure,
    derivable,
    prove,
    rule_heads,
)
from generator.relations.kinship import NUM_PREDICATES, PREDICATE_ALGEBRA, PREDICATE_ID

RULES = PREDICATE_ALGEBRA.rules
PEOPLE = 5
person = st.integers(0, PEOPLE - 1)


def stories(relations: int) -> st.SearchStrategy[list[Fact]]:
    fact = st.builds(Fact, person, st.integers(0, relations - 1), person)
    return st.lists(fact, min_size=1, max_size=6)


def brute_force(facts, rules=RULES, inverse=None) -> set[Fact]:
    """The rules applied to every pair of facts until nothing new follows."""
    known = {fact for fact in facts if fact.x != fact.y}
    heads = defaultdict(set)
    for first, second, head in rules.tolist():
        heads[first, second].add(head)
    while True:
        new = {
            Fact(a.x, head, b.y)
            for a in known
            for b in known
            if a.y == b.x and a.x != b.y
            for head in heads[a.relation, b.relation]
        }
        if inverse is not None:
            new |= {Fact(fact.y, int(inverse[fact.relation]), fact.x) for fact in known}
        if new <= known:
            return known
        known |= new


def dense(batch: list[list[Fact]], relations: int) -> np.ndarray:
    facts = np.zeros((len(batch), PEOPLE, PEOPLE, relations), bool)
    for b, story in enumerate(batch):
        for x, r, y in story:
            facts[b, x, y, r] = True
    return facts


def as_facts(closed: np.ndarray) -> set[Fact]:
    return {Fact(int(x), int(r), int(y)) for x, y, r in np.argwhere(closed)}


@settings(max_examples=50)
@given(st.lists(stories(NUM_PREDICATES), min_size=1, max_size=3))
def test_closure_and_derivable_are_the_closure_under_the_16_rules(batch):
    width = max(map(len, batch))
    edges = np.zeros((len(batch), width, 2), int)
    predicates = np.full((len(batch), width), -1)
    for b, story in enumerate(batch):
        for e, (x, r, y) in enumerate(story):
            edges[b, e], predicates[b, e] = (x, y), r
    closed = closure(dense(batch, NUM_PREDICATES), RULES)
    for b, story in enumerate(batch):
        assert as_facts(closed[b]) == brute_force(story)
    for x in range(PEOPLE):
        for y in range(PEOPLE):
            query = np.tile([x, y], (len(batch), 1))
            found = derivable(edges, predicates, query, PEOPLE, PREDICATE_ALGEBRA)
            np.testing.assert_array_equal(found, closed[:, x, y])


@pytest.mark.parametrize("relations", [1, 4, 16, 22])
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_closure_under_any_rules_and_inverses(relations, data):
    """Up to 22 relations in rule bodies: several lookup tables."""
    story = data.draw(stories(relations))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rules = rng.integers(relations, size=(rng.integers(2 * relations), 3))
    inverse = data.draw(st.sampled_from([None, rng.integers(relations, size=relations)]))
    found = closure(dense([story], relations), rules, inverse)[0]
    assert as_facts(found) == brute_force(story, rules, inverse)


def test_the_one_ambiguity_of_the_rules():
    path = [PREDICATE_ID[name] for name in ("SO", "child", "inv-grand")]
    edges = np.array([[[0, 1], [1, 2], [2, 3]]])
    found = derivable(edges, np.array([path]), np.array([[0, 3]]), 4, PREDICATE_ALGEBRA)[0]
    expected = {PREDICATE_ID[name] for name in ("inv-child", "inv-in-law")}
    assert set(np.flatnonzero(found)) == expected


@settings(max_examples=20, deadline=None)
@given(stories(4), st.integers(0, 2**32))
def test_proofs_are_sound_and_most_probable(story, seed):
    """By brute force: the best probability of each fact, and the fewest steps for it."""
    rng = np.random.default_rng(seed)
    # Powers of two: products are exact, and ties are frequent.
    stated = {fact: 2.0 ** -rng.integers(3) for fact in story if fact.x != fact.y}
    rules = (rng.random((4, 4, 4)) < 0.3) * 2.0 ** -rng.integers(3, size=(4, 4, 4))
    weight = 2.0 ** -rng.integers(2, size=(PEOPLE, PEOPLE))
    best = {fact: (chance, 0) for fact, chance in stated.items()}
    before = None
    while best != before:
        before = best.copy()
        for a, (p, i) in list(best.items()):
            for b, (q, j) in list(best.items()):
                for head in range(4) if a.y == b.x and a.x != b.y else ():
                    r = p * q * rules[a.relation, b.relation, head] * weight[a.x, b.y]
                    if r >= MIN_PROBABILITY:
                        fact, value = Fact(a.x, head, b.y), (r, i + j + 1)
                        best[fact] = max(best.get(fact, value), value, key=lambda v: (v[0], -v[1]))
    heads = rule_heads(rules)
    for x, r, y in np.ndindex(PEOPLE, 4, PEOPLE):
        goal = Fact(x, r, y)
        proof = prove(stated, heads, goal, weight)
        assert (proof is not None) == (goal in best)
        if proof is None:
            continue
        assert proof.probability == best[goal][0]
        assert len(proof.steps) <= best[goal][1]  # shared steps are listed once
        known = set(stated)
        for a, b, head in proof.steps:
            assert {a, b} <= known and (a.x, a.y, b.y) == (head.x, b.x, head.y)
            assert rules[a.relation, b.relation, head.relation] > 0
            known.add(head)
        assert goal in known
        assert not proof.steps or proof.steps[-1].head == goal
