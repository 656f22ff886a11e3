"""Anyone's predictions scored as a table and a curve: `python -m clutrr_jax.score`.

A file of predictions is CSV or JSON Lines with `id` and `prediction`, and `replica` if there are
several; the predictions.csv of a run will do too. An id is that of the row in the data, or T.K/ROW:
task and row within it, from 1. The prediction may be a relation or the free text of a language
model, which is mapped to a relation so:

{rules}

What cannot be mapped is counted, and scored as wrong. Every two files are compared story by story:
the test is McNemar's exact one, in its general form of signs tossed for each story where there are
several replicas, two-sided, corrected over the tasks by Holm's method.
"""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.command import CommandParser, run
from clutrr_jax.data.dataset import Dataset, load
from clutrr_jax.data.records import tasks
from clutrr_jax.data.story_ids import story_ids
from clutrr_jax.evaluation.baselines import rules_given, rules_read
from clutrr_jax.evaluation.metrics import as_dicts, majority, score
from clutrr_jax.evaluation.significance import holm, paired_p
from clutrr_jax.language_models.answers import RULES
from clutrr_jax.language_models.submissions import UNMAPPED, Submission, read_submissions
from clutrr_jax.report import curve
from clutrr_jax.report.results import BASELINES, column_names, number, plain_text
from generator.errors import InputError, at
from generator.files import atomic_write, write_text

__doc__ = __doc__.replace("{rules}", RULES)


def collect(data: Dataset, submissions: list[Submission]) -> dict[str, Any]:
    """Everything that is reported, as JSON objects.

    Args:
      data: its test records are needed; without train records no rules are read off.
      submissions: at least one, each with its own name.
    """
    test = data.test
    assert test is not None
    given, read, most_frequent = BASELINES
    rows = []
    for name, predictions in submissions:
        unmapped = predictions.best == UNMAPPED
        points = as_dicts(score(name, predictions, test))
        for point, (_, stories) in zip(points, tasks(test), strict=True):
            point["unmapped"] = int(unmapped[:, stories].sum())
        rows += points
    baselines = {given: rules_given(test), most_frequent: majority(test)}
    if data.train is not None:
        baselines[read] = rules_read(data.train, test)
    for name in BASELINES:
        if name in baselines:
            rows += as_dicts(score(name, baselines[name], test))
    return {
        "data": {"name": data.name, "test_rows": len(test)},
        "models": {s.name: {"replicas": len(s.predictions.best)} for s in submissions},
        "rows": rows,
        "compared": [compare(a, b, data) for a, b in combinations(submissions, 2)],
    }


def compare(a: Submission, b: Submission, data: Dataset) -> dict[str, Any]:
    """Two models on the same stories. `p` is exact, `p_holm` the same corrected over the tasks."""
    test = data.test
    assert test is not None
    right_a, right_b = (s.predictions.best == test.target for s in (a, b))
    # In whole numbers, so that models with different numbers of replicas can be compared.
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


def table(results: dict[str, Any]) -> list[list[str]]:
    """Accuracy with its 95 % interval, what was not mapped, baselines, ceiling; head first."""
    rows = results["rows"]
    columns = column_names(rows)
    of: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        of.setdefault(row["model"], []).append(row)
    lines = [["model", *columns.values()]]
    for name, points in of.items():
        if name in results["models"]:
            replicas = results["models"][name]["replicas"]
            label = f"{name} ({replicas} replica{'s' if replicas > 1 else ''})"
            lines += [
                [label, *(number(p["accuracy"]) for p in points)],
                ["  95 % interval", *(f"{number(p['low'])}-{number(p['high'])}" for p in points)],
                ["  not mapped", *(str(p["unmapped"]) for p in points)],
            ]
        else:
            lines.append([name, *(number(p["accuracy"]) for p in points)])
    lines.append(["ceiling", *(number(p["ceiling"]) for p in points)])
    lines.append(["stories", *(str(p["count"]) for p in points)])
    return lines


def comparison(results: dict[str, Any], pair: dict[str, Any]) -> list[list[str]]:
    """The paired test of two models; head first."""
    columns = column_names(results["rows"])
    a, b = pair["models"]
    points = pair["tasks"]
    return [
        [f"{a} against {b}", *columns.values()],
        ["difference in accuracy", *(number(p["difference"], "+") for p in points)],
        [f"stories where {a} is better", *(str(p["better"]) for p in points)],
        [f"stories where {b} is better", *(str(p["worse"]) for p in points)],
        ["p", *(_p(point["p"]) for point in points)],
        ["p, Holm over the tasks", *(_p(point["p_holm"]) for point in points)],
    ]


def _p(value: float) -> str:
    return "<.001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def text(results: dict[str, Any]) -> str:
    """All tables, in columns."""
    blocks = [table(results), *(comparison(results, pair) for pair in results["compared"])]
    return "\n\n".join(plain_text(block) for block in blocks)


def write(results: dict[str, Any], folder: Path) -> None:
    """`scores.txt`, `scores.json` and `scores.png`.

    Raises:
      InputError: the folder cannot be written.
    """
    with atomic_write(folder / "scores.png") as part:
        curve.draw(results, part)
    write_text(folder / "scores.json", json.dumps(results, indent=1) + "\n")
    write_text(folder / "scores.txt", text(results) + "\n")


def main(arguments: list[str]) -> None:
    """The command."""
    parser = CommandParser("score", __doc__)
    parser.add_argument("--predictions", required=True, nargs="+", type=Path, metavar="FILE",
                        help="files of predictions, .csv or .jsonl")  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="DIR",
                        help="writes scores.txt, scores.json and scores.png there")  # fmt: skip
    options = parser.parse_args(arguments)
    data = load(options.data)
    if data.test is None:
        raise InputError(f"{at(options.data)}: no test rows in it, expected *_test.csv")
    ids = story_ids(options.data, data.test)
    submissions = read_submissions(options.predictions, ids, data.test)
    names = [s.name for s in submissions]
    for name in names:
        if names.count(name) > 1 or name in BASELINES:
            raise InputError(f"command line: two rows named {name!r}, expected each file once")
    results = collect(data, submissions)
    print(text(results))
    if options.out:
        write(results, options.out)


if __name__ == "__main__":
    run(main)
