"""Compositions of pairs of people: chains, diamonds and circles, worked out by hand."""

import numpy as np
import pytest

from clutrr_jax.data.compositions import list_compositions

Steps = list[tuple[int, int, int]]


def listed(people: int, *facts: tuple[int, int]) -> list[Steps]:
    """Compositions of each round of a story, which stands between two others."""
    edges = np.array([(0, 1), *facts, (1, 0), (0, 2)])
    found = list_compositions(
        np.array([2, people, 3]), np.array([1, len(facts), 2]), edges[:, 0], edges[:, 1]
    )
    rounds = zip(found.start[1].tolist(), found.size[1].tolist(), strict=True)
    return [
        sorted(map(tuple, found.steps[start : start + size].tolist())) for start, size in rounds
    ]


@pytest.mark.parametrize(
    ("people", "facts", "expected"),
    [
        (4, [(0, 1), (1, 2), (2, 3)],
         [[(0, 1, 2), (1, 2, 3)], [(0, 1, 3), (0, 2, 3)]]),
        # Two paths of different lengths: the longer one decides the round.
        (4, [(0, 1), (1, 3), (0, 2), (2, 1)],
         [[(0, 2, 1), (2, 1, 3)], [(0, 1, 3), (0, 2, 3)]]),
        # A fact and its inverse: pairs of people on a circle are composed in both rounds.
        (3, [(0, 1), (1, 0), (1, 2)], [[(0, 1, 2), (1, 0, 2)]] * 2),
        # A person and themselves, and the same fact twice
        (3, [(0, 0), (0, 1), (0, 1), (1, 2)], [[(0, 1, 2)]]),
        (3, [(0, 1), (0, 2)], [[]]),
    ],
)  # fmt: skip
def test_compositions_of_a_story(
    people: int, facts: list[tuple[int, int]], expected: list[Steps]
) -> None:
    assert listed(people, *facts) == expected


def test_stories_without_facts_have_none() -> None:
    nothing = np.zeros(0, int)
    found = list_compositions(np.array([2, 3]), np.zeros(2, int), nothing, nothing)
    assert found.steps.shape == (0, 3) and not found.size.any()
