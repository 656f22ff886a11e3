"""From predictions to the per-k curve: accuracy with its count, interval and ceiling."""

import csv
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from clutrr_jax.data.records import UNSTATED, Records, by_people, tasks
from generator.errors import InputError, at
from generator.files import atomic_write, table_rows
from generator.kinship import PREDICATE_OF, RELATION_ID, RELATIONS
from generator.prover import derivable

CONFIDENCE = 0.95


class Predictions(NamedTuple):
    """Of all replicas R on all test stories S; relations by number."""

    best: np.ndarray  # [R, S] by the epoch with the best dev accuracy
    last: np.ndarray  # [R, S] by the last epoch
    probability: np.ndarray  # [R, S] that the model gave to `best`


@dataclass(frozen=True)
class Row:
    """One point of a curve. Accuracies are shares of 1."""

    model: str
    task: str  # T.K
    k: int
    accuracy: float  # mean over replicas
    stderr: float | None  # standard error of that mean; none for one replica
    low: float  # 95 % interval: Student's t over replicas, Wilson's for one replica
    high: float
    count: int  # test stories
    replicas: int
    ceiling: float  # what the ambiguity of the labels allows
    accuracy_last: float  # the same for the last epoch
    stderr_last: float | None


def reach(runs: int) -> float:
    """How many standard errors the 95 % interval of a mean over so many runs, at least 2, extends
    to either side, by Student's t."""
    from scipy.special import stdtrit  # training starts without it

    return float(stdtrit(runs - 1, (1 + CONFIDENCE) / 2))


def interval(correct: np.ndarray, count: int) -> tuple[float, float | None, float, float]:
    """Mean accuracy, its standard error, and the 95 % interval.

    Args:
      correct: [R] right answers of each replica, of `count` each.
      count: at least 1.
    """
    shares = correct / count
    mean = float(shares.mean())
    if len(shares) == 1:
        z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
        centre = (mean + z**2 / (2 * count)) / (1 + z**2 / count)
        half = z / (1 + z**2 / count) * (mean * (1 - mean) / count + (z / (2 * count)) ** 2) ** 0.5
        return mean, None, max(0.0, centre - half), min(1.0, centre + half)
    stderr = float(shares.std(ddof=1) / len(shares) ** 0.5)
    half = reach(len(shares)) * stderr
    return mean, stderr, max(0.0, mean - half), min(1.0, mean + half)


def ceilings(records: Records) -> np.ndarray:
    """The chance to be right of one who knows all rules, for each story: 1 / the number of readings
    that the 16 rules derive from its facts. Where they do not derive the label, nothing is known
    against it: 1. [S]"""
    found = np.ones(len(records))
    for rows in by_people(records):
        found[rows] = _ceilings(records.select(rows))
    return found


def _ceilings(records: Records) -> np.ndarray:
    """The same, for stories of which none is much larger than the others."""
    sizes = np.diff(records.edge_start)
    width = int(sizes.max())
    place = np.arange(width) < sizes[:, None]
    edges = np.zeros((len(records), width, 2), int)
    edges[place] = np.stack([records.senders, records.receivers], axis=1)
    predicates = np.full((len(records), width), -1)
    stated = np.append(PREDICATE_OF, -1)  # an unstated relation is no fact
    assert len(PREDICATE_OF) == UNSTATED
    predicates[place] = stated[records.relations]
    people = int(np.diff(records.node_start).max())
    readings = derivable(edges, predicates, records.query, people)
    known = readings[np.arange(len(records)), PREDICATE_OF[records.target]]
    return np.where(known, 1 / np.maximum(readings.sum(axis=1), 1), 1.0)


def score(model: str, predictions: Predictions, records: Records) -> list[Row]:
    """A row for each task of the test records."""
    ceiling = ceilings(records)
    right = predictions.best == records.target
    right_last = predictions.last == records.target
    rows = []
    for task, stories in tasks(records):
        accuracy, stderr, low, high = interval(right[:, stories].sum(axis=1), len(stories))
        last, stderr_last, _, _ = interval(right_last[:, stories].sum(axis=1), len(stories))
        rows.append(
            Row(
                model=model,
                task=task,
                k=int(records.clause_length[stories[0]]),
                accuracy=accuracy,
                stderr=stderr,
                low=low,
                high=high,
                count=len(stories),
                replicas=len(right),
                ceiling=float(ceiling[stories].mean()),
                accuracy_last=last,
                stderr_last=stderr_last,
            )
        )
    return rows


def majority(records: Records) -> Predictions:
    """The most frequent label of each task's own test stories: what no constant answer beats."""
    answer = np.zeros((1, len(records)), int)
    for _, stories in tasks(records):
        answer[:, stories] = np.bincount(records.target[stories]).argmax()
    return Predictions(answer, answer, np.ones(answer.shape))


_HEADER = ("replica", "task", "row", "target", "prediction", "probability", "last_prediction")


def prediction_file(variant: str = "") -> str:
    """Where what a model, or a variant of it, says is written in the model's folder."""
    return "_".join(["predictions", *variant.replace(",", "").split()]) + ".csv"


def write_predictions(path: Path, predictions: Predictions, records: Records) -> None:
    """One line for each replica and test story; `row` counts from 1 within its task."""
    order = [(task, row, story) for task, rows in tasks(records) for row, story in enumerate(rows)]
    with atomic_write(path) as part, part.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_HEADER)
        for replica in range(len(predictions.best)):
            for task, row, story in order:
                writer.writerow((
                    replica,
                    task,
                    row + 1,
                    RELATIONS[records.target[story]],
                    RELATIONS[predictions.best[replica, story]],
                    f"{predictions.probability[replica, story]:.4f}",
                    RELATIONS[predictions.last[replica, story]],
                ))  # fmt: skip


def read_predictions(path: Path, records: Records) -> Predictions:
    """What `write_predictions` wrote for these records.

    Raises:
      InputError: the file is damaged, or of other test stories.
    """
    story_of = {
        (task, str(row + 1)): story
        for task, rows in tasks(records)
        for row, story in enumerate(rows.tolist())
    }
    lines = table_rows(path)
    if next(lines) != list(_HEADER):
        raise InputError(f"{at(path)}: expected the header {','.join(_HEADER)}")
    cells = list(lines)
    if len(cells) % len(records) or not cells:
        raise InputError(f"{at(path)}: {len(cells)} rows, expected a multiple of {len(records)}")
    shape = (len(cells) // len(records), len(records))
    best, last = np.full(shape, -1), np.full(shape, -1)
    probability = np.zeros(shape)
    for number, line in enumerate(cells, start=1):
        try:
            replica, task, row, target, prediction, p, last_prediction = line
            story = story_of[task, row]
            right = RELATION_ID[target] == records.target[story]
            if not (right and replica.isdecimal() and 0 <= float(p) <= 1):
                raise ValueError
            best[int(replica), story] = RELATION_ID[prediction]
            last[int(replica), story] = RELATION_ID[last_prediction]
            probability[int(replica), story] = float(p)
        except (ValueError, KeyError, IndexError):
            raise InputError(
                f"{at(path, number)}: not a prediction for these test stories, expected "
                + ",".join(_HEADER)
            ) from None
    if (best < 0).any():
        raise InputError(f"{at(path)}: a story stands twice and another not at all")
    return Predictions(best, last, probability)


def as_dicts(rows: list[Row]) -> list[dict[str, Any]]:
    """Rows as JSON objects."""
    return [asdict(row) for row in rows]
