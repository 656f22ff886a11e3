"""Tables of accuracies as rows of text cells, header first, and their plain-text and Markdown
forms."""

from html import escape
from typing import Any

import numpy as np
from flax.traverse_util import flatten_dict
from ml_collections import ConfigDict

from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.models import MODELS
from clutrr_jax.settings import TRAIN

# Explains the columns of `extraction_table`.
EXTRACTION_LEGEND = (
    "A fact counts as extracted if the model gives it a probability above .5. Right: stated in the "
    "story. Follow: not stated, but implied by the stated facts under the 16 rules or as the "
    "inverse of a fact. Wrong: neither stated nor implied. Missing: stated, but not extracted. "
    "Precision is (right + follow) / extracted; recall is right / stated. Facts about the "
    "query pair are excluded, because the reasoner does not see them."
)


def format_fraction(value: float, sign: str = "") -> str:
    """Formats an accuracy as in the papers, .87 or 1.00; with sign "+", a difference, +.07.

    Values that round to zero have no minus sign.
    """
    return f"{value:{sign}z.2f}".replace("0.", ".", 1)


def count_replicas(count: int) -> str:
    """Returns "1 replica", "2 replicas", ..."""
    return f"{count} replica{'s' if count > 1 else ''}"


def column_names(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Returns the column name of each test: "k=K", or "T.K" if the noise types T differ."""
    tests = list(dict.fromkeys(row["task"] for row in rows))
    noise_types = {test.split(".")[0] for test in tests}
    return {test: f"k={test.split('.')[1]}" if len(noise_types) == 1 else test for test in tests}


def results_table(results: dict[str, Any]) -> list[list[str]]:
    """What each model and baseline is given, and its accuracy on each test, with standard errors
    and ceilings. The last epoch of a model has a row if its accuracies are others than those of the
    selected epoch."""
    rows = results["rows"]
    columns = column_names(rows)
    row_of = {(row["model"], row["task"]): row for row in rows}
    table = [["model", "given", *columns.values()]]

    def line(label: str, name: str, value: str = "accuracy", stderr: str = "stderr") -> list[str]:
        cells = []
        for test in columns:
            row = row_of[name, test]
            error = "" if row[stderr] is None else f" ±{format_fraction(row[stderr])}"
            cells.append(format_fraction(row[value]) + error)
        return [label, results["given"][name], *cells]

    for model, summary in results["models"].items():
        selected = line(f"{model} ({count_replicas(summary['replicas'])})", model)
        last = line("  last epoch", model, "accuracy_last", "stderr_last")
        table += [selected] + ([last] if last[1:] != selected[1:] else [])
        for name in dict.fromkeys(row["model"] for row in rows):
            if name.startswith(f"{model}: "):
                table.append(line(f"  {name.removeprefix(f'{model}: ')}", name))
    for name, summary in results["added"].items():
        table.append(line(f"{name} ({count_replicas(summary['replicas'])})", name))
    table += [line(name, name) for name in BASELINES]
    baseline = [row_of[BASELINES[0], test] for test in columns]
    table.append(["ceiling", "", *(format_fraction(row["ceiling"]) for row in baseline)])
    table.append(["stories", "", *(str(row["count"]) for row in baseline)])
    return table


def extraction_table(rows: list[dict[str, Any]]) -> list[list[str]]:
    """The output of `precision_recall` or `by_wording`, without groups that have no fact."""

    def cell(value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, bool):
            return "yes" if value else "no"
        return format_fraction(value) if isinstance(value, float) else str(value)

    shown = [row for row in rows if row["stated"] or row["extracted"]]
    return [list(rows[0]), *([cell(value) for value in row.values()] for row in shown)]


def settings_table(results: dict[str, Any]) -> list[list[str]]:
    """Settings that each model of a run used: the main ones, and others that are not the default of
    the model or, of train settings, the usual value."""
    main = ("epochs", "steps", "patience", "batch", "learning_rate")
    table = [["model", *(name.replace("_", " ") for name in main), "other settings"]]
    for model, summary in results["models"].items():
        settings = summary["settings"]
        train = TRAIN | settings["train"]
        if train["epochs"] is not None:
            train |= {"steps": None, "patience": None}
        default = dict(MODELS[model].config if model in MODELS else {}) | {"train": TRAIN}
        usual = flatten_dict(ConfigDict(default).to_dict(), sep=".")
        shown = {"train.replicas", "train.checkpoint_minutes", *(f"train.{name}" for name in main)}
        others = [
            f"{name} {value}"
            for name, value in flatten_dict(settings, sep=".").items()
            if name not in shown and (name not in usual or value != usual[name])
        ]
        cells = [f"{train[name]}" if train[name] is not None else "" for name in main]
        table.append([model, *cells, ", ".join(others)])
    return table


def markdown_table(table: list[list[str]]) -> list[str]:
    """Formats a table as lines of Markdown."""
    rows = ["| " + " | ".join(line) + " |" for line in table]
    return [rows[0], "|---" * len(table[0]) + "|", *rows[1:]]


def html_table(table: list[list[str]]) -> str:
    """Formats a table as HTML, for notebooks."""
    lines = []
    for name, *cells in table:
        first = escape(name).replace("  ", "&emsp;")  # indented
        others = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        lines.append(f"<tr><th style='text-align: left'>{first}</th>{others}</tr>")
    return f"<table style='white-space: nowrap'>{''.join(lines)}</table>"


def run_summary(results: dict[str, Any]) -> str:
    """Number of stories, hardware, training time and diverged replicas of a run."""
    data = results["data"]
    about = (
        f"{data['train_rows']:,} train and {data['test_rows']:,} test stories; "
        f"{results['device']}; training took {results['wall_seconds']:.0f} s."
    )
    return " ".join([about, *diverged(results)])


def diverged(results: dict[str, Any]) -> list[str]:
    """A sentence on each replica of a run that diverged."""
    return [
        f"Replica {replica} of {model} diverged in epoch {epoch} (non-finite loss); the state "
        "before that epoch is evaluated."
        for model, summary in results["models"].items()
        for replica, epoch in enumerate(summary["diverged_epochs"])
        if epoch
    ]


def results_markdown(results: dict[str, Any]) -> str:
    """Returns the text of `results.md`."""
    training = [["model", "parameters", "replicas", "epochs", "dev accuracy", "seconds",
                 "train stories/s"]]  # fmt: skip
    for model, m in results["models"].items():
        training.append([
            model, f"{m['parameters']:,}", str(m["replicas"]), str(m["epochs"]),
            f"{np.mean(m['dev_accuracy']):.3f}", f"{m['seconds']:.0f}",
            f"{m['stories_per_second']:,}",
        ])  # fmt: skip
    extraction: list[str] = []
    for model, rows in results["extraction"].items():
        title = f"Facts that {model} extracts from the text of the test stories (first replica)."
        extraction += [
            f"{title} {EXTRACTION_LEGEND}", "", *markdown_table(extraction_table(rows)), "",
        ]  # fmt: skip
    return "\n".join([
        f"# {results['config']['name']} on {results['data']['name']}",
        "",
        run_summary(results),
        "",
        "Accuracy on the test stories, with its standard error over replicas. The last epoch of a "
        "model has a row if another epoch is tested and its accuracies differ. Given: what a model "
        "has besides the training stories and their answers. The ceiling is the best achievable "
        "accuracy.",
        "",
        *markdown_table(results_table(results)),
        "",
        *extraction,
        "![accuracy against clause length](curve.png)",
        "",
        *markdown_table(training),
        "",
        *markdown_table(settings_table(results)),
        "",
    ])  # fmt: skip
