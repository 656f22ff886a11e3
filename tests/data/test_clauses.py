"""Clauses do not depend on names and order, and tell apart what an isomorphism tells apart."""

from itertools import permutations

import numpy as np

from clutrr_jax.data.clauses import number_clauses
from clutrr_jax.data.records import concatenate
from tests.data.test_records import records_of

PEOPLE, NAMES = 4, ("Ann", "Bob", "Cy", "Di")


def story(facts, query=(0, 3), order=range(PEOPLE), text="") -> dict:
    """A row with facts (X, relation, Y), whose people have the given places."""
    return {
        "story": text or "[Ann] [Bob] [Cy] [Di]",
        "query": str(tuple(NAMES[order[i]] for i in query)),
        "story_edges": str([(order[x], order[y]) for x, _, y in facts]),
        "edge_types": str([relation for _, relation, _ in facts]),
        "query_edge": str(tuple(order[i] for i in query)),
        "genders": "Ann:female,Bob:male,Cy:male,Di:female",
    }


def test_clauses_are_the_facts_up_to_renaming() -> None:
    """Against the definition: a bijection of the people keeps facts and query."""
    rng = np.random.default_rng(0)
    names = ("son", "mother")
    graphs = [
        [(int(x), names[rng.integers(2)], int(y)) for x, y in
         (rng.choice(PEOPLE, 2, replace=False) for _ in range(3))]
        for _ in range(60)
    ]  # fmt: skip
    found = number_clauses(records_of(*map(story, graphs)))

    def equal(a, b) -> bool:
        return any(
            (p[0], p[3]) == (0, 3) and sorted((p[x], r, p[y]) for x, r, y in a) == sorted(b)
            for p in permutations(range(PEOPLE))
        )

    expected = [[equal(a, b) for b in graphs] for a in graphs]
    np.testing.assert_array_equal(found[:, None] == found, expected)
    assert 10 < len(set(found)) < 60


def test_clauses_do_not_depend_on_names_and_order() -> None:
    chain = [(0, "son", 1), (1, "sister", 2), (2, "father", 3)]
    moved = story(chain[::-1], order=(2, 0, 3, 1), text="[Ann] [Bob] [Cy] [Di] again")
    other = story([*chain[:2], (2, "mother", 3)])
    back = story(chain, query=(3, 0))
    assert number_clauses(records_of(story(chain), moved, other, back)).tolist() in (
        [[a, a, b, c] for a, b, c in permutations(range(3))]
    )


def test_clauses_of_stories_without_facts_are_their_texts(small) -> None:
    """Copies of a story are one clause."""
    bare = small.test.select(np.arange(6))
    empty = np.zeros(0, int)
    bare = type(bare)(**{**vars(bare), "senders": empty, "receivers": empty, "relations": empty,
                         "edge_start": np.zeros(7, int)})  # fmt: skip
    found = number_clauses(concatenate([bare, bare]))
    np.testing.assert_array_equal(found[:6], found[6:])
    assert len(set(found)) == 6
