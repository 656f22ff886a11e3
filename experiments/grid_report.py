"""What a grid reports of its finished runs: `results.json`, `results.md`, `curve.png`."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from clutrr_jax.command import writing
from clutrr_jax.report.curve import COLOURS, MARKERS
from clutrr_jax.report.results import number, plain_text
from clutrr_jax.run import settings
from experiments.claims import verdicts
from experiments.grid import Cell, Counts, Grid
from experiments.measured import (
    Answers,
    Key,
    Measured,
    Table,
    answers,
    apart,
    is_finished,
    measured,
    published_interval,
)
from experiments.published import Share

MARK = "*"  # at a difference: the two intervals do not meet
ERROR = "error.txt"  # in the folder of a cell that failed


def fill(cells: list[Cell], workdir: Path) -> Table:
    """The table of all cells whose runs are finished."""
    found: defaultdict[Key, list[Answers]] = defaultdict(list)
    for cell in cells:
        if is_finished(workdir / cell.name):
            for key, tests in cell.reads.items():
                said = answers(workdir / cell.name, cell.model, tests)
                if said:
                    found[key].append(said)
    return Table({key: measured(runs) for key, runs in found.items()})


def collect(config: Any, cells: list[Cell], table: Table, workdir: Path) -> dict[str, Any]:
    """The results of a grid as JSON objects; what is not there yet is left out."""
    grid: Grid = config.grid
    runs = [workdir / cell.name for cell in cells if is_finished(workdir / cell.name)]
    done = [json.loads((run / "results.json").read_text()) for run in runs]
    rows = []
    for key in _keys(cells):
        row: dict[str, Any] = dict(zip(grid.heads, key, strict=True))
        cell, share = table.get(key), grid.published.get(key)
        row["measured"] = cell._asdict() if cell else None
        row["published"] = share._asdict() if share else None
        if cell and share:
            row["difference"] = cell.mean - share.mean
            row["apart"] = apart(cell, share)
        rows.append(row)
    return {
        "name": config.name,
        "scale": config.scale,
        "data": config.data or "generated",
        "models": _models(cells),
        "cells": [_state(workdir, cell) for cell in cells],
        "rows": rows,
        "claims": verdicts(grid.claims, table),
        "devices": sorted({run["device"] for run in done}),
        "wall_seconds": round(sum(run["wall_seconds"] for run in done), 2),
    }


def _keys(cells: list[Cell]) -> list[Key]:
    return list(dict.fromkeys(key for cell in cells for key in cell.reads))


def _models(cells: list[Cell]) -> dict[str, dict[str, int]]:
    """How much each model is trained."""
    found = {}
    for cell in cells:
        train = settings(cell.config, cell.model)
        seeds = {c.config.seed for c in cells if c.model == cell.model}
        found[cell.model] = {"replicas": train.replicas * len(seeds), "epochs": train.epochs}
    return found


def _state(workdir: Path, cell: Cell) -> dict[str, str]:
    error = workdir / cell.name / ERROR
    if is_finished(workdir / cell.name):
        return {"name": cell.name, "state": "finished"}
    if error.exists():
        return {"name": cell.name, "state": "failed", "error": error.read_text().strip()}
    return {"name": cell.name, "state": "not run"}


def _share(mean: float, error: float | None) -> str:
    return number(mean) + ("" if error is None else f" ±{number(error)}")


def _cell(cell: Measured | None) -> str:
    return _share(cell.mean, cell.error) if cell else ""


def _difference(cell: Measured | None, share: Share | None) -> str:
    if not cell or not share:
        return ""
    gap = cell.mean - share.mean
    return ("+" if gap >= 0 else "-") + number(abs(gap)) + (MARK if apart(cell, share) else "")


def lines(grid: Grid, cells: list[Cell], table: Table) -> list[list[str]]:
    """The table, head first. Beside published figures: a row for each panel and x, and for each
    series what is measured, published, and the difference. Else: a row for each panel and series,
    and a column for each x."""
    panels, xs, series = (list(dict.fromkeys(part)) for part in zip(*_keys(cells), strict=True))
    if not grid.published:
        return _figure(grid, table, panels, xs, series)
    head = [*grid.heads[:2]]
    for name in series:
        head += [name, "paper", "difference"]
    found = [[*head, "ceiling", "stories"]]
    for panel in panels:
        for x in xs:
            row = [str(panel), str(x)]
            for name in series:
                cell, share = table.get((panel, x, name)), grid.published.get((panel, x, name))
                row += [_cell(cell), _share(*share) if share else "", _difference(cell, share)]
            found.append([*row, *_of_tests(table, panel, x)])
    return found


def _figure(grid: Grid, table: Table, panels: list, xs: list, series: list) -> list[list[str]]:
    found = [[grid.heads[0], grid.heads[2], *(f"{grid.heads[1]} = {x}" for x in xs)]]
    for panel in panels:
        for name in series:
            found.append([str(panel), name, *(_cell(table.get((panel, x, name))) for x in xs)])
        for (place, name), shares in grid.references.items():
            if place == panel:
                cells = [_share(*shares[x]) if x in shares else "" for x in xs]
                found.append([str(panel), name, *cells])
        of_tests = [_of_tests(table, panel, x) for x in xs]
        found.append([str(panel), "ceiling", *(ceiling for ceiling, _ in of_tests)])
        found.append([str(panel), "stories", *(count for _, count in of_tests)])
    return found


def _of_tests(table: Table, panel: Any, x: Any) -> tuple[str, str]:
    """Ceiling and number of stories, which are the same for all series."""
    for key, cell in table.items():
        if key[:2] == (panel, x):
            return number(cell.ceiling), str(cell.stories)
    return "", ""


def claims_text(claims: dict[str, dict[str, list[str]]]) -> str:
    """One paragraph for each question."""
    paragraphs = []
    for question, verdict in claims.items():
        said = [f"*{word}*: {'; '.join(some)}" for word, some in verdict.items() if some]
        paragraphs.append(f"**{question}.** Of the paper's claims are " + ". ".join(said) + ".")
    return "\n\n".join(paragraphs)


def markdown(config: Any, results: dict[str, Any], table: list[list[str]]) -> str:
    """The page `results.md`."""
    rows = ["| " + " | ".join(line) + " |" for line in table]
    rows.insert(1, "|---" * len(table[0]) + "|")
    states = [cell["state"] for cell in results["cells"]]
    amounts = "; ".join(
        f"{model}: replicas {m['replicas']}, epochs {m['epochs']}"
        for model, m in results["models"].items()
    )
    missing = [model for model in config.grid.models if model not in results["models"]]
    failed = [f"- {c['name']}: {c['error']}" for c in results["cells"] if c["state"] == "failed"]
    legend = (
        "Accuracy with its standard error over replicas, of the epoch with the best dev accuracy."
    )
    if config.grid.published:
        legend += f" {MARK}: the 95 % intervals of this and of the paper's figure do not meet."
    return "\n".join([
        f"# {results['name']}, scale {results['scale']}",
        "",
        *(["Smoke scale: these figures show that it runs, and nothing else.", ""]
          if results["scale"] == "smoke" else []),
        f"Data: {results['data']}. {amounts}." +
        (f" Models of the paper that are not run: {', '.join(missing)}." if missing else ""),
        "",
        f"{states.count('finished')} of {len(states)} runs are finished, {states.count('failed')} "
        f"failed; training took {results['wall_seconds']:.0f} s"
        + (f" on {', '.join(results['devices'])}." if results["devices"] else "."),
        "",
        *(["Failed:", "", *failed, ""] if failed else []),
        legend,
        "",
        *rows,
        "",
        claims_text(results["claims"]),
        "",
        "![accuracies](curve.png)",
        "",
    ])  # fmt: skip


def draw(grid: Grid, cells: list[Cell], table: Table, path: Path) -> None:
    """A panel for each first part of the keys: measured lines with their 95 % intervals, the
    published ones hollow beside them, other references dotted."""
    panels, xs, series = (list(dict.fromkeys(part)) for part in zip(*_keys(cells), strict=True))
    place = np.arange(len(xs), dtype=float)
    is_curve = not isinstance(xs[0], str)
    size = (1.5 + 3.4 * len(panels), 3.8)
    figure, row = plt.subplots(
        1, len(panels), figsize=size, sharey=True, squeeze=False, layout="constrained"
    )
    for panel, axes in zip(panels, row[0], strict=True):
        for i, name in enumerate(series):
            style: dict[str, Any] = {
                "color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)], "ms": 4,
                "ls": "-" if is_curve else "none",
            }  # fmt: skip
            aside = 0 if is_curve else 0.7 * (i + 0.5) / len(series) - 0.35
            some = [(p + aside, table[panel, x, name]) for p, x in zip(place, xs, strict=True)
                    if (panel, x, name) in table]  # fmt: skip
            if some:
                at = [p for p, _ in some]
                mean = np.array([cell.mean for _, cell in some])
                ends = np.array([(cell.low, cell.high) for _, cell in some]).T
                bars = np.abs(ends - mean)
                axes.errorbar(at, mean, bars, label=name, capsize=2, lw=1.2, **style)
            for p, x in zip(place, xs, strict=True):
                share = grid.published.get((panel, x, name))
                if share:
                    beside = p + aside + 0.08
                    axes.vlines(beside, *published_interval(share), color=style["color"], lw=0.6)
                    axes.plot(beside, share.mean, mfc="white", **style)
        for (whose, name), shares in grid.references.items():
            if whose == panel:
                at = [p for p, x in zip(place, xs, strict=True) if x in shares]
                means = [shares[x].mean for x in xs if x in shares]
                axes.plot(at, means, ":", lw=1, color="black" if "people" in name else "grey",
                          label=name)  # fmt: skip
        axes.set_xticks(place, [str(x) for x in xs], rotation=0 if is_curve else 30)
        axes.set(xlim=(-0.5, len(xs) - 0.5), ylim=(0, 1.03))
        axes.set(title=f"{grid.heads[0]}: {panel}", xlabel=grid.heads[1])
        axes.grid(alpha=0.25)
    row[0][0].set_ylabel("accuracy" + (" (hollow: paper)" if grid.published else ""))
    named = {
        name: handle
        for axes in row[0]
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if named:
        figure.legend(
            named.values(), named.keys(), fontsize=8, loc="outside right upper", frameon=False
        )
    figure.savefig(path, dpi=130)
    plt.close(figure)


def write(config: Any, cells: list[Cell], workdir: Path) -> tuple[dict[str, Any], list[list[str]]]:
    """All three files; returns the results and the table."""
    table = fill(cells, workdir)
    results = collect(config, cells, table, workdir)
    shown = lines(config.grid, cells, table)
    with writing(workdir) as place:
        (place / "results.json").write_text(json.dumps(results, indent=1) + "\n")
        (place / "results.md").write_text(markdown(config, results, shown))
        draw(config.grid, cells, table, place / "curve.png")
    return results, shown


def write_counts(name: str, counts: Counts, workdir: Path) -> str:
    """`results.json` and `results.md` of a table without models; returns the table as text."""
    rows = counts.rows()
    head = ["", "here", "paper", "difference"]
    table = [head, *([label, _count(a), _count(b), _count(a - b)] for label, a, b in rows)]
    cells = ["| " + " | ".join(line) + " |" for line in table]
    cells.insert(1, "|---" * len(head) + "|")
    found = [{"name": label, "measured": a, "published": b} for label, a, b in rows]
    with writing(workdir) as place:
        (place / "results.json").write_text(json.dumps({"name": name, "rows": found}, indent=1))
        (place / "results.md").write_text("\n".join([f"# {name}", "", *cells, ""]))
    return plain_text(table)


def _count(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
