"""Plots: accuracy against clause length, the main figure of CLUTRR."""

from collections import defaultdict
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np
from matplotlib import rc_context
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.text import Text

from clutrr_jax.models.swept import label
from clutrr_jax.report.accuracy import (
    Results,
    Row,
    axes_of,
    is_grid,
    published_by_key,
    rows_by_key,
)
from clutrr_jax.report.results import BESIDE
from clutrr_jax.report.tables import title

# The palette of Okabe and Ito, which is safe for color-blind readers.
COLORS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8B6B2E",
)  # fmt: skip
MARKERS = "os^Dv<>PX"  # one more than the colors, so that pairs repeat only after 72 series
NAME_LENGTH = 40  # of the characters of a name in the legend
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


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a figure as .png, .pdf or .svg, with the same bytes for the same figure.

    The fonts of a PDF are embedded as TrueType, which publishers ask for.
    """
    undated = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(path.suffix)
    with rc_context({"svg.hashsalt": "clutrr_jax", "pdf.fonttype": 42}):
        figure.savefig(path, metadata=undated)


def plot_results(results: Results) -> Figure:
    """Returns the plot of the results, see `_plot`. Names are shown as they are: a "$" begins no
    formula, and characters that the font does not have are those of other installed fonts."""
    names = [title(results), *(row["name"] for row in results["rows"])]
    families, missing = _families("".join(names))
    with rc_context({"text.parse_math": False, "font.family": families}):
        figure = _plot(results)
    for text in figure.findobj(Text):
        text.set_text(text.get_text().translate({code: ascii(chr(code))[1:-1] for code in missing}))
    return figure


def _families(text: str) -> tuple[list[str], set[int]]:
    """Returns the usual family of fonts, and others for the characters that it lacks; and the codes
    of the characters that no installed font has."""
    missing = {ord(c) for c in text} - get_font(findfont(FontProperties())).get_charmap().keys()
    families = list(FontProperties().get_family())
    for font in fontManager.ttflist if missing else ():
        plain = (font.weight, font.style) == (400, "normal") and "Last Resort" not in font.name
        if plain and (found := missing & get_font(font.fname).get_charmap().keys()):
            families.append(font.name)
            missing -= found
    return families, missing


def _plot(results: Results) -> Figure:
    """Plots accuracy against x, one panel for each first part of the keys.

    Measured accuracies have bands or bars of 95 % intervals, and faint points for the replicas.
    Published ones of the same cells are hollow, references dotted (those that are shown by
    default), baselines thin. Averages over panels have a panel of their own. Ensembles and strict
    series are in the table only.
    """
    rows = {key: row for key, row in rows_by_key(results).items() if row["kind"] not in BESIDE}
    published = published_by_key(results)
    panels, xs, series = axes_of([key for key, row in rows.items() if not row["average"]])
    panels += dict.fromkeys(panel for (panel, x, _), row in rows.items()
                            if row["average"] and x in xs)  # fmt: skip
    is_curve = not any(isinstance(x, str) for x in xs)
    figure = Figure(figsize=(3.2 + 4 * len(panels), 4.2), dpi=130, layout="constrained")
    if not panels:  # no run is finished
        return figure
    all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    baselines = list(
        dict.fromkeys(key[2] for key, row in rows.items() if row["kind"] == "baseline")
    )
    dotted = list(dict.fromkeys(row["name"] for row in published.values() if row.get("shown")))
    at = [float(i) for i in range(len(xs))]
    for panel, axes in zip(panels, all_axes, strict=True):
        for i, name in enumerate(series):
            of_series = [rows.get((panel, x, name), {}) for x in xs]
            if name in baselines:
                style = {"color": "0.5", "ls": LINE_STYLES[baselines.index(name) + 1], "lw": 0.9}
                _plot_line(axes, at, of_series, name, style)
            else:
                of_paper = [published.get((panel, x, name)) for x in xs]
                beside = 0 if is_curve else 0.7 * ((i + 0.5) / len(series) - 0.5)
                style = line_style(i) | {"ms": 4, "lw": 1.2} | ({} if is_curve else {"ls": "none"})
                _plot_series(axes, [x + beside for x in at], of_series, of_paper, name, style)
        for i, name in enumerate(dotted, len(series) - len(baselines)):
            reference = [published.get((panel, x, name), {}) for x in xs]
            style = {"color": line_style(i)["color"], "ls": ":", "lw": 1.6}
            _plot_line(axes, at, reference, name, style)
        axes.set_xticks(at, [str(x) for x in xs], rotation=0 if is_curve else 30)
        axes.set(xlim=(-0.5, len(xs) - 0.5), ylim=(0, 1.03), xlabel=results["columns"][1])
        axes.set_title(title(results) if len(panels) == 1 else f"{results['columns'][0]}: {panel}")
        axes.grid(alpha=0.25)
    all_axes[0].set_ylabel("accuracy (hollow: paper)" if is_grid(results) else "accuracy")
    named = {*series, *dotted}
    handles = {line.get_label(): line for axes in all_axes for line in axes.lines
               if line.get_label() in named}  # fmt: skip
    # A legend leaves out what has a label that begins with "_".
    legend = figure.legend(handles.values(), ["-"] * len(handles), loc="outside right upper",
                           frameon=False, fontsize=8)  # fmt: skip
    half = NAME_LENGTH // 2
    for text, name in zip(legend.get_texts(), handles, strict=True):
        text.set_text(name if len(name) <= NAME_LENGTH else f"{name[:half]} ... {name[-half:]}")
    return figure


def _plot_line(
    axes: Any, at: Sequence[float], rows: Sequence[Row], label: str, style: dict[str, Any]
) -> None:
    """Plots the measured rows."""
    points = [(x, row["accuracy"]) for x, row in zip(at, rows, strict=True)
              if row.get("accuracy") is not None]  # fmt: skip
    if points:
        axes.plot(*zip(*points, strict=True), label=label, **style)


def _plot_series(
    axes: Any,
    at: Sequence[float],
    rows: Sequence[Row],
    published: Sequence[Row | None],
    label: str,
    style: dict[str, Any],
) -> None:
    """Plots one series: a curve with a band, or markers with bars."""
    _plot_line(axes, at, rows, label, style)
    bounded = [(x, row["low"], row["high"]) for x, row in zip(at, rows, strict=True)
               if row.get("low") is not None]  # fmt: skip
    where, low, high = zip(*bounded, strict=True) if bounded else ((), (), ())
    if style["ls"] != "none" and len(where) != 1:
        axes.fill_between(where, low, high, color=style["color"], alpha=0.15, lw=0)
    else:
        axes.vlines(where, low, high, color=style["color"], lw=1.2)
    for x, row, paper in zip(at, rows, published, strict=True):
        if len(replicas := row.get("accuracies") or ()) > 1:
            faint = style | {"ls": "none", "ms": 2.5, "alpha": 0.4, "mec": "none"}
            axes.plot([x] * len(replicas), replicas, **faint)
        if paper:
            axes.vlines(x + 0.08, paper["low"], paper["high"], color=style["color"], lw=0.6)
            axes.plot(x + 0.08, paper["accuracy"], mfc="white", **style)


def plot_sweeps(results: Results) -> Figure | None:
    """Plots dev loss and test accuracy, the mean over the tests, against each setting of each
    sweep, with a line for each combination of the others. The point that dev loss chooses is
    circled. None without a sweep."""
    panels = [
        (model, one["sweep"], setting)
        for model, one in results["models"].items()
        if "sweep" in one
        for setting in one["sweep"]["points"][0]["settings"]
    ]
    if not panels:
        return None
    figure = Figure(figsize=(2 + 3.6 * len(panels), 5.4), dpi=130, layout="constrained")
    all_axes = figure.subplots(2, len(panels), squeeze=False, sharex="col")
    for (model, sweep, setting), axes in zip(panels, all_axes.T, strict=True):
        lines: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)
        for point in sorted(sweep["points"], key=lambda point: point["settings"][setting]):
            others = dict(point["settings"])
            x, name = others.pop(setting), point["name"]
            losses = [np.nan if loss is None else loss for loss in point["dev_loss"]]
            rows = [row for row in results["rows"] if row["name"] == name and row["count"]]
            y = float(np.mean(losses)), float(np.mean([row["accuracy"] for row in rows]))
            lines[label(others)].append((x, *y))
            if name == sweep["chosen"]:
                for one, height in zip(axes, y, strict=True):
                    one.plot(
                        x, height, "o", ms=13, mfc="none", mec="0.3", label="chosen by dev loss"
                    )
        for i, (line, of_line) in enumerate(lines.items()):
            xs, *columns = zip(*of_line, strict=True)
            for one, column in zip(axes, columns, strict=True):
                one.plot(xs, column, label=line, ms=4, lw=1.2, **line_style(i))
        values = [point["settings"][setting] for point in sweep["points"]]
        if min(values) > 0 and max(values) >= 10 * min(values):
            axes[0].set_xscale("log")
        axes[0].set(ylabel="dev loss", title=model)
        axes[1].set(ylabel="test accuracy", xlabel=setting.removeprefix("train."), ylim=(0, 1.03))
        axes[1].legend(frameon=False, fontsize=8)
        for one in axes:
            one.grid(alpha=0.25)
    return figure
