"""Scores of submitted predictions next to the baselines, and paired tests between submissions."""

import csv
import json
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.data.copies import count_copies
from clutrr_jax.data.dataset import Dataset
from clutrr_jax.data.records import Records, story_ids, tasks
from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.metrics import score
from clutrr_jax.evaluation.predictions import STRICT, is_derived, with_derived
from clutrr_jax.evaluation.significance import holm, paired_p
from clutrr_jax.experiment import PATHS, SINGLE
from clutrr_jax.language_models.submissions import UNMAPPED, Submission, check_names
from clutrr_jax.report.plots import plot_results
from clutrr_jax.report.results import table_rows
from clutrr_jax.report.tables import (
    accuracy_table,
    data_notes,
    format_fraction,
    format_p,
    label_tests,
)
from generator.cells import plain_text
from generator.files import atomic_write, write_text

ANSWERS = "answers.csv"


def collect(data: Dataset, submissions: list[Submission]) -> dict[str, Any]:
    """All scores, as JSON objects.

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
    experiment = SINGLE if test.algebra.is_kinship else PATHS
    (training,) = experiment.trainings
    shown = [
        submission._replace(name=name, predictions=predictions)
        for submission in submissions
        for name, predictions in with_derived(
            submission.name, submission.predictions, submission.strict
        ).items()
    ]
    check_names(shown, BASELINES)
    tests = [(training, score(covered.baselines, covered))]
    for s in shown:
        tests.append((training, score({s.name: s.predictions}, truth.select(s.stories))))
    submitted, stories = {s.name: s for s in shown}, dict(tasks(test))
    series = [*submitted, *covered.baselines]
    rows = table_rows(experiment, tests, series)
    for row in rows:
        if row["accuracy"] is not None and row["model"] in submitted:
            one = submitted[row["model"]]
            of_task = np.isin(one.stories, stories[row["task"]])
            row["unmapped"] = int((one.predictions.relation[:, of_task] == UNMAPPED).sum())
    return {
        "name": "scores",
        "scale": "",
        "columns": experiment.column_names,
        "data": [
            {
                "name": data.name,
                "test_rows": len(test),
                "scored_rows": len(covered.test),
                "copies": count_copies(data.train, test),
            }
        ],
        "models": {
            name: {
                "stories": len(s.stories),
                "replicas": len(s.predictions.relation),
                "unmapped": int((s.predictions.relation == UNMAPPED).sum()),
            }
            for name, s in submitted.items()
        },
        "series": [{"name": name, "baseline": name in BASELINES} for name in series],
        "given": {s.name: s.given for s in shown} | BASELINES,
        "rows": rows,
        **{part: [] for part in ("averages", "references")},
        "compared": [compare(a, b, test) for a, b in combinations(submissions, 2)],
    }


def compare(a: Submission, b: Submission, test: Records) -> dict[str, Any]:
    """Paired test of two submissions on the stories that both have, per task.

    `p` is the exact p-value, `p_holm` the same corrected over the tasks.
    """
    both, of_a, of_b = np.intersect1d(a.stories, b.stories, return_indices=True)
    test = test.select(both)
    right_a, right_b = (s.predictions.relation[:, columns] == test.target
                        for s, columns in ((a, of_a), (b, of_b)))  # fmt: skip
    # Differences of mean accuracy, scaled to integers: the numbers of replicas may differ.
    difference = right_a.sum(axis=0) * len(right_b) - right_b.sum(axis=0) * len(right_a)
    points = [
        {
            "task": task,
            "count": len(stories),
            "difference": float(difference[stories].mean() / (len(right_a) * len(right_b))),
            "better": int((difference[stories] > 0).sum()),
            "worse": int((difference[stories] < 0).sum()),
            "p": paired_p(difference[stories]),
        }
        for task, stories in tasks(test)
    ]
    corrected = holm(np.array([point["p"] for point in points])).tolist()
    for point, p in zip(points, corrected, strict=True):
        point["p_holm"] = p
    return {"models": [a.name, b.name], "tasks": points}


def comparison(pair: dict[str, Any]) -> list[list[str]]:
    """The paired test of two submissions; header first."""
    a, b = pair["models"]
    points = pair["tasks"]
    return [
        [f"{a} against {b}", *label_tests([p["task"] for p in points])],
        ["stories", *(str(p["count"]) for p in points)],
        ["difference in accuracy", *(format_fraction(p["difference"], "+") for p in points)],
        [f"stories where {a} is better", *(str(p["better"]) for p in points)],
        [f"stories where {b} is better", *(str(p["worse"]) for p in points)],
        ["p", *(format_p(point["p"]) for point in points)],
        ["p, Holm over the tasks", *(format_p(point["p_holm"]) for point in points)],
    ]


def tables(results: dict[str, Any]) -> list[list[list[str]]]:
    """The table of accuracies and one of each paired test that has a story."""
    return [
        accuracy_table(results, intervals=True),
        *(comparison(pair) for pair in results["compared"] if pair["tasks"]),
    ]


def text(results: dict[str, Any]) -> str:
    """All tables as aligned text, and what they leave out."""
    parts = [*map(plain_text, tables(results)), "\n".join(notes(results))]
    return "\n\n".join(filter(None, parts))


def notes(results: dict[str, Any]) -> list[str]:
    """How many stories have a prediction, unless all do, and how many answers of each submission
    were not mapped."""
    (data,), models, notes = results["data"], results["models"], []
    total, covered = data["test_rows"], data["scored_rows"]
    if any(model["stories"] < total for model in models.values()):
        each = ", ".join(
            f"{name} {model['stories']:,}" for name, model in models.items() if not is_derived(name)
        )
        notes.append(
            f"{covered:,} of {total:,} test stories have a prediction ({each}); the baselines and "
            "the ceiling are those of these stories"
        )
    for pair in results["compared"]:
        if not pair["tasks"]:
            notes.append(f"{' and '.join(pair['models'])} have no story in common to compare")
    for name, model in models.items():
        answers = model["replicas"] * model["stories"]
        main = models.get(name.removesuffix(STRICT), model)
        if main is not model:
            read = model["unmapped"] - main["unmapped"]
            notes.append(
                f"{name}: without the {read:,} of {answers:,} answers whose relation is read from "
                'sentences; in the others it stands alone or after a marker such as "Answer:"'
            )
        elif model["unmapped"]:
            notes.append(
                f"{name}: {model['unmapped']:,} of {answers:,} answers were not mapped to a "
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
