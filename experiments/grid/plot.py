"""The plot of a grid, `curve.png`: one panel per first part of the keys."""

from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.report.plots import Figure, line_style
from experiments.grid.definition import Grid
from experiments.grid.measured import Key, published_interval
from experiments.published.clutrr import Accuracy

Rows = dict[Key, dict[str, Any]]  # rows and averages of the results
Points = list[tuple[float, dict[str, Any]]]  # (position on the x axis, row)


def plot_grid(grid: Grid, rows: Rows, path: Path) -> None:
    """Plots measured accuracies with 95 % intervals, published ones hollow, references dotted.

    References that are not shown by default are left out. Averages over panels have a panel of
    filled curves.
    """
    cells = [key for key in rows if key[:2] not in grid.averages]
    panels, xs, series = (list(dict.fromkeys(key[part] for key in cells)) for part in range(3))
    panels += dict.fromkeys(panel for panel, x in grid.averages if x in xs)
    is_curve = not isinstance(xs[0], str)
    figure = Figure(figsize=(1.5 + 3.4 * len(panels), 3.8), layout="constrained")
    all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for panel, axes in zip(panels, all_axes, strict=True):
        for i, name in enumerate(series):
            style = line_style(i) | {"ms": 4} | ({} if is_curve else {"ls": "none"})
            # Without lines, the markers of the series are placed side by side.
            offset = 0 if is_curve else 0.7 * (i + 0.5) / len(series) - 0.35
            points = [(at + offset, rows[panel, x, name]) for at, x in enumerate(xs)]
            _plot_measured(axes, points, name, style)
            _plot_published(axes, points, style)
        for reference in grid.references:
            if reference.panel == panel and reference.shown:
                by_x, label = reference.row.by_k, reference.row.label
                at = [i for i, x in enumerate(xs) if x in by_x]
                means = [by_x[x].mean for x in xs if x in by_x]
                color = "black" if "people" in label else "grey"
                axes.plot(at, means, ":", lw=1, color=color, label=label)
        axes.set_xticks(range(len(xs)), [str(x) for x in xs], rotation=0 if is_curve else 30)
        axes.set(xlim=(-0.5, len(xs) - 0.5), ylim=(0, 1.03), xlabel=grid.column_names[1])
        axes.set_title(f"{grid.column_names[0]}: {panel}")
        axes.grid(alpha=0.25)
    all_axes[0].set_ylabel("accuracy" + (" (hollow: paper)" if grid.published else ""))
    labels = [axes.get_legend_handles_labels() for axes in all_axes]
    handles = {name: handle for found in labels for handle, name in zip(*found, strict=True)}
    if handles:
        figure.legend(
            handles.values(), handles.keys(), loc="outside right upper", frameon=False, fontsize=8
        )
    figure.savefig(path, dpi=130, format="png")


def _plot_measured(axes: Any, points: Points, name: str, style: dict[str, Any]) -> None:
    measured = [(at, row["measured"]) for at, row in points if row["measured"]]
    if not measured:
        return
    at = [at for at, _ in measured]
    mean = np.array([cell["mean"] for _, cell in measured])
    if "low" in measured[0][1]:
        bars = np.abs(np.array([(cell["low"], cell["high"]) for _, cell in measured]).T - mean)
        axes.errorbar(at, mean, bars, label=name, capsize=2, lw=1.2, **style)
    else:
        axes.plot(at, mean, label=name, lw=1.2, **style)
        axes.fill_between(at, 0, mean, color=style["color"], alpha=0.15, lw=0)


def _plot_published(axes: Any, points: Points, style: dict[str, Any]) -> None:
    for at, row in points:
        if row["published"]:
            published = Accuracy(**row["published"])
            axes.vlines(at + 0.08, *published_interval(published), color=style["color"], lw=0.6)
            axes.plot(at + 0.08, published.mean, mfc="white", **style)
