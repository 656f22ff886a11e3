"""The curve that CLUTRR is about: accuracy against clause length, as a PNG."""

from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.report.results import column_names

# Okabe and Ito's colours: told apart by the colour-blind too.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8B6B2E",
)  # fmt: skip
MARKERS = "os^Dv<>PX"  # one more than colours: no two of many series look the same
LINES = ("-", "--", "-.", ":")


def style(number: int) -> dict[str, Any]:
    """How the series of that number looks."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "ls": LINES[number // len(COLOURS) % len(LINES)],
    }


def draw(results: dict[str, Any], path: Path) -> None:
    """Models as lines with a band of one standard error; ceiling and majority label as thin
    lines."""
    from matplotlib.figure import Figure  # takes a third of a second, and comes last in a run

    rows = results["rows"]
    columns = column_names(rows)
    by_length = all(name.startswith("k=") for name in columns.values())
    x = np.array([int(n[2:]) for n in columns.values()]) if by_length else np.arange(len(columns))
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    for i, model in enumerate(results["models"]):
        mine = [row for row in rows if row["model"] == model]
        accuracy = np.array([row["accuracy"] for row in mine])
        stderr = np.array([row["stderr"] or 0.0 for row in mine])
        replicas = mine[0]["replicas"]
        label = f"{model} ({replicas} replica{'s' if replicas > 1 else ''})"
        axes.plot(x, accuracy, label=label, **style(i))
        band = {"color": style(i)["color"], "alpha": 0.2, "lw": 0}
        axes.fill_between(x, accuracy - stderr, accuracy + stderr, **band)
    plain = [row for row in rows if row["model"] == "majority label"]
    axes.plot(x, [r["ceiling"] for r in plain], "k--", lw=0.8, label="ceiling (ambiguous labels)")
    axes.plot(x, [r["accuracy"] for r in plain], "k:", lw=0.8, label="majority label")
    axes.set(ylim=(0, 1.03), ylabel="accuracy", title=results["data"]["name"])
    axes.set_xlabel("clause length k" if by_length else "test task")
    axes.set_xticks(x, [n.removeprefix("k=") for n in columns.values()])
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    figure.savefig(path, dpi=130)
