"""Verdicts on claims about accuracies, from the 95 % intervals of the accuracies.

A claim combines comparisons: an accuracy, a mean or a difference of accuracies is above a number.
A comparison is decided like a one-sided test; `at_least` corrects for the number of comparisons, so
that a claim about many of them is neither refuted nor supported by chance in some of them.

What the verdicts do not cover: the interval of a cell with one replica covers other clauses
only. Cells are taken as independent. Those on the same test stories are not, which makes the
interval of their difference too wide and leaves more claims undecided. Those of the same replicas
are not either, which makes the interval of their mean too narrow if some replicas are better than
others on all tests.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import stats

from clutrr_jax.evaluation.scores import Measured
from clutrr_jax.evaluation.statistics import Z

LEVEL = 0.05  # largest p-value of a decided claim


class Evidence(NamedTuple):
    """Evidence on a claim: p-values of the hypotheses that it is false, and that it is true."""

    p_for: float
    p_against: float

    @property
    def verdict(self) -> str:
        """Returns "supported", "not supported" or "undecided"."""
        if self.p_for <= LEVEL:
            return "supported"
        return "not supported" if self.p_against <= LEVEL else "undecided"

    def __invert__(self) -> "Evidence":
        """Evidence on the opposite claim."""
        return Evidence(self.p_against, self.p_for)


class Estimate(NamedTuple):
    """A function of accuracies with its 95 % interval from `value - below` to `value + above`.

    Intervals are combined as in Newcombe's interval of a difference of two proportions, and its
    extension to weighted sums (MOVER): the squares of the distances to the relevant bounds add up.
    """

    value: float
    below: float
    above: float

    def __sub__(self, other: "Estimate") -> "Estimate":
        below, above = math.hypot(self.below, other.above), math.hypot(self.above, other.below)
        return Estimate(self.value - other.value, below, above)

    def exceeds(self, bound: float) -> Evidence:
        """Evidence that the value is above a bound.

        The distance between them has the normal distribution of which the interval is the middle
        95 %. Without any uncertainty the evidence is certain, except if they are equal.
        """
        gap = self.value - bound
        return Evidence(_p_value(gap, self.below), _p_value(-gap, self.above))


def _p_value(gap: float, half_width: float) -> float:
    if half_width == 0:
        return 0.5 - 0.5 * float(np.sign(gap))
    return float(stats.norm.sf(Z * gap / half_width))


def estimate(measured: Measured) -> Estimate:
    """Returns a measured accuracy as an estimate."""
    accuracy = measured.accuracy
    return Estimate(accuracy, accuracy - measured.low, measured.high - accuracy)


def mean_estimate(estimates: Iterable[Estimate]) -> Estimate:
    """Mean of independent estimates."""
    value, below, above = np.array(list(estimates)).T
    return Estimate(float(value.mean()), *(math.hypot(*x) / len(x) for x in (below, above)))


def at_least(count: int, parts: Iterable[Evidence]) -> Evidence:
    """Evidence that at least `count` of several claims are true.

    The p-values are those of Benjamini and Heller (2008) for partial conjunctions of M claims that
    may depend on each other: of M - count + 1 false ones at least one is among the `count` smallest
    p-values, with Bonferroni's correction. The opposite: at least M - count + 1 claims are false.
    """
    p_for, p_against = (sorted(p) for p in zip(*parts, strict=True))
    opposite = len(p_for) - count + 1
    return Evidence(
        min(1.0, opposite * p_for[count - 1]), min(1.0, count * p_against[opposite - 1])
    )


def all_of(parts: Iterable[Evidence]) -> Evidence:
    """Evidence that all of several claims are true: each is supported."""
    found = list(parts)
    return at_least(len(found), found)


def any_of(parts: Iterable[Evidence]) -> Evidence:
    """Evidence that some of several claims are true."""
    return at_least(1, parts)
