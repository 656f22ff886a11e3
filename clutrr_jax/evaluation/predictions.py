"""Predictions of a model, and their file `predictions.csv` in its folder."""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from clutrr_jax.data.records import Records, story_ids, tasks
from generator.files import atomic_write
from generator.kinship import RELATIONS

_HEADER = ("id", "replica", "task", "target", "prediction", "probability", "last_prediction")


class Predictions(NamedTuple):
    """Predictions of R replicas on S test stories, as relation ids."""

    relation: np.ndarray  # [R, S] after the epoch that is tested, see `train.selection`
    last: np.ndarray  # [R, S] after the last epoch, by default the same
    probability: np.ndarray  # [R, S] probability of `relation`


def prediction_file(variant: str = "") -> str:
    """Name of the file of predictions of a model, or of one of its variants."""
    return "_".join(["predictions", *variant.replace(",", "").split()]) + ".csv"


def write_predictions(path: Path, predictions: Predictions, records: Records) -> None:
    """Writes one line per replica and test story, task by task. `read_submissions` reads it."""
    ids = story_ids(records)
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
                    RELATIONS[records.target[story]],
                    RELATIONS[predictions.relation[replica, story]],
                    f"{predictions.probability[replica, story]:.4f}",
                    RELATIONS[predictions.last[replica, story]],
                ))  # fmt: skip
