"""The picture of a grid, `curve.png`: a panel for each first part of the keys."""

from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.report.curve import style
from experiments.grid.definition import Grid
from experiments.grid.measured import published_interval
from experiments.grid.published import Accuracy


def draw(grid: Grid, results: dict[str, Any], path: Path) -> None:
    """Measured lines with their 95 % intervals, the published ones hollow beside them, other
    references dotted; and a panel of areas for averages over panels.

    Args:
      results: of `grid_report.collect`.
    """
    from matplotlib.figure import Figure  # as in clutrr_jax/report/curve.py

    rows = {tuple(row[head] for head in grid.heads): row
            for row in results["rows"] + results["averages"]}  # fmt: skip
    panels, xs, series = (list(dict.fromkeys(row[head] for row in results["rows"]))
                          for head in grid.heads)  # fmt: skip
    panels += dict.fromkeys(panel for panel, x in grid.averages if x in xs)
    place = np.arange(len(xs), dtype=float)
    is_curve = not isinstance(xs[0], str)
    size = (1.5 + 3.4 * len(panels), 3.8)
    figure = Figure(figsize=size, layout="constrained")
    axes_row = figure.subplots(1, len(panels), sharey=True, squeeze=False)
    for panel, axes in zip(panels, axes_row[0], strict=True):
        for i, name in enumerate(series):
            look = style(i) | {"ms": 4} | ({} if is_curve else {"ls": "none"})
            aside = 0 if is_curve else 0.7 * (i + 0.5) / len(series) - 0.35
            line = [(p + aside, rows[panel, x, name]) for p, x in zip(place, xs, strict=True)]
            _measured(axes, line, name, look)
            _published(axes, line, look)
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
    axes_row[0][0].set_ylabel("accuracy" + (" (hollow: paper)" if grid.published else ""))
    named = {
        name: handle
        for axes in axes_row[0]
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if named:
        figure.legend(
            named.values(), named.keys(), fontsize=8, loc="outside right upper", frameon=False
        )
    figure.savefig(path, dpi=130)


def _measured(axes: Any, line: list[tuple[float, dict]], name: str, look: dict[str, Any]) -> None:
    some = [(at, row["measured"]) for at, row in line if row["measured"]]
    if not some:
        return
    at = [at for at, _ in some]
    mean = np.array([cell["mean"] for _, cell in some])
    if "low" in some[0][1]:
        bars = np.abs(np.array([(cell["low"], cell["high"]) for _, cell in some]).T - mean)
        axes.errorbar(at, mean, bars, label=name, capsize=2, lw=1.2, **look)
    else:
        axes.plot(at, mean, label=name, lw=1.2, **look)
        axes.fill_between(at, 0, mean, color=look["color"], alpha=0.15, lw=0)


def _published(axes: Any, line: list[tuple[float, dict]], look: dict[str, Any]) -> None:
    for at, row in line:
        if row["published"]:
            share = Accuracy(**row["published"])
            axes.vlines(at + 0.08, *published_interval(share), color=look["color"], lw=0.6)
            axes.plot(at + 0.08, share.mean, mfc="white", **look)
