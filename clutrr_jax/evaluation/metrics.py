"""Accuracy per test set with its count, 95 % confidence interval and ceiling."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy import stats

from clutrr_jax.data.records import Records, tasks
from clutrr_jax.evaluation.baselines import ceilings
from clutrr_jax.evaluation.predictions import Predictions

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Row:
    """Accuracy of one model on one test set, as a fraction."""

    model: str
    task: str  # T.K
    k: int
    accuracy: float  # mean over replicas, tested epoch
    stderr: float | None  # standard error of the mean; None for one replica
    low: float  # 95 % interval, see `interval`
    high: float
    count: int  # test stories
    replicas: int
    correct: list[int]  # correct predictions of each replica, tested epoch
    ceiling: float  # best achievable accuracy: mean of `ceilings` over the stories
    accuracy_last: float  # as `accuracy`, last epoch
    stderr_last: float | None


def t_quantile(runs: int) -> float:
    """Half-width of the 95 % interval of a mean over at least two runs, in standard errors."""
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, runs - 1))


def interval(correct: np.ndarray, count: int) -> tuple[float, float | None, float, float]:
    """Mean accuracy, its standard error (None for one replica), and the 95 % interval.

    The interval is Student's t over replicas, or Wilson's score interval for a single replica.

    Args:
      correct: [R] number of correct predictions of each replica.
      count: number of predictions of each replica, at least 1.
    """
    accuracy = correct / count
    mean = float(accuracy.mean())
    if len(accuracy) == 1:
        test = stats.binomtest(round(float(correct[0])), count)
        low, high = test.proportion_ci(CONFIDENCE, method="wilson")
        return mean, None, float(low), float(high)
    stderr = float(stats.sem(accuracy))
    half = t_quantile(len(accuracy)) * stderr
    return mean, stderr, max(0.0, mean - half), min(1.0, mean + half)


def score(predictions: Mapping[str, Predictions], records: Records) -> list[Row]:
    """One row for each model and each task of the test records."""
    ceiling, rows = ceilings(records), []
    for (model, predicted), (task, stories) in product(predictions.items(), tasks(records)):
        count, target = len(stories), records.target[stories]
        correct = (predicted.relation[:, stories] == target).sum(axis=1)
        correct_last = (predicted.last[:, stories] == target).sum(axis=1)
        accuracy, stderr, low, high = interval(correct, count)
        accuracy_last, stderr_last, _, _ = interval(correct_last, count)
        rows.append(
            Row(
                model=model,
                task=task,
                k=int(records.clause_length[stories[0]]),
                accuracy=accuracy,
                stderr=stderr,
                low=low,
                high=high,
                count=count,
                replicas=len(correct),
                correct=correct.tolist(),
                ceiling=float(ceiling[stories].mean()),
                accuracy_last=accuracy_last,
                stderr_last=stderr_last,
            )
        )
    return rows
