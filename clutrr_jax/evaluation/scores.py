"""Scores: one table with a row for each series and test set, and its summary over runs.

A series is predictions under a name: those of a model, and what is derived from them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from clutrr_jax.data.records import tasks
from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.metrics import METRICS
from clutrr_jax.evaluation.predictions import UNMAPPED, Predictions, ensemble
from clutrr_jax.evaluation.statistics import (
    Spread,
    Test,
    interval,
    pool,
    spread,
    standard_error,
    summarize,
    weight_of,
)
from clutrr_jax.models import MODELS

K = TypeVar("K")

# "variant": other logits of a model; "sweep": of a point of a sweep; "strict": answers that stand
# alone; "part": on some stories of the tests; "published": of a paper
Kind = Literal["model", "variant", "sweep", "ensemble", "strict", "part", "baseline", "published"]


class Series(NamedTuple):
    """Who made predictions."""

    name: str  # in tables, such as "gat (ensemble of 10)"
    kind: Kind = "model"
    model: str = ""  # the name of the model, for an ensemble, a variant and strict answers too
    given: str = ""  # see `clutrr_jax.models.Spec.given`; empty if it is not known


class Values(NamedTuple):
    """A metric of R replicas on one test."""

    replicas: Sequence[float]  # [R] tested epoch
    last: Sequence[float]  # [R] last epoch
    variance: float  # this and the next ones: see `statistics.Test`
    own: float
    shared: float


@dataclass(frozen=True)
class Score:
    """A row of the table: the predictions of a series on one test."""

    series: Series
    task: str  # T.K
    count: int  # test stories
    clauses: int | None  # of these stories; this and the next ones: None in files of version 0.2.0
    weight: float | None  # sum of the squared shares of the clauses in the stories
    ambiguous: int | None  # test stories with several answers
    metrics: Mapping[str, Values]
    unmapped: int = 0  # predictions that are no relation

    def to_json(self) -> dict[str, Any]:
        """Returns the row as `model.json` and `data.json` hold it."""
        values = {name: found._asdict() for name, found in self.metrics.items()}
        return self.series._asdict() | {
            "task": self.task, "count": self.count, "clauses": self.clauses,
            "weight": self.weight, "ambiguous": self.ambiguous, "unmapped": self.unmapped,
            "metrics": values,
        }  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """A metric on one or several tests; the accuracy as a fraction."""

    accuracy: float  # mean over replicas, tested epoch
    stderr: float | None  # standard error of the mean; None for one replica
    low: float  # 95 % interval, see `statistics.interval`
    high: float
    count: int  # stories that each replica was tested on
    clauses: int | None  # of these stories; None if not known
    replicas: int
    seeds: float | None  # see `statistics.Spread.of_seeds`; None if the interval is without seeds
    ambiguous: int | None  # of these stories, those with several answers; None if not known
    accuracy_last: float  # as `accuracy`, last epoch
    stderr_last: float | None
    accuracies: tuple[float, ...] = ()  # of each replica, tested epoch, run by run


def score(series: Series, predictions: Predictions, truth: GroundTruth) -> list[Score]:
    """Scores of predictions for all stories of `truth.test`, one for each of its tests."""
    found = []
    for task, stories in tasks(truth.test):
        target, part = truth.test.target[stories], predictions.select(stories)
        clause = np.unique(truth.clauses[stories], return_inverse=True)[1]
        metrics = _values(part, target, clause)
        found.append(
            Score(
                series=series,
                task=task,
                count=len(stories),
                clauses=int(clause.max()) + 1,
                weight=weight_of(clause),
                ambiguous=int((truth.possible_answers[stories] > 1).sum()),
                metrics=metrics,
                unmapped=int((part.relation == UNMAPPED).sum()),
            )
        )
    return found


def _values(predictions: Predictions, target: np.ndarray, clause: np.ndarray) -> dict[str, Values]:
    last = predictions._replace(relation=predictions.last, probabilities=None)
    is_last = np.array_equal(predictions.relation, predictions.last)  # the default selection
    found = {}
    for name, metric in METRICS.items():
        values = metric(predictions, target)
        values_last = values if is_last else metric(last, target)
        if values is not None:
            test = summarize(values, clause)
            replicas = test.values.tolist()
            of_last = replicas if values_last is None else values_last.mean(axis=1).tolist()
            found[name] = Values(replicas, of_last, test.variance, test.own, test.shared)
    return found


def score_derived(
    series: Series, predictions: Predictions, truth: GroundTruth, strict: np.ndarray | None = None
) -> list[Score]:
    """Scores of the ensemble of the replicas of a model and of its strict answers, if it has some,
    see `language_models.submissions.Submission`."""
    found = []
    if of_all := ensemble(predictions):
        name = f"{series.name} (ensemble of {len(predictions.relation)})"
        found += score(series._replace(name=name, kind="ensemble"), of_all, truth)
    if strict is not None:
        alone = Predictions(strict, strict, predictions.probability)
        found += score(series._replace(name=f"{series.name} (strict)", kind="strict"), alone, truth)
    return found


def score_run(
    series: Sequence[Series], predictions: Mapping[str, Predictions], truth: GroundTruth
) -> list[Score]:
    """Scores of the series of a trained model, see `series_of`, and of its ensemble."""
    found = [row for one in series for row in score(one, predictions[one.name], truth)]
    return found + score_derived(series[0], predictions[series[0].name], truth)


def score_baselines(truth: GroundTruth) -> list[Score]:
    """Scores of the baselines."""
    return [
        row
        for name, predictions in truth.baselines.items()
        for row in score(Series(name, "baseline", name, BASELINES[name]), predictions, truth)
    ]


def series_of(model: str, settings: Mapping[str, Any], started: bool = False) -> list[Series]:
    """Returns the series of a model of the registry: itself and its variants, "MODEL: VARIANT"."""
    spec = MODELS.get(model)
    if spec is None:
        return [Series(model, "model", model)]
    return [Series(model, "model", model, spec.given(settings, "", started))] + [
        Series(f"{model}: {variant}", "variant", model, spec.given(settings, variant, started))
        for variant in spec.variants
    ]


def read_scores(content: Mapping[str, Any], known: Sequence[Series] = ()) -> list[Score]:
    """Returns the rows in the content of `model.json` or `data.json`. Files of version 0.2.0 do not
    describe the series of their run: these are `known`."""
    found = []
    for row in content["tests"]:
        if "metrics" in row:
            series = Series(*(row[name] for name in Series._fields))
            metrics = {name: Values(**values) if "own" in values else
                       _alike(values["replicas"], values["last"], row["count"])
                       for name, values in row["metrics"].items()}  # fmt: skip
        else:
            series = _series_of_old(row["model"], known)
            tested, last = (np.array(row[c]) / row["count"] for c in ("correct", "correct_last"))
            metrics = {"accuracy": _alike(tested.tolist(), last.tolist(), row["count"])}
        of_test = {name: row.get(name) for name in ("clauses", "weight", "ambiguous")}
        found.append(
            Score(
                series=series,
                task=row["task"],
                count=row["count"],
                metrics=metrics,
                unmapped=row.get("unmapped", 0),
                **of_test,
            )
        )
    return found


def _alike(replicas: Sequence[float], last: Sequence[float], count: int) -> Values:
    """Values of files that do not say how much replicas agree: they are taken to agree in all."""
    variance = float(np.mean([p * (1 - p) for p in replicas]))
    return Values(replicas, last, variance, variance / count, variance / count)


def _series_of_old(name: str, known: Sequence[Series]) -> Series:
    if name in BASELINES:
        return Series(name, "baseline", name, BASELINES[name])
    return next((s for s in known if s.name == name), known[0]._replace(name=name, kind="ensemble"))


def measure_all(
    cells: Mapping[K, Sequence[Sequence[Score]]], metric: str = "accuracy"
) -> dict[K, Measured]:
    """A metric of all cells that have it: the rows of one series on some tests, run by run.

    The spread over seeds is estimated from all cells of a series together.
    """
    found: dict[K, Measured] = {}
    by_series: defaultdict[str, list[K]] = defaultdict(list)
    for key, runs in cells.items():
        if all(metric in test.metrics for run in runs for test in run):
            by_series[runs[0][0].series.name].append(key)
    for keys in by_series.values():
        of_series = spread([[_as_test(run, metric) for run in cells[key]] for key in keys])
        found |= {key: _measure(cells[key], metric, of_series) for key in keys}
    return {key: found[key] for key in cells if key in found}


def measure(runs: Sequence[Sequence[Score]], metric: str = "accuracy") -> Measured | None:
    """A metric of one cell, whose spread over seeds is estimated from it alone; None if it does not
    have it."""
    return measure_all({"": runs}, metric).get("")


def _measure(runs: Sequence[Sequence[Score]], metric: str, of_series: Spread) -> Measured:
    """A metric over all replicas of all runs.

    The tests of a run are taken as one test: its metric is the mean over them, weighted by their
    stories. Replicas count equally, even if the tests of their runs differ in size. The stories of
    one run are the same for its replicas, those of different runs are independent.
    """
    cell = [_as_test(run, metric) for run in runs]
    values = np.concatenate([test.values for test in cell])
    last = np.concatenate([_pooled(run, metric, "last") for run in runs])
    low, high = interval(cell, of_series)

    def per_run(name: str) -> int | None:
        parts = [getattr(test, name) for run in runs for test in run]
        return None if None in parts else round(sum(parts) / len(runs))

    return Measured(
        accuracy=float(values.mean()),
        stderr=standard_error(values),
        low=low,
        high=high,
        count=round(sum(test.count for run in runs for test in run) / len(runs)),
        clauses=per_run("clauses"),
        replicas=len(values),
        seeds=of_series.of_seeds if of_series.freedom else None,
        ambiguous=per_run("ambiguous"),
        accuracy_last=float(last.mean()),
        stderr_last=standard_error(last),
        accuracies=tuple(values.tolist()),
    )


def _pooled(run: Sequence[Score], metric: str, epoch: str) -> np.ndarray:
    """A metric [R] of the replicas of a run on all of its tests."""
    values = np.array([getattr(test.metrics[metric], epoch) for test in run])  # [tests, R]
    return np.average(values, axis=0, weights=[test.count for test in run])


def _as_test(run: Sequence[Score], metric: str) -> Test:
    """All tests of a run as one test. Clauses that are not known have one story each."""
    tests = []
    for test in run:
        replicas, _, *parts = test.metrics[metric]
        weight = test.weight or 1 / test.count
        tests.append(Test(np.array(replicas), 1 / test.count, weight, *parts))
    return pool(tests, [test.count for test in run])
