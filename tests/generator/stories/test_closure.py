import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.relations.kinship import COMPOSE, INVERSE, PREDICATE_ID, PREDICATES
from generator.stories.closure import close, kinship_graph
from generator.stories.family import FamilyShape, sample_families


def facts_of(graph):
    return dict(
        zip(
            zip(graph.start.tolist(), graph.end.tolist(), strict=True), graph.predicate, strict=True
        )
    )


def random_graph(seed):
    rng = np.random.default_rng(seed)
    return close(sample_families(FamilyShape(3, 1, 3, 0.7), 2, rng))


def test_facts_of_the_released_family():
    graph = kinship_graph(FamilyShape(), 1, np.random.default_rng(0))
    count = dict(zip(PREDICATES, np.bincount(graph.predicate, minlength=11), strict=True))
    # 4 + 16 children with 2 parents each, 21 couples, 5 groups of 4 siblings, 2 x 16 grandchildren
    assert count["child"] == count["inv-child"] == 40
    assert count["SO"] == 42
    assert count["sibling"] == 5 * 4 * 3
    assert count["grand"] == count["inv-grand"] == 32
    assert count["in-law"] == count["inv-in-law"] == 8 + 32
    assert count["un"] == count["inv-un"] == 4 * 3 * 4


@settings(max_examples=30)
@given(st.integers(0, 200))
def test_facts_are_true_in_the_family(seed):
    graph = random_graph(seed)
    facts = facts_of(graph)
    parent, partner = graph.families.parent, graph.families.partner
    parents = [{p, int(partner[p])} if p >= 0 else set() for p in parent.tolist()]
    name = PREDICATE_ID
    for (x, y), predicate in facts.items():
        assert x != y
        assert facts[y, x] == INVERSE[predicate]
        assert (predicate == name["SO"]) == (partner[x] == y)
        assert (predicate == name["inv-child"]) == (y in parents[x])
        grand = {g for p in parents[x] for g in parents[p]}
        assert (predicate == name["inv-grand"]) == (y in grand)
        assert (predicate == name["sibling"]) == bool(parents[x] and parents[x] == parents[y])


@settings(max_examples=30)
@given(st.integers(0, 200))
def test_rule_applications_are_complete_and_correct(seed):
    graph = random_graph(seed)
    facts = facts_of(graph)
    expected = {
        (x, z, y)
        for (x, z), p in facts.items()
        for (z2, y), q in facts.items()
        if z == z2 and COMPOSE[p, q] >= 0 and facts.get((x, y)) == COMPOSE[p, q]
    }
    found = set()
    for fact in range(len(graph.start)):
        rules = []
        for group in range(graph.rule_offset[fact], graph.rule_offset[fact + 1]):
            rows = slice(graph.group_offset[group], graph.group_offset[group + 1])
            first, second = graph.body[rows].T
            assert len(np.unique(graph.predicate[first] * 11 + graph.predicate[second])) == 1
            rules.append((graph.predicate[first[0]], graph.predicate[second[0]]))
            assert (graph.start[first] == graph.start[fact]).all()
            assert (graph.end[second] == graph.end[fact]).all()
            assert (graph.end[first] == graph.start[second]).all()
            found |= {(graph.start[fact], z, graph.end[fact]) for z in graph.end[first].tolist()}
        assert len(set(rules)) == len(rules)
    assert found == expected
    assert graph.body.shape == (len(expected), 2)
