"""Accuracy per test set with its count, 95 % confidence interval and ceiling."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy import stats

from clutrr_jax.data.records import tasks
from clutrr_jax.evaluation.ground_truth import GroundTruth
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
    story_variance: float  # over stories, of the fraction of replicas that are right
    ceiling: float  # best achievable accuracy: mean of `GroundTruth.ceilings`
    accuracy_last: float  # as `accuracy`, last epoch
    stderr_last: float | None


def t_quantile(runs: int) -> float:
    """Half-width of the 95 % interval of a mean over at least two runs, in standard errors."""
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, runs - 1))


def interval(
    accuracy: np.ndarray, story_variance: float, stories: float
) -> tuple[float, float | None, float, float]:
    """Mean accuracy, its standard error over replicas (None for one), and the 95 % interval.

    The interval covers other test stories and other replicas. It is Wilson's score interval for the
    effective number of stories n with mean (1 - mean) / n = V, but at most `stories`. V is
    `story_variance / stories`, the variance by the choice of stories, plus the squared standard
    error over replicas times (t / z)^2, where t and z are the 97.5 % quantiles of Student's t with
    R - 1 degrees of freedom and of the normal distribution. For one replica, and for replicas with
    the same answers, it is Wilson's interval of one replica.

    Args:
      accuracy: [R] accuracy of each replica.
      story_variance: variance over the stories of the fraction of replicas that are right.
      stories: number of independent stories.
    """
    mean, replicas = float(accuracy.mean()), len(accuracy)
    z = float(stats.norm.ppf((1 + CONFIDENCE) / 2))
    stderr = _stderr(accuracy)
    variance = story_variance / stories
    if stderr is not None:
        variance += (stderr * t_quantile(replicas) / z) ** 2
    spread = mean * (1 - mean)
    n = min(stories, spread / variance) if spread and variance else stories
    center = (mean + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(spread / n + (z / (2 * n)) ** 2) / (1 + z**2 / n)
    return mean, stderr, max(0.0, min(mean, center - half)), min(1.0, max(mean, center + half))


def _stderr(accuracy: np.ndarray) -> float | None:
    replicas = len(accuracy)
    return float(accuracy.std(ddof=1) / math.sqrt(replicas)) if replicas > 1 else None


def score(predictions: Mapping[str, Predictions], truth: GroundTruth) -> list[Row]:
    """One row for each model and each task of the test records."""
    records, rows = truth.test, []
    for (model, predicted), (task, stories) in product(predictions.items(), tasks(records)):
        count, target = len(stories), records.target[stories]
        right = predicted.relation[:, stories] == target  # [R, S]
        last = (predicted.last[:, stories] == target).mean(axis=1)
        story_variance = float(right.mean(axis=0).var())
        accuracy, stderr, low, high = interval(right.mean(axis=1), story_variance, count)
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
                replicas=len(right),
                correct=right.sum(axis=1).tolist(),
                story_variance=story_variance,
                ceiling=float(truth.ceilings[stories].mean()),
                accuracy_last=float(last.mean()),
                stderr_last=_stderr(last),
            )
        )
    return rows
