"""The results of an experiment in forms for papers and other programs: LaTeX and CSV."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any

from clutrr_jax.evaluation.metrics import METRICS
from clutrr_jax.evaluation.scores import Score
from clutrr_jax.experiment import NO_K, noise_name
from clutrr_jax.report.accuracy import (
    Results,
    Row,
    accuracy_table,
    format_fraction,
    further_metrics,
    with_interval,
)
from clutrr_jax.report.paired import PAIRED_LEGEND, paired_table
from clutrr_jax.report.results import Scored
from clutrr_jax.report.tables import title

_, *FURTHER = METRICS
# Columns of `csv_rows`.
COLUMNS = ("training", "seed", "model", "replica", "noise", "k", "task", "correct", "clauses",
           "stories", "accuracy", "against", "difference", "p", "p_holm", *FURTHER)  # fmt: skip
LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "`": r"\`{}",
    "±": r"$\pm$", "→": r"$\rightarrow$",
    **{c: f"\\{c}" for c in "&%$#_{}"},
}  # fmt: skip


class Latex(str):
    """A cell that is LaTeX already."""


def csv_rows(results: Results, scores: Iterable[Scored]) -> list[list[str]]:
    """Returns the lines of `results.csv`, header first: one per series, test set and replica of the
    scores, and one per paired test, which has no replica."""
    of_data: defaultdict[str, list[Score]] = defaultdict(list)
    for dataset, _, found in scores:
        of_data[dataset] += found
    lines: list[dict[str, Any]] = []
    for dataset, found in of_data.items():
        training, _, seed = dataset.partition("/")
        about = {"training": training, "seed": seed}
        for one in found:
            sizes = {"clauses": "" if one.clauses is None else one.clauses, "stories": one.count}
            of_test = about | _cell(one.task) | {"model": one.series.name} | sizes
            for replica, accuracy in enumerate(one.metrics["accuracy"].replicas):
                values = {name: f"{of_metric.replicas[replica]:.6f}"
                          for name, of_metric in one.metrics.items()}  # fmt: skip
                correct = f"{accuracy * one.count:.10g}"  # a fraction if answers are drawn
                lines.append(of_test | {"replica": replica, "correct": correct} | values)
        for pair in results["compared"]:  # of one data set
            model, other = pair["models"]
            for test in pair["tasks"]:
                values = {name: f"{test[name]:.6g}" for name in ("difference", "p", "p_holm")}
                sizes = {"clauses": test["clauses"], "stories": test["count"]}
                of_pair = {"model": model, "against": other} | sizes
                lines.append(about | _cell(test["task"]) | of_pair | values)
    paths = any(line["task"].startswith("b") for line in lines)
    header = ["paths" if paths and name == "noise" else name for name in COLUMNS]
    return [header, *([str(line.get(name, "")) for name in COLUMNS] for line in lines)]


def _cell(task: str) -> dict[str, Any]:
    t, _, k = task.partition(".")
    return {"noise": noise_name(t), "k": int(k) or NO_K, "task": task}


def results_latex(results: Results) -> str:
    """Returns `results.tex`: the table of each metric, and that of the paired tests."""
    tables = [latex_table(results, name) for name in ("accuracy", *further_metrics(results))]
    paired = paired_table(results["compared"])
    return "\n".join([*tables, *([latex_paired(paired)] if len(paired) > 1 else [])])


def latex_table(results: Results, metric: str = "accuracy") -> str:
    """Returns a table of a metric as a LaTeX `tabular` with 95 % intervals. The best models of each
    test are bold."""
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
        starts = line.kind != before.kind and line.kind in ("baseline", "test")
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
    """Returns the rows with the highest accuracy, as printed, among the models of a test that were
    asked all of its stories. A test of one model has no best one, nor has a sweep."""
    columns = [name for name in results["columns"] if name != "model"]
    of_test: defaultdict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in results["rows"]:
        if row["accuracy"] is not None and row["kind"] not in ("sweep", "baseline", "published"):
            of_test[tuple(row[name] for name in columns)].append(row)
    found = []
    for of_models in of_test.values():
        asked = max(row["count"] or 0 for row in of_models)  # None in averages
        rows = [row for row in of_models if (row["count"] or 0) == asked]
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
