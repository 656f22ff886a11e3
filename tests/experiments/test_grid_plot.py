"""The plot of a grid: positions and lengths of what it draws, by hand."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.container import ErrorbarContainer

from clutrr_jax.report.plots import Figure
from experiments.grid import plot
from experiments.grid.definition import MODEL, Average, Grid, Reference, Training
from experiments.published.clutrr import Accuracy
from experiments.published.systematic import PEOPLE

CELL = {"mean": 0.7, "error": 0.1, "low": 0.6, "high": 0.9, "ceiling": 0.95}


def row(measured: dict | None, published: tuple[float, float | None] | None = None) -> dict:
    return {
        "measured": measured,
        "published": Accuracy(*published)._asdict() if published else None,
    }


def grid_of(xs: tuple, **more) -> Grid:
    cells = {("2,3", x, MODEL): ("1.2",) for x in xs}
    training = Training("a", {"generate.test": "1.2"}, cells)
    return Grid(("train k", "k", "model"), (training,), ("gat",), {"gat": 1}, **more)


@pytest.fixture
def drawn(monkeypatch, tmp_path: Path):
    """Function that plots a grid and returns its axes."""
    figures: list[Figure] = []

    def figure(*args, **kwargs) -> Figure:
        figures.append(Figure(*args, **kwargs))
        return figures[-1]

    monkeypatch.setattr(plot, "Figure", figure)

    def plotted(grid: Grid, rows: plot.Rows) -> list:
        plot.plot_grid(grid, rows, tmp_path / "curve.png")
        return figures[-1].axes

    return plotted


def bars(axes) -> dict[str, tuple[list, list]]:
    """By series: the points, and the ends of their error bars."""
    found = {}
    for container in axes.containers:
        assert isinstance(container, ErrorbarContainer)
        points, _, (ends,) = container.lines
        segments = [segment[:, 1].tolist() for segment in ends.get_segments()]
        found[container.get_label()] = (points.get_xydata().tolist(), segments)
    return found


def test_points_are_accuracies_and_bars_are_intervals(drawn) -> None:
    rows = {
        ("2,3", 2, "gat"): row(CELL),
        ("2,3", 3, "gat"): row(None),
        ("2,3", 4, "gat"): row(CELL | {"mean": 0.4, "low": 0.1, "high": 0.5}),
    }
    (axes,) = drawn(grid_of((2, 3, 4)), rows)
    points, ends = bars(axes)["gat"]
    np.testing.assert_allclose(points, [[0, 0.7], [2, 0.4]])
    np.testing.assert_allclose(ends, [[0.6, 0.9], [0.1, 0.5]])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "3", "4"]


def test_kinds_of_noise_have_markers_side_by_side_without_lines(drawn) -> None:
    """Two series stand .175 left and right of their place."""
    rows = {("2,3", "clean", name): row(CELL) for name in ("gat", "rn")}
    (axes,) = drawn(grid_of(("clean",)), rows)
    found = bars(axes)
    np.testing.assert_allclose(found["gat"][0], [[-0.175, 0.7]])
    np.testing.assert_allclose(found["rn"][0], [[0.175, 0.7]])
    assert all(container.lines[0].get_linestyle() == "None" for container in axes.containers)


def test_published_accuracy_is_hollow_with_its_interval(drawn) -> None:
    """A published .50 ± .10 of ten runs: t = 2.2622, plus the rounding error .005."""
    rows = {("2,3", 2, "gat"): row(None, (0.5, 0.1))}
    (axes,) = drawn(grid_of((2,), published={("2,3", 2, "gat"): Accuracy(0.5, 0.1)}), rows)
    (marker,) = axes.lines
    np.testing.assert_allclose(marker.get_xydata(), [[0.08, 0.5]])
    assert marker.get_markerfacecolor() == "white"
    (interval,) = (found for found in axes.collections if isinstance(found, LineCollection))
    half = 0.005 + 0.22622
    np.testing.assert_allclose(
        interval.get_segments(), [[[0.08, 0.5 - half], [0.08, 0.5 + half]]], atol=1e-5
    )


def test_averages_are_a_panel_of_filled_curves(drawn) -> None:
    average = {("mean", k): Average((("2,3", k),), {}) for k in (2, 3)}
    rows = {("2,3", k, "gat"): row(CELL) for k in (2, 3)}
    rows |= {("mean", k, "gat"): row({"mean": k / 10, "error": None}) for k in (2, 3)}
    panel, mean = drawn(grid_of((2, 3), averages=average), rows)
    assert (panel.get_title(), mean.get_title()) == ("train k: 2,3", "train k: mean")
    np.testing.assert_allclose(mean.lines[0].get_xydata(), [[0, 0.2], [1, 0.3]])
    (area,) = mean.collections
    assert {tuple(v) for v in area.get_paths()[0].vertices.round(6).tolist()} == {
        (0, 0), (0, 0.2), (1, 0), (1, 0.3),
    }  # fmt: skip
    assert len(panel.containers) == 1 and not mean.containers


@pytest.mark.parametrize("shown", [True, False])
def test_only_references_that_are_shown_are_dotted_lines(drawn, shown: bool) -> None:
    """The accuracies of people are .848 at k = 2 and .477 at k = 4; there is none at k = 7."""
    rows = {("2,3", k, "gat"): row(None) for k in (2, 4, 7)}
    (axes,) = drawn(grid_of((2, 4, 7), references=(Reference("2,3", PEOPLE, shown),)), rows)
    lines = [line.get_xydata().tolist() for line in axes.lines]
    assert lines == ([[[0, 0.848], [1, 0.477]]] if shown else [])
    assert all(line.get_linestyle() == ":" for line in axes.lines)
