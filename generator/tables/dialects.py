"""Dialects of tables: which columns they have, and which columns of CLUTRR have the same content.

For another dialect, add it to DIALECTS; its rows are then read everywhere.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from generator.errors import InputError


class Dialect(NamedTuple):
    """A dialect of tables.

    Attributes:
      name: of the dialect.
      marks: a table with one of these columns is of this dialect.
      needs: the columns that a table must have, each with those that may stand for it.
      columns: its columns with other names than those of CLUTRR -> the columns of CLUTRR (CELLS in
        `generator.tables.cells`), whose content they have.
      cells: returns more cells of CLUTRR, from a row and the name of its file; for what needs more
        than another name.
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
