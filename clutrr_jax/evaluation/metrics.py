"""Metrics: values of predictions per story, and their means with 95 % confidence intervals.

A new metric is a function and its entry in METRICS; results, CSV and further tables then have it.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from clutrr_jax.evaluation.predictions import Predictions

CONFIDENCE = 0.95

# A metric of the predictions of R replicas on the S stories of a test, given their labels [S]:
# values [R, S], whose mean over the stories is the metric of a replica, and whose variance over
# them is S times its sampling variance. The values of a metric that is no mean over stories are the
# metric plus the influence of each story. None if the predictions do not have what it needs:
# `Predictions.probabilities` are None for baselines, answers as text and the last epoch.
Metric = Callable[[Predictions, np.ndarray], np.ndarray | None]


def accuracy(predictions: Predictions, target: np.ndarray) -> np.ndarray:
    """Fraction of the test stories that are answered correctly, expected if an answer is drawn."""
    if predictions.chances is None:
        return predictions.relation == target
    return np.take_along_axis(predictions.chances, target[None, :, None], axis=-1)[..., 0]


def macro_accuracy(predictions: Predictions, target: np.ndarray) -> np.ndarray:
    """Accuracy on the test stories of each label, averaged over the labels of the test."""
    right = accuracy(predictions, target)
    _, label, count = np.unique(target, return_inverse=True, return_counts=True)
    of_label = np.stack([right[:, label == i].mean(axis=1) for i in range(len(count))], axis=1)
    # Deviations from the accuracy of the label would be too small for labels with few stories.
    weight = len(target) / (len(count) * count[label])
    influence = weight * (right - right.mean(axis=1, keepdims=True))
    centered = influence - influence.mean(axis=1, keepdims=True)
    return of_label.mean(axis=1, keepdims=True) + centered


METRICS: dict[str, Metric] = {"accuracy": accuracy, "macro accuracy": macro_accuracy}


def t_quantile(runs: int) -> float:
    """Half-width of the 95 % interval of a mean over at least two runs, in standard errors."""
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, runs - 1))


def interval(
    values: np.ndarray, story_variance: float, stories: float
) -> tuple[float, float | None, float, float]:
    """Mean of a metric, its standard error over replicas (None for one), and the 95 % interval.

    The interval covers other test stories and other replicas. It is Wilson's score interval for the
    effective number of stories n with mean (1 - mean) / n = V, but at most `stories`. V is
    `story_variance / stories`, the variance by the choice of stories, plus the squared standard
    error over replicas times (t / z)^2, where t and z are the 97.5 % quantiles of Student's t with
    R - 1 degrees of freedom and of the normal distribution. For one replica, and for replicas with
    the same answers, it is Wilson's interval of one replica. A mean that is not from 0 to 1 has the
    normal interval of variance V.

    Args:
      values: [R] metric of each replica.
      story_variance: variance over the stories of the mean over replicas.
      stories: number of independent stories.
    """
    mean, replicas = float(values.mean()), len(values)
    z = float(stats.norm.ppf((1 + CONFIDENCE) / 2))
    stderr = standard_error(values)
    variance = story_variance / stories
    if stderr is not None:
        variance += (stderr * t_quantile(replicas) / z) ** 2
    if not 0 <= mean <= 1:
        half = z * math.sqrt(variance)
        return mean, stderr, mean - half, mean + half
    spread = mean * (1 - mean)
    n = min(stories, spread / variance) if spread and variance else stories
    center = (mean + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(spread / n + (z / (2 * n)) ** 2) / (1 + z**2 / n)
    return mean, stderr, max(0.0, min(mean, center - half)), min(1.0, max(mean, center + half))


def standard_error(values: np.ndarray) -> float | None:
    """Standard error of a mean over replicas; None for one replica."""
    replicas = len(values)
    return float(values.std(ddof=1) / math.sqrt(replicas)) if replicas > 1 else None
