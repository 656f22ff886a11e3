"""Cells: text, or values of rows in memory."""

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from generator.errors import CellError, InputError
from generator.relations.kinship import UNKNOWN_GENDER
from generator.tables.cells import CELLS, is_empty, parse_cell, plain
from generator.tables.readers import memory_rows
from generator.tables.rows import parse_rows
from tests.generator.tables.test_columns import ROW

PAIRS = ((0, 1), (1, 2))


def objects(*parts: Any) -> np.ndarray:
    """An array of objects, as pandas reads a list of lists from Parquet."""
    array = np.empty(len(parts), object)
    array[:] = parts
    return array


@pytest.mark.parametrize(
    ("column", "cell", "content"),
    [
        ("story_edges", [[0, 1], [1, 2]], PAIRS),
        ("story_edges", np.array(PAIRS, np.int8), PAIRS),
        ("story_edges", objects(np.array([0, 1]), np.array([1, 2])), PAIRS),
        ("story_edges", [np.array([0.0, 1.0]), (np.int64(1), np.float32(2))], PAIRS),
        ("story_edges", "[[0,1],( 1 , 2)]", PAIRS),
        ("query_edge", pd.Series([0, 2]), (0, 2)),
        ("edge_types", np.array(["son", "D'Arcy"]), ("son", "D'Arcy")),
        ("names", (np.str_("A\u00a0n"), "C\\y"), ("A\u00a0n", "C\\y")),  # no escapes
        ("names", "['C\\y', \"D'Arcy\"]", ("C\\y", "D'Arcy")),
        ("names", '["C\\u00eb", "Al \\"B\\""]', ("Cë", 'Al "B"')),  # JSON
        ("names", " Ann ,Bob", ("Ann", "Bob")),
        ("query", "('Smith (Jr), Ann', 'Bob')", ("Smith (Jr), Ann", "Bob")),
        ("facts", "[('Ann', 'son', 'Bob')]", (("Ann", "son", "Bob"),)),
        ("facts", '[["O\'Neil", "son", "Jos\\u00e9"]]', (("O'Neil", "son", "José"),)),
        ("facts", [("C:\\temp", "son", "Bob")], (("C:\\temp", "son", "Bob"),)),
        ("genders", "Ann: Female,'Cy, Jr.':unknown", (("Ann", "Cy, Jr."), (1, UNKNOWN_GENDER))),
        ("story", np.array("a story"), "a story"),
        ("id", np.float64(16), "16"),  # pandas has floats if a cell of the column is missing
        ("id", 1.5, "1.5"),
        ("k", "2.0", 2),
        ("task_name", "1.10", (1, 10)),
    ],
)
def test_cells_have_several_forms(column: str, cell: Any, content: Any) -> None:
    assert parse_cell(column, plain(cell)) == content


@pytest.mark.parametrize(
    "cell",
    [None, np.nan, np.float32("nan"), np.array(np.nan), Decimal("nan"), pd.NA, pd.NaT, [], " "],
)
def test_a_missing_cell_is_empty(cell: Any) -> None:
    assert is_empty("names", plain(cell))
    if not isinstance(cell, str | list):
        assert plain([1, (cell, "a")]) == [1, [None, "a"]]


NESTED: list = []
for _ in range(100_000):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    "cell",
    [{"Ann": "female"}, [{"Ann": "female"}], {"son"}, b"son", object(), iter("ab"), NESTED,
     pd.Timestamp("2020-01-01"), "a\ud800", ["a\ud800", "b"]],
    ids=lambda cell: type(cell).__name__,
)  # fmt: skip
def test_a_cell_of_another_type_is_refused(cell: Any) -> None:
    for column in CELLS:
        with pytest.raises(CellError) as error:
            parse_cell(column, cell)
        assert error.value.args[0] == column and "expected" in error.value.args[1]


@pytest.mark.parametrize("column", ["target", "task_split"])
def test_all_rows_have_the_columns_of_the_first(column: str) -> None:
    """A split that only later rows state would be lost. Other columns may be missing."""
    less = {name: cell for name, cell in ROW.items() if name != column}
    for rows in ([ROW, less], [less, ROW]):
        with pytest.raises(InputError, match=rf'^x, row 2, column "{column}": .*same columns'):
            list(parse_rows("x", rows))
    assert len(list(parse_rows("x", [ROW | {"other": "a"}, ROW]))) == 2


def test_a_data_frame_equals_its_rows() -> None:
    rows = [ROW, ROW | {"target": None}]
    frame, expected = pd.DataFrame(rows), list(parse_rows("x", rows))
    for same in (
        frame,
        frame.astype("string").astype("category"),
        frame.set_index("query"),  # a named index is a column
        (row for _, row in frame.iterrows()),
    ):
        assert list(parse_rows("x", memory_rows("x", same))) == expected
    with pytest.raises(InputError, match='2 columns "story", expected one'):
        next(memory_rows("x", pd.concat([frame, frame[["story"]]], axis=1)))
