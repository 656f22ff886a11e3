"""Cells of a table: accuracies measured by finished runs, and comparison with published ones."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clutrr_jax.evaluation.metrics import interval, t_quantile
from experiments.published.accuracy import Accuracy
from generator.errors import InputError, at
from generator.files import read_json

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


class NotMeasured(KeyError):
    """A table cell that no finished run fills."""


class Table(dict[Key, Measured]):
    """The measured cells. Looking up another cell raises NotMeasured."""

    def __missing__(self, key: Key) -> Measured:
        raise NotMeasured(key)


class Result(NamedTuple):
    """The result of one run on one test, or on several tests combined."""

    correct: np.ndarray  # [R] correct predictions of each replica
    stories: int
    ceiling: float


def is_finished(run: Path) -> bool:
    """Returns whether the files that a run writes last exist."""
    return (run / "results.json").exists() and (run / "report.html").exists()


def run_results(run: Path) -> dict[str, Any]:
    """Reads the `results.json` of a finished run.

    Raises:
      InputError: the file is damaged.
    """
    path = run / "results.json"
    found = read_json(path, RESULTS)
    replicas: dict[str, int] = {}
    for row in found["rows"]:
        correct, count = row["correct"], row["count"]
        is_same = len(correct) == replicas.setdefault(row["model"], len(correct)) > 0
        if not (is_same and all(0 <= c <= count for c in correct) and 0 < count < 2**31):
            raise InputError(
                f"{at(path)}: damaged, expected 1 to 2^31 stories of {row['task']} and for each "
                f"replica of {row['model']} the number of correct predictions"
            )
    return found


def variant_test(variant: str, test: str) -> str:
    """Returns the name for the predictions of a variant of a model on the test T.K."""
    return f"{test}, {variant}"


def results_by_test(run: Path, model: str) -> dict[str, Result]:
    """Returns a finished run's results by test T.K, and by `variant_test` for variants.

    Raises:
      InputError: `results.json` is damaged.
    """
    found = {}
    for row in run_results(run)["rows"]:
        name, _, variant = row["model"].partition(": ")
        if name == model:
            test = variant_test(variant, row["task"]) if variant else row["task"]
            found[test] = Result(np.array(row["correct"]), row["count"], row["ceiling"])
    return found


def combine(tests: list[Result]) -> Result:
    """Returns the result on several tests of one run, taken as one test."""
    stories = sum(test.stories for test in tests)
    ceiling = sum(test.ceiling * test.stories for test in tests) / stories
    return Result(np.sum([test.correct for test in tests], axis=0), stories, ceiling)


def measure(runs: list[Result]) -> Measured:
    """Returns the accuracy over all replicas of all runs that fill a cell.

    Replicas count equally, even if the tests of their runs differ in size.
    """
    stories = round(np.mean([run.stories for run in runs]))
    accuracy = np.concatenate([run.correct / run.stories for run in runs])
    mean, error, low, high = interval(accuracy * stories, stories)
    ceiling = float(np.mean([run.ceiling for run in runs]))
    return Measured(mean, error, low, high, stories, len(accuracy), ceiling)


def mean_of_cells(table: Table, keys: Iterable[Key]) -> float | None:
    """Returns the unweighted mean over cells, or None if one of them is not measured."""
    cells = [table.get(key) for key in keys]
    return float(np.mean([cell.mean for cell in cells if cell])) if all(cells) else None


def published_interval(published: Accuracy) -> tuple[float, float]:
    """Returns the 95 % interval: Student's t over the paper's runs plus the rounding error.

    Without a published error, the rounding error alone.
    """
    half = ROUNDING
    if published.error is not None:
        half += t_quantile(PUBLISHED_RUNS) * published.error
    return max(0.0, published.mean - half), min(1.0, published.mean + half)


def intervals_disjoint(cell: Measured, published: Accuracy) -> bool:
    """Returns whether the measured and the published interval do not overlap."""
    low, high = published_interval(published)
    return cell.low > high or cell.high < low
