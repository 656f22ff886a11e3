"""The table of accuracies, or of another metric, as typed lines."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from inspect import getdoc
from typing import Any, NamedTuple

from clutrr_jax.evaluation.metrics import METRICS
from clutrr_jax.experiment import NO_K
from clutrr_jax.report.results import BESIDE

THIS_TRAINING = " (this training)"  # after an interval that does not cover other seeds
MARK = "*"  # marks a difference whose two intervals do not overlap
Results = Mapping[str, Any]  # see `clutrr_jax.report.results`
Row = Mapping[str, Any]
Cells = Mapping[tuple[Any, Any, Any], Row]  # rows by (panel, x, series)


def format_fraction(value: float, sign: str = "") -> str:
    """Formats an accuracy as in the papers, .87 or 1.00; with sign "+", a difference, +.07.

    Values that round to zero have no minus sign.
    """
    return f"{value:{sign}z.2f}".replace("0.", ".", 1)


def format_p(value: float) -> str:
    """Formats a p-value, .031 or <.001."""
    return "<.001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def label_tests(tests: Sequence[str]) -> list[str]:
    """Returns labels of tests T.K: k=K, or T.K if they differ in T as well."""
    split = [test.split(".") for test in tests]
    if len({t for t, _ in split}) > 1:
        return list(tests)
    return [NO_K if k == "0" else f"k={k}" for _, k in split]


def rows_by_key(results: Results, metric: str = "accuracy") -> Cells:
    """Returns the rows by (panel, x, series), also those of cells that are not measured; of another
    metric those that have it, with its values in the columns of the accuracy."""
    rows = [row for row in results["rows"] if row["kind"] != "published"]
    if metric != "accuracy":
        rows = [_of_metric(row, metric) for row in rows if metric in row["metrics"]]
    return _by_key(results, rows)


def _of_metric(row: Row, metric: str) -> Row:
    values = row["metrics"][metric]
    bounds = {name: values[name] for name in ("stderr", "low", "high")}
    last = {"accuracy_last": values["mean"], "stderr_last": values["stderr"]}
    return {**row, **bounds, **last, "accuracy": values["mean"],
            "accuracies": values["replicas"]}  # fmt: skip


def published_by_key(results: Results) -> Cells:
    """Returns the rows of published accuracies by (panel, x, series)."""
    return _by_key(results, [row for row in results["rows"] if row["kind"] == "published"])


def _by_key(results: Results, rows: Sequence[Row]) -> Cells:
    panel, x, series = results["columns"]
    return {(row[panel], row[x], row[series]): row for row in rows}


def is_grid(results: Results) -> bool:
    """Returns whether published accuracies stand next to the measured ones of the same cells."""
    return not rows_by_key(results).keys().isdisjoint(published_by_key(results))


def difference(row: Row, published: Row | None) -> tuple[float, bool] | None:
    """Measured minus published accuracy, and whether their intervals do not overlap; None if one of
    them is missing."""
    if not published or row.get("accuracy") is None:
        return None
    disjoint = row["low"] is not None and (
        row["low"] > published["high"] or row["high"] < published["low"]
    )
    return row["accuracy"] - published["accuracy"], disjoint


def with_stderr(row: Row, epoch: str = "") -> str:
    """Returns an accuracy, of the last epoch with "_last", and its standard error over replicas,
    .87 ±.02; "" if not measured."""
    if row.get("accuracy") is None:
        return ""
    stderr = row[f"stderr{epoch}"]
    error = "" if stderr is None else f" ±{format_fraction(stderr)}"
    return format_fraction(row[f"accuracy{epoch}"]) + error


def with_interval(row: Row) -> str:
    """Returns an accuracy and its 95 % interval, .87 (.80-.92); "" if not measured."""
    if row.get("low") is None:  # not measured, or an average
        return with_stderr(row)
    return f"{format_fraction(row['accuracy'])} ({_interval(row)})"


def _interval(row: Row) -> str:
    return f"{format_fraction(row['low'])}-{format_fraction(row['high'])}"


class Line(NamedTuple):
    """A line of a table of accuracies."""

    words: tuple[str, ...]  # panel, if there are several, series and given; or panel and x
    cells: Sequence[str]
    kind: str = ""  # of the series; "test" of lines about the tests; empty in a grid
    is_part: bool = False  # whether it says more about the line above


class Table(NamedTuple):
    """A table of accuracies."""

    words: tuple[str, ...]  # names of the first columns
    columns: Sequence[str]
    lines: Sequence[Line]

    def texts(self) -> list[list[str]]:
        """Returns the rows as text cells, header first; a line that is a part is indented."""
        rows = [[*self.words, *self.columns]]
        for line in self.lines:
            *before, name, given = line.words
            rows.append([*before, "  " * line.is_part + name, given, *line.cells])
        return rows


def accuracy_table(
    results: Results,
    intervals: bool = False,
    cell: Callable[[Row], str] = with_stderr,
    metric: str = "accuracy",
) -> Table:
    """The accuracies, or another metric.

    With published accuracies of the same cells: one row per panel and x, and three columns per
    series (measured, published, difference). Without: one row per panel and series, and one column
    per x.

    Args:
      results: see `clutrr_jax.report.results`.
      intervals: whether to add lines of 95 % intervals and of answers that were not mapped.
      cell: text of a row of the results.
      metric: one of `clutrr_jax.evaluation.metrics.METRICS`; published values are accuracies.
    """
    rows = rows_by_key(results, metric)
    published = published_by_key(results) if metric == "accuracy" else {}
    if not is_grid(results):
        return _figure(results, rows, published, intervals, cell)
    series = list(dict.fromkeys(key[2] for key in rows))
    of_tests = about_tests({key[:2]: row_of_test(rows, *key[:2]) for key in rows})
    lines = []
    for panel, x in dict.fromkeys(key[:2] for key in rows):
        cells: list[str] = []
        for name in series:
            row, paper = rows.get((panel, x, name), {}), published.get((panel, x, name))
            found = difference(row, paper)
            text = format_fraction(found[0], "+") + MARK * found[1] if found else ""
            cells += [cell(row), with_stderr(paper or {}), text]
        cells += [about[panel, x] for about in of_tests.values()]
        lines.append(Line((str(panel), str(x)), cells))
    columns = [column for name in series for column in (name, "paper", "difference")]
    return Table(tuple(results["columns"][:2]), [*columns, *of_tests], lines)


def _figure(
    results: Results,
    rows: Cells,
    published: Cells,
    intervals: bool,
    cell: Callable[[Row], str],
) -> Table:
    panel_name, x_name, series_name = results["columns"]
    panels, xs, series = axes_of(rows.keys())
    lines: list[Line] = []
    for panel in panels:
        tests = [row_of_test(rows, panel, x) for x in xs]
        papers = {key[2]: row for key, row in published.items() if key[0] == panel}
        for name in (*series, ""):  # "": published rows of models that are no series
            of_series = [rows.get((panel, x, name), {}) for x in xs]
            for i, (label, *texts) in enumerate(_series(name, of_series, tests, intervals, cell)):
                about = next(filter(None, of_series))
                words = (str(panel), label, "" if i else about["given"])
                lines.append(Line(words, texts, about["kind"], i > 0))
            for label, paper in papers.items():
                if name == (paper["of"] if paper["of"] in series else ""):
                    texts = [with_stderr(published.get((panel, x, label), {})) for x in xs]
                    lines.append(Line((str(panel), label, paper["given"]), texts, "published"))
        for label, of_x in about_tests(dict(zip(xs, tests, strict=True))).items():
            lines.append(Line((str(panel), label, ""), list(of_x.values()), "test"))
    first = int(len(panels) == 1)
    return Table(
        (panel_name, series_name, "given")[first:],
        [x if x == NO_K else f"{x_name}={x}" for x in xs],
        [line._replace(words=line.words[first:]) for line in lines],
    )


def axes_of(keys: Collection[tuple[Any, Any, Any]]) -> tuple[list[Any], list[Any], list[Any]]:
    """Returns the panels, the x, sorted if they are numbers, and the series of keys."""
    panels, xs, series = (list(dict.fromkeys(key[part] for key in keys)) for part in range(3))
    return panels, xs if any(isinstance(x, str) for x in xs) else sorted(xs), series


def _series(
    name: str,
    rows: Sequence[Row],
    tests: Sequence[Row],
    intervals: bool,
    cell: Callable[[Row], str],
) -> Iterator[list[str]]:
    """The lines of one series: its accuracies and, where they say more, the last epoch, or the
    intervals and the number of answers that were not mapped; the number of its stories if it has a
    part of those of a test."""
    if not any(rows):
        return
    kind = next(filter(None, rows))["kind"]
    measured = [row for row in rows if row.get("accuracy") is not None]
    replicas = {row["replicas"] for row in measured}
    if kind not in ("baseline", *BESIDE) and len(replicas) == 1:
        (count,) = replicas
        name = f"{name} ({count} replica{'s' if count > 1 else ''})"
    yield [name, *map(cell, rows)]
    last = [with_stderr(row, "_last") for row in rows]
    if last != [with_stderr(row) for row in rows]:
        yield ["last epoch", *last]
    if intervals and kind != "baseline":
        label = "95 % interval" + THIS_TRAINING * any(row["seeds"] is None for row in measured)
        yield [label, *(_interval(row) if row in measured else "" for row in rows)]
        yield ["not mapped", *(str(row["unmapped"]) if row in measured else "" for row in rows)]
    counts = [row.get("count") for row in rows]
    if any(n and n < test["count"] for n, test in zip(counts, tests, strict=True)):
        yield ["stories", *("" if n is None else str(n) for n in counts)]


def row_of_test(rows: Cells, panel: Any, x: Any) -> Row:
    """The first row of a test with the most stories; {} if there is none. A series may have a part
    of the stories of a test."""
    found = [row for key, row in rows.items() if key[:2] == (panel, x) and row["count"]]
    return max(found, key=lambda row: row["count"], default={})


def about_tests(tests: Mapping[Any, Row]) -> dict[str, dict[Any, str]]:
    """Returns the number of stories and of their clauses, and of stories with several answers, if
    there are some, of each test, given its row of `row_of_test`."""
    found = {}
    labels = {"stories": "count", "clauses": "clauses", "several answers": "ambiguous"}
    for label, name in labels.items():
        if any(row.get(name) for row in tests.values()):
            found[label] = {
                key: "" if row.get(name) is None else str(row[name]) for key, row in tests.items()
            }
    return found


def further_metrics(results: Results) -> dict[str, str]:
    """Returns the metrics besides the accuracy that a series has, and what they mean: the first
    line of their docstrings."""
    measured = {name for row in results["rows"] for name in row["metrics"]}
    return {name: (getdoc(metric) or "").partition("\n")[0]
            for name, metric in METRICS.items() if name in measured}  # fmt: skip
