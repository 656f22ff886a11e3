"""Exact paired tests between models on the same stories, and Holm's correction."""

import numpy as np


def paired_p(difference: np.ndarray) -> float:
    """Two-sided p-value of an exact sign-flip test of the sum of differences.

    Under the null hypothesis both models are equally good and the sign of each story's difference
    is random. With one prediction per model and story this is McNemar's exact test; SciPy has no
    exact test for the general case at these sample sizes. The distribution of the sum is computed
    by convolution.

    Args:
      difference: [S] integers: correct predictions of one model minus those of the other.
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
