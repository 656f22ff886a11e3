"""Accuracy per test set with its count, 95 % confidence interval and ceiling."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy import stats

from clutrr_jax.data.records import tasks
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.predictions import Predictions

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Counts:
    """Correct predictions of one model on one test set."""

    model: str
    task: str  # T.K
    count: int  # test stories
    correct: list[int]  # of each replica, tested epoch
    correct_last: list[int]  # of each replica, last epoch
    story_variance: float  # over stories, of the fraction of replicas that are right
    ceiling: float  # best achievable accuracy: mean of `GroundTruth.ceilings`


@dataclass(frozen=True)
class Measured:
    """Accuracy on one or several test sets, as fractions."""

    accuracy: float  # mean over replicas, tested epoch
    stderr: float | None  # standard error of the mean; None for one replica
    low: float  # 95 % interval, see `interval`
    high: float
    count: int  # stories that each replica was tested on
    replicas: int
    ceiling: float  # best achievable accuracy
    accuracy_last: float  # as `accuracy`, last epoch
    stderr_last: float | None
    accuracies: tuple[float, ...] = ()  # of each replica, tested epoch, run by run


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


def score(predictions: Mapping[str, Predictions], truth: GroundTruth) -> list[Counts]:
    """Counts of each model on each task of the test records."""
    records, found = truth.test, []
    for (model, predicted), (task, stories) in product(predictions.items(), tasks(records)):
        right, right_last = (
            relation[:, stories] == records.target[stories]  # [R, S]
            for relation in (predicted.relation, predicted.last)
        )
        found.append(
            Counts(
                model=model,
                task=task,
                count=len(stories),
                correct=right.sum(axis=1).tolist(),
                correct_last=right_last.sum(axis=1).tolist(),
                story_variance=float(right.mean(axis=0).var()),
                ceiling=float(truth.ceilings[stories].mean()),
            )
        )
    return found


def measure(runs: Sequence[Sequence[Counts]]) -> Measured:
    """Accuracy over all replicas of all runs.

    Replicas count equally, even if the tests of their runs differ in size. The stories of one run
    are the same for its replicas, those of different runs are independent.

    Args:
      runs: for each run, the counts of its tests, which are taken as one test.
    """
    accuracy = np.concatenate([_pooled(run, "correct") for run in runs])
    last = np.concatenate([_pooled(run, "correct_last") for run in runs])
    counts = np.array([sum(test.count for test in run) for run in runs])
    weights = np.array([len(run[0].correct) for run in runs]) / len(accuracy)
    # Variance of the mean accuracy by the choice of stories, and the number of stories of one test
    # whose accuracy would vary as much.
    variance = float(weights**2 / counts @ [_story_variance(run) for run in runs])
    independent = float(1 / (weights**2 / counts).sum())
    ceilings_of_runs = [np.average([t.ceiling for t in run], weights=[t.count for t in run])
                        for run in runs]  # fmt: skip
    return Measured(
        *interval(accuracy, variance * independent, independent),
        count=round(counts.mean()),
        replicas=len(accuracy),
        ceiling=float(np.mean(ceilings_of_runs)),
        accuracy_last=float(last.mean()),
        stderr_last=_stderr(last),
        accuracies=tuple(accuracy.tolist()),
    )


def _pooled(run: Sequence[Counts], what: str) -> np.ndarray:
    """Accuracy [R] of the replicas of a run on all of its tests."""
    correct = np.array([getattr(test, what) for test in run])  # [tests, R]
    return correct.sum(axis=0) / sum(test.count for test in run)


def _story_variance(run: Sequence[Counts]) -> float:
    """`Counts.story_variance` of all tests of a run together."""
    counts = np.array([test.count for test in run])
    share, means = counts / counts.sum(), np.array([np.mean(t.correct) for t in run]) / counts
    within = share @ [test.story_variance for test in run]
    return float(within + share @ (means - share @ means) ** 2)
