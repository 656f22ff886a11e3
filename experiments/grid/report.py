"""The report of a grid: `report.html`, `results.md`, `results.json` and `curve.png`."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.models import MODELS
from clutrr_jax.models.given import given
from clutrr_jax.report import page
from clutrr_jax.report.tables import format_fraction, markdown_table
from clutrr_jax.settings import train_settings
from experiments.grid.claims import verdicts
from experiments.grid.definition import Cell, Grid
from experiments.grid.measured import (
    RESULTS,
    Key,
    Table,
    intervals_disjoint,
    is_finished,
    measure,
)
from experiments.grid.plot import Rows, plot_grid
from generator.cells import plain_text
from generator.errors import InputError
from generator.files import atomic_write, read_json, write_text

MARK = "*"  # marks a difference whose two intervals do not overlap
ERROR = "error.txt"  # in the folder of a failed cell: the reason and, of a fault, the traceback
SMOKE = "Smoke scale: the figures only show that everything runs, and no claims are judged."


def write(config: Any, cells: list[Cell], workdir: Path) -> tuple[dict[str, Any], list[list[str]]]:
    """Writes the four files. Returns the results and the table, header first."""
    results = collect(config, cells, workdir)
    rows = {
        tuple(row[name] for name in config.grid.column_names): row
        for row in results["rows"] + results["averages"]
    }
    table = table_lines(config.grid, rows, results["given"])
    write_text(workdir / "results.json", json.dumps(results, indent=1) + "\n")
    write_text(workdir / "results.md", markdown(config, results, table))
    write_text(workdir / "report.html", page.render("grid", page_content(config, results, table)))
    with atomic_write(workdir / "curve.png") as temporary:
        plot_grid(config.grid, rows, temporary)
    return results, table


def collect(config: Any, cells: list[Cell], workdir: Path) -> dict[str, Any]:
    """Returns the results of a grid as a JSON object."""
    grid: Grid = config.grid
    runs = {
        cell.name: read_json(workdir / cell.name / "results.json", RESULTS)
        for cell in cells
        if is_finished(workdir / cell.name)
    }
    table, comparable = measured_table(cells, runs)
    keys = list(dict.fromkeys(key for cell in cells for key in cell.tests_by_cell))
    rows = []
    for key in keys:
        row: dict[str, Any] = dict(zip(grid.column_names, key, strict=True))
        cell, published = table.get(key), grid.published.get(key)
        row["measured"] = cell._asdict() if cell else None
        row["published"] = published._asdict() if published else None
        if cell and published:
            row["difference"] = cell.mean - published.mean
            row["intervals_disjoint"] = intervals_disjoint(cell, published)
        rows.append(row)
    return {
        "name": config.name,
        "scale": config.scale,
        "data": config.data or "generated",
        "models": _amounts(cells),
        "given": {
            name: given(cell.config[cell.model], variant)
            for cell in cells
            for variant in ("", *MODELS[cell.model].variants)
            for name in [f"{cell.model}: {variant}" if variant else cell.model]
        },
        "cells": [_state(workdir, cell.name, cell.name in runs) for cell in cells],
        "rows": rows,
        "averages": averages(grid, list(dict.fromkeys(key[2] for key in keys)), table),
        "claims": {} if config.scale == "smoke" else verdicts(grid.claims, comparable),
        "devices": sorted({run["device"] for run in runs.values()}),
        "wall_seconds": round(sum(run["wall_seconds"] for run in runs.values()), 2),
    }


def measured_table(cells: list[Cell], runs: dict[str, dict[str, Any]]) -> tuple[Table, Table]:
    """Returns the table cells that finished runs fill, given their results by name.

    The second table is for comparisons between cells: if all cells have tests of some lengths k in
    common, it counts only those. Released test files have k = 2 on the diagonal of table 2 alone.
    """
    found: defaultdict[Key, list[list[dict[str, Any]]]] = defaultdict(list)
    for cell in cells:
        if cell.name in runs:
            by_test = {(row["model"], row["task"]): row for row in runs[cell.name]["rows"]}
            for key, tests in cell.tests_by_cell.items():
                if available := [by_test[test] for test in tests if test in by_test]:
                    found[key].append(available)
    lengths = [{_length(row) for rows in of_key for row in rows} for of_key in found.values()]
    common = set.intersection(*lengths) if lengths else set()
    table, comparable = {}, {}
    for key, of_key in found.items():
        shared = [[row for row in rows if _length(row) in common] for rows in of_key]
        table[key] = measure(of_key)
        comparable[key] = measure(shared) if all(shared) else table[key]
    return table, comparable


def _length(row: Mapping[str, Any]) -> str:
    """The clause length k of the test T.K of a row, as text."""
    return row["task"].partition(".")[2]


def averages(grid: Grid, series: list[str], table: Table) -> list[dict[str, Any]]:
    """Returns rows of means over cells, once all of them are measured.

    They have no errors: the cells share replicas and are not independent.
    """
    rows = []
    for place, average in grid.averages.items():
        for name in series:
            row: dict[str, Any] = dict(zip(grid.column_names, (*place, name), strict=True))
            row["measured"] = row["published"] = None
            if name in average.published:
                row["published"] = {"mean": average.published[name], "error": None}
            if all((*cell, name) in table for cell in average.cells):
                mean = float(np.mean([table[*cell, name].mean for cell in average.cells]))
                row["measured"] = {"mean": mean, "error": None}
                if row["published"]:
                    row["difference"] = mean - average.published[name]
            rows.append(row)
    return rows


def _amounts(cells: list[Cell]) -> dict[str, dict[str, Any]]:
    """Replicas and length of the training of each model."""
    found = {}
    for cell in cells:
        train = train_settings(cell.config, cell.model)
        seeds = {c.config.seed for c in cells if c.model == cell.model}
        length = f"{train.epochs} epochs" if train.epochs else f"at most {train.steps} steps"
        found[cell.model] = {"replicas": train.replicas * len(seeds), "length": length}
    return found


def failure(folder: Path) -> str:
    """Returns why the cell in this folder failed, one line; empty if it did not."""
    error = folder / ERROR
    return error.read_text(errors="replace").partition("\n")[0] if error.exists() else ""


def _state(workdir: Path, name: str, finished: bool) -> dict[str, str]:
    if finished:
        return {"name": name, "state": "finished"}
    if reason := failure(workdir / name):
        return {"name": name, "state": "failed", "error": reason}
    return {"name": name, "state": "not run"}


def table_lines(grid: Grid, rows: Rows, given: Mapping[str, str]) -> list[list[str]]:
    """Returns the table as text, header first.

    With published accuracies: one row per panel and x, and three columns per series (measured,
    published, difference). Without: one row per panel and series, and one column per x.
    `given` is that of `collect`.
    """
    if not grid.published:
        return _figure_lines(grid, rows, given)
    series = list(dict.fromkeys(key[2] for key in rows))
    columns = [column for name in series for column in (name, "paper", "difference")]
    lines = [[*grid.column_names[:2], *columns, "ceiling", "stories"]]
    for panel, x in dict.fromkeys(key[:2] for key in rows):
        line = [str(panel), str(x)]
        of_series = [rows[panel, x, name] for name in series]
        for row in of_series:
            line += [_accuracy(row["measured"]), _accuracy(row["published"]), _difference(row)]
        lines.append([*line, *_ceiling_and_stories(of_series)])
    return lines


def _figure_lines(grid: Grid, rows: Rows, given: Mapping[str, str]) -> list[list[str]]:
    panel_name, x_name, series_name = grid.column_names
    panels, xs, series = (list(dict.fromkeys(key[part] for key in rows)) for part in range(3))
    lines = [[panel_name, series_name, "given", *(f"{x_name} = {x}" for x in xs)]]
    for panel in panels:
        of_panel: list[list[str]] = []
        published = [r.row for r in grid.references if r.panel == panel]
        for name in (*series, ""):  # "": published rows of models that are no series
            if name:
                cells = [_accuracy(rows[panel, x, name]["measured"]) for x in xs]
                of_panel.append([name, given.get(name, given.get(panel, "")), *cells])
            for row in published:
                if name == (row.model if row.model in series else ""):
                    published_cells = (row.by_k.get(x) for x in xs)
                    texts = [_accuracy(cell._asdict()) if cell else "" for cell in published_cells]
                    of_panel.append([row.label, row.given, *texts])
        tests = [_ceiling_and_stories([rows[panel, x, name] for name in series]) for x in xs]
        of_panel.append(["ceiling", "", *(ceiling for ceiling, _ in tests)])
        of_panel.append(["stories", "", *(stories for _, stories in tests)])
        lines += [[str(panel), *line] for line in of_panel]
    return lines


def _accuracy(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    error = "" if cell["error"] is None else f" ±{format_fraction(cell['error'])}"
    return format_fraction(cell["mean"]) + error


def _difference(row: dict[str, Any]) -> str:
    if "difference" not in row:
        return ""
    return format_fraction(row["difference"], "+") + (MARK if row.get("intervals_disjoint") else "")


def _ceiling_and_stories(rows: list[dict[str, Any]]) -> tuple[str, str]:
    """Ceiling and number of stories, which all series share."""
    for row in rows:
        if row["measured"] and "ceiling" in row["measured"]:
            return format_fraction(row["measured"]["ceiling"]), str(row["measured"]["stories"])
    return "", ""


def claims_text(results: dict[str, Any]) -> str:
    """Returns one paragraph per question, or the reason why no claims were judged."""
    if results["scale"] == "smoke":
        return SMOKE
    paragraphs = []
    for question, verdict in results["claims"].items():
        parts = [f"*{word}*: {'; '.join(claims)}" for word, claims in verdict.items() if claims]
        paragraphs.append(f"**{question}.** Claims of the paper: " + ". ".join(parts) + ".")
    return "\n\n".join(paragraphs)


def summary(config: Any, results: dict[str, Any]) -> list[str]:
    """Returns paragraphs on data, models, hardware and the number of finished runs."""
    states = [cell["state"] for cell in results["cells"]]
    by_amount: defaultdict[str, list[str]] = defaultdict(list)
    for model, amount in results["models"].items():
        knowledge = f"given {results['given'][model]}"
        by_amount[f"replicas {amount['replicas']}, {amount['length']}, {knowledge}"].append(model)
    amounts = "; ".join(f"{', '.join(models)}: {amount}" for amount, models in by_amount.items())
    data = f"Data: {results['data']}. {amounts}."
    missing = [model for model in config.grid.models if model not in results["models"]]
    if missing:
        source = " of the paper" if config.grid.claims else ""
        data += f" Models{source} that were not run: {', '.join(missing)}."
    devices = f" on {', '.join(results['devices'])}" if results["devices"] else ""
    runs = (
        f"{states.count('finished')} of {len(states)} runs are finished, {states.count('failed')} "
        f"failed; training took {results['wall_seconds']:.0f} s{devices}."
    )
    return [*([SMOKE] if results["scale"] == "smoke" else []), data, runs]


def legend(config: Any) -> str:
    """Returns an explanation of the table."""
    grid: Grid = config.grid
    epoch = ", at the epoch with the best dev accuracy" if config.scale == "paper" else ""
    text = f"Accuracy with its standard error over replicas{epoch}."
    if grid.published:
        text += (
            f" {MARK}: the 95 % intervals (over test stories and replicas) of the measured and "
            "published accuracy do not overlap."
        )
    if grid.averages:
        text += " Averages are shown once all of their cells are measured, without intervals."
    return f"{text} {grid.note}".rstrip()


def sources(grid: Grid) -> list[str]:
    """Returns one line per source of the references: their names, and the source."""
    names: defaultdict[str, dict[str, None]] = defaultdict(dict)  # dictionaries as ordered sets
    for reference in grid.references:
        names[str(reference.row.source)][reference.row.label] = None
    return [f"{'; '.join(found)}: {source}" for source, found in names.items()]


def markdown(config: Any, results: dict[str, Any], table: list[list[str]]) -> str:
    """Returns the text of `results.md`."""
    found = sources(config.grid)
    failed = [f"- {c['name']}: {c['error']}" for c in results["cells"] if c["state"] == "failed"]
    paragraphs = [
        f"# {results['name']}, scale {results['scale']}",
        *summary(config, results),
        *(["Failed:", "\n".join(failed)] if failed else []),
        legend(config),
        "\n".join(markdown_table(table)),
        *(["Sources:", "\n".join(f"- {source}" for source in found)] if found else []),
        *([claims_text(results)] if results["claims"] else []),
        "![accuracies](curve.png)",
    ]
    return "\n\n".join(paragraphs) + "\n"


def page_content(config: Any, results: dict[str, Any], table: list[list[str]]) -> dict[str, Any]:
    """Returns the content of `report.html` as a JSON object: the results and their explanation."""
    grid: Grid = config.grid
    return {
        **{name: results[name] for name in ("rows", "averages", "claims", "cells")},
        "title": f"{results['name']}, scale {results['scale']}",
        "summary": " ".join(summary(config, results)),
        "legend": legend(config),
        "mark": MARK,
        "columns": grid.column_names,
        "references": [
            {
                "panel": panel,
                "name": row.label,
                "series": row.model,
                "shown": shown,
                "source": str(row.source),
                "values": {x: cell._asdict() for x, cell in row.by_k.items()},
            }
            for panel, row, shown in grid.references
        ],
        "sources": sources(grid),
        "table": table,
    }


def check_folder(workdir: Path, name: str) -> None:
    """Raises InputError if a folder holds a single run, or the report of another table."""
    path = workdir / "results.json"
    if (workdir / "config.json").exists():
        raise InputError(f"{workdir}: holds a single run, expected another folder")
    if path.exists() and (other := read_json(path).get("name")) != name:
        raise InputError(f"{workdir}: holds the report of {other}, expected another folder")


def write_counts(name: str, rows: Sequence[tuple[str, float, float]], workdir: Path) -> str:
    """Writes `results.json` and `results.md` of a table of (name, measured value, published value).

    Returns the table as text.
    """
    check_folder(workdir, name)
    table = [["", "measured", "paper", "difference"]]
    table += [[label, _count(a), _count(b), _count(a - b)] for label, a, b in rows]
    found = [{"name": label, "measured": a, "published": b} for label, a, b in rows]
    write_text(workdir / "results.json", json.dumps({"name": name, "rows": found}, indent=1))
    write_text(workdir / "results.md", "\n".join([f"# {name}", "", *markdown_table(table), ""]))
    return plain_text(table)


def _count(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:z.4f}"
