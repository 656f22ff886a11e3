"""Intervals over clauses and seeds: by hand, and where the truth is known."""

import numpy as np
import pytest
from scipy.special import expit, logit

from clutrr_jax.evaluation.metrics import macro_accuracy
from clutrr_jax.evaluation.predictions import Predictions
from clutrr_jax.evaluation.statistics import (
    Spread,
    interval,
    over_seeds,
    pool,
    satterthwaite,
    spread,
    summarize,
    t_quantile,
)
from tests.evaluation.simulation import coverage, false_positives


def interval_of(right: np.ndarray, clause: np.ndarray | None = None) -> tuple[float, float]:
    """The interval of answers [R, S] to one test."""
    cell = [summarize(right, np.arange(right.shape[1]) if clause is None else clause)]
    return interval(cell, spread([cell]))


@pytest.mark.parametrize(
    ("right", "stories", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (100, 105, 0.8933, 0.9795), (105, 105, 0.9647, 1), (0, 3, 0, 0.5615)],
)
def test_interval_of_one_replica_is_wilson(
    right: int, stories: int, low: float, high: float
) -> None:
    """By hand; for all S correct it is S / (S + z^2) to 1, with z^2 = 3.8415. Replicas with the
    same answers know no more than one of them, and copies of stories no more than the stories."""
    answers = np.arange(stories) < right
    assert interval_of(answers[None]) == pytest.approx((low, high), abs=5e-5)
    copies, clause = np.tile(answers, 5), np.tile(np.arange(stories), 5)
    assert interval_of(copies[None], clause) == pytest.approx((low, high), abs=5e-5)
    if right in (0, stories):  # else it is not certain that seeds do not differ
        assert interval_of(np.tile(answers, (4, 1))) == pytest.approx((low, high), abs=5e-5)


def test_interval_of_seven_clauses_and_three_replicas_by_hand() -> None:
    """Three replicas are right on all 15 stories of 6, 5 and 4 of the 7 clauses: p = 5/7.

    Over clauses: N = 105, W = 1/7, mean p (1 - p) of a replica 28/147. Stories of a clause are
    answered alike, a = 1. Covariance of two replicas, p_low (1 - p_high): 17/147; with one more
    clause of variance 1/4, b = (17/1029 + 1/196) / (28/1029 + 1/196) = .66917.
    Over seeds: variance 1/49 between replicas, of which (1 - b) 28/1029 = .00900 is over clauses;
    on the logit scale (.02041 - .00900) / (10/49)^2 = .27386 = c^2, with 2 degrees of freedom.

    At p' = (75 + 2) / (105 + 4), p' (1 - p') = .20739. Error over clauses .20739 / 7 *
    ((1 - b) / 3 + b) = .02309, over seeds .27386 / 3 * .20739^2 = .00393, with the noise
    .20739 / 7 * (1 - b) / 3 / 2^2 = .00082 the uncertain part. Degrees of freedom
    2 (.02702 / .00474)^2 = 64.9, t = 1.9972. The ends solve (p - 5/7)^2 =
    t^2 (.11135 p (1 - p) + .09129 s^2), where s = (p - p') / (logit p - logit p')."""
    clause = np.repeat(np.arange(7), 15)
    cell = [summarize(clause < np.array([[6], [5], [4]]), clause)]
    found = spread([cell])
    assert found == pytest.approx((1, 0.66917, 0.27386**0.5, 2), abs=2e-5)
    assert over_seeds(cell, found) == pytest.approx((0.00393, 0.00474), abs=1e-5)
    assert satterthwaite(0.02702, [(0.00474, 2)]) == pytest.approx(64.9, abs=0.2)
    assert t_quantile(64.9) == pytest.approx(1.9972, abs=1e-4)
    low, high = interval(cell, found)
    assert (low, high) == pytest.approx((0.3630, 0.9166), abs=1e-4)
    for p in (low, high):
        s = (p - 77 / 109) / (logit(p) - logit(77 / 109))
        assert (p - 5 / 7) ** 2 == pytest.approx(
            1.9972**2 * (0.11135 * p * (1 - p) + 0.09129 * s**2), rel=1e-3
        )


def test_interval_of_runs_with_stories_of_their_own() -> None:
    """They know more than replicas on the same stories: Wilson's intervals of 100 of 105 and of 400
    of 420, if seeds do not differ."""
    answers = (np.arange(105) < 100)[None]
    same, own = (
        summarize(np.tile(answers, (4, 1)), np.arange(105)),
        summarize(answers, np.arange(105)),
    )
    for cell, ends in (([same], (0.8933, 0.9795)), ([own] * 4, (0.9276, 0.9690))):
        assert interval(cell, Spread()) == pytest.approx(ends, abs=5e-5)


def test_spread_is_that_of_all_tests() -> None:
    """One replica on a test has the seeds of the others, and without others none."""
    rng = np.random.default_rng(0)
    many = summarize(rng.random((4, 300)) < np.array([[0.4], [0.5], [0.6], [0.7]]), np.arange(300))
    one = summarize(rng.random((1, 300)) < 0.5, np.arange(300))
    both, alone = spread([[many], [one]]), spread([[one]])
    assert 0.2 < both.of_seeds < 1 and both.freedom == pytest.approx(3)
    assert (alone.of_seeds, alone.freedom) == (0, 0)
    wide, narrow = (np.diff(interval([one], found))[0] for found in (both, alone))
    assert wide > 1.5 * narrow


@pytest.mark.parametrize("mean", [0.02, 0.5, 0.97])
def test_interval_over_seeds_is_normal_on_the_logit_scale(mean: float) -> None:
    """With so many clauses that they do not count: logit p +- t .5 / sqrt(3)."""
    one = summarize(np.full((3, 2), mean), np.arange(2))
    cell = [one._replace(stories=1e-9, clauses=1e-9)]
    found = Spread(of_replicas=0, of_seeds=0.5, freedom=4)
    ends = logit(mean) + t_quantile(4) * 0.5 / np.sqrt(3) * np.array([-1, 1])
    assert interval(cell, found) == pytest.approx(tuple(expit(ends)), abs=1e-3)


def test_few_errors_say_little_of_seeds() -> None:
    """Three replicas that answer nine tests of 1,000 stories but for one answer."""
    right = np.ones((9, 3, 1000))
    right[8, 1, 0] = 0
    cells = [[summarize(of_test, np.arange(1000))] for of_test in right]
    found = spread(cells)
    for cell in cells:
        assert interval(cell, found)[0] > 0.98


def test_all_right_on_several_tests() -> None:
    """Shares 12/554, 119/554, ... add up to more than 1 in floating point."""
    counts = [12, 119, 116, 163, 15, 129]
    test = pool([summarize(np.ones((2, n)), np.arange(n)) for n in counts], counts)
    assert test.values.tolist() == [1, 1]
    low, high = interval([test], spread([[test]]))
    assert low == pytest.approx(554 / (554 + 3.8415)) and high == pytest.approx(1)


def test_one_clause() -> None:
    """All stories of one clause know as much as one story: Wilson's interval of 1 of 1."""
    assert interval_of(np.ones((1, 15)), np.zeros(15, int)) == pytest.approx((0.2065, 1), abs=5e-5)


def test_several_tests_as_one() -> None:
    """A half of 10 and a quarter of 28 stories: mean (5 + 7) / 38; its error over clauses is that
    of strata."""
    a, b = (summarize(np.arange(n)[None] < right, np.arange(n)) for n, right in ((10, 5), (28, 7)))
    found = pool([a, b], [10, 28])
    assert found.values == pytest.approx([12 / 38])
    assert (found.stories, found.clauses) == pytest.approx((1 / 38, 1 / 38))
    assert found.own == pytest.approx((10 * 0.25 + 28 * 0.1875) / 38**2)
    assert found.variance == pytest.approx((10 * 0.25 + 28 * 0.1875) / 38)


# The table of docs/notes/intervals.md at small scale.
@pytest.mark.parametrize("accuracy", [0.3, 0.97])
@pytest.mark.parametrize("deviation", [0.0, 0.8])
@pytest.mark.parametrize(("clauses", "stories", "trials"), [(7, 15, 40), (36, 2, 40), (150, 1, 30)])
def test_coverage(
    clauses: int, stories: int, trials: int, deviation: float, accuracy: float
) -> None:
    """.93 to .98, with the sampling error of the few trials."""
    two, ten = (coverage(clauses, stories, r, deviation, accuracy, trials) for r in (2, 10))
    assert 0.90 <= two[0] <= 1 and 0.90 <= ten[0] <= 1
    assert ten[1] <= two[1] <= (6 if deviation else 2.2 if accuracy == 0.3 else 3) * ten[1]


@pytest.mark.parametrize(
    ("clauses", "stories", "replicas", "deviation"),
    [(7, 15, 3, 0.8), (36, 2, 2, 0.3), (150, 1, 3, 0.8)],
)
def test_false_positives(clauses: int, stories: int, replicas: int, deviation: float) -> None:
    """At most .07, with the sampling error of the few trials."""
    assert false_positives(clauses, stories, replicas, deviation, 0.7, 40) <= 0.09


@pytest.mark.parametrize("right", [(0.4, 0.6, 0.8, 0.9), (0.9, 0.8, 0.6, 0.4), (0.97,) * 4])
def test_coverage_of_the_interval_of_the_macro_accuracy(right: tuple[float, ...]) -> None:
    """Labels have 5 to 100 stories; the rare ones may be the harder or the easier ones."""
    rng, trials, target = np.random.default_rng(0), 400, np.repeat(np.arange(4), [5, 20, 40, 100])
    covered = 0
    for _ in range(trials):
        relation = np.where(rng.random(len(target)) < np.array(right)[target], target, -1)[None]
        predictions = Predictions(relation, relation, np.ones(relation.shape))
        low, high = interval_of(macro_accuracy(predictions, target))
        covered += low <= np.mean(right) <= high
    assert covered / trials >= 0.93
