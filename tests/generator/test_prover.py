import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from generator.kinship import NUM_PREDICATES, PREDICATE_ID, RULES
from generator.prover import derivable

PEOPLE = 5
NAMES = list(PREDICATE_ID)
FACTS = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(NAMES), st.integers(0, 4)), min_size=1, max_size=6
)


def prove_slowly(facts):
    """The rules applied one by one until nothing new follows."""
    known = {(x, r, y) for x, r, y in facts if x != y}
    while True:
        new = {
            (x, RULES[p, q], y)
            for x, p, z in known
            for z2, q, y in known
            if z == z2 and x != y and (p, q) in RULES
        }
        if new <= known:
            return known
        known |= new


@given(st.lists(FACTS, min_size=1, max_size=3))
def test_derivable_is_the_closure_under_the_rules(stories):
    width = max(map(len, stories))
    edges = np.zeros((len(stories), width, 2), int)
    predicates = np.full((len(stories), width), -1)
    for b, facts in enumerate(stories):
        for e, (x, r, y) in enumerate(facts):
            edges[b, e], predicates[b, e] = (x, y), PREDICATE_ID[r]
    known = [prove_slowly(facts) for facts in stories]
    for x in range(PEOPLE):
        for y in range(PEOPLE):
            found = derivable(edges, predicates, np.tile([x, y], (len(stories), 1)), PEOPLE)
            assert found.shape == (len(stories), NUM_PREDICATES)
            for b in range(len(stories)):
                names = {r for a, r, c in known[b] if (a, c) == (x, y)}
                assert {NAMES[i] for i in np.flatnonzero(found[b])} == names


def test_the_one_ambiguity_of_the_rules():
    path = [PREDICATE_ID[name] for name in ("SO", "child", "inv-grand")]
    edges = np.array([[[0, 1], [1, 2], [2, 3]]])
    found = derivable(edges, np.array([path]), np.array([[0, 3]]), 4)[0]
    assert {NAMES[i] for i in np.flatnonzero(found)} == {"inv-child", "inv-in-law"}
