"""Is one model better than another on the same stories? Exact tests, corrected for their number."""

import numpy as np


def paired_p(difference: np.ndarray) -> float:
    """The chance of a difference in sum at least as large if both models were equally good: then
    the sign of each story's difference is a coin's toss. Exact, two-sided; where each model
    answers once, this is McNemar's exact test.

    Args:
      difference: [S] whole numbers: right answers of the one model less those of the other.
    """
    steps = np.abs(difference[difference != 0])
    if not len(steps):
        return 1.0
    steps //= np.gcd.reduce(steps)
    observed = abs(int((np.sign(difference[difference != 0]) * steps).sum()))
    chance = np.ones(1)  # of each sum, from the least, in steps of 1
    for step in np.sort(steps):
        chance = (np.pad(chance, (2 * step, 0)) + np.pad(chance, (0, 2 * step))) / 2
    total = len(chance) // 2
    return min(1.0, float(chance[np.abs(np.arange(-total, total + 1)) >= observed].sum()))


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's correction (1979) of the p-values of several tests, in the order given. [tests]"""
    order = np.argsort(p)
    corrected = np.empty(len(p))
    corrected[order] = np.maximum.accumulate(np.sort(p) * np.arange(len(p), 0, -1))
    return np.minimum(corrected, 1.0)
