"""Rows of results by hand."""

from typing import Any

import numpy as np

from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.evaluation.published import Accuracy, published_interval
from clutrr_jax.evaluation.scores import Score, Series, Values
from clutrr_jax.evaluation.statistics import summarize
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
    name: str, task: str, count: int, correct: list[int], ambiguous: int = 0, clauses: int = 0
) -> Score:
    """A row of the table of scores. `correct`: each replica answers the first ones of the stories,
    of which those of a clause stand together; without `clauses` they all differ."""
    clause = np.arange(count) * (clauses or count) // count
    test = summarize(np.arange(count) < np.array(correct)[:, None], clause)
    right = test.values.tolist()
    model, variant, _ = name.partition(": ")
    return Score(
        series=Series(name, "variant" if variant else "model", model, "nothing"),
        task=task,
        count=count,
        clauses=clauses or count,
        weight=test.clauses,
        ambiguous=ambiguous,
        metrics={"accuracy": Values(right, right, test.variance, test.own, test.shared)},
    )
