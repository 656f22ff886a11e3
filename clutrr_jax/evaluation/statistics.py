"""Intervals of metrics over clauses and seeds.

Stories of one clause have the same facts up to names, so that a model is mostly right or wrong on
all of them. The mean p of R replicas on N stories has the variance

    p (1 - p) (1 / N + a (W - 1 / N)) ((1 - b) / R + b)  +  (c p (1 - p))^2 / R

The first part is that over clauses: W is the sum of the squared shares of the clauses in the
stories, a is the correlation of the answers of one training to the stories of a clause, b that of
two trainings to one clause. The second part is that over seeds, whose accuracies have the standard
deviation c on the logit scale. a, b and c are estimated from all tests of a model together:
`Spread`. The project's note on intervals has their coverage in a simulation.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special, stats

CONFIDENCE = 0.95
Z = float(stats.norm.ppf((1 + CONFIDENCE) / 2))  # half-width of an interval, in standard errors
# Correlation of the accuracies of a training on two tests over seeds, on the logit scale. With few
# replicas it cannot be estimated; the note has those of measured models.
CORRELATION = 0.5


class Test(NamedTuple):
    """A metric of R replicas on a test, or on several that are taken as one."""

    values: np.ndarray  # [R]
    stories: float  # 1 / N
    clauses: float  # W
    variance: float  # over stories, mean over replicas
    own: float  # squared error of the mean of one replica over clauses, mean over replicas
    shared: float  # the same for the product of the errors of two replicas; that of one: `own`


class Spread(NamedTuple):
    """Correlations of a model's answers and the deviation of its accuracies over seeds."""

    of_stories: float = 1.0  # a
    of_replicas: float = 1.0  # b
    of_seeds: float = 0.0  # c, on the logit scale
    freedom: float = 0.0  # degrees of freedom of c; 0 if no test has several replicas


def summarize(values: np.ndarray, clause: np.ndarray) -> Test:
    """Summarizes a metric [R, S] of stories with these clauses [S]."""
    values = np.asarray(values, float)
    replicas, stories = values.shape
    means = values.mean(axis=1)
    of_clause = sums(values - means[:, None], clause) / stories
    own = float(np.square(of_clause).sum()) / replicas
    of_all = float(np.square(of_clause.sum(axis=0)).sum())  # includes each with itself
    shared = (of_all - replicas * own) / (replicas * (replicas - 1)) if replicas > 1 else own
    variance = float(values.var(axis=1).mean())
    return Test(means, 1 / stories, weight_of(clause), variance, own, shared)


def weight_of(clause: np.ndarray) -> float:
    """Sum of the squared shares of the clauses [S] in the stories: 1 / S if all differ."""
    return float(np.square(np.bincount(clause) / len(clause)).sum())


def sums(values: np.ndarray, clause: np.ndarray) -> np.ndarray:
    """Sums of values [..., S] over the stories of each clause [S], [..., C]."""
    found = np.zeros((int(clause.max()) + 1, *values.shape[:-1]), values.dtype)
    np.add.at(found, clause, np.moveaxis(values, -1, 0))
    return np.moveaxis(found, 0, -1)


def pool(tests: Sequence[Test], counts: Sequence[int]) -> Test:
    """Several tests of the same replicas as one test, given their numbers of stories. Which tests
    there are is no matter of chance."""
    share = np.array(counts) / sum(counts)
    stories, clauses, variance, own, shared = np.array([test[1:] for test in tests]).T
    return Test(
        np.average(np.stack([test.values for test in tests]), axis=0, weights=counts),
        float(share**2 @ stories),
        float(share**2 @ clauses),
        float(share @ variance),
        float(share**2 @ own),
        float(share**2 @ shared),
    )


def spread(cells: Sequence[Sequence[Test]]) -> Spread:
    """Estimates the spread from all cells of a model: each has one test for each of its runs.

    The correlations are as if one more clause had been answered alike everywhere, with variance
    1/4: without errors they are 1. The variance over seeds is that between the replicas of a cell,
    less what clauses let expect, on the logit scale, truncated at 0; tests count by the inverse of
    its variance.
    """
    tests = [test for cell in cells for test in cell]
    if not tests:
        return Spread()
    prior = max(test.clauses for test in tests) ** 2 / 4
    excess = sum((test.own - test.variance * test.stories for test in tests), prior)
    most = sum((test.variance * (test.clauses - test.stories) for test in tests), prior)
    own, shared = sum((t.own for t in tests), prior), sum((t.shared for t in tests), prior)
    a, b = (min(1.0, max(0.0, part / whole)) for part, whole in ((excess, most), (shared, own)))
    found = Spread(a, b)
    rows = np.array(
        [_between(cell, found) for cell in cells if sum(len(t.values) for t in cell) > 1]
    )
    if not len(rows):
        return found
    p, slope, between, noise, replicas = rows.T
    precision = 1 / ((0.3 * slope) ** 2 + noise) ** 2
    measured = (p * (1 - p)) ** 2
    variance = float((precision * measured) @ (between - noise))
    variance = max(0.0, variance / max(1e-30, float(precision @ measured**2)))
    weight = precision * slope**4
    independent = weight.sum() ** 2 / np.square(weight).sum()
    independent /= 1 + (independent - 1) * CORRELATION**2
    freedom = float(weight @ (replicas - 1) / weight.sum() * independent)
    return found._replace(of_seeds=math.sqrt(variance), freedom=freedom)


def _unit(test: Test, found: Spread) -> float:
    """Variance of the mean of one replica over clauses, as a multiple of that over stories."""
    return test.stories + found.of_stories * (test.clauses - test.stories)


def _between(cell: Sequence[Test], found: Spread) -> tuple[float, ...]:
    """Mean of a cell, its slope, variance between the replicas, that which the choice of clauses
    lets expect, and the number of replicas."""
    values = np.concatenate([test.values for test in cell])
    unit = float(np.mean([test.variance * _unit(test, found) for test in cell]))
    noise = unit * _apart(cell, found)
    mean = min(1.0, max(0.0, float(values.mean())))
    return mean, _slope(values, cell), float(values.var(ddof=1)), noise, len(values)


def _moved(values: np.ndarray, cell: Sequence[Test]) -> float:
    """The mean of a cell, moved from 0 and 1 by two right and two wrong answers."""
    stories = 1 / float(np.mean([test.stories for test in cell]))
    return (min(1.0, max(0.0, float(values.mean()))) * stories + 2) / (stories + 4)


def _slope(values: np.ndarray, cell: Sequence[Test]) -> float:
    """p (1 - p), the change of an accuracy with its logit, at the moved mean of a cell."""
    p = _moved(values, cell)
    return p * (1 - p)


def _secant(p: float, q: float) -> float:
    """Mean change of an accuracy with its logit between two accuracies."""
    if abs(p - q) < 1e-9:
        return q * (1 - q)
    return (p - q) / float(special.logit(p) - special.logit(q))


def standard_error(values: np.ndarray) -> float | None:
    """Standard error of a mean over replicas; None for one replica."""
    replicas = len(values)
    return float(values.std(ddof=1) / math.sqrt(replicas)) if replicas > 1 else None


def t_quantile(freedom: float) -> float:
    """Half-width of the 95 % interval of a mean, in standard errors with degrees of freedom."""
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))


def over_seeds(cell: Sequence[Test], found: Spread) -> tuple[float, float]:
    """Variance over seeds of the mean of a cell, and the part of it and of its estimate that is
    uncertain: with f degrees of freedom, the relative variance of the latter is 2 / f."""
    values = np.concatenate([test.values for test in cell])
    if not found.freedom:
        return 0.0, 0.0
    slope, replicas = _slope(values, cell), len(values)
    seeds = (found.of_seeds * slope) ** 2 / replicas
    # The estimate is the variance between replicas less that of their own errors on the clauses,
    # which counts less, the more replicas and tests it is from.
    noise = slope * float(np.mean([_unit(test, found) for test in cell]))
    return seeds, seeds + noise * _apart(cell, found) / replicas / found.freedom**2


def _apart(cell: Sequence[Test], found: Spread) -> float:
    """Share of the variance over clauses that two replicas of a cell do not share on average:
    those of different runs share none."""
    sizes = np.array([len(test.values) for test in cell])
    pairs = sizes.sum() * (sizes.sum() - 1)
    return 1 - found.of_replicas * float(sizes @ (sizes - 1) / pairs) if pairs else 1.0


def satterthwaite(variance: float, parts: Sequence[tuple[float, float]]) -> float:
    """Degrees of freedom of a variance, given the uncertain variance of its parts and its own
    degrees of freedom; infinite if no part is uncertain."""
    error = sum(part**2 / freedom for part, freedom in parts if part)
    return max(1.0, variance**2 / error) if error else math.inf


def interval(cell: Sequence[Test], found: Spread) -> tuple[float, float]:
    """The 95 % interval of the mean over the replicas of the runs of a cell.

    It holds the p whose distance from the mean is at most t standard errors, with the variance
    above at p, as Wilson's interval, which it is for one replica and stories of different clauses.
    The variance over seeds has the mean slope between p and the mean in place of p (1 - p): without
    that over clauses, the interval is the normal one on the logit scale. t is the quantile of
    Student's distribution with Satterthwaite's degrees of freedom. A metric is from 0 to 1; a mean
    that is not has the normal interval of one replica.
    """
    values = np.concatenate([test.values for test in cell])
    replicas, mean = len(values), float(values.mean())
    clauses = 0.0
    for test in cell:
        p = np.clip(test.values, 0, 1)
        of_one = float((p * (1 - p)).mean())
        # 1 for the accuracy; at least 1, since few errors say little about the others
        scale = max(1.0, test.variance / of_one) if of_one else 1.0
        alike = (1 - found.of_replicas) / len(test.values) + found.of_replicas
        clauses += (len(test.values) / replicas) ** 2 * scale * _unit(test, found) * alike
    slope, (_, uncertain) = _slope(values, cell), over_seeds(cell, found)
    seeds, moved = found.of_seeds**2 / replicas, _moved(values, cell)
    variance = clauses * slope + seeds * slope**2
    t = t_quantile(satterthwaite(variance, [(uncertain, found.freedom)]))
    if not 0 <= mean <= 1:
        half = t * math.sqrt(float(np.mean([x.variance * _unit(x, found) for x in cell])))
        return mean - half, mean + half

    def furthest(end: float) -> float:
        inside, outside = mean, end
        for _ in range(50):
            p = (inside + outside) / 2
            variance = clauses * p * (1 - p) + seeds * _secant(p, moved) ** 2
            is_inside = (mean - p) ** 2 <= t**2 * variance
            inside, outside = (p, outside) if is_inside else (inside, p)
        return inside

    return furthest(0.0), furthest(1.0)
