"""Predictions of a model, and its files: `predictions.npz`, and `predictions.csv` for people."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clutrr_jax.data.records import Records, story_ids, tasks
from generator.errors import InputError
from generator.files import atomic_write, read_arrays

UNMAPPED = -1  # relation id of a text that states none
_HEADER = ("id", "replica", "task", "target", "prediction", "probability", "last_prediction")


class Predictions(NamedTuple):
    """Predictions of R replicas on S test stories, as relation ids."""

    relation: np.ndarray  # [R, S] after the epoch that is tested, see `train.selection`
    last: np.ndarray  # [R, S] after the last epoch, by default the same
    probability: np.ndarray  # [R, S] probability of `relation`
    probabilities: np.ndarray | None = None  # [R, S, N] of all N relations, float32, if known
    # [R, S, N] chance of each relation to be the answer, if a baseline draws one of several; then
    # `relation` is the first of them
    chances: np.ndarray | None = None

    def select(self, stories: np.ndarray) -> "Predictions":
        """The same for some of the stories: indices."""
        arrays = (None if array is None else array[:, stories] for array in self)
        return Predictions(*arrays)  # type: ignore[arg-type]

    def by_point(self, points: int) -> list["Predictions"]:
        """Those of the replicas of each point of a sweep."""
        parts = [[None] * points if a is None else np.split(a, points) for a in self]
        return [Predictions(*part) for part in zip(*parts, strict=True)]


def prediction_file(variant: str = "", suffix: str = ".npz") -> str:
    """Name of the file of predictions of a model, of one of its variants ": VARIANT", or of a point
    of a sweep " (POINT)"."""
    return "_".join(["predictions", *re.sub("[:,()]", "", variant).split()]) + suffix


def export_predictions(path: Path, predictions: Predictions, records: Records) -> None:
    """Writes a CSV file with one line per replica and test story, task by task."""
    ids, name = story_ids(records), records.relation_name
    order = [(task, story) for task, rows in tasks(records) for story in rows]
    with atomic_write(path) as part, part.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_HEADER)
        for replica in range(len(predictions.relation)):
            for task, story in order:
                writer.writerow((
                    ids[story],
                    replica,
                    task,
                    name(records.target[story]),
                    name(predictions.relation[replica, story]),
                    f"{predictions.probability[replica, story]:.4f}",
                    name(predictions.last[replica, story]),
                ))  # fmt: skip


def write_predictions(path: Path, predictions: Predictions, records: Records) -> None:
    """Writes the predicted relations and the probabilities of all relations as NumPy arrays, with
    the ids and the targets of the stories in their order, and the predictions after the last epoch
    if they differ."""
    assert predictions.probabilities is not None
    arrays: dict[str, Any] = {
        "probabilities": predictions.probabilities,
        "predicted": predictions.relation.astype(np.int16),
        "ids": np.array(story_ids(records)),
        "targets": np.array([records.relation_name(target) for target in records.target]),
        "relations": np.array(records.algebra.relations),
    }
    if (predictions.last != predictions.relation).any():
        arrays["last"] = predictions.last.astype(np.int16)
    with atomic_write(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **arrays)


def read_run(folder: Path, records: Records) -> Predictions:
    """Reads the predictions in the folder of a run."""
    path, old = folder / prediction_file(), folder / "probabilities.npz"  # of version 0.2.0
    return read_predictions([old if old.exists() and not path.exists() else path], records)


def read_predictions(paths: Sequence[Path], records: Records) -> Predictions:
    """Reads files of `write_predictions` for the same stories, with the replicas of all."""
    found = [_read(path, records) for path in paths]
    values, relation, last = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return Predictions(relation, last, values.max(axis=-1), values)


def _read(path: Path, records: Records) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities [R, S, N], predictions and those of the last epoch [R, S] in a file, whose
    stories may have any order."""
    arrays, names = read_arrays(path) or {}, ("probabilities", "ids", "relations")
    if not set(names) <= set(arrays):
        raise InputError(f"{path}: expected the arrays {', '.join(names)} of a run")
    values, ids, relations = (arrays[name] for name in names)
    targets = arrays.get("targets", np.full(len(ids), ""))  # files of earlier versions have none
    expected = records.algebra.relations
    if relations.tolist() != list(expected) or values.shape[1:] != (len(ids), len(expected)):
        raise InputError(f"{path}: expected probabilities of {len(expected)} relations")
    is_number = values.dtype.kind == "f" and values.size
    if not is_number or not ((values >= 0) & (values <= 1.01)).all():  # rounded
        raise InputError(f"{path}: expected probabilities from 0 to 1")
    predicted = arrays.get("predicted", values.argmax(axis=-1))
    last = arrays.get("last", predicted)
    for array in (predicted, last):
        in_range = array.dtype.kind in "iu" and ((array >= 0) & (array < len(expected))).all()
        if array.shape != values.shape[:2] or not in_range or targets.shape != ids.shape:
            raise InputError(f"{path}: expected a predicted relation for each replica and story")
    place = {id: i for i, id in enumerate(ids.tolist())}
    missing = [id for id in story_ids(records) if id not in place]
    if missing:
        raise InputError(f"{path}: no story {missing[0]!r}, expected those of this data")
    if len(place) < len(ids):
        raise InputError(f"{path}: a story occurs twice, expected different ids")
    rows = [place[id] for id in story_ids(records)]
    for row, target in zip(rows, records.target, strict=True):
        if targets[row] not in ("", records.relation_name(target)):
            raise InputError(
                f"{path}: story {str(ids[row])!r} has another label, expected predictions for this "
                "data"
            )
    return values[:, rows], predicted[:, rows].astype(int), last[:, rows].astype(int)


def ensemble(predictions: Predictions) -> Predictions | None:
    """Returns the predictions of all replicas together: the relations whose mean probability is the
    highest. None for one replica, and if the probabilities are not known."""
    if predictions.probabilities is None or len(predictions.relation) == 1:
        return None
    mean = predictions.probabilities.mean(axis=0, keepdims=True)
    relation = mean.argmax(axis=-1)
    return Predictions(relation, relation, mean.max(axis=-1), mean)
