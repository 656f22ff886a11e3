"""Cells of a table: accuracies measured by finished runs, and comparison with published ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clutrr_jax.evaluation.metrics import interval, t_quantile
from experiments.published.clutrr import Accuracy

# The parts of a run's `results.json` that are used here.
RESULTS = {
    "rows": [{"model": str, "task": str, "count": int, "ceiling": float, "correct": [int]}],
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

    Replicas count equally, even if the tests of their runs differ in size.

    Args:
      runs: for each run, the rows of its results for the tests of the cell, which count as one.
    """
    counts = [sum(row["count"] for row in rows) for rows in runs]
    correct = [np.sum([row["correct"] for row in rows], axis=0) for rows in runs]
    ceilings = [
        sum(row["ceiling"] * row["count"] for row in rows) / count
        for rows, count in zip(runs, counts, strict=True)
    ]
    stories = round(np.mean(counts))
    accuracy = np.concatenate([right / n for right, n in zip(correct, counts, strict=True)])
    mean, error, low, high = interval(accuracy * stories, stories)
    ceiling = float(np.mean(ceilings))
    return Measured(mean, error, low, high, stories, len(accuracy), ceiling)


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
