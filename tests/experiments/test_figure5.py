"""Published rows in the report of figure 5."""

import json
from pathlib import Path

from experiments.figure5 import RELEASES
from experiments.grid import definition, report
from experiments.grid.definition import Grid, Reference
from experiments.published.accuracy import Accuracy
from experiments.published.systematic import GRAPH_ROWS, TEXT_ROWS
from tests.experiments.test_experiments import cell, with_scale


def test_published_rows_stand_below_the_measured_rows_of_their_models() -> None:
    grid = Grid(
        column_names=("train k", "k", "model"), trainings=(), models=(), laptop={}, claims={},
        references=tuple(
            Reference(panel, name, {2: Accuracy(0.5, None)}, source, series)
            for panel, name, source, series in (
                ("2,3", "CTP", "paper A", ""),
                ("2,3", "gat, published", "paper B", "gat"),
                ("2,3", "gcn, published", "paper B", "gcn"),  # not run
                ("2,3,4", "epignn, published", "paper B", "epignn"),
            )
        ),
    )  # fmt: skip
    panels, models = ("2,3", "2,3,4"), ("epignn", "gat")
    rows = [
        {"train k": panel, "k": k, "model": model, "measured": cell(0.9)._asdict()}
        for panel in panels for model in models for k in (2, 3)
    ]  # fmt: skip
    table = report.table_lines(grid, {"rows": rows, "averages": []})
    ours, published = [".90 ±.00", ".90 ±.00"], [".50", ""]
    ends = [["ceiling", "1.00", "1.00"], ["stories", "200", "200"]]
    left = [
        ["epignn", *ours], ["gat", *ours], ["gat, published", *published], ["CTP", *published],
        ["gcn, published", *published], *ends,
    ]  # fmt: skip
    right = [["epignn", *ours], ["epignn, published", *published], ["gat", *ours], *ends]
    assert table == [
        ["train k", "model", "k = 2", "k = 3"],
        *(["2,3", *line] for line in left),
        *(["2,3,4", *line] for line in right),
    ]
    assert report.sources(grid) == [
        "CTP: paper A",
        "gat, published; gcn, published; epignn, published: paper B",
    ]


def test_figure5_shows_every_published_row_of_a_graph_model(tmp_path: Path) -> None:
    config = with_scale("figure5", "laptop", models="gat,edge_lstm")
    references = config.grid.references
    for row in GRAPH_ROWS:
        assert [r.by_x for r in references if (r.name, RELEASES[r.panel]) == (row.label, row.data)]
    shown = {(r.panel, r.name) for r in references if r.shown}
    assert shown == {(train, n) for train in RELEASES for n in ("CTP", "people, limited time")}
    _, table = report.write(config, definition.cells(config), tmp_path)
    right = [line[1] for line in table if line[0] == "2,3,4"]
    assert right[:4] == ["gat", "gat, published (NCRL)", "edge_lstm", "edge_lstm, published (NCRL)"]
    assert right[-2:] == ["ceiling", "stories"] and right.count("gat, published (NCRL)") == 1
    text = (tmp_path / "results.md").read_text()
    page = (tmp_path / "report.html").read_text()
    for row in TEXT_ROWS:
        assert row.name in text and row.name in page
    for reference in references:
        assert reference.source in text and json.dumps(reference.source)[1:-1] in page
