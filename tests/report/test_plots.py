"""The plot of an experiment: positions and lengths of what it draws, by hand."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba

from clutrr_jax.report.plots import COLORS, plot_results, save_figure
from tests.report.rows import paper, row

COLUMNS = ("train k", "k", "model")
ROW = {"accuracy": 0.7, "stderr": 0.1, "low": 0.6, "high": 0.9, "count": 20}
BLANK: dict[str, Any] = {}


def results(rows: dict[tuple, dict], papers: Sequence[dict] = (), **more: Any) -> dict[str, Any]:
    """Results with these rows by (panel, x, series), and published ones."""
    found = [row(COLUMNS, key, key[2], **values) for key, values in rows.items()]
    about = {"columns": COLUMNS, "rows": [*found, *papers], "name": "test", "scale": "laptop"}
    return about | more


def lines_of(axes: Any) -> dict[str, list]:
    return {line.get_label(): line.get_xydata().tolist() for line in axes.lines}


def test_curves_are_accuracies_and_bands_are_intervals() -> None:
    """In the color of the line. A cell that is not measured has no point."""
    rows = {
        ("2,3", 2, "gat"): ROW,
        ("2,3", 3, "gat"): BLANK,
        ("2,3", 4, "gat"): ROW | {"accuracy": 0.4, "low": 0.1, "high": 0.5},
        ("2,3", 2, "majority label"): ROW | {"accuracy": 0.2},
    }
    (axes,) = plot_results(results(rows)).axes
    lines = lines_of(axes)
    np.testing.assert_allclose(lines["gat"], [[0, 0.7], [2, 0.4]])
    np.testing.assert_allclose(lines["majority label"], [[0, 0.2]])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "3", "4"]
    (band,) = (found for found in axes.collections if isinstance(found, PolyCollection))
    corners = band.get_paths()[0].vertices
    for x, low, high in ((0, 0.6, 0.9), (2, 0.1, 0.5)):
        at = corners[corners[:, 0] == x, 1]
        assert (at.min(), at.max()) == pytest.approx((low, high))
    assert band.get_facecolor()[0][:3].tolist() == list(to_rgba(COLORS[0])[:3])


def test_one_point_has_a_bar_and_replicas_are_faint_points() -> None:
    """A band around one point would have no width. One replica is the point itself."""
    for values in ((0.6, 0.8), (0.7,)):
        row = ROW | {"accuracies": values}
        (axes,) = plot_results(results({("2,3", 2, "gat"): row})).axes
        (bar,) = (found for found in axes.collections if isinstance(found, LineCollection))
        np.testing.assert_allclose(bar.get_segments(), [[[0, 0.6], [0, 0.9]]])
        faint = [line for line in axes.lines if line.get_alpha()]
        points = [] if len(values) == 1 else [[0, value] for value in values]
        assert [xy for line in faint for xy in line.get_xydata().tolist()] == points


def test_kinds_of_noise_have_markers_side_by_side_without_lines() -> None:
    """Two series stand .175 left and right of their place."""
    rows = {("2,3", "clean", name): ROW for name in ("gat", "rn")}
    (axes,) = plot_results(results(rows)).axes
    lines = lines_of(axes)
    np.testing.assert_allclose(lines["gat"], [[-0.175, 0.7]])
    np.testing.assert_allclose(lines["rn"], [[0.175, 0.7]])
    assert all(axes.lines[i].get_linestyle() == "None" for i in (0, 1))
    first, _ = (found for found in axes.collections if isinstance(found, LineCollection))
    np.testing.assert_allclose(first.get_segments(), [[[-0.175, 0.6], [-0.175, 0.9]]])


def test_published_accuracy_is_hollow_with_its_interval() -> None:
    """A published .50 ± .10 of ten runs: t = 2.2622, plus the rounding error .005."""
    key = ("2,3", 2, "gat")
    (axes,) = plot_results(results({key: BLANK}, [paper(COLUMNS, key, "gat", 0.5, 0.1)])).axes
    marker = axes.lines[0]
    np.testing.assert_allclose(marker.get_xydata(), [[0.08, 0.5]])
    assert marker.get_markerfacecolor() == "white"
    (interval,) = (found for found in axes.collections if isinstance(found, LineCollection))
    half = 0.005 + 0.22622
    np.testing.assert_allclose(
        interval.get_segments(), [[[0.08, 0.5 - half], [0.08, 0.5 + half]]], atol=1e-5
    )


def test_averages_have_a_panel_of_their_own() -> None:
    rows = {("2,3", k, "gat"): ROW for k in (2, 3)}
    rows |= {("mean", k, "gat"): {"accuracy": k / 10, "average": True} for k in (2, 3)}
    panel, mean = plot_results(results(rows)).axes
    assert (panel.get_title(), mean.get_title()) == ("train k: 2,3", "train k: mean")
    np.testing.assert_allclose(lines_of(mean)["gat"], [[0, 0.2], [1, 0.3]])


@pytest.mark.parametrize("shown", [True, False])
def test_only_references_that_are_shown_are_dotted_lines(shown: bool) -> None:
    rows = {("2,3", k, "gat"): BLANK for k in (2, 4, 7)}
    people = [paper(COLUMNS, ("2,3", k, "people"), "people", mean, source="a paper", shown=shown)
              for k, mean in ((2, 0.848), (4, 0.477))]  # fmt: skip
    (axes,) = plot_results(results(rows, people)).axes
    lines = {line.get_label(): line for line in axes.lines}
    assert ("people" in lines) == shown
    if shown:
        np.testing.assert_allclose(lines["people"].get_xydata(), [[0, 0.848], [1, 0.477]])
        assert lines["people"].get_linestyle() == ":"


def test_long_names_leave_room_for_the_plot() -> None:
    name = f"a{'b' * 130}c"
    figure = plot_results(results({("2,3", k, name): ROW for k in (2, 3)}))
    text = figure.legends[0].get_texts()[0].get_text()
    assert len(text) < 50 and text.startswith("ab") and text.endswith("bc") and " ... " in text


def test_a_report_without_a_finished_run_has_an_empty_plot() -> None:
    assert plot_results(results({})).axes == []


def test_references_have_colors_of_their_own() -> None:
    """Other than the series, and the same in each panel."""
    papers = [
        paper(COLUMNS, (panel, 2, name), name, 0.5, source="a source", shown=True)
        for panel, name in (("2,3", "people"), ("2,3", "a paper"), ("2,3,4", "a paper"))
    ]
    rows = {(panel, 2, "gat"): ROW for panel in ("2,3", "2,3,4")}
    first, second = plot_results(results(rows, papers)).axes
    colors = {line.get_label(): line.get_color() for line in first.lines}
    assert len({colors[name] for name in ("gat", "people", "a paper")}) == 3
    assert {line.get_color() for line in second.lines if line.get_label() == "a paper"} == {
        colors["a paper"]
    }


NAMES = ("_name", "$x$ and $\\foo{$", "$", "a|b", "50%", "a\\b", "#1", "x^2~y", "<b>&amp;", "*c*",
         "`d`", "é \N{GREEK SMALL LETTER ALPHA}", "__")  # fmt: skip


@pytest.mark.parametrize("title", NAMES[:2])
def test_names_are_shown_as_they_are(title, tmp_path) -> None:
    """Names of series, panels, tests and the data set, in every format."""
    rows = {("_$p", x, name): ROW for name in NAMES for x in ("$k$", "_")}
    found = results(rows, scale="", data=[{"name": title}])
    figure = plot_results(found)
    for suffix in (".png", ".svg", ".pdf"):
        save_figure(figure, tmp_path / f"a{suffix}")
    (axes,), (legend,) = figure.axes, figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [*NAMES]
    assert axes.get_title() == f"test on {title}"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["$k$", "_"]
    first = legend.legend_handles[0]
    assert (first.get_color(), first.get_marker()) == (COLORS[0], "o")


def test_characters_that_the_font_lacks_are_those_of_another_or_codes(tmp_path, recwarn) -> None:
    """The first one is in STIX, which comes with Matplotlib; no font has the second one."""
    figure = plot_results(results({("2,3", 2, "a\u1d81 \U000f0000"): ROW}))
    save_figure(figure, tmp_path / "a.png")
    assert figure.legends[0].get_texts()[0].get_text() == "a\u1d81 \\U000f0000"
    assert not recwarn
