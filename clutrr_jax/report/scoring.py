"""Scores of submitted predictions next to the baselines, and paired tests between submissions."""

import csv
import json
from collections.abc import Sequence
from functools import reduce
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
from clutrr_jax.experiment import PATHS, SINGLE
from clutrr_jax.language_models.submissions import Submission, check_names, score_submission
from clutrr_jax.report.paired import comparison, pairs
from clutrr_jax.report.plots import plot_results
from clutrr_jax.report.results import table
from clutrr_jax.report.tables import accuracy_table, data_notes
from generator.errors import plain_text
from generator.files import atomic_write, write_text

ANSWERS = "answers.csv"


def evaluate(data: Dataset, submissions: Sequence[Submission]) -> dict[str, Any]:
    """Results of submissions next to the baselines, with paired tests, as a JSON object.

    Args:
      data: must have test records; the baseline of induced rules needs training records.
      submissions: at least one. Each is scored on its stories, and the baselines on those that any
        of them has.
    Raises:
      InputError: two submissions or ensembles, or one and a baseline, have the same name.
    """
    test = data.records("test")
    truth = GroundTruth(test, data.train)
    covered = truth.select(reduce(np.union1d, (s.stories for s in submissions)))
    found = [score_submission(one, truth) for one in submissions]
    check_names(found, BASELINES)
    experiment = SINGLE if test.algebra.is_kinship else PATHS
    (training,) = experiment.trainings
    return {
        "name": "scores",
        "scale": "",
        **table(experiment, [(training, rows) for rows in [*found, score_baselines(covered)]]),
        "data": [
            {
                "name": data.name,
                "test_rows": len(test),
                "scored_rows": len(covered.test),
                "copies": count_copies(data.train, test),
            }
        ],
        "compared": pairs(submissions, test),
    }


def tables(results: dict[str, Any]) -> list[list[list[str]]]:
    """The table of accuracies and one of each paired test that has a story."""
    return [
        accuracy_table(results, intervals=True).texts(),
        *(comparison(pair) for pair in results["compared"] if pair["tasks"]),
    ]


def text(results: dict[str, Any]) -> str:
    """All tables as aligned text, and what they leave out."""
    parts = [*map(plain_text, tables(results)), "\n".join(notes(results))]
    return "\n\n".join(filter(None, parts))


def notes(results: dict[str, Any]) -> list[str]:
    """How many stories have a prediction, unless all do, and how many answers of each submission
    were not mapped."""
    (data,), notes = results["data"], []
    rows = [row for row in results["rows"] if row["kind"] != "baseline" and row["count"]]
    asked, answers, unmapped = (dict.fromkeys([row["name"] for row in rows], 0) for _ in range(3))
    for row in rows:
        asked[row["name"]] += row["count"]
        answers[row["name"]] += row["count"] * row["replicas"]
        unmapped[row["name"]] += row["unmapped"]
    kinds = {row["name"]: (row["kind"], row["of"]) for row in rows}
    if any(count < data["test_rows"] for count in asked.values()):
        each = ", ".join(f"{name} {n:,}" for name, n in asked.items() if kinds[name][0] == "model")
        notes.append(
            f"{data['scored_rows']:,} of {data['test_rows']:,} test stories have a prediction "
            f"({each}); the baselines and the ceiling are those of these stories"
        )
    for pair in results["compared"]:
        if not pair["tasks"]:
            notes.append(f"{' and '.join(pair['models'])} have no story in common to compare")
    for name, (kind, model) in kinds.items():
        if kind == "strict":
            notes.append(
                f"{name}: without the {unmapped[name] - unmapped[model]:,} of {answers[name]:,} "
                "answers whose relation is read from sentences; in the others it stands alone or "
                'after a marker such as "Answer:"'
            )
        elif unmapped[name]:
            notes.append(
                f"{name}: {unmapped[name]:,} of {answers[name]:,} answers were not mapped to a "
                f"relation (score --out DIR writes all to {ANSWERS})"
            )
    return notes + data_notes(results)


def write(
    results: dict[str, Any], submissions: list[Submission], test: Records, folder: Path
) -> None:
    """Writes `scores.txt`, `scores.json`, `scores.png` and `answers.csv`.

    Raises:
      InputError: the folder cannot be written.
    """
    with atomic_write(folder / "scores.png") as part:
        plot_results(results).savefig(part)
    write_text(folder / "scores.json", json.dumps(results, indent=1) + "\n")
    write_text(folder / "scores.txt", text(results) + "\n")
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
