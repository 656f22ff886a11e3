"""Paired tests between models on the same stories, and their tables."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from clutrr_jax.data.records import tasks
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.statistics import (
    over_seeds,
    satterthwaite,
    spread,
    summarize,
    sums,
)
from clutrr_jax.language_models.submissions import Submission
from clutrr_jax.report.accuracy import format_fraction, format_p, label_tests

PAIRED_LEGEND = (
    "Accuracy of a model minus that of another one on the same test stories; in parentheses the "
    "p-value of a test that they are equally good over clauses and seeds, Holm-corrected over the "
    "tests of the row. Of a model with one replica, it is about this training."
)


def pairs(submissions: Sequence[Submission], truth: GroundTruth) -> list[dict[str, Any]]:
    """Returns the paired tests between each two of these, see `compare`."""
    return [compare(a, b, truth) for a, b in combinations(submissions, 2)]


def compare(a: Submission, b: Submission, truth: GroundTruth) -> dict[str, Any]:
    """Paired test of two submissions on the stories that both have, per task: `p` is its p-value,
    `p_holm` the same corrected over the tasks."""
    both, of_a, of_b = np.intersect1d(a.stories, b.stories, return_indices=True)
    test, clause = truth.test.select(both), truth.clauses[both]
    by_task = list(tasks(test))
    right_a, right_b = (
        [right[:, stories] for _, stories in by_task]
        for right in (
            a.predictions.relation[:, of_a] == test.target,
            b.predictions.relation[:, of_b] == test.target,
        )
    )
    of_tests = [np.unique(clause[stories], return_inverse=True)[1] for _, stories in by_task]
    points = differences(right_a, right_b, of_tests)
    return {
        "models": [a.name, b.name],
        "tasks": [
            {"task": task, "count": len(stories)} | point
            for (task, stories), point in zip(by_task, points, strict=True)
        ],
    }


def differences(
    a: Sequence[np.ndarray], b: Sequence[np.ndarray], clauses: Sequence[np.ndarray]
) -> list[dict[str, Any]]:
    """Compares two models, given for each test whether their replicas [R, S] are right, and the
    clauses of its stories [S], from 0."""
    tests = [[summarize(*one) for one in zip(of_model, clauses, strict=True)]
             for of_model in (a, b)]  # fmt: skip
    spreads = [spread([[test] for test in of_model]) for of_model in tests]
    points: list[dict[str, Any]] = []
    for right_a, right_b, clause, *cell in zip(a, b, clauses, *tests, strict=True):
        # Differences of mean accuracy, scaled to integers: the numbers of replicas may differ.
        scale = len(right_a) * len(right_b) * len(clause)
        of_story = right_a.sum(axis=0) * len(right_b) - right_b.sum(axis=0) * len(right_a)
        of_clause = sums(of_story, clause)
        seeds = [over_seeds([test], one) for test, one in zip(cell, spreads, strict=True)]
        points.append({
            "clauses": len(of_clause),
            "difference": float(of_clause.sum() / scale),
            "better": int((of_clause > 0).sum()),
            "worse": int((of_clause < 0).sum()),
            "p": with_seeds(of_clause, scale, seeds, [one.freedom for one in spreads]),
        })  # fmt: skip
    corrected = holm(np.array([point["p"] for point in points])).tolist()
    return [point | {"p_holm": p} for point, p in zip(points, corrected, strict=True)]


def with_seeds(
    of_clause: np.ndarray,
    scale: int,
    seeds: Sequence[tuple[float, float]],
    freedoms: Sequence[float],
) -> float:
    """The p-value of a sum of differences over clauses and seeds, given the differences [C] in
    steps of 1 / scale, and for both models the result of `over_seeds` and its degrees of freedom.

    The error over clauses is that with which a normal test has the p-value of the exact one, but at
    least the root of the sum of squares. That over seeds adds to it.
    """
    p, difference = paired_p(of_clause), abs(float(of_clause.sum())) / scale
    if p == 1 or not any(variance for variance, _ in seeds):
        return p
    squares = float(np.square(of_clause / scale).sum())
    over_clauses = max(squares, (difference / stats.norm.isf(max(p, 1e-300) / 2)) ** 2)
    variance = over_clauses + sum(variance for variance, _ in seeds)
    parts = [(uncertain, freedom) for (_, uncertain), freedom in zip(seeds, freedoms, strict=True)]
    freedom = satterthwaite(variance, parts)
    return float(2 * stats.t.sf(difference / math.sqrt(variance), freedom))


def paired_p(difference: np.ndarray) -> float:
    """Two-sided p-value of an exact sign-flip test of the sum of differences.

    Under the null hypothesis both models are equally good and the sign of each clause's difference
    is random. With one prediction per model and clause this is McNemar's exact test; SciPy has no
    exact test for the general case at these sample sizes. The distribution of the sum is computed
    by convolution. `difference` [C] are integers: correct predictions of one model minus those of
    the other.
    """
    steps = np.abs(difference[difference != 0])
    if not len(steps):
        return 1.0
    divisor = np.gcd.reduce(steps)
    steps //= divisor
    observed = abs(int(difference.sum() // divisor))
    chance = np.ones(1)  # probability of each sum, in ascending order in steps of 1
    for step in np.sort(steps):
        chance = (np.pad(chance, (2 * step, 0)) + np.pad(chance, (0, 2 * step))) / 2
    total = len(chance) // 2
    return min(1.0, float(chance[np.abs(np.arange(-total, total + 1)) >= observed].sum()))


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's correction (1979) of the p-values of several tests, in their order. [tests]"""
    order = np.argsort(p)
    corrected = np.empty(len(p))
    corrected[order] = np.maximum.accumulate(np.sort(p) * np.arange(len(p), 0, -1))
    return np.minimum(corrected, 1.0)


def comparison(pair: Mapping[str, Any]) -> list[list[str]]:
    """One paired test in detail; header first."""
    (a, b), points = pair["models"], pair["tasks"]
    return [
        [f"{a} against {b}", *label_tests([p["task"] for p in points])],
        ["clauses", *(str(p["clauses"]) for p in points)],
        ["stories", *(str(p["count"]) for p in points)],
        ["difference in accuracy", *(format_fraction(p["difference"], "+") for p in points)],
        [f"clauses where {a} is better", *(str(p["better"]) for p in points)],
        [f"clauses where {b} is better", *(str(p["worse"]) for p in points)],
        ["p", *(format_p(point["p"]) for point in points)],
        ["p, Holm over the tasks", *(format_p(point["p_holm"]) for point in points)],
    ]


def paired_table(compared: Sequence[Mapping[str, Any]], model: str = "") -> list[list[str]]:
    """The paired tests as a table, see PAIRED_LEGEND: all, or those of a model, from its side."""
    pairs = [pair for pair in compared if pair["tasks"] and model in ("", *pair["models"])]
    tests = list(dict.fromkeys(test["task"] for pair in pairs for test in pair["tasks"]))
    lines = [["model", "against", *label_tests(tests)]]
    for pair in pairs:
        sign = -1 if model == pair["models"][1] else 1
        cells = dict.fromkeys(tests, "")
        for test in pair["tasks"]:
            difference = format_fraction(sign * test["difference"], "+")
            cells[test["task"]] = f"{difference} ({format_p(test['p_holm'])})"
        lines.append([*pair["models"][::sign], *cells.values()])
    return lines
