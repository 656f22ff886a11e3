"""Everything that a run reports, rebuilt from its folder: `results.json` and `results.md`."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.data.prepare import Prepared
from clutrr_jax.evaluation.baselines import rules_given, rules_read
from clutrr_jax.evaluation.extraction import COLUMNS, compare, read_extracted
from clutrr_jax.evaluation.metrics import (
    Row,
    as_dicts,
    majority,
    prediction_file,
    read_predictions,
    score,
)
from clutrr_jax.models import MODELS
from generator.files import read_json, write_text

# What needs no training: a prover with the 16 rules, one with rules read off the train rows, and a
# constant answer. Of two readings the provers say the first by number, right or wrong.
BASELINES = ("rules given", "rules read off", "majority label")
# How to read `extraction_table`.
EXTRACTION = (
    "A fact counts as extracted when its chance is above .5. Right: it is stated. Follow: it is "
    "not, but it follows from what is stated, by the 16 rules or by turning a fact round; no error "
    "of reading. Wrong: neither. Missing: stated, and not extracted. Precision is right / (right + "
    "wrong), recall right / stated. Facts of the asked pair are left out: the reasoner does not "
    "see them."
)
# What must stand in a run's files.
SUMMARY = {"parameters": int, "epochs": int, "replicas": int, "diverged_epochs": [int],
           "dev_accuracy": [float], "seconds": float, "stories_per_second": float}  # fmt: skip
RESULTS = {
    "data": {"name": str, "train_rows": int, "test_rows": int, "fingerprint": str},
    "device": str,
    "wall_seconds": float,
    "models": {"*": {"replicas": int}},
    "rows": [Row.__annotations__],
    "config": {"name": str, "generate": dict},
}
PACKAGES = ("jax", "flax", "optax", "jraph", "numpy", "orbax-checkpoint")


def collect(
    models: list[str], config: dict[str, Any], data: Prepared, folder: Path, device: str
) -> dict[str, Any]:
    """The results of a run as JSON objects.

    Args:
      models: names, each with its own folder below `folder`.
      config: the run's, as a plain dictionary.
      data: what it ran on.
      folder: the run's.
      device: what it ran on, in words.
    """
    rows: list[Row] = []
    summaries = {}
    extraction = {}
    for model in models:
        for name, path in prediction_files(model, folder).items():
            rows += score(name, read_predictions(path, data.test), data.test)
        graph = read_extracted(folder / model, data.test)
        if graph:
            extraction[model] = compare(graph, data.test)
        summaries[model] = read_json(folder / model / "model.json", SUMMARY)
    answers = (rules_given(data.test), rules_read(data.train, data.test), majority(data.test))
    for name, predictions in zip(BASELINES, answers, strict=True):
        rows += score(name, predictions, data.test)
    return {
        "data": {
            "name": data.name,
            "train_rows": len(data.train),
            "test_rows": len(data.test),
            "fingerprint": data.fingerprint,
        },
        "device": device,
        "versions": {package: version(package) for package in PACKAGES},
        "wall_seconds": round(sum(s["seconds"] for s in summaries.values()), 2),
        "models": summaries,
        "rows": as_dicts(rows),
        "extraction": extraction,
        "config": config,
    }


def prediction_files(model: str, folder: Path) -> dict[str, Path]:
    """What a run holds of a model's answers, by the name in its results: the model's own, and of
    each of its variants "MODEL: VARIANT".

    Args:
      model: its name.
      folder: the run's.
    """
    found = {model: folder / model / prediction_file()}
    for variant in MODELS[model].variants if model in MODELS else ():
        path = folder / model / prediction_file(variant)
        if path.exists():  # a run of before had none
            found[f"{model}: {variant}"] = path
    return found


def number(value: float, sign: str = "") -> str:
    """A share or, with the sign "+", a difference of shares, as the papers write it: .87, 1.00 at
    the top; +.07, and never -.00."""
    return f"{value:{sign}z.2f}".replace("0.", ".", 1)


def column_names(rows: list[dict[str, Any]]) -> dict[str, str]:
    """The head of each test's column: its k, or T.K where the tests are of several kinds."""
    tests = list(dict.fromkeys(row["task"] for row in rows))
    kinds = {test.split(".")[0] for test in tests}
    return {test: f"k={test.split('.')[1]}" if len(kinds) == 1 else test for test in tests}


def table(results: dict[str, Any]) -> list[list[str]]:
    """Accuracy of each model on each test, with the standard error; head first."""
    rows = results["rows"]
    columns = column_names(rows)
    of = {(row["model"], row["task"]): row for row in rows}
    lines = [["model", *columns.values()]]

    def line(name: str, model: str, value: str, stderr: str) -> list[str]:
        cells = []
        for test in columns:
            row = of[model, test]
            error = "" if row[stderr] is None else f" ±{number(row[stderr])}"
            cells.append(number(row[value]) + error)
        return [name, *cells]

    for model, summary in results["models"].items():
        replicas = summary["replicas"]
        name = f"{model} ({replicas} replica{'s' if replicas > 1 else ''})"
        lines.append(line(name, model, "accuracy", "stderr"))
        lines.append(line("  last epoch", model, "accuracy_last", "stderr_last"))
        for variant in dict.fromkeys(name for name, _ in of if name.startswith(f"{model}: ")):
            lines.append(line(f"  {variant.partition(': ')[2]}", variant, "accuracy", "stderr"))
    for name in BASELINES:
        lines.append(line(name, name, "accuracy", "stderr"))
    any_model = rows[0]["model"]
    lines.append(["ceiling", *(number(of[any_model, t]["ceiling"]) for t in columns)])
    lines.append(["stories", *(str(of[any_model, t]["count"]) for t in columns)])
    return lines


def extraction_table(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Precision and recall of the facts that a model extracted, head first; without the relations
    that neither the stories nor the model state."""
    lines = [list(COLUMNS)]
    for row in rows:
        if row["stated"] or row["extracted"]:
            cells = [row[name] for name in COLUMNS]
            shares = ["" if share is None else number(share) for share in cells[-2:]]
            lines.append([*map(str, cells[:-2]), *shares])
    return lines


def plain_text(lines: list[list[str]]) -> str:
    """A table in columns."""
    widths = [max(len(line[c]) for line in lines) for c in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if c == 0 else cell.rjust(width)
            for c, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def markdown_table(lines: list[list[str]]) -> list[str]:
    """A table, head first, as lines of Markdown."""
    rows = ["| " + " | ".join(line) + " |" for line in lines]
    return [rows[0], "|---" * len(lines[0]) + "|", *rows[1:]]


def markdown(results: dict[str, Any]) -> str:
    """The page `results.md`."""
    data = results["data"]
    models = [
        f"| {name} | {m['parameters']:,} | {m['replicas']} | {m['epochs']} | "
        f"{np.mean(m['dev_accuracy']):.3f} | {m['seconds']:.0f} | {m['stories_per_second']:,} |"
        for name, m in results["models"].items()
    ]
    return "\n".join([
        f"# {results['config']['name']} on {data['name']}",
        "",
        f"{data['train_rows']:,} train and {data['test_rows']:,} test stories; "
        f"{results['device']}; training took {results['wall_seconds']:.0f} s.",
        "",
        "Accuracy with its standard error over replicas, of the epoch with the best dev accuracy "
        "and of the last epoch.",
        "",
        *markdown_table(table(results)),
        "",
        *(part for model, rows in results["extraction"].items() for part in (
            f"The facts that {model} extracts from the stories (first replica). {EXTRACTION}", "",
            *markdown_table(extraction_table(rows)), "")),
        "![accuracy against clause length](curve.png)",
        "",
        "| model | parameters | replicas | epochs | dev accuracy | seconds | train stories/s |",
        "|---|---|---|---|---|---|---|",
        *models,
        "",
        *(f"Replica {replica} of {name} stopped in epoch {epoch}, when its loss was no number; "
          "what it was before is tested.\n"
          for name, m in results["models"].items()
          for replica, epoch in enumerate(m["diverged_epochs"]) if epoch),
    ])  # fmt: skip


def write(results: dict[str, Any], folder: Path) -> None:
    """`results.json` and `results.md`."""
    for name, text in (
        ("results.json", json.dumps(results, indent=1) + "\n"),
        ("results.md", markdown(results)),
    ):
        write_text(folder / name, text)
