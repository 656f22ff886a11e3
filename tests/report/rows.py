"""Rows of results by hand."""

from typing import Any

from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.evaluation.published import Accuracy, published_interval
from clutrr_jax.evaluation.scores import Score, Series, Values
from clutrr_jax.report.results import MEASURED


def row(columns: tuple[str, ...], key: tuple, name: str, **values: Any) -> dict[str, Any]:
    """A row of a series with this name, which is not measured unless `values` say so."""
    model, derived, _ = name.partition(" (")
    kind = "baseline" if name in BASELINES else "ensemble" if derived else "model"
    return dict(zip(columns, key, strict=True)) | {
        "name": name, "kind": kind, "of": model, "given": BASELINES.get(name, ""), "task": "",
        **dict.fromkeys(MEASURED), "metrics": {}, "average": False, "unmapped": 0, **values,
    }  # fmt: skip


def paper(columns: tuple[str, ...], key: tuple, name: str, mean: float, error: Any = None,
          **values: Any) -> dict[str, Any]:  # fmt: skip
    """A row with a published accuracy."""
    low, high = published_interval(Accuracy(mean, error))
    of_paper = {"kind": "published", "accuracy": mean, "stderr": error, "low": low, "high": high}
    return row(columns, key, name, **of_paper, **values)


def score_of(
    name: str, task: str, count: int, correct: list[int], variance: float, ambiguous: int = 0
) -> Score:
    """A row of the table of scores; `correct`: answers of each replica that are right."""
    right = [n / count for n in correct]
    model, variant, _ = name.partition(": ")
    series = Series(name, "variant" if variant else "model", model, "nothing")
    return Score(series, task, count, ambiguous, {"accuracy": Values(right, right, variance)})
