"""Scores of submitted predictions next to the baselines, and paired tests between submissions."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.data.dataset import Dataset
from clutrr_jax.data.records import tasks
from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.metrics import score
from clutrr_jax.evaluation.predictions import Predictions, ensemble
from clutrr_jax.evaluation.significance import holm, paired_p
from clutrr_jax.experiment import SINGLE
from clutrr_jax.language_models.submissions import UNMAPPED, Submission, check_names
from clutrr_jax.models.given import given
from clutrr_jax.report.plots import plot_results
from clutrr_jax.report.results import table_rows
from clutrr_jax.report.tables import accuracy_table, format_fraction
from generator.cells import plain_text
from generator.files import atomic_write, write_text


def collect(data: Dataset, submissions: list[Submission]) -> dict[str, Any]:
    """All scores, as JSON objects.

    Args:
      data: must have test records; the baseline of induced rules needs training records.
      submissions: at least one.
    Raises:
      InputError: two submissions, or a submission and a baseline, have the same name.
    """
    check_names(submissions, BASELINES)
    test = data.records("test")
    truth = GroundTruth(test, data.train)
    (training,) = SINGLE.trainings
    submitted: dict[str, Predictions] = {}
    knowledge = {name: given({}, name) for name in BASELINES}
    for submission in submissions:
        found = {submission.name: submission.predictions}
        found |= ensemble(submission.name, submission.predictions)
        submitted |= found
        knowledge |= dict.fromkeys(found, submission.given)
    stories = dict(tasks(test))
    tests = [(training, score(found, truth)) for found in (submitted, truth.baselines)]
    series = [*submitted, *truth.baselines]
    rows = table_rows(SINGLE, tests, series)
    for row in rows:
        if row["model"] in submitted:
            predicted = submitted[row["model"]].relation[:, stories[row["task"]]]
            row["unmapped"] = int((predicted == UNMAPPED).sum())
    return {
        "name": "scores",
        "scale": "",
        "columns": SINGLE.column_names,
        "data": [{"name": data.name, "test_rows": len(test)}],
        "models": {
            name: {
                "replicas": len(predictions.relation),
                "unmapped": int((predictions.relation == UNMAPPED).sum()),
            }
            for name, predictions in submitted.items()
        },
        "series": [{"name": name, "baseline": name in BASELINES} for name in series],
        "given": knowledge,
        "rows": rows,
        **{part: [] for part in ("averages", "references")},
        "compared": [compare(a, b, data) for a, b in combinations(submissions, 2)],
    }


def compare(a: Submission, b: Submission, data: Dataset) -> dict[str, Any]:
    """Paired test of two submissions on the same stories, per task.

    `p` is the exact p-value, `p_holm` the same corrected over the tasks.
    """
    test = data.records("test")
    right_a, right_b = (s.predictions.relation == test.target for s in (a, b))
    # Differences of mean accuracy, scaled to integers: the numbers of replicas may differ.
    difference = right_a.sum(axis=0) * len(right_b) - right_b.sum(axis=0) * len(right_a)
    points = [
        {
            "task": task,
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
    one_type = len({point["task"].partition(".")[0] for point in points}) == 1
    names = [f"k={p['task'].partition('.')[2]}" if one_type else p["task"] for p in points]
    return [
        [f"{a} against {b}", *names],
        ["difference in accuracy", *(format_fraction(p["difference"], "+") for p in points)],
        [f"stories where {a} is better", *(str(p["better"]) for p in points)],
        [f"stories where {b} is better", *(str(p["worse"]) for p in points)],
        ["p", *(_p(point["p"]) for point in points)],
        ["p, Holm over the tasks", *(_p(point["p_holm"]) for point in points)],
    ]


def _p(value: float) -> str:
    return "<.001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def tables(results: dict[str, Any]) -> list[list[list[str]]]:
    """The table of accuracies and one of each paired test."""
    return [
        accuracy_table(results, intervals=True),
        *(comparison(pair) for pair in results["compared"]),
    ]


def text(results: dict[str, Any]) -> str:
    """All tables as aligned text, and how many answers of each submission were not mapped."""
    stories = results["data"][0]["test_rows"]
    lost = [
        f"{name}: {model['unmapped']:,} of {model['replicas'] * stories:,} answers were not mapped "
        "to a relation (score --unmapped FILE writes them)"
        for name, model in results["models"].items()
        if model["unmapped"]
    ]
    return "\n\n".join([*map(plain_text, tables(results)), *(["\n".join(lost)] if lost else [])])


def write_unmapped(submissions: list[Submission], path: Path) -> int:
    """Writes the answers that were not mapped as JSON Lines; returns their number.

    A line has the keys model, replica, id, target (the right relation) and prediction (the text).

    Raises:
      InputError: the file cannot be written.
    """
    lines = [
        json.dumps({"model": submission.name} | answer._asdict()) + "\n"
        for submission in submissions
        for answer in submission.unmapped
    ]
    write_text(path, "".join(lines))
    return len(lines)


def write(results: dict[str, Any], folder: Path) -> None:
    """Writes `scores.txt`, `scores.json` and `scores.png`.

    Raises:
      InputError: the folder cannot be written.
    """
    with atomic_write(folder / "scores.png") as part:
        plot_results(results).savefig(part)
    write_text(folder / "scores.json", json.dumps(results, indent=1) + "\n")
    write_text(folder / "scores.txt", text(results) + "\n")
