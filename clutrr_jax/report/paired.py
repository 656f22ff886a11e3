"""Paired tests between models on the same stories, and their tables."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from clutrr_jax.data.records import Records, tasks
from clutrr_jax.language_models.submissions import Submission
from clutrr_jax.report.accuracy import format_fraction, format_p, label_tests

PAIRED_LEGEND = (
    "Accuracy of a model minus that of another one on the same test stories; in parentheses the "
    "p-value of an exact test that they are equally good, Holm-corrected over the tests of the row."
)


def pairs(submissions: Iterable[Submission], test: Records) -> list[dict[str, Any]]:
    """Returns the paired tests between each two of these, see `compare`."""
    return [compare(a, b, test) for a, b in combinations(submissions, 2)]


def compare(a: Submission, b: Submission, test: Records) -> dict[str, Any]:
    """Paired test of two submissions on the stories that both have, per task: `p` is the exact
    p-value, `p_holm` the same corrected over the tasks."""
    both, of_a, of_b = np.intersect1d(a.stories, b.stories, return_indices=True)
    test = test.select(both)
    right_a, right_b = (s.predictions.relation[:, columns] == test.target
                        for s, columns in ((a, of_a), (b, of_b)))  # fmt: skip
    # Differences of mean accuracy, scaled to integers: the numbers of replicas may differ.
    difference = right_a.sum(axis=0) * len(right_b) - right_b.sum(axis=0) * len(right_a)
    points = [
        {
            "task": task,
            "count": len(stories),
            "difference": float(difference[stories].mean() / (len(right_a) * len(right_b))),
            "better": int((difference[stories] > 0).sum()),
            "worse": int((difference[stories] < 0).sum()),
            "p": paired_p(difference[stories]),
        }
        for task, stories in tasks(test)
    ]
    corrected = holm(np.array([point["p"] for point in points])).tolist()
    for point, p in zip(points, corrected, strict=True):
        point["p_holm"] = p
    return {"models": [a.name, b.name], "tasks": points}


def paired_p(difference: np.ndarray) -> float:
    """Two-sided p-value of an exact sign-flip test of the sum of differences.

    Under the null hypothesis both models are equally good and the sign of each story's difference
    is random. With one prediction per model and story this is McNemar's exact test; SciPy has no
    exact test for the general case at these sample sizes. The distribution of the sum is computed
    by convolution. `difference` [S] are integers: correct predictions of one model minus those of
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
        ["stories", *(str(p["count"]) for p in points)],
        ["difference in accuracy", *(format_fraction(p["difference"], "+") for p in points)],
        [f"stories where {a} is better", *(str(p["better"]) for p in points)],
        [f"stories where {b} is better", *(str(p["worse"]) for p in points)],
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
