"""Evidence on claims: a published interval, exact small cases, and the rate of wrong verdicts."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from clutrr_jax.evaluation.claims import (
    LEVEL,
    Estimate,
    Evidence,
    all_of,
    any_of,
    at_least,
    mean_estimate,
)
from clutrr_jax.evaluation.statistics import Spread, interval, summarize

TRUE, FALSE, OPEN = Evidence(0.0, 1.0), Evidence(1.0, 0.0), Evidence(0.5, 0.5)


def proportion(correct: int, stories: int) -> Estimate:
    share = correct / stories
    cell = [summarize(np.arange(stories)[None] < correct, np.arange(stories))]
    low, high = interval(cell, Spread())
    return Estimate(share, share - low, high - share)


def test_a_difference_has_newcombes_interval() -> None:
    """56 of 70 against 48 of 80: Newcombe 1998, Statistics in Medicine 17, table II, method 10."""
    found = proportion(56, 70) - proportion(48, 80)
    bounds = found.value - found.below, found.value, found.value + found.above
    assert bounds == pytest.approx((0.0524, 0.2, 0.3339), abs=5e-5)


def test_a_bound_of_the_interval_is_at_its_quantile() -> None:
    found = Estimate(0.5, below=0.2, above=0.1)
    assert found.exceeds(0.3).p_for == pytest.approx(0.025)
    assert found.exceeds(0.6).p_against == pytest.approx(0.025)
    assert found.exceeds(0.5) == OPEN
    certain = Estimate(0.5, 0.0, 0.0)
    assert [certain.exceeds(x) for x in (0.4, 0.5, 0.6)] == [TRUE, OPEN, FALSE]


def test_the_interval_of_a_mean_shrinks_with_the_root_of_the_number() -> None:
    found = mean_estimate([Estimate(x, 0.2, 0.1) for x in (0.2, 0.4, 0.5, 0.9)])
    assert found == pytest.approx((0.5, 0.1, 0.05))


def test_parts_combine_as_in_logic_with_a_third_value() -> None:
    for parts in product((TRUE, FALSE, OPEN), repeat=3):
        for count in (1, 2, 3):
            found = at_least(count, parts).verdict
            if parts.count(TRUE) >= count:
                assert found == "supported"
            elif parts.count(TRUE) + parts.count(OPEN) < count:
                assert found == "not supported"
            else:
                assert found == "undecided"
        assert all_of(parts) == at_least(3, parts) == ~any_of(~part for part in parts)


def test_correction_is_for_the_parts_that_decide() -> None:
    """Four parts with p-values .01 .02 .03 .04 for them, and the complements against them."""
    parts = [Evidence(p, 1 - p) for p in (0.03, 0.01, 0.04, 0.02)]
    expected = [0.04, 0.06, 0.06, 0.04]
    assert [at_least(n, parts).p_for for n in (1, 2, 3, 4)] == pytest.approx(expected)
    assert [at_least(n, [~p for p in parts]).p_against for n in (4, 3, 2, 1)] == pytest.approx(
        expected
    )


@pytest.mark.parametrize("count", [1, 3, 5])
def test_few_verdicts_are_wrong(count: int) -> None:
    """Five comparisons, one too few of which are true, and the others only just false."""
    draws, rng = 1000, np.random.default_rng(0)
    z = rng.normal(size=(draws, 5)) + 9 * (np.arange(5) < count - 1)
    found = [
        at_least(count, (Evidence(p, 1 - p) for p in of_draw))
        for of_draw in stats.norm.sf(z).tolist()
    ]
    wrong = sum(evidence.verdict == "supported" for evidence in found) / draws
    assert LEVEL / 2 < wrong < LEVEL + 3 * np.sqrt(LEVEL / draws)
    assert sum((~evidence).verdict == "not supported" for evidence in found) == wrong * draws
