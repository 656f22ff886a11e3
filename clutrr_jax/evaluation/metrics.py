"""Accuracy per test set with its count, 95 % confidence interval and ceiling."""

from dataclasses import dataclass

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
    accuracy: float  # mean over replicas, selected epoch
    stderr: float | None  # standard error of the mean; None for one replica
    low: float  # 95 % interval, see `interval`
    high: float
    count: int  # test stories
    replicas: int
    correct: list[int]  # correct predictions of each replica, selected epoch
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


def score(model: str, predictions: Predictions, records: Records) -> list[Row]:
    """One row for each task of the test records."""
    ceiling = ceilings(records)
    correct = predictions.best == records.target
    correct_last = predictions.last == records.target
    rows = []
    for task, stories in tasks(records):
        count = len(stories)
        accuracy, stderr, low, high = interval(correct[:, stories].sum(axis=1), count)
        accuracy_last, stderr_last, _, _ = interval(correct_last[:, stories].sum(axis=1), count)
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
                correct=correct[:, stories].sum(axis=1).tolist(),
                ceiling=float(ceiling[stories].mean()),
                accuracy_last=accuracy_last,
                stderr_last=stderr_last,
            )
        )
    return rows
