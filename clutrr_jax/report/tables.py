"""The texts of a report and its tables: rows of text cells, header first, as Markdown or HTML."""

import re
from collections import defaultdict
from collections.abc import Mapping
from html import escape
from typing import Any

from flax.traverse_util import flatten_dict
from ml_collections import ConfigDict

from clutrr_jax.data.copies import copy_notes
from clutrr_jax.models import MODELS
from clutrr_jax.report.accuracy import (
    MARK,
    Results,
    accuracy_table,
    format_fraction,
    further_metrics,
    is_grid,
    with_interval,
)
from clutrr_jax.settings import TRAIN

SMOKE = "Smoke scale: the figures only show that everything runs, and no claims are judged."
# Explains the columns of `extraction_table`.
EXTRACTION_LEGEND = (
    "A fact counts as extracted if the model gives it a probability above .5. Right: stated in the "
    "story. Follow: not stated, but implied by the stated facts under the 16 rules or as the "
    "inverse of a fact. Wrong: neither stated nor implied. Missing: stated, but not extracted. "
    "Precision is (right + follow) / extracted; recall is right / stated. Facts about the "
    "query pair are excluded, because the reasoner does not see them."
)

# Characters that Markdown of GitHub may read as markup; a "_" within a word and a "*" at the end of
# the text are none.
_MARKUP = re.compile(
    r"[\\`|~$]|\*(?!$)|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[])|<(?=[\w/!?])|&(?=#?\w+;)"
)


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


def training_table(results: Results) -> list[list[str]]:
    """Size, length and speed of the training of each model, over all of its runs."""
    head = "model", "parameters", "replicas", "epochs", "dev accuracy", "seconds", "train stories/s"
    return [list(head)] + [
        [
            model, f"{m['parameters']:,}", str(m["replicas"]), str(m["epochs"]),
            f"{m['dev_accuracy']:.3f}", f"{m['seconds']:.0f}", f"{m['stories_per_second']:,}",
        ]
        for model, m in results["models"].items()
    ]  # fmt: skip


def settings_table(results: Results) -> list[list[str]]:
    """Settings that each model used: the main ones, and others that differ from the default."""
    main = ("epochs", "steps", "patience", "batch", "learning_rate")
    table = [["model", *(name.replace("_", " ") for name in main), "other settings"]]
    for model, summary in results["models"].items():
        settings = summary["settings"]
        train = TRAIN | settings["train"]
        if train["epochs"] is not None:
            train |= {"steps": None, "patience": None}
        shown = {f"train.{name}" for name in main}
        others = [f"{name} {value}" for name, value in changed_settings(model, settings).items()
                  if name not in shown]  # fmt: skip
        values = ["" if train[name] is None else str(train[name]) for name in main]
        table.append([model, *values, ", ".join(others)])
    return table


def changed_settings(model: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings, by dotted name, that differ from the default of the model; without the
    number of replicas and how often checkpoints are written."""
    default = dict(MODELS[model].config if model in MODELS else {}) | {"train": TRAIN}
    usual = flatten_dict(ConfigDict(default).to_dict(), sep=".")
    return {
        name: value
        for name, value in flatten_dict(dict(settings), sep=".").items()
        if name not in ("train.replicas", "train.checkpoint_minutes")
        and (name not in usual or value != usual[name])
    }


def escape_markdown(text: str) -> str:
    """Returns a text on one line that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.splitlines()))


def paragraph(text: str) -> str:
    """Returns a text as a paragraph, which no sign at its beginning makes a heading or a list."""
    return re.sub(r"^(\s*)(?=[#>+-])|^(\s*\d+)(?=[.)])", r"\1\2\\", escape_markdown(text))


def markdown_table(table: list[list[str]]) -> list[str]:
    """Formats a table as lines of Markdown."""
    rows = ["| " + " | ".join(map(escape_markdown, line)) + " |" for line in table]
    return [rows[0], "|---" * len(table[0]) + "|", *rows[1:]]


def html_table(table: list[list[str]]) -> str:
    """Formats a table as HTML, for notebooks."""
    lines = []
    for name, *texts in table:
        first = escape(name).replace("  ", "&emsp;")  # indented
        others = "".join(f"<td>{escape(text)}</td>" for text in texts)
        lines.append(f"<tr><th style='text-align: left'>{first}</th>{others}</tr>")
    # No "$" of a name begins a formula.
    ignored = "class='tex2jax_ignore mathjax_ignore' style='white-space: nowrap'"
    return f"<table {ignored}>{''.join(lines)}</table>"


def title(results: Results) -> str:
    """Returns the name of an experiment with its data set, if it has one, or its scale."""
    if results["scale"]:
        return f"{results['name']}, scale {results['scale']}"
    return " on ".join([results["name"], *(data["name"] for data in results["data"][:1])])


def summary(results: Results) -> str:
    """Returns sentences on stories, hardware, training time, and unfinished and diverged runs."""
    states = [run["state"] for run in results["runs"]]
    parts = [SMOKE] if results["scale"] == "smoke" else []
    if len(results["data"]) == 1:
        (data,) = results["data"]
        parts.append(f"{data['train_rows']:,} train and {data['test_rows']:,} test stories.")
    elif results["data"]:
        names = ", ".join(dict.fromkeys(data["name"] for data in results["data"]))
        parts.append(f"{len(results['data'])} data sets: {names}.")
    if results["devices"]:
        parts.append(
            f"{', '.join(results['devices'])}; training took {results['wall_seconds']:.0f} s."
        )
    if set(states) != {"finished"}:
        parts.append(
            f"{states.count('finished')} of {len(states)} runs are finished, "
            f"{states.count('failed')} failed."
        )
    return " ".join(parts + notes(results))


def notes(results: Results) -> list[str]:
    """Returns sentences on copies of stories in the data sets, on the choice of a point of a sweep
    and on replicas that diverged."""
    several = len(results["data"]) > 1
    copies = [
        f"{data['name']}: {note}" if several else note
        for data in results["data"]
        for note in copy_notes(data.get("copies", {}))
    ]
    found = []
    for model, one in results.get("models", {}).items():
        if sweep := one.get("sweep"):
            points = len(sweep["points"])
            found.append(f"{model}: dev loss chooses {sweep['chosen']} of {points} points.")
        found += one["diverged"]
    return copies + found


def legend(results: Results) -> str:
    """Returns an explanation of the table of accuracies."""
    text = (
        "Accuracy on the test stories; in parentheses its 95 % interval over clauses, which are "
        "stories with the same facts up to names, and over seeds; with one replica, the interval "
        "is about this training. A value after ± is a standard error over replicas. Given: what a "
        "model has besides the "
        "training stories and their answers. The last epoch of a model has a row if another epoch "
        "is tested and its accuracies differ."
    )
    if any(row["ambiguous"] for row in results["rows"]):
        text += " Several answers: stories from whose facts the rules derive several relations."
    if is_grid(results):
        text += (
            f" {MARK}: the 95 % intervals of the measured and published accuracy do not overlap."
        )
    if any(row["average"] for row in results["rows"]):
        text += " Averages are shown once all of their cells are measured, without intervals."
    return f"{text} {results['note']}".rstrip()


def sources(results: Results) -> list[str]:
    """Returns one line per source of the references: their names, and the source."""
    names: defaultdict[str, dict[str, None]] = defaultdict(dict)  # dictionaries as ordered sets
    for row in results["rows"]:
        if "source" in row:
            names[row["source"]][row["name"]] = None
    return [f"{'; '.join(found)}: {source}" for source, found in names.items()]


def claims_text(results: Results) -> str:
    """Returns one paragraph per question of the paper."""
    paragraphs = []
    for question, verdict in results["claims"].items():
        parts = [f"*{word}*: {'; '.join(claims)}" for word, claims in verdict.items() if claims]
        paragraphs.append(f"**{question}.** Claims of the paper: " + ". ".join(parts) + ".")
    return "\n\n".join(paragraphs)


def results_markdown(results: Results) -> str:
    """Returns the text of `results.md`."""

    def table(rows: list[list[str]]) -> str:
        return "\n".join(markdown_table(rows))

    def bullets(about: str, lines: list[str]) -> list[str]:
        return [about, "\n".join(f"- {line}" for line in lines)] if lines else []

    failed = [f"{run['name']}: {escape_markdown(run['error'])}"
              for run in results["runs"] if run["state"] == "failed"]  # fmt: skip
    paragraphs = [
        f"# {escape_markdown(title(results))}",
        paragraph(results["headline"]),
        paragraph(summary(results)),
        *bullets("Failed:", failed),
        legend(results),
        table(accuracy_table(results, cell=with_interval).texts()),
        *bullets("Sources:", sources(results)),
        claims_text(results),
    ]
    for metric, meaning in further_metrics(results).items():
        texts = accuracy_table(results, cell=with_interval, metric=metric).texts()
        paragraphs += [f"{metric.capitalize()}: {meaning}", table(texts)]
    for model, rows in results["extraction"].items():
        about = f"Facts that {model} extracts from the text of the test stories (first replica)."
        paragraphs += [f"{about} {EXTRACTION_LEGEND}", table(extraction_table(rows))]
    swept = any("sweep" in one for one in results["models"].values())
    figures = ["![accuracies](curve.png)", *["![sweep](sweep.png)"] * swept]
    paragraphs += [*figures, table(training_table(results)),
                   table(settings_table(results))]  # fmt: skip
    return "\n\n".join(filter(None, paragraphs)) + "\n"
