"""The results of an experiment in forms for papers and other programs: LaTeX and CSV."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from clutrr_jax.evaluation.metrics import Counts
from clutrr_jax.experiment import DATA, SINGLE, SUMMARY, Run
from clutrr_jax.report.results import read_counts
from clutrr_jax.report.tables import (
    Results,
    Row,
    accuracy_table,
    format_fraction,
    format_p,
    label_tests,
    title,
    with_interval,
    with_most_stories,
)
from generator.files import read_json

# Columns of `csv_rows`.
COLUMNS = ("training", "seed", "model", "replica", "noise", "k", "task", "correct", "stories",
           "accuracy", "against", "difference", "p", "p_holm")  # fmt: skip
PAIRED_LEGEND = (
    "Accuracy of a model minus that of another one on the same test stories; in parentheses the "
    "p-value of an exact test that they are equally good, Holm-corrected over the tests of the row."
)
LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "`": r"\`{}",
    "±": r"$\pm$", "→": r"$\rightarrow$",
    **{c: f"\\{c}" for c in "&%$#_{}"},
}  # fmt: skip


class Latex(str):
    """A cell that is LaTeX already."""


def csv_rows(
    results: Results,
    all_runs: Sequence[Run],
    workdir: Path,
    added: Sequence[tuple[str, Sequence[Counts]]] = (),
) -> list[tuple[str, ...]]:
    """Returns the lines of `results.csv`, header first: one per model, test set and replica, and
    one per paired test, which has no replica.

    Args:
      results: the results of the experiment.
      all_runs, workdir: its runs, of which the finished ones count; its folder.
      added: name of a data set, and counts of a model that was trained elsewhere.
    """
    rows: list[tuple[Any, ...]] = []
    for dataset in dict.fromkeys(run.dataset for run in all_runs):
        folders = [workdir / run.name for run in all_runs if run.dataset == dataset]
        files = [*(folder / SUMMARY for folder in folders), workdir / dataset / DATA]
        found = [
            counts for file in files if file.exists() for counts in read_counts(read_json(file))
        ]
        found += [counts for name, of_added in added if name == dataset for counts in of_added]
        training, _, seed = dataset.partition("/")
        for test in found:
            for replica, correct in enumerate(test.correct):
                rows.append((training, seed, test.model, replica, *_cell(test.task), correct,
                             test.count, f"{correct / test.count:.6f}", *[""] * 4))  # fmt: skip
        for pair in results["compared"]:  # of one data set
            model, other = pair["models"]
            for test in pair["tasks"]:
                values = (f"{test[name]:.6g}" for name in ("difference", "p", "p_holm"))
                rows.append((training, seed, model, "", *_cell(test["task"]), "", test["count"], "",
                             other, *values))  # fmt: skip
    paths = any(row[6].startswith("b") for row in rows)
    header = ["paths" if paths and name == "noise" else name for name in COLUMNS]
    return [tuple(header), *(tuple(map(str, row)) for row in rows)]


def _cell(task: str) -> tuple[Any, Any, str]:
    """Noise type, or paths, and length of a test, and its name."""
    (((noise, k, _), _),) = SINGLE.trainings[0].cells([task]).items()
    return noise, k, task


def paired_table(compared: Sequence[Mapping[str, Any]], model: str = "") -> list[list[str]]:
    """The paired tests as a table, see PAIRED_LEGEND.

    Args:
      compared: see `clutrr_jax.report.scoring.compare`.
      model: shows the tests of this model, from its side; empty for all.
    """
    pairs = [pair for pair in compared if pair["tasks"] and model in ("", *pair["models"])]
    tests = list(dict.fromkeys(test["task"] for pair in pairs for test in pair["tasks"]))
    lines = [["model", "against", *label_tests(tests)]]
    for pair in pairs:
        sign = -1 if model == pair["models"][1] else 1
        cells = {
            test["task"]: f"{format_fraction(sign * test['difference'], '+')} "
            f"({format_p(test['p_holm'])})"
            for test in pair["tasks"]
        }
        lines.append([*pair["models"][::sign], *(cells.get(test, "") for test in tests)])
    return lines


def latex_table(results: Results) -> str:
    """Returns the table of accuracies as a LaTeX `tabular` with 95 % intervals.

    The best trained model of each test is bold, if several are trained.
    """
    best = {id(row) for row in best_rows(results)}

    def cell(row: Row) -> str:
        if row.get("accuracy") is None:
            return ""
        mean, _, interval = with_interval(row).partition(" (")
        text = rf"\textbf{{{mean}}}" if id(row) in best else mean
        interval = interval.rstrip(")").replace("-", "--")
        return Latex(f"{text} {{\\scriptsize {interval}}}" if interval else text)

    header, *lines = accuracy_table(results, cell=cell)
    words = header.index("given") + 1 if "given" in header else 2  # columns before the accuracies
    first = {s["name"] for s in results["series"] if s["baseline"]}
    body: list[str] = []
    before = [""]
    for line in lines:
        if (
            before[0]
            and line[0] != before[0]
            and (
                header[0] == results["columns"][0]  # a new panel
                or line[0] == "ceiling"
                or (line[0] in first and before[0] not in first)
            )
        ):
            body.append(r"\midrule")
        body.append(_latex_line(line))
        before = line
    about = f"{' '.join(title(results).split())}: accuracy, and its 95 % interval in small print."
    return _tabular([about], header, words, body)


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
    columns = results["columns"]
    baselines = {one["name"] for one in results["series"] if one["baseline"]}
    of_test: defaultdict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in (*results["rows"], *results["averages"]):
        if row["accuracy"] is not None and row[columns[2]] not in baselines:
            of_test[tuple(row[name] for name in columns if name != "model")].append(row)
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
