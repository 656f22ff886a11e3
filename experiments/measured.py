"""The cells of a table: what finished runs measured, and how it compares with what is published."""

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from clutrr_jax.evaluation import CONFIDENCE, interval
from experiments.published import Share

Key = tuple[Any, Any, Any]  # (panel, x, series), see `experiments.grid.Grid`
PUBLISHED_RUNS = 10  # behind each published error (Sinha et al. 2019, section 4.2)
ROUNDED = 0.005  # published figures have two decimals


class Measured(NamedTuple):
    """An accuracy, as a share of 1."""

    mean: float  # over replicas
    error: float | None  # standard error of the mean; none for one replica
    low: float  # 95 % interval, as in `clutrr_jax.evaluation.interval`
    high: float
    stories: int  # tested in each replica
    replicas: int
    ceiling: float  # what the ambiguity of the labels allows


class NotMeasured(KeyError):
    """A cell of the table that no run has filled."""


class Table(dict[Key, Measured]):
    """The measured cells."""

    def __missing__(self, key: Key) -> Measured:
        raise NotMeasured(key)


class Answers(NamedTuple):
    """Of one run to some tests together."""

    right: np.ndarray  # [R] right answers of each replica
    stories: int  # tested
    ceiling: float


def is_finished(run: Path) -> bool:
    """The last things that a run writes are there."""
    return (run / "results.json").exists() and (run / "report.html").exists()


def answers(run: Path, model: str, tests: Iterable[str]) -> Answers | None:
    """What a finished run says to those of the tests T.K that it has; None if it has none."""
    rows = json.loads((run / "results.json").read_text())["rows"]
    of = {row["task"]: row for row in rows if row["model"] == model}
    tests = [test for test in tests if test in of]
    if not tests:
        return None
    right = np.zeros(of[tests[0]]["replicas"], int)
    with (run / model / "predictions.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            if line["task"] in tests:
                right[int(line["replica"])] += line["prediction"] == line["target"]
    counts = [of[test]["count"] for test in tests]
    ceiling = np.average([of[test]["ceiling"] for test in tests], weights=counts)
    return Answers(right, sum(counts), float(ceiling))


def measured(runs: list[Answers]) -> Measured:
    """One cell of the table from all runs that fill it: of one run its replicas, of runs with data
    of their own one or more each. Runs of other test sizes count by their share."""
    stories = round(np.mean([run.stories for run in runs]))
    right = np.concatenate([run.right / run.stories for run in runs]) * stories
    mean, error, low, high = interval(right, stories)
    ceiling = float(np.mean([run.ceiling for run in runs]))
    return Measured(mean, error, low, high, stories, len(right), ceiling)


def average(table: Table, keys: Iterable[Key]) -> float | None:
    """The mean of these cells, each counting once; None where one is not measured."""
    cells = [table.get(key) for key in keys]
    return float(np.mean([cell.mean for cell in cells if cell])) if all(cells) else None


def published_interval(share: Share) -> tuple[float, float]:
    """95 %, by Student's t over the paper's runs; without an error what rounding leaves open."""
    half = ROUNDED
    if share.error is not None:
        half += float(stdtrit(PUBLISHED_RUNS - 1, (1 + CONFIDENCE) / 2)) * share.error
    return max(0.0, share.mean - half), min(1.0, share.mean + half)


def apart(cell: Measured, share: Share) -> bool:
    """Whether the two intervals do not meet."""
    low, high = published_interval(share)
    return cell.low > high or cell.high < low
