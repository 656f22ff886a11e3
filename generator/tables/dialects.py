"""Dialects of tables: which columns they have, and which columns of CLUTRR have the same content.

For another dialect, add it to DIALECTS before the last one; its rows are then read everywhere.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from generator.errors import InputError


class Dialect(NamedTuple):
    """A dialect of tables.

    Attributes:
      name: of the dialect.
      marks: the first dialect of which a table has one of these columns is that of the table.
      needs: the columns that a table must have, each with those that may stand for it.
      columns: its column -> column of CLUTRR (keys of CELLS in `generator.tables.cells`) with the
        same content; columns of the same name need not be listed.
      cells: returns more cells of CLUTRR from a row and the name of its file, as text or lists.
    """

    name: str
    marks: tuple[str, ...]
    needs: tuple[tuple[str, ...], ...]
    columns: Mapping[str, str] = {}
    cells: Callable[[Mapping[str, Any], str], Mapping[str, Any]] | None = None


def _star_cells(row: Mapping[str, Any], file: str) -> dict[str, str]:
    """Number of paths and length, which the name of the file states: `..._k_3_b_1.csv`."""
    found = re.search(r"_k_(\d{1,3})_b_(\d{1,3})(?!\d)", file)
    return {"task_name": f"task_{found[2]}.{found[1]}"} if found else {}


DIALECTS = (
    Dialect(
        "STaR (Khalid and Schockaert 2025)",
        marks=("edge_labels",),
        needs=(("edges",), ("edge_labels",), ("query_edge",)),
        columns={"edges": "story_edges", "edge_labels": "edge_types", "query_label": "target"},
        cells=_star_cells,
    ),
    Dialect(
        "CLUTRR (Sinha et al. 2019)",
        marks=("story_edges", "edge_types", "query_edge"),
        needs=(("query",), ("story_edges",), ("edge_types",), ("genders", "names")),
    ),
    Dialect(
        "rows with the fewest columns",
        marks=("query",),
        needs=(("query",), ("story", "facts")),
    ),
)


def dialect_of(file: str, header: Iterable[str]) -> Dialect:
    """Returns the dialect of a table. Raises InputError if it lacks a column."""
    header = list(header)
    found = next((d for d in DIALECTS if {*d.marks} & {*header}), DIALECTS[-1])
    for columns in found.needs:
        if not {*columns} & {*header}:
            expected = ", ".join(" or ".join(one) for one in found.needs)
            raise InputError(
                f'{file}: no column "{columns[0]}"; expected {expected}; found {", ".join(header)}'
            )
    return found
