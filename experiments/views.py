"""Tables of the pages, made from the recorded parts of `experiments.paper`, as Markdown lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from clutrr_jax.counts import counts_table
from clutrr_jax.data.batching import GRAPHS
from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.models import MODELS
from clutrr_jax.report.accuracy import (
    about_tests,
    accuracy_table,
    format_fraction,
    published_by_key,
    row_of_test,
    rows_by_key,
)
from clutrr_jax.report.tables import markdown_table
from experiments.claims import REASONS
from experiments.paper import PARTS
from experiments.published.differences import OF_MODEL
from experiments.published.ledger import ROWS
from generator.errors import plain_text

Recorded = Mapping[str, Any]  # content of a file in `results/`
Row = Mapping[str, Any]


def made(parts: Sequence[Recorded]) -> list[str]:
    """The command that measures some parts, and of trainings the hours, the devices and the commits
    when they were recorded."""
    data = " --data=RELEASES" if any("data" in PARTS[part["part"]][1] for part in parts) else ""
    command = f"`python -m experiments.paper {' '.join(part['part'] for part in parts)}{data}`"
    if "models" not in parts[0]:
        return [command]
    hours = sum(part["wall_seconds"] for part in parts) / 3600
    devices = "; ".join(dict.fromkeys(name for part in parts for name in part["devices"]))
    commits = ", ".join(dict.fromkeys(part["commit"] for part in parts))
    return [f"{command}: {hours:.2g} h of training on {devices}, recorded at commit {commits}."]


def counts(parts: Sequence[Recorded]) -> list[str]:
    """Numbers that need no training, next to the published ones."""
    rows = [(row["name"], row["measured"], row["published"]) for row in parts[0]["rows"]]
    return markdown_table(counts_table(rows))


def grid(parts: Sequence[Recorded]) -> list[str]:
    """Accuracies next to the published ones of the same cells."""
    return markdown_table(accuracy_table(parts[0]).texts())


def text(parts: Sequence[Recorded]) -> list[str]:
    """The table that a run prints."""
    return ["```", *plain_text(accuracy_table(parts[0]).texts()).splitlines(), "```"]


def by_k(parts: Sequence[Recorded], panel: str = "", models: str = "") -> list[str]:
    """Accuracies of trained models by k, with the published rows of the same model, given the same,
    below.

    First come the induced rules, which nothing trains. Of the models, those that read facts come
    first, and the best ones at the largest k. Then come the other baselines, and in a table of one
    panel the numbers of stories, of clauses, and of stories with several answers. `panel` are some
    panels joined by ";", `models` some models and baselines joined by commas; empty for all,
    baselines in a table of one panel only.
    """
    about = ["reads", "given", "parameters", "replicas"]
    lines: list[list[str]] = []
    xs = _xs(parts)
    panels = _panels(parts, panel)
    for shown in panels:
        measured = [line for part in parts for line in _trained(part, shown, xs, models)]
        below = _published_rows(parts[0], shown, xs)
        baselines = {
            series: [shown, series, "", BASELINES[series], "", "", *cells, ""]
            for _, series, *cells in _selected(parts[:1], shown, ("baseline",))
            if series in models.split(",") or (len(panels) == 1 and not models)
        }
        if first := baselines.pop("induced rules", None):
            lines.append(first)
        for _, cells in sorted(measured):
            lines += [[shown, *cells], *below.pop((cells[0], cells[2]), [])]
        lines += baselines.values()
        if len(panels) == 1:
            for label, of_x in about_tests(_tests(parts, shown)).items():
                lines.append([shown, label, *[""] * len(about), *of_x.values(), ""])
    return _table(parts, about, lines, ["largest standard error"])


def by_test(parts: Sequence[Recorded], prefix: str = "") -> list[str]:
    """Accuracies in all panels whose name begins with a prefix, one line for each series: the
    induced rules, which nothing trains, the models, those with the best mean first, and the other
    baselines."""
    x_name = parts[0]["columns"][1]
    found = dict.fromkeys(key[:2] for key in _rows(parts[0]))
    panels = [panel for panel in _panels(parts[:1], "") if panel.startswith(prefix)]
    of_panel = {panel: sorted(x for other, x in found if other == panel) for panel in panels}
    tests = [(panel, x) for panel, xs in of_panel.items() for x in xs]
    heads = []
    for panel, (first, *others) in of_panel.items():
        shown = panel.removeprefix(prefix).lstrip(", ")
        heads += [f"{shown}, {x_name} = {first}", *map(str, others)]
    lines = []
    for number, rows in enumerate(map(_rows, parts)):
        for series in dict.fromkeys(key[2] for key in rows):
            of_series, measured = _across(rows, series, tests)
            kind = measured[0]["kind"] if measured else ""
            if kind == "model" or (kind == "baseline" and not number):
                place = 0 if series == "induced rules" else 1 if kind == "model" else 2
                mean = np.mean([row["accuracy"] for row in measured])
                about = [series, measured[0]["given"], str(measured[0]["replicas"])]
                lines.append((place, -mean, [*about, *map(_accuracy, of_series)]))
    table = [cells for *_, cells in sorted(lines)]
    return markdown_table([["model", "given", "replicas", *heads], *table])


def derived(parts: Sequence[Recorded], kind: str, models: str, panel: str = "") -> list[str]:
    """Models, and what is derived from them: series of this kind, such as "ensemble"; by k."""
    return _table(parts, [], _selected(parts, panel, ("model", kind), models))


def published(parts: Sequence[Recorded]) -> list[str]:
    """Means over the k of each published row, next to ours of the same model, given the same, what
    our settings were chosen on, and what differs."""
    heads = ["published row", "trained on k", "k", "ours", "published", "difference"]
    table = [[*heads, "chosen on", "what differs in ours"]]
    measured = {(*key[:2], row["of"], row["given"]): row["accuracy"]
                for part in parts for key, row in _rows(part).items()
                if row["kind"] == "model" and row["accuracy"] is not None}  # fmt: skip
    references: dict[tuple[str, str], list[Row]] = {}
    for (panel, _, name), row in _papers(parts[0]).items():
        references.setdefault((panel, name), []).append(row)
    x_name = parts[0]["columns"][1]
    for (panel, name), rows in references.items():
        ours = {(panel, row[x_name], row["of"], row["given"]): row for row in rows}
        shared = [key for key in ours if key in measured]
        if shared:
            mine = float(np.mean([measured[key] for key in shared]))
            theirs = float(np.mean([ours[key]["accuracy"] for key in shared]))
            table.append([
                name, panel, f"{shared[0][1]}-{shared[-1][1]}",
                format_fraction(mine), format_fraction(theirs), format_fraction(mine - theirs, "+"),
                MODELS[rows[0]["of"]].chosen_on, OF_MODEL[rows[0]["of"]],
            ])  # fmt: skip
    return markdown_table(table)


def ledger() -> list[str]:
    """All published rows: their data, what they were given, and whether they are comparable; and
    the titles of their sources."""
    heads = ["published row", "source", "data", "train stories", "test stories", "reads", "given"]
    table = [[*heads, "accuracy", "comparable"]]
    for row in ROWS:
        means = [format_fraction(accuracy.mean) for accuracy in row.by_k.values()]
        found = [f"k = {min(row.by_k)}-{max(row.by_k)}: {' '.join(means)}"] if means else []
        if row.overall:
            found.append(f"all: {format_fraction(row.overall.mean)}")
        comparable = f"no: {row.differs}" if row.differs else "yes"
        _, authors, year, _, place = row.source
        table.append([row.name, f"{authors} {year}, {place}", *row.data, row.reads, row.given,
                      "; ".join(found), comparable])  # fmt: skip
    titles = dict.fromkeys(f"- {source.authors} {source.year}: “{source.title}”"
                           for source in (row.source for row in ROWS))  # fmt: skip
    return [*markdown_table(table), "", *titles]


def speed(parts: Sequence[Recorded]) -> list[str]:
    """Speed of training: medians over epochs, of all replicas together. Of the other columns, those
    in which all rows are equal are left out."""
    table = [["model", "train stories/s", "replicas", "batch", "of peak", "GB"]]
    for row in parts[0]["rows"]:
        rate = float(np.median(row["train"]))
        share = row["flops"] * rate / parts[0]["matmul"]["float32"] if "flops" in row else None
        table.append([
            row["model"], f"{rate:,.0f}", f"{row['replicas']}", f"{row['batch']:,}",
            "" if share is None else f"{share:.0%}",
            f"{row['memory']:.1f}" if "memory" in row else "",
        ])  # fmt: skip
    columns = list(zip(*table, strict=True))
    shown = columns[:2] + [column for column in columns[2:] if len(set(column[1:])) > 1]
    about = f"{parts[0]['device']}, commit {parts[0]['commit']}."
    return [about, "", *markdown_table([list(line) for line in zip(*shown, strict=True)])]


def claims(parts: Sequence[Recorded]) -> list[str]:
    """The claims of the papers with the models that decide them, their verdicts, and why those fail
    that are not supported."""
    table = [["part", "models", "claim", "verdict", "why"]]
    for part in parts:
        models = ", ".join(part["models"])
        for verdicts in part["claims"].values():
            for verdict, statements in verdicts.items():
                for statement in statements:
                    why = REASONS.get(statement, "") if verdict == "not supported" else ""
                    table.append([part["part"], models, statement, verdict, why])
    return markdown_table(table)


def _rows(part: Recorded) -> dict[tuple[str, Any, str], Row]:
    """The rows of a part by (panel, x, series)."""
    return {(str(panel), x, str(series)): row
            for (panel, x, series), row in rows_by_key(part).items()}  # fmt: skip


def _papers(part: Recorded) -> dict[tuple[str, Any, str], Row]:
    """The published rows that are no cells of the part, by (panel, x, name)."""
    return {(str(panel), x, str(name)): row
            for (panel, x, name), row in published_by_key(part).items()
            if "source" in row}  # fmt: skip


def _across(
    rows: Mapping[tuple[str, Any, str], Row], series: str, tests: Iterable[tuple[str, Any]]
) -> tuple[list[Row], list[Row]]:
    """The rows of a series in tests (panel, x), {} if there is none, and those with an accuracy."""
    found = [rows.get((*test, series), {}) for test in tests]
    return found, [row for row in found if row.get("accuracy") is not None]


def _panels(parts: Sequence[Recorded], panel: str) -> list[str]:
    if panel:
        return panel.split(";")
    return list(dict.fromkeys(key[0] for part in parts for key in _rows(part)))


def _xs(parts: Sequence[Recorded]) -> list[Any]:
    return sorted({key[1] for part in parts for key in _rows(part)})


def _table(
    parts: Sequence[Recorded], about: list[str], lines: list[list[str]], last: Sequence[str] = ()
) -> list[str]:
    """A table of lines (panel, series, *about, *accuracies, *last), without the column of panels if
    there is one panel."""
    panel_name, x_name, series_name = parts[0]["columns"]
    first, *others = _xs(parts)
    heads = [panel_name, series_name, *about, f"{x_name}={first}", *map(str, others), *last]
    drop = len({line[0] for line in lines}) == 1
    return markdown_table([line[drop:] for line in (heads, *lines)])


def _accuracy(row: Row) -> str:
    return "" if row.get("accuracy") is None else format_fraction(row["accuracy"])


def _reads(model: str) -> str:
    return "facts" if MODELS[model].kind in GRAPHS else "story"


def _trained(
    part: Recorded, panel: str, xs: Sequence[Any], models: str
) -> Iterator[tuple[tuple[str, float], list[str]]]:
    """Yields (order, cells) of the trained models of a panel; the first cell is the series."""
    rows = _rows(part)
    for series in dict.fromkeys(key[2] for key in rows):
        model = series if series in part["models"] else panel  # one of both is the model
        of_series, measured = _across(rows, series, [(panel, x) for x in xs])
        if model not in part["models"] or not measured:
            continue
        if models and model not in models.split(","):
            continue
        about, reads = part["models"][model], _reads(model)
        errors = [row["stderr"] for row in measured if row["stderr"] is not None]
        cells = [series, reads, measured[0]["given"], f"{about['parameters']:,}",
                 str(measured[0]["replicas"]), *map(_accuracy, of_series),
                 format_fraction(max(errors)) if errors else ""]  # fmt: skip
        yield (reads, -measured[-1]["accuracy"]), cells


def _published_rows(
    part: Recorded, panel: str, xs: Sequence[Any]
) -> dict[tuple[str, str], list[list[str]]]:
    """Lines of published accuracies in a panel, by model and what it was given."""
    found: dict[tuple[str, str], list[list[str]]] = {}
    papers = {key: row for key, row in _papers(part).items() if key[0] == panel and row["of"]}
    for name, row in {name: row for (_, _, name), row in papers.items()}.items():
        cells = [_accuracy(papers.get((panel, x, name), {})) for x in xs]
        line = [panel, name, _reads(row["of"]), row["given"], "", "", *cells, ""]
        found.setdefault((row["of"], row["given"]), []).append(line)
    return found


def _tests(parts: Sequence[Recorded], panel: str) -> dict[Any, Row]:
    """The row of `row_of_test` of each x in a panel."""
    found = {x: [row_of_test(_rows(part), panel, x) for part in parts] for x in _xs(parts)}
    return {x: max(rows, key=lambda row: row.get("count") or 0) for x, rows in found.items()}


def _selected(
    parts: Sequence[Recorded], panel: str, kinds: Sequence[str], models: str = ""
) -> list[list[str]]:
    """Lines (panel, series, *accuracies) of the series of these kinds and models, those of a panel
    together."""
    lines, xs = [], _xs(parts)
    for shown in _panels(parts, panel):
        for rows in map(_rows, parts):
            of_kind = [key[2] for key, row in rows.items() if row["kind"] in kinds
                       and (not models or row["of"] in models.split(","))]  # fmt: skip
            for series in dict.fromkeys(of_kind):
                of_series, measured = _across(rows, series, [(shown, x) for x in xs])
                if measured:
                    lines.append([shown, series, *map(_accuracy, of_series)])
    return lines
