"""Cells of a table: accuracies measured by finished runs, and comparison with published ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clutrr_jax.evaluation.metrics import interval, t_quantile
from experiments.published.clutrr import Accuracy

# The parts of a run's `results.json` that are used here.
ROW = {"model": str, "task": str, "count": int, "ceiling": float, "correct": [int],
       "story_variance": float}  # fmt: skip
RESULTS = {
    "rows": [ROW],
    "device": str,
    "wall_seconds": float,
}
Key = tuple[Any, Any, Any]  # (panel, x, series), see `experiments.grid.definition.Grid`
PUBLISHED_RUNS = 10  # behind each published error (Sinha et al. 2019, section 4.2)
ROUNDING = 0.005  # published accuracies have two decimals


class Measured(NamedTuple):
    """The accuracy of a table cell, as a fraction."""

    mean: float  # over replicas
    error: float | None  # standard error of the mean; None for one replica
    low: float  # 95 % interval, see `clutrr_jax.evaluation.metrics.interval`
    high: float
    stories: int  # tested by each replica
    replicas: int
    ceiling: float  # best achievable accuracy


Table = dict[Key, Measured]


def is_finished(run: Path) -> bool:
    """Returns whether the files that a run writes last exist."""
    return (run / "results.json").exists() and (run / "report.html").exists()


def measure(runs: Sequence[Sequence[dict[str, Any]]]) -> Measured:
    """Returns the accuracy over all replicas of all runs that fill a cell.

    Replicas count equally, even if the tests of their runs differ in size. The stories of one run
    are the same for its replicas, those of different runs are independent.

    Args:
      runs: for each run, the rows of its results for the tests of the cell, which count as one.
    """
    tests = [_pooled(rows) for rows in runs]
    accuracy = np.concatenate([test.accuracy for test in tests])
    weights = np.array([len(test.accuracy) for test in tests]) / len(accuracy)
    counts = np.array([test.stories for test in tests])
    # Variance of the mean accuracy by the choice of stories, and the number of stories of one test
    # whose accuracy would vary as much.
    variance = float(weights**2 / counts @ [test.story_variance for test in tests])
    independent = float(1 / (weights**2 / counts).sum())
    mean, error, low, high = interval(accuracy, variance * independent, independent)
    ceiling = float(np.mean([test.ceiling for test in tests]))
    return Measured(mean, error, low, high, round(counts.mean()), len(accuracy), ceiling)


class _Test(NamedTuple):
    """The tests of a cell in one run, as one."""

    accuracy: np.ndarray  # [R] of each replica
    story_variance: float  # over stories, of the fraction of replicas that are right
    stories: int
    ceiling: float


def _pooled(rows: Sequence[dict[str, Any]]) -> _Test:
    counts = np.array([row["count"] for row in rows])
    correct = np.array([row["correct"] for row in rows])  # [tests, R]
    share, means = counts / counts.sum(), correct.mean(axis=1) / counts
    accuracy = correct.sum(axis=0) / counts.sum()
    within = share @ [row["story_variance"] for row in rows]
    return _Test(
        accuracy,
        within + share @ (means - share @ means) ** 2,
        counts.sum(),
        share @ [row["ceiling"] for row in rows],
    )


def published_interval(published: Accuracy) -> tuple[float, float]:
    """Returns the 95 % interval: Student's t over the paper's runs plus the rounding error.

    Without a published error, the rounding error alone.
    """
    half = ROUNDING + t_quantile(PUBLISHED_RUNS) * (published.error or 0)
    return max(0.0, published.mean - half), min(1.0, published.mean + half)


def intervals_disjoint(cell: Measured, published: Accuracy) -> bool:
    """Returns whether the measured and the published interval do not overlap."""
    low, high = published_interval(published)
    return cell.low > high or cell.high < low
