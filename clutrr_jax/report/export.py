"""The results of an experiment in forms for papers and other programs: LaTeX and CSV."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any

from clutrr_jax.evaluation.metrics import METRICS
from clutrr_jax.evaluation.scores import Score
from clutrr_jax.experiment import SINGLE
from clutrr_jax.report.accuracy import (
    Results,
    Row,
    accuracy_table,
    format_fraction,
    further_metrics,
    with_interval,
    with_most_stories,
)
from clutrr_jax.report.paired import PAIRED_LEGEND
from clutrr_jax.report.tables import title

_, *FURTHER = METRICS
# Columns of `csv_rows`.
COLUMNS = ("training", "seed", "model", "replica", "noise", "k", "task", "correct", "stories",
           "accuracy", "against", "difference", "p", "p_holm", *FURTHER)  # fmt: skip
LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "`": r"\`{}",
    "±": r"$\pm$", "→": r"$\rightarrow$",
    **{c: f"\\{c}" for c in "&%$#_{}"},
}  # fmt: skip


class Latex(str):
    """A cell that is LaTeX already."""


def csv_rows(
    results: Results, scores: Iterable[tuple[str, Sequence[Score]]]
) -> list[tuple[str, ...]]:
    """Returns the lines of `results.csv`, header first: one per series, test set and replica, and
    one per paired test, which has no replica.

    Args:
      results: the results of the experiment.
      scores: name of a data set, and scores on its tests.
    """
    of_data: defaultdict[str, list[Score]] = defaultdict(list)
    for dataset, found in scores:
        of_data[dataset] += found
    rows: list[tuple[Any, ...]] = []
    for dataset, found in of_data.items():
        training, _, seed = dataset.partition("/")
        for one in found:
            for replica, accuracy in enumerate(one.metrics["accuracy"].replicas):
                further = [f"{one.metrics[name].replicas[replica]:.6f}"
                           if name in one.metrics else "" for name in FURTHER]  # fmt: skip
                rows.append((training, seed, one.series.name, replica, *_cell(one.task),
                             round(accuracy * one.count), one.count, f"{accuracy:.6f}", *[""] * 4,
                             *further))  # fmt: skip
        for pair in results["compared"]:  # of one data set
            model, other = pair["models"]
            for test in pair["tasks"]:
                values = (f"{test[name]:.6g}" for name in ("difference", "p", "p_holm"))
                rows.append((training, seed, model, "", *_cell(test["task"]), "", test["count"], "",
                             other, *values, *[""] * len(FURTHER)))  # fmt: skip
    paths = any(row[6].startswith("b") for row in rows)
    header = ["paths" if paths and name == "noise" else name for name in COLUMNS]
    return [tuple(header), *(tuple(map(str, row)) for row in rows)]


def _cell(task: str) -> tuple[Any, Any, str]:
    """Noise type, or paths, and length of a test, and its name."""
    (((noise, k, _), _),) = SINGLE.trainings[0].cells([task]).items()
    return noise, k, task


def latex_tables(results: Results) -> list[str]:
    """Returns the table of accuracies, and that of each further metric."""
    return [
        latex_table(results),
        *(latex_table(results, name) for name in further_metrics(results)),
    ]


def latex_table(results: Results, metric: str = "accuracy") -> str:
    """Returns a table of a metric as a LaTeX `tabular` with 95 % intervals.

    The best trained model of each test is bold, if several are trained.
    """
    best = set(map(id, best_rows(results)))  # of accuracies

    def cell(row: Row) -> str:
        if row.get("accuracy") is None:
            return ""
        mean, _, interval = with_interval(row).partition(" (")
        text = rf"\textbf{{{mean}}}" if id(row) in best else mean
        interval = interval.rstrip(")").replace("-", "--")
        return Latex(f"{text} {{\\scriptsize {interval}}}" if interval else text)

    table = accuracy_table(results, cell=cell, metric=metric)
    header, *texts = table.texts()
    body: list[str] = []
    has_panels, previous = table.words[0] == results["columns"][0], [*table.lines[:1], *table.lines]
    for before, line, cells in zip(previous, table.lines, texts, strict=False):
        starts = line.kind != before.kind and line.kind in ("baseline", "ceiling")
        if line.words[0] != before.words[0] if has_panels else starts:
            body.append(r"\midrule")
        body.append(_latex_line(cells))
    about = f"{' '.join(title(results).split())}: {metric}, and its 95 % interval in small print."
    return _tabular([about], header, len(table.words), body)


def latex_paired(table: Sequence[Sequence[str]]) -> str:
    """Returns a table of `paired_table` as a LaTeX `tabular`."""
    header, *lines = table
    return _tabular(wrap(PAIRED_LEGEND, 98), header, 2, map(_latex_line, lines))


def _tabular(about: Iterable[str], header: Sequence[str], words: int, body: Iterable[str]) -> str:
    """A `tabular` whose first columns are words, with comments before it."""
    text = "\n".join([
        rf"\begin{{tabular}}{{{'l' * words}{'r' * (len(header) - words)}}}",
        r"\toprule", _latex_line(header), r"\midrule", *body, r"\bottomrule", r"\end{tabular}", "",
    ])  # fmt: skip
    needed = [r"Needs \usepackage{booktabs}."]
    if re.search(r"[^\0-\u024f]", text):
        needed.append("Letters that are not Latin need LuaLaTeX or XeLaTeX, and a font with them.")
    return "\n".join([*(f"% {line}" for line in (*about, *needed)), text])


def best_rows(results: Results) -> list[Row]:
    """Returns the rows with the highest accuracy, as printed, among the models of a test.

    Baselines do not count, nor models that were asked fewer stories than others. A test of one
    model has no best one.
    """
    columns = [name for name in results["columns"] if name != "model"]
    of_test: defaultdict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in results["rows"]:
        if row["accuracy"] is not None and row["kind"] not in ("baseline", "published"):
            of_test[tuple(row[name] for name in columns)].append(row)
    found = []
    for of_models in of_test.values():
        asked = with_most_stories(of_models).get("count")  # None in averages
        rows = [row for row in of_models if row["count"] == asked]
        top = max(format_fraction(row["accuracy"]) for row in rows)
        if len(rows) > 1:
            found += [row for row in rows if format_fraction(row["accuracy"]) == top]
    return found


def _latex_line(cells: Sequence[str]) -> str:
    texts = (text if isinstance(text, Latex) else escape_latex(text) for text in cells)
    return " & ".join(texts) + r" \\"


def escape_latex(text: str) -> str:
    """Returns a text on one line whose special characters LaTeX prints; indented by a quad."""
    escaped = "".join(LATEX.get(c, c) for c in " ".join(text.split()))
    escaped = re.sub(r"([-',])(?=\1)", r"\1{}", escaped)  # no dash or quote of two characters
    escaped = re.sub(r"^(?=[*[])", "{}", escaped)  # no argument of the \\ before
    return rf"\quad {escaped}" if re.match(r"\s", text) else escaped
