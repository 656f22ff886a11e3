"""What a grid reports of its finished runs: `report.html`, `results.md`, `results.json` and
`curve.png`."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from clutrr_jax.report import page
from clutrr_jax.report.results import markdown_table, number, plain_text
from clutrr_jax.training.settings import train_settings
from experiments.grid import plot
from experiments.grid.claims import verdicts
from experiments.grid.definition import Cell, Counts, Grid
from experiments.grid.measured import (
    Answers,
    Key,
    Table,
    answers,
    average,
    intervals_disjoint,
    is_finished,
    measured,
    run_results,
    together,
)
from generator.files import atomic_write, write_text

MARK = "*"  # at a difference: the two intervals do not meet
ERROR = "error.txt"  # in the folder of a cell that failed


def fill(cells: list[Cell], workdir: Path) -> Table:
    """The table of all cells whose runs are finished."""
    found: defaultdict[Key, list[Answers]] = defaultdict(list)
    for cell in cells:
        if is_finished(workdir / cell.name):
            said = answers(workdir / cell.name, cell.model)
            for key, tests in cell.reads.items():
                if some := [said[test] for test in tests if test in said]:
                    found[key].append(together(some))
    return Table({key: measured(runs) for key, runs in found.items()})


def collect(config: Any, cells: list[Cell], table: Table, workdir: Path) -> dict[str, Any]:
    """The results of a grid as JSON objects; what is not there yet is left out."""
    grid: Grid = config.grid
    runs = [workdir / cell.name for cell in cells if is_finished(workdir / cell.name)]
    done = [run_results(run) for run in runs]
    rows = []
    for key in _keys(cells):
        row: dict[str, Any] = dict(zip(grid.heads, key, strict=True))
        cell, share = table.get(key), grid.published.get(key)
        row["measured"] = cell._asdict() if cell else None
        row["published"] = share._asdict() if share else None
        if cell and share:
            row["difference"] = cell.mean - share.mean
            row["apart"] = intervals_disjoint(cell, share)
        rows.append(row)
    return {
        "name": config.name,
        "scale": config.scale,
        "data": config.data or "generated",
        "models": _models(cells),
        "cells": [_state(workdir, cell) for cell in cells],
        "rows": rows,
        "averages": averages(grid, axes(cells)[2], table),
        "claims": verdicts(grid.claims, table),
        "devices": sorted({run["device"] for run in done}),
        "wall_seconds": round(sum(run["wall_seconds"] for run in done), 2),
    }


def averages(grid: Grid, series: list[str], table: Table) -> list[dict[str, Any]]:
    """Rows of the means. Without errors, as the replicas of a training are in several cells."""
    rows = []
    for place, mean in grid.averages.items():
        for name in series:
            row: dict[str, Any] = dict(zip(grid.heads, (*place, name), strict=True))
            here, paper = average(table, [(*p, name) for p in mean.of]), mean.published.get(name)
            row["measured"] = None if here is None else {"mean": here, "error": None}
            row["published"] = None if paper is None else {"mean": paper, "error": None}
            if here is not None and paper is not None:
                row["difference"] = here - paper
            rows.append(row)
    return rows


def axes(cells: list[Cell]) -> tuple[list, list, list]:
    """All panels, all x and all series of the table."""
    panels, xs, series = (list(dict.fromkeys(part)) for part in zip(*_keys(cells), strict=True))
    return panels, xs, series


def _keys(cells: list[Cell]) -> list[Key]:
    return list(dict.fromkeys(key for cell in cells for key in cell.reads))


def _models(cells: list[Cell]) -> dict[str, dict[str, Any]]:
    """How much each model is trained: replicas, and the number of epochs, of each training where it
    is not the same."""
    found: dict[str, dict[str, Any]] = {}
    for cell in cells:
        train = train_settings(cell.config, cell.model)
        seeds = {c.config.seed for c in cells if c.model == cell.model}
        amount = found.setdefault(cell.model, {"epochs": []})
        amount["replicas"] = train.replicas * len(seeds)
        if train.epochs not in amount["epochs"]:
            amount["epochs"].append(train.epochs)
    return found


def _state(workdir: Path, cell: Cell) -> dict[str, str]:
    error = workdir / cell.name / ERROR
    if is_finished(workdir / cell.name):
        return {"name": cell.name, "state": "finished"}
    if error.exists():
        return {
            "name": cell.name,
            "state": "failed",
            "error": error.read_text(errors="replace").strip(),
        }
    return {"name": cell.name, "state": "not run"}


def _share(share: dict[str, Any] | None) -> str:
    if share is None:
        return ""
    return number(share["mean"]) + ("" if share["error"] is None else f" ±{number(share['error'])}")


def _difference(row: dict[str, Any]) -> str:
    if "difference" not in row:
        return ""
    return number(row["difference"], "+") + (MARK if row.get("apart") else "")


def lines(grid: Grid, results: dict[str, Any]) -> list[list[str]]:
    """The table, head first. Beside published figures: a row for each panel and x, and for each
    series what is measured, published, and the difference. Else: a row for each panel and series,
    and a column for each x."""
    rows = {tuple(row[head] for head in grid.heads): row
            for row in results["rows"] + results["averages"]}  # fmt: skip
    series = list(dict.fromkeys(name for _, _, name in rows))
    if not grid.published:
        return _figure(grid, rows, series)
    head = [*grid.heads[:2]]
    for name in series:
        head += [name, "paper", "difference"]
    found = [[*head, "ceiling", "stories"]]
    for panel, x in dict.fromkeys(key[:2] for key in rows):
        some = [rows[panel, x, name] for name in series]
        line = [str(panel), str(x)]
        for row in some:
            line += [_share(row["measured"]), _share(row["published"]), _difference(row)]
        found.append([*line, *_of_tests(some)])
    return found


def _figure(grid: Grid, rows: dict[Key, dict[str, Any]], series: list[str]) -> list[list[str]]:
    panels, xs = (list(dict.fromkeys(key[place] for key in rows)) for place in (0, 1))
    found = [[grid.heads[0], grid.heads[2], *(f"{grid.heads[1]} = {x}" for x in xs)]]
    for panel in panels:
        for name in series:
            found.append(
                [str(panel), name, *(_share(rows[panel, x, name]["measured"]) for x in xs)]
            )
        for (place, name), shares in grid.references.items():
            if place == panel:
                cells = [_share(shares[x]._asdict()) if x in shares else "" for x in xs]
                found.append([str(panel), name, *cells])
        of_tests = [_of_tests([rows[panel, x, name] for name in series]) for x in xs]
        found.append([str(panel), "ceiling", *(ceiling for ceiling, _ in of_tests)])
        found.append([str(panel), "stories", *(count for _, count in of_tests)])
    return found


def _of_tests(rows: list[dict[str, Any]]) -> tuple[str, str]:
    """Ceiling and number of stories, which are the same for all series."""
    for row in rows:
        if row["measured"] and "ceiling" in row["measured"]:
            return number(row["measured"]["ceiling"]), str(row["measured"]["stories"])
    return "", ""


def claims_text(claims: dict[str, dict[str, list[str]]]) -> str:
    """One paragraph for each question."""
    paragraphs = []
    for question, verdict in claims.items():
        said = [f"*{word}*: {'; '.join(some)}" for word, some in verdict.items() if some]
        paragraphs.append(f"**{question}.** Of the paper's claims are " + ". ".join(said) + ".")
    return "\n\n".join(paragraphs)


def summary(config: Any, results: dict[str, Any]) -> list[str]:
    """What was run, and how much of it is there: one paragraph each."""
    states = [cell["state"] for cell in results["cells"]]
    of: defaultdict[str, list[str]] = defaultdict(list)
    for model, amount in results["models"].items():
        epochs = " / ".join(map(str, amount["epochs"]))
        of[f"replicas {amount['replicas']}, epochs {epochs}"].append(model)
    amounts = "; ".join(f"{', '.join(models)}: {amount}" for amount, models in of.items())
    of_paper = "of the paper " if config.grid.claims else ""
    missing = [model for model in config.grid.models if model not in results["models"]]
    return [
        *(["Smoke scale: these figures show that it runs, and nothing else."]
          if results["scale"] == "smoke" else []),
        f"Data: {results['data']}. {amounts}." +
        (f" Models {of_paper}that are not run: {', '.join(missing)}." if missing else ""),
        f"{states.count('finished')} of {len(states)} runs are finished, {states.count('failed')} "
        f"failed; training took {results['wall_seconds']:.0f} s"
        + (f" on {', '.join(results['devices'])}." if results["devices"] else "."),
    ]  # fmt: skip


def legend(grid: Grid) -> str:
    """How to read the table."""
    text = (
        "Accuracy with its standard error over replicas, of the epoch with the best dev accuracy."
    )
    if grid.published:
        text += f" {MARK}: the 95 % intervals of this and of the paper's figure do not meet."
    if grid.averages:
        text += " Averages are given without intervals, once all of their cells are measured."
    return f"{text} {grid.note}".rstrip()


def markdown(config: Any, results: dict[str, Any], table: list[list[str]]) -> str:
    """The page `results.md`."""
    failed = [f"- {c['name']}: {c['error']}" for c in results["cells"] if c["state"] == "failed"]
    return "\n".join([
        f"# {results['name']}, scale {results['scale']}",
        "",
        *(line for paragraph in summary(config, results) for line in (paragraph, "")),
        *(["Failed:", "", *failed, ""] if failed else []),
        legend(config.grid),
        "",
        *markdown_table(table),
        "",
        claims_text(results["claims"]),
        "",
        "![accuracies](curve.png)",
        "",
    ])  # fmt: skip


def page_content(config: Any, results: dict[str, Any], table: list[list[str]]) -> dict[str, Any]:
    """All that the page `report.html` draws, as JSON objects: the results, and how to read them."""
    grid: Grid = config.grid
    return {
        "title": f"{results['name']}, scale {results['scale']}",
        "facts": " ".join(summary(config, results)),
        "legend": legend(grid),
        "mark": MARK,
        "heads": grid.heads,
        "rows": results["rows"],
        "averages": results["averages"],
        "references": [
            {"panel": panel, "name": name, "shares": {x: share.mean for x, share in shares.items()}}
            for (panel, name), shares in grid.references.items()
        ],
        "claims": results["claims"],
        "cells": results["cells"],
        "table": table,
    }


def write(config: Any, cells: list[Cell], workdir: Path) -> tuple[dict[str, Any], list[list[str]]]:
    """All four files; returns the results and the table."""
    table = fill(cells, workdir)
    results = collect(config, cells, table, workdir)
    shown = lines(config.grid, results)
    write_text(workdir / "results.json", json.dumps(results, indent=1) + "\n")
    write_text(workdir / "results.md", markdown(config, results, shown))
    content = page_content(config, results, shown)
    write_text(workdir / "report.html", page.render("grid", content))
    with atomic_write(workdir / "curve.png") as part:
        plot.draw(config.grid, results, part)
    return results, shown


def write_counts(name: str, counts: Counts, workdir: Path) -> str:
    """`results.json` and `results.md` of a table without models; returns the table as text."""
    rows = counts.rows()
    head = ["", "here", "paper", "difference"]
    table = [head, *([label, _count(a), _count(b), _count(a - b)] for label, a, b in rows)]
    found = [{"name": label, "measured": a, "published": b} for label, a, b in rows]
    write_text(workdir / "results.json", json.dumps({"name": name, "rows": found}, indent=1))
    write_text(workdir / "results.md", "\n".join([f"# {name}", "", *markdown_table(table), ""]))
    return plain_text(table)


def _count(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:z.4f}"
