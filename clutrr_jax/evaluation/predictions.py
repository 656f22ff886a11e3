"""Predictions of a model, and their file `predictions.csv` in its folder."""

import csv
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from clutrr_jax.data.records import Records, positional_ids, tasks
from generator.errors import InputError, at
from generator.files import atomic_write, table_rows
from generator.kinship import RELATION_ID, RELATIONS

_HEADER = ("replica", "task", "row", "target", "prediction", "probability", "last_prediction")


class Predictions(NamedTuple):
    """Predictions of R replicas on S test stories, as relation ids."""

    relation: np.ndarray  # [R, S] after the epoch that is tested, see `train.selection`
    last: np.ndarray  # [R, S] after the last epoch, by default the same
    probability: np.ndarray  # [R, S] probability of `relation`


def prediction_file(variant: str = "") -> str:
    """Name of the file of predictions of a model, or of one of its variants."""
    return "_".join(["predictions", *variant.replace(",", "").split()]) + ".csv"


def write_predictions(path: Path, predictions: Predictions, records: Records) -> None:
    """Writes one line per replica and test story; `row` counts from 1 within the task."""
    order = [(task, row, story) for task, rows in tasks(records) for row, story in enumerate(rows)]
    with atomic_write(path) as part, part.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_HEADER)
        for replica in range(len(predictions.relation)):
            for task, row, story in order:
                writer.writerow((
                    replica,
                    task,
                    row + 1,
                    RELATIONS[records.target[story]],
                    RELATIONS[predictions.relation[replica, story]],
                    f"{predictions.probability[replica, story]:.4f}",
                    RELATIONS[predictions.last[replica, story]],
                ))  # fmt: skip


def read_predictions(path: Path, records: Records) -> Predictions:
    """Reads a file of `write_predictions` for the same records.

    The file may have been written again by pandas: columns in another order, further columns, and
    numbers such as 1.10 or 0 as 1.1 or 0.0.

    Raises:
      InputError: the file is damaged, or holds predictions for other test stories.
    """
    story_of = {name: story for story, name in enumerate(positional_ids(records))}
    header, *rows = table_rows(path)
    for column in _HEADER:
        if header.count(column) != 1:
            raise InputError(
                f'{path}: {header.count(column)} columns "{column}", expected the header '
                f"{','.join(_HEADER)}; found {','.join(header)}"
            )
    if len(rows) % len(records) or not rows:
        raise InputError(f"{path}: {len(rows)} rows, expected a multiple of {len(records)}")
    shape = (len(rows) // len(records), len(records))
    relation, last = np.full(shape, -1), np.full(shape, -1)
    probability = np.zeros(shape)
    labels = {name: RELATIONS[records.target[story]] for name, story in story_of.items()}
    known = {task for task, _ in tasks(records)}
    for number, cells in enumerate(rows, start=1):
        if len(cells) != len(header):
            raise InputError(f"{at(path, number)}: {len(cells)} cells, expected {len(header)}")
        row = dict(zip(header, cells, strict=True))
        row |= {column: integer(row[column]) for column in ("replica", "row")}
        if row["task"] not in known and f"{row['task']}0" in known:
            row["task"] += "0"
        if problem := _problem(row, labels, len(relation)):
            column, expected = problem
            raise InputError(f'{at(path, number, column)}: "{row[column]}", expected {expected}')
        index = int(row["replica"]), story_of[f"{row['task']}/{row['row']}"]
        if relation[index] >= 0:
            raise InputError(
                f"{at(path, number)}: second prediction for row {row['row']} of task "
                f"{row['task']}, expected one for each replica, and tasks such as 1.20 as text"
            )
        relation[index] = RELATION_ID[row["prediction"]]
        last[index] = RELATION_ID[row["last_prediction"]]
        probability[index] = float(row["probability"])
    return Predictions(relation, last, probability)


def integer(text: str) -> str:
    """Returns an integer in a file without the fraction that pandas writes: "0.0" is "0"."""
    return re.sub(r"(?<=\d)\.0+$", "", text.strip(), flags=re.ASCII)


def _problem(row: dict[str, str], labels: dict[str, str], replicas: int) -> tuple[str, str] | None:
    """Returns the wrong column of a row, and what was expected there.

    Args:
      row: its cells.
      labels: label of each test story T.K/ROW.
      replicas: number of replicas in the file.
    """
    story = f"{row['task']}/{row['row']}"
    if story not in labels:
        return "row", f"a test story of task {row['task']}"
    if row["target"] != labels[story]:
        return "target", labels[story]
    for column in ("prediction", "last_prediction"):
        if row[column] not in RELATION_ID:
            return column, "a relation"
    if row["replica"] not in map(str, range(replicas)):
        return "replica", f"one of 0 to {replicas - 1}"
    try:
        is_probability = 0 <= float(row["probability"]) <= 1
    except ValueError:
        is_probability = False
    return None if is_probability else ("probability", "0 to 1")
