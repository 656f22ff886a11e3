"""Coverage of the intervals and false positives of the paired test where the truth is known.

    python -m tests.evaluation.simulation [TRIALS]    # the tables of docs/notes/intervals.md

A model is tested on nine tests of C clauses with n stories each. A replica is right or wrong on all
stories of a clause. The logit of its accuracy is normal over seeds, half of whose variance is
common to its tests; half of the variance of a clause's difficulty is common to the replicas: TESTS,
COMMON_TO_TESTS and COMMON_TO_REPLICAS.
"""

import math
import sys
from collections.abc import Iterator
from itertools import product

import numpy as np
from scipy import stats
from scipy.special import expit

from clutrr_jax.evaluation.statistics import Test, interval, spread, summarize
from clutrr_jax.report.paired import differences

SHAPES = ((7, 15), (36, 2), (150, 1), (1000, 1))  # clauses, stories of each
REPLICAS, DEVIATIONS, ACCURACIES = (2, 3, 10), (0.0, 0.3, 0.8), (0.3, 0.7, 0.97)
TESTS, COMMON_TO_TESTS, COMMON_TO_REPLICAS = 9, 0.5, 0.5


def intercept(accuracy: float, deviation: float) -> float:
    """Logit whose mean accuracy over seeds is the given one."""
    seeds = stats.norm.ppf((np.arange(2000) + 0.5) / 2000) * deviation
    low, high = -20.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(middle + seeds).mean() < accuracy else (low, middle)
    return low


def draw(
    rng: np.random.Generator,
    clauses: int,
    replicas: int,
    deviation: float,
    accuracy: float,
    difficulty: np.ndarray | None = None,
) -> np.ndarray:
    """Whether each replica is right on each clause, [TESTS, R, C]; `difficulty` is the part of the
    clauses [TESTS, 1, C] that another model may share."""
    if difficulty is None:
        difficulty = rng.normal(size=(TESTS, 1, clauses))
    own = rng.normal(size=(TESTS, replicas, clauses))
    rank = stats.norm.cdf(_mix(COMMON_TO_REPLICAS, difficulty, own))
    of_all, of_test = rng.normal(size=(1, replicas)), rng.normal(size=(TESTS, replicas))
    seed = _mix(COMMON_TO_TESTS, of_all, of_test)
    logit = intercept(accuracy, deviation) + deviation * seed
    return rank < expit(logit)[..., None]


def _mix(share: float, common: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Sum of two standard normal variables, of which the first has this share of the variance."""
    return math.sqrt(share) * common + math.sqrt(1 - share) * own


def tests_of(right: np.ndarray, stories: int) -> list[Test]:
    """The tests of a model, given what `draw` returns."""
    clause = np.repeat(np.arange(right.shape[-1]), stories)
    return [summarize(values[:, clause], clause) for values in right]


def coverage(
    clauses: int, stories: int, replicas: int, deviation: float, accuracy: float, trials: int
) -> tuple[float, float]:
    """Share of the intervals that hold the accuracy, and their mean width."""
    rng, found = np.random.default_rng(0), []
    for _ in range(trials):
        cells = [
            [one] for one in tests_of(draw(rng, clauses, replicas, deviation, accuracy), stories)
        ]
        of_model = spread(cells)
        found += [interval(cell, of_model) for cell in cells]
    low, high = np.array(found).T
    return float(np.mean((low <= accuracy) & (accuracy <= high))), float(np.mean(high - low))


def false_positives(
    clauses: int, stories: int, replicas: int, deviation: float, accuracy: float, trials: int
) -> float:
    """Share of the paired tests of two equal models, which share half of what makes a clause
    difficult, that have p < .05."""
    rng, found = np.random.default_rng(0), []
    clause = [np.repeat(np.arange(clauses), stories)] * TESTS
    for _ in range(trials):
        common = rng.normal(size=(TESTS, 1, clauses))
        models = [
            draw(rng, clauses, replicas, deviation, accuracy, common)[..., clause[0]]
            for _ in range(2)
        ]
        found += [point["p"] < 0.05 for point in differences(*models, clause)]
    return float(np.mean(found))


def table(trials: int, with_pairs: bool) -> Iterator[str]:
    """Lines of the table of coverages and widths, or of false positives."""
    for (clauses, stories), deviation, accuracy in product(SHAPES, DEVIATIONS, ACCURACIES):
        of_cell = [(clauses, stories, r, deviation, accuracy, trials) for r in REPLICAS]
        if with_pairs:
            cells = [f"{false_positives(*one):.3f}" for one in of_cell]
        else:
            cells = ["{:.3f} ({:.3f})".format(*coverage(*one)) for one in of_cell]
        yield " | ".join([f"{clauses} x {stories}", str(deviation), str(accuracy), *cells])


if __name__ == "__main__":
    for with_pairs in (False, True):
        for line in table(int(sys.argv[1]) if len(sys.argv) > 1 else 200, with_pairs):
            print(line, flush=True)
