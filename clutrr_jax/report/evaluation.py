"""Scores of predictions next to the baselines: what `evaluate`, `train` and `score` print, and
what notebooks display."""

import csv
import json
from collections import defaultdict
from collections.abc import Sequence
from functools import reduce
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.data.copies import count_copies
from clutrr_jax.data.dataset import Dataset
from clutrr_jax.data.records import Records, story_ids, tasks
from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.predictions import UNMAPPED
from clutrr_jax.evaluation.scores import score_baselines
from clutrr_jax.experiment import SINGLE
from clutrr_jax.language_models.submissions import (
    Part,
    Submission,
    check_names,
    score_submission,
)
from clutrr_jax.report.accuracy import accuracy_table
from clutrr_jax.report.paired import comparison, pairs
from clutrr_jax.report.plots import Figure, plot_results
from clutrr_jax.report.results import table
from clutrr_jax.report.tables import html_table, notes
from generator.errors import plain_text
from generator.files import atomic_write, write_text

ANSWERS = "answers.csv"
# Columns of `AccuracyTable`, before those of further metrics.
COLUMNS = ("model", "task", "k", "accuracy", "stderr", "low", "high", "count", "clauses",
           "replicas", "ambiguous")  # fmt: skip


class AccuracyTable(list[dict[str, Any]]):
    """Accuracy of each model on each test set: dictionaries with the keys `COLUMNS`, and the mean
    of each further metric that it has."""

    def _columns(self) -> list[str]:
        return list(dict.fromkeys([*COLUMNS, *(name for row in self for name in row)]))

    def _table(self) -> list[list[str]]:
        def cell(value: Any) -> str:
            return (
                f"{value:.3f}" if isinstance(value, float) else str("" if value is None else value)
            )

        columns = self._columns()
        return [columns, *([cell(row.get(name)) for name in columns] for row in self)]

    def __repr__(self) -> str:
        return plain_text(self._table())

    def _repr_html_(self) -> str:
        return html_table(self._table())

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame."""
        import pandas as pd

        return pd.DataFrame(self, columns=self._columns())


class Evaluation:
    """Accuracy of predictions next to the baselines.

    Attributes:
      results: everything as a JSON object; `rows` has one row per model and test set.
    """

    def __init__(self, results: dict[str, Any]):
        self.results = results

    @property
    def accuracy(self) -> AccuracyTable:
        """Accuracy of each model and baseline on each test set."""
        return AccuracyTable(
            {column: row[column] for column in COLUMNS}
            | {name: values["mean"] for name, values in row["metrics"].items()}
            for row in self.results["rows"]
            if row["accuracy"] is not None
        )

    def plot(self) -> Figure:
        """Plots accuracy against clause length; `.savefig(FILE)` writes the figure."""
        return plot_results(self.results)

    def tables(self) -> list[list[list[str]]]:
        """Returns the tables that are printed, as rows of text cells: that of accuracies, and one
        of each paired test that has a story."""
        compared = (comparison(pair) for pair in self.results["compared"] if pair["tasks"])
        return [accuracy_table(self.results, intervals=True).texts(), *compared]

    def notes(self) -> list[str]:
        """Returns how many stories have a prediction and how many answers were not mapped, as
        sentences; none if these are all and none."""
        (data,), by_name = self.results["data"], defaultdict(list)
        for row in self.results["rows"]:
            if row["kind"] != "baseline" and row["count"]:
                by_name[row["name"]].append(row)
        asked = {name: sum(row["count"] for row in rows) for name, rows in by_name.items()}
        unmapped = {name: sum(row["unmapped"] for row in rows) for name, rows in by_name.items()}
        found = []
        whole = [count for name, count in asked.items() if by_name[name][0]["kind"] != "part"]
        if any(count < data["test_rows"] for count in whole):
            models = [name for name, rows in by_name.items() if rows[0]["kind"] == "model"]
            found.append(
                f"{data['scored_rows']:,} of {data['test_rows']:,} test stories have a prediction "
                f"({', '.join(f'{name} {asked[name]:,}' for name in models)}); the baselines "
                "are scored on these stories"
            )
        for pair in self.results["compared"]:
            if not pair["tasks"]:
                found.append(f"{' and '.join(pair['models'])} have no story in common to compare")
        for name, rows in by_name.items():
            answers = sum(row["count"] * row["replicas"] for row in rows)
            if rows[0]["kind"] == "strict":
                read = unmapped[name] - unmapped[rows[0]["of"]]
                found.append(
                    f"{name}: without the {read:,} of {answers:,} answers whose relation is read "
                    "from sentences; in the others it stands alone or after a marker such as "
                    '"Answer:"'
                )
            elif unmapped[name] and rows[0]["kind"] != "part":
                found.append(
                    f"{name}: {unmapped[name]:,} of {answers:,} answers were not mapped to a "
                    f"relation (score --out DIR writes all to {ANSWERS})"
                )
        return found + notes(self.results)

    def __repr__(self) -> str:
        tables = map(plain_text, self.tables())
        return "\n\n".join(filter(None, [*tables, "\n".join(self.notes())]))

    def _repr_html_(self) -> str:
        notes = (f"<p>{escape(note)}</p>" for note in self.notes())
        return "\n".join([*map(html_table, self.tables()), *notes])


def evaluate(
    data: Dataset, submissions: Sequence[Submission], part: Part | None = None
) -> Evaluation:
    """Scores submissions next to the baselines, with paired tests between them.

    Each is scored on its stories, also on a part of them, and the baselines on those that any of
    them has. The data must
    have test records; the baseline of induced rules needs training records.

    Raises:
      InputError: two submissions or ensembles, or one and a baseline, have the same name.
    """
    test = data.records("test")
    truth = GroundTruth(test, data.train)
    covered = truth.select(reduce(np.union1d, (s.stories for s in submissions)))
    found = [score_submission(one, truth, part) for one in submissions]
    check_names(found, BASELINES)
    (training,) = SINGLE.trainings
    about = {"name": data.name, "test_rows": len(test), "scored_rows": len(covered.test),
             "copies": count_copies(data.train, test)}  # fmt: skip
    return Evaluation({
        "name": "scores",
        "scale": "",
        **table(SINGLE, [("", training, rows) for rows in [*found, score_baselines(covered)]]),
        "data": [about],
        "compared": pairs(submissions, truth),
    })  # fmt: skip


def write(found: Evaluation, submissions: list[Submission], test: Records, folder: Path) -> None:
    """Writes `scores.txt`, `scores.json`, `scores.png` and `answers.csv`.

    Raises:
      InputError: the folder cannot be written.
    """
    with atomic_write(folder / "scores.png") as part:
        found.plot().savefig(part)
    write_text(folder / "scores.json", json.dumps(found.results, indent=1) + "\n")
    write_text(folder / "scores.txt", f"{found}\n")
    _write_answers(submissions, test, folder / ANSWERS)


def _write_answers(submissions: list[Submission], test: Records, path: Path) -> None:
    """One line per answer: the relation that was read from it, empty if none, and whether that is
    the label."""
    ids, target = story_ids(test), [test.relation_name(t) for t in test.target]
    task_of = {story: task for task, stories in tasks(test) for story in stories}
    # Text with half a character, which JSON can hold, is written as its code.
    with (
        atomic_write(path) as part,
        part.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file,
    ):
        writer = csv.writer(file)  # whose lines end in CR LF: a text with either is quoted
        writer.writerow(("model", "replica", "id", "task", "target", "relation", "right", "text"))
        for one in submissions:
            answers = zip(one.replicas, one.predictions.relation, one.texts, strict=True)
            for replica, relations, texts in answers:
                for s, r, text in zip(one.stories, relations, texts, strict=True):
                    relation = "" if r == UNMAPPED else test.relation_name(r)
                    right = int(relation == target[s])
                    of_story = (ids[s], task_of[s], target[s])
                    writer.writerow((one.name, replica, *of_story, relation, right, text))
