"""The cells of a table: what finished runs measured, and how it compares with what is published."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clutrr_jax.evaluation.metrics import interval, prediction_file, reach
from experiments.grid.published import Accuracy
from generator.errors import InputError, at
from generator.files import read_json, table_rows

# What is read of a run's `results.json`, and of its predictions.
RESULTS = {
    "rows": [{"model": str, "task": str, "replicas": int, "count": int, "ceiling": float}],
    "device": str,
    "wall_seconds": float,
}
_COLUMNS = {"task", "replica", "prediction", "target"}
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


def run_results(run: Path) -> dict[str, Any]:
    """The `results.json` of a finished run. Raises InputError."""
    return read_json(run / "results.json", RESULTS)


def variant_test(variant: str, test: str) -> str:
    """The name of what a variant of a model says to the test T.K."""
    return f"{test}, {variant}"


def answers(run: Path, model: str) -> dict[str, Answers]:
    """What a finished run says to each of its tests T.K, and what each variant of the model.

    Raises:
      InputError: its files are damaged.
    """
    rows = run_results(run)["rows"]
    found = _answers(run / model / prediction_file(), [r for r in rows if r["model"] == model])
    for name in dict.fromkeys(row["model"] for row in rows):
        if name.startswith(f"{model}: "):
            variant = name.removeprefix(f"{model}: ")
            path = run / model / prediction_file(variant)
            said = _answers(path, [row for row in rows if row["model"] == name])
            found |= {variant_test(variant, test): some for test, some in said.items()}
    return found


def _answers(path: Path, rows: list[dict[str, Any]]) -> dict[str, Answers]:
    """The answers of one table, whose rows in the results are given."""
    told, right = (
        Counter[tuple[str, str]](),
        Counter[tuple[str, str]](),
    )  # stories of (T.K, replica)
    header, *lines = table_rows(path)
    for number, cells in enumerate(lines, start=1):
        line = dict(zip(header, cells, strict=False))
        if len(cells) < len(header) or not line.keys() >= _COLUMNS:
            raise InputError(f"{at(path, number)}: expected the columns {', '.join(_COLUMNS)}")
        place = line["task"], line["replica"]
        told[place] += 1
        right[place] += line["prediction"] == line["target"]
    found = {}
    for row in rows:
        test, stories, replicas = row["task"], row["count"], rows[0]["replicas"]
        of_test = {replica: count for (task, replica), count in told.items() if task == test}
        as_told = of_test == {str(r): stories for r in range(len(of_test))}
        if stories < 1 or not as_told or not len(of_test) == replicas == row["replicas"]:
            raise InputError(
                f"{at(path)}: expected as many replicas and stories of {test} as results.json "
                f"says, {replicas} of {stories}"
            )
        of_replicas = np.array([right[test, str(r)] for r in range(replicas)])
        found[test] = Answers(of_replicas, stories, row["ceiling"])
    return found


def together(tests: list[Answers]) -> Answers:
    """What a run says to some of its tests, as if they were one."""
    stories = sum(test.stories for test in tests)
    ceiling = sum(test.ceiling * test.stories for test in tests) / stories
    return Answers(np.sum([test.right for test in tests], axis=0), stories, ceiling)


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


def published_interval(share: Accuracy) -> tuple[float, float]:
    """95 %, by Student's t over the paper's runs; without an error what rounding leaves open."""
    half = ROUNDED
    if share.error is not None:
        half += reach(PUBLISHED_RUNS) * share.error
    return max(0.0, share.mean - half), min(1.0, share.mean + half)


def intervals_disjoint(cell: Measured, share: Accuracy) -> bool:
    """Whether the two intervals do not meet."""
    low, high = published_interval(share)
    return cell.low > high or cell.high < low
