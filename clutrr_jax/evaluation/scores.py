"""Scores: one table with a row for each series and test set, and its summary over runs.

A series is predictions under a name: those of a model, and what is derived from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from clutrr_jax.data.records import tasks
from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.metrics import METRICS, interval, standard_error
from clutrr_jax.evaluation.predictions import UNMAPPED, Predictions, ensemble
from clutrr_jax.models import MODELS

# "variant": other logits of a model; "strict": answers that stand alone; "published": of a paper
Kind = Literal["model", "variant", "ensemble", "strict", "baseline", "published"]


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
    variance: float  # over stories, of the mean over replicas, see `metrics.Metric`


@dataclass(frozen=True)
class Score:
    """A row of the table: the predictions of a series on one test."""

    series: Series
    task: str  # T.K
    count: int  # test stories
    ambiguous: int | None  # test stories with several answers; None in files of version 0.2.0
    metrics: Mapping[str, Values]
    unmapped: int = 0  # predictions that are no relation

    def to_json(self) -> dict[str, Any]:
        """Returns the row as `model.json` and `data.json` hold it."""
        values = {name: found._asdict() for name, found in self.metrics.items()}
        return self.series._asdict() | {
            "task": self.task, "count": self.count, "ambiguous": self.ambiguous,
            "unmapped": self.unmapped, "metrics": values,
        }  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """A metric on one or several tests; the accuracy as a fraction."""

    accuracy: float  # mean over replicas, tested epoch
    stderr: float | None  # standard error of the mean; None for one replica
    low: float  # 95 % interval, see `metrics.interval`
    high: float
    count: int  # stories that each replica was tested on
    replicas: int
    ambiguous: int | None  # of these stories, those with several answers; None if not known
    accuracy_last: float  # as `accuracy`, last epoch
    stderr_last: float | None
    accuracies: tuple[float, ...] = ()  # of each replica, tested epoch, run by run


def score(series: Series, predictions: Predictions, truth: GroundTruth) -> list[Score]:
    """Scores of predictions for all stories of `truth.test`, one for each of its tests."""
    found = []
    for task, stories in tasks(truth.test):
        target, part = truth.test.target[stories], predictions.select(stories)
        found.append(
            Score(
                series=series,
                task=task,
                count=len(stories),
                ambiguous=int((truth.possible_answers[stories] > 1).sum()),
                metrics=_values(part, target),
                unmapped=int((part.relation == UNMAPPED).sum()),
            )
        )
    return found


def _values(predictions: Predictions, target: np.ndarray) -> dict[str, Values]:
    last = predictions._replace(relation=predictions.last, probabilities=None)
    is_last = np.array_equal(predictions.relation, predictions.last)  # the default selection
    found = {}
    for name, metric in METRICS.items():
        values = metric(predictions, target)
        values_last = values if is_last else metric(last, target)
        if values is not None:
            replicas = values.mean(axis=1).tolist()
            of_last = replicas if values_last is None else values_last.mean(axis=1).tolist()
            found[name] = Values(replicas, of_last, float(values.mean(axis=0).var()))
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
            metrics = {name: Values(**values) for name, values in row["metrics"].items()}
        else:
            series = _series_of_old(row["model"], known)
            tested, last = (np.array(row[c]) / row["count"] for c in ("correct", "correct_last"))
            metrics = {"accuracy": Values(tested.tolist(), last.tolist(), row["story_variance"])}
        about = series, row["task"], row["count"], row.get("ambiguous"), metrics
        found.append(Score(*about, row.get("unmapped", 0)))
    return found


def _series_of_old(name: str, known: Sequence[Series]) -> Series:
    if name in BASELINES:
        return Series(name, "baseline", name, BASELINES[name])
    return next((s for s in known if s.name == name), known[0]._replace(name=name, kind="ensemble"))


def measure(runs: Sequence[Sequence[Score]], metric: str = "accuracy") -> Measured | None:
    """A metric over all replicas of all runs; None if a run does not have it.

    The tests of a run are taken as one test: its metric is the mean over them, weighted by their
    stories. Replicas count equally, even if the tests of their runs differ in size. The stories of
    one run are the same for its replicas, those of different runs are independent.
    """
    if any(metric not in test.metrics for run in runs for test in run):
        return None
    values = np.concatenate([_pooled(run, metric, "replicas") for run in runs])
    last = np.concatenate([_pooled(run, metric, "last") for run in runs])
    counts = np.array([sum(test.count for test in run) for run in runs])
    weights = np.array([len(run[0].metrics[metric].replicas) for run in runs]) / len(values)
    # Variance of the mean by the choice of stories, and the number of stories of one test whose
    # mean would vary as much.
    variance = float(weights**2 / counts @ [_story_variance(run, metric) for run in runs])
    independent = float(1 / (weights**2 / counts).sum())
    ambiguous = [test.ambiguous for run in runs for test in run if test.ambiguous is not None]
    is_known = len(ambiguous) == sum(map(len, runs))
    return Measured(
        *interval(values, variance * independent, independent),
        count=round(counts.mean()),
        replicas=len(values),
        ambiguous=round(sum(ambiguous) / len(runs)) if is_known else None,
        accuracy_last=float(last.mean()),
        stderr_last=standard_error(last),
        accuracies=tuple(values.tolist()),
    )


def _pooled(run: Sequence[Score], metric: str, epoch: str) -> np.ndarray:
    """A metric [R] of the replicas of a run on all of its tests."""
    values = np.array([getattr(test.metrics[metric], epoch) for test in run])  # [tests, R]
    return np.average(values, axis=0, weights=[test.count for test in run])


def _story_variance(run: Sequence[Score], metric: str) -> float:
    """`Values.variance` of all tests of a run together."""
    values, counts = [test.metrics[metric] for test in run], np.array([t.count for t in run])
    share, means = counts / counts.sum(), np.array([np.mean(v.replicas) for v in values])
    return float(share @ [v.variance for v in values] + share @ (means - share @ means) ** 2)
