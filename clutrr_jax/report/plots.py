"""Plots: accuracy against clause length, the main figure of CLUTRR."""

from io import BytesIO
from typing import Any

import matplotlib.figure
import numpy as np

from clutrr_jax.report.tables import column_names, count_replicas

# The palette of Okabe and Ito, which is safe for color-blind readers.
COLORS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8B6B2E",
)  # fmt: skip
MARKERS = "os^Dv<>PX"  # one more than the colors, so that pairs repeat only after 72 series
LINE_STYLES = ("-", "--", "-.", ":")


def line_style(index: int) -> dict[str, Any]:
    """Matplotlib color, marker and line style of the series with the given index."""
    return {
        "color": COLORS[index % len(COLORS)],
        "marker": MARKERS[index % len(MARKERS)],
        "ls": LINE_STYLES[index // len(COLORS) % len(LINE_STYLES)],
    }


class Figure(matplotlib.figure.Figure):
    """A figure that notebooks display, without the global state of pyplot."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def plot_curve(results: dict[str, Any]) -> Figure:
    """Plots the accuracy of each model with a band of one standard error, the ceiling and the
    majority label, from "rows", "models" and "data" of `clutrr_jax.report.results.collect`.
    """
    rows = results["rows"]
    columns = column_names(rows)
    by_length = all(name.startswith("k=") for name in columns.values())
    x = np.array([int(n[2:]) for n in columns.values()]) if by_length else np.arange(len(columns))
    figure = Figure(figsize=(7.2, 4.4), dpi=130, layout="constrained")
    axes = figure.subplots()
    for i, model in enumerate([*results["models"], *results.get("added", ())]):
        points = [row for row in rows if row["model"] == model]
        accuracy = np.array([row["accuracy"] for row in points])
        stderr = np.array([row["stderr"] or 0.0 for row in points])
        label = f"{model} ({count_replicas(points[0]['replicas'])})"
        style = line_style(i)
        axes.plot(x, accuracy, label=label, **style)
        axes.fill_between(
            x, accuracy - stderr, accuracy + stderr, color=style["color"], alpha=0.2, lw=0
        )
    majority = [row for row in rows if row["model"] == "majority label"]
    axes.plot(x, [r["ceiling"] for r in majority], "k--", lw=0.8, label="ceiling")
    axes.plot(x, [r["accuracy"] for r in majority], "k:", lw=0.8, label="majority label")
    axes.set(ylim=(0, 1.03), ylabel="accuracy", title=results["data"]["name"])
    axes.set_xlabel("clause length k" if by_length else "test T.K: noise type T, clause length K")
    axes.set_xticks(x, [n.removeprefix("k=") for n in columns.values()])
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    return figure
