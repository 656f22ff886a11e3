"""Tables of accuracies as rows of text cells, header first, and the texts about them."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from flax.traverse_util import flatten_dict
from ml_collections import ConfigDict

from clutrr_jax.data.copies import copy_notes
from clutrr_jax.evaluation.predictions import is_derived
from clutrr_jax.experiment import NO_K
from clutrr_jax.models import MODELS
from clutrr_jax.settings import TRAIN

MARK = "*"  # marks a difference whose two intervals do not overlap
SMOKE = "Smoke scale: the figures only show that everything runs, and no claims are judged."
# Explains the columns of `extraction_table`.
EXTRACTION_LEGEND = (
    "A fact counts as extracted if the model gives it a probability above .5. Right: stated in the "
    "story. Follow: not stated, but implied by the stated facts under the 16 rules or as the "
    "inverse of a fact. Wrong: neither stated nor implied. Missing: stated, but not extracted. "
    "Precision is (right + follow) / extracted; recall is right / stated. Facts about the "
    "query pair are excluded, because the reasoner does not see them."
)

Results = Mapping[str, Any]  # see `clutrr_jax.report.results`
Row = Mapping[str, Any]


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
    if len({test.partition(".")[0] for test in tests}) > 1:
        return list(tests)
    lengths = [test.partition(".")[2] for test in tests]
    return [NO_K if k == "0" else f"k={k}" for k in lengths]


def count_replicas(count: int) -> str:
    """Returns "1 replica", "2 replicas", ..."""
    return f"{count} replica{'s' if count > 1 else ''}"


def rows_by_key(results: Results) -> dict[tuple[Any, Any, Any], Row]:
    """Returns the rows and averages of the results by (panel, x, series)."""
    rows = [*results["rows"], *results["averages"]]
    return {tuple(row[name] for name in results["columns"]): row for row in rows}  # type: ignore[misc]


def with_stderr(row: Row, epoch: str = "") -> str:
    """Returns an accuracy and its standard error over replicas, .87 ±.02; "" if not measured.

    Args:
      row: a row of the results.
      epoch: "_last" for the last epoch.
    """
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


def accuracy_table(
    results: Results, intervals: bool = False, cell: Callable[[Row], str] = with_stderr
) -> list[list[str]]:
    """Accuracies as a table.

    With published accuracies of the same cells: one row per panel and x, and three columns per
    series (measured, published, difference). Without: one row per panel and series, and one column
    per x.

    Args:
      results: see `clutrr_jax.report.results`.
      intervals: whether to add lines of 95 % intervals and of the number of answers that were not
        mapped.
      cell: text of a row of the results.
    """
    rows = rows_by_key(results)
    if not any(row["published"] for row in results["rows"]):
        return _figure(results, rows, intervals, cell)
    series = list(dict.fromkeys(key[2] for key in rows))
    columns = [column for name in series for column in (name, "paper", "difference")]
    lines = [[*results["columns"][:2], *columns, "ceiling", "stories"]]
    for panel, x in dict.fromkeys(key[:2] for key in rows):
        line = [str(panel), str(x)]
        of_series = [rows.get((panel, x, name), {}) for name in series]
        for row in of_series:
            line += [cell(row), _published(row.get("published")), _difference(row)]
        lines.append([*line, *_ceiling_and_stories(with_most_stories(of_series))])
    return lines


def _figure(
    results: Results,
    rows: Mapping[tuple[Any, Any, Any], Row],
    intervals: bool,
    cell: Callable[[Row], str],
) -> list[list[str]]:
    panel_name, x_name, series_name = results["columns"]
    panels, xs, series = (list(dict.fromkeys(key[part] for key in rows)) for part in range(3))
    if not any(isinstance(x, str) for x in xs):
        xs.sort()
    references, given = results["references"], results["given"]
    baselines = {one["name"] for one in results["series"] if one["baseline"]}
    lines = [[panel_name, series_name, "given", *(x if x == NO_K else f"{x_name}={x}" for x in xs)]]
    for panel in panels:
        largest = [with_most_stories([rows.get((panel, x, n), {}) for n in series]) for x in xs]
        published = [r for r in references if r["panel"] == panel]
        for name in (*series, ""):  # "": published rows of models that are no series
            of_series = [rows.get((panel, x, name), {}) for x in xs]
            if any(of_series):
                knowledge = given.get(name, given.get(panel, ""))
                own = _series(name, of_series, name in baselines, intervals, cell)
                for label, *texts in (*own, *_stories(of_series, largest)):
                    about = "" if label.startswith("  ") else knowledge
                    lines.append([str(panel), label, about, *texts])
            for row in published:
                if name == (row["series"] if row["series"] in series else ""):
                    texts = [_published(row["values"].get(str(x))) for x in xs]
                    lines.append([str(panel), row["name"], row["given"], *texts])
        tests = [_ceiling_and_stories(row) for row in largest]
        for i, label in enumerate(("ceiling", "stories")):
            lines.append([str(panel), label, "", *(texts[i] for texts in tests)])
    return [line[1:] for line in lines] if len(panels) == 1 else lines


def _series(
    name: str, rows: Sequence[Row], baseline: bool, intervals: bool, cell: Callable[[Row], str]
) -> Iterator[list[str]]:
    """The lines of one series: its accuracies and, where they say more, the last epoch, or the
    intervals and the number of answers that were not mapped."""
    measured = [row for row in rows if row.get("accuracy") is not None]
    replicas = {row["replicas"] for row in measured}
    named = baseline or is_derived(name) or len(replicas) != 1
    label = name if named else f"{name} ({count_replicas(*replicas)})"
    yield [label, *map(cell, rows)]
    last = [with_stderr(row, "_last") for row in rows]
    if last != [with_stderr(row) for row in rows]:
        yield ["  last epoch", *last]
    if intervals and not baseline:
        yield ["  95 % interval", *(_interval(r) if r in measured else "" for r in rows)]
        yield ["  not mapped", *(str(row.get("unmapped", "")) for row in rows)]


def _stories(rows: Sequence[Row], largest: Sequence[Row]) -> Iterator[list[str]]:
    """The line with the number of stories of a series that has a part of them."""
    counts = [row.get("count") for row in rows]
    if any(n and n < most["count"] for n, most in zip(counts, largest, strict=True)):
        yield ["  stories", *("" if n is None else str(n) for n in counts)]


def _published(accuracy: Mapping[str, Any] | None) -> str:
    if accuracy is None:
        return ""
    error = "" if accuracy["error"] is None else f" ±{format_fraction(accuracy['error'])}"
    return format_fraction(accuracy["mean"]) + error


def _difference(row: Row) -> str:
    if row.get("difference") is None:
        return ""
    return format_fraction(row["difference"], "+") + (MARK if row["intervals_disjoint"] else "")


def with_most_stories(rows: Sequence[Row]) -> Row:
    """The first row with the most stories, whose ceiling is that of the test; {} if there is none.

    A series may have a part of the stories of a test.
    """
    return max((row for row in rows if row.get("count")), key=lambda row: row["count"], default={})


def _ceiling_and_stories(row: Row) -> tuple[str, str]:
    """Ceiling and number of stories of a test."""
    return (format_fraction(row["ceiling"]), str(row["count"])) if row else ("", "")


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
    table = [["model", "parameters", "replicas", "epochs", "dev accuracy", "seconds",
              "train stories/s"]]  # fmt: skip
    for model, m in results["models"].items():
        table.append([
            model, f"{m['parameters']:,}", str(m["replicas"]), str(m["epochs"]),
            f"{m['dev_accuracy']:.3f}", f"{m['seconds']:.0f}", f"{m['stories_per_second']:,}",
        ])  # fmt: skip
    return table


def settings_table(results: Results) -> list[list[str]]:
    """Settings that each model used: the main ones, and others that are not the default of the
    model or, of train settings, the usual value."""
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
        values = [f"{train[name]}" if train[name] is not None else "" for name in main]
        table.append([model, *values, ", ".join(others)])
    return table


def changed_settings(model: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings, by dotted name, that are not the default of the model or, of train
    settings, the usual value; without the number of replicas and how often checkpoints are written.
    """
    default = dict(MODELS[model].config if model in MODELS else {}) | {"train": TRAIN}
    usual = flatten_dict(ConfigDict(default).to_dict(), sep=".")
    return {
        name: value
        for name, value in flatten_dict(dict(settings), sep=".").items()
        if name not in ("train.replicas", "train.checkpoint_minutes")
        and (name not in usual or value != usual[name])
    }


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
    return " ".join(parts + data_notes(results) + diverged(results))


def data_notes(results: Results) -> list[str]:
    """Returns sentences on copies of stories in each data set."""
    several = len(results["data"]) > 1
    return [
        f"{data['name']}: {note}" if several else note
        for data in results["data"]
        for note in copy_notes(data.get("copies", {}))
    ]


def diverged(results: Results) -> list[str]:
    """A sentence on each replica that diverged."""
    return [line for model in results["models"].values() for line in model["diverged"]]


def legend(results: Results) -> str:
    """Returns an explanation of the table of accuracies."""
    text = (
        "Accuracy on the test stories; in parentheses its 95 % interval over test stories and "
        "replicas. A value after ± is a standard error. Given: what a model has besides the "
        "training stories and their answers. The ceiling is the best achievable accuracy. The last "
        "epoch of a model has a row if another epoch is tested and its accuracies differ."
    )
    if any(row["published"] for row in results["rows"]):
        text += (
            f" {MARK}: the 95 % intervals of the measured and published accuracy do not overlap."
        )
    if results["averages"]:
        text += " Averages are shown once all of their cells are measured, without intervals."
    return f"{text} {results['note']}".rstrip()


def sources(results: Results) -> list[str]:
    """Returns one line per source of the references: their names, and the source."""
    names: defaultdict[str, dict[str, None]] = defaultdict(dict)  # dictionaries as ordered sets
    for reference in results["references"]:
        names[reference["source"]][reference["name"]] = None
    return [f"{'; '.join(found)}: {source}" for source, found in names.items()]


def claims_text(results: Results) -> str:
    """Returns one paragraph per question of the paper."""
    paragraphs = []
    for question, verdict in results["claims"].items():
        parts = [f"*{word}*: {'; '.join(claims)}" for word, claims in verdict.items() if claims]
        paragraphs.append(f"**{question}.** Claims of the paper: " + ". ".join(parts) + ".")
    return "\n\n".join(paragraphs)
