"""Metrics: values of predictions per story.

A new metric is a function and its entry in METRICS; results, CSV and further tables then have it.
"""

from collections.abc import Callable

import numpy as np

from clutrr_jax.evaluation.predictions import Predictions

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
