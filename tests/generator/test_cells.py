"""Tables in memory as rows of text."""

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from generator.cells import LISTS, OPTIONAL, REQUIRED, plain, text_rows
from generator.errors import InputError
from generator.rows import parse_rows
from tests.generator.test_columns import ROW


def objects(*parts: Any) -> np.ndarray:
    """An array of objects, as pandas reads a list of lists from Parquet."""
    array = np.empty(len(parts), object)
    array[:] = parts
    return array


def text_of(cell: Any, column: str = "story_edges") -> str:
    header, cells = text_rows("x", [ROW | {column: cell}])
    return cells[header.index(column)]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ([[0, 1], [1, 2]], "[[0, 1], [1, 2]]"),
        (((0, 1), (1, 2)), "[[0, 1], [1, 2]]"),
        (np.array([[0, 1], [1, 2]], np.int8), "[[0, 1], [1, 2]]"),
        (objects(np.array([0, 1]), np.array([1, 2])), "[[0, 1], [1, 2]]"),
        ([np.array([0.0, 1.0]), (np.int64(1), np.float32(2))], "[[0, 1], [1, 2]]"),
        (pd.Series([0, 2]), "[0, 2]"),
        (np.array(["son", "D'Arcy"]), "['son', \"D'Arcy\"]"),
        ((np.str_("A\u00a0n"), "C\\y"), "['A\u00a0n', 'C\\y']"),  # no escapes
        (np.array("a story"), "a story"),
        (np.array(16), "16"),
        (np.float64(16), "16"),  # pandas has floats if a cell of the column is missing
        (1.5, "1.5"),
        (True, "True"),
    ],
)
def test_arrays_and_tuples_are_read_as_lists(cell: Any, text: str) -> None:
    assert text_of(cell) == text


MISSING = [None, np.nan, np.float32("nan"), np.array(np.nan), Decimal("nan"), pd.NA, pd.NaT]


@pytest.mark.parametrize("cell", MISSING)
def test_a_missing_cell_is_empty(cell: Any) -> None:
    assert plain(cell) is None and text_of(cell) == ""
    assert plain([1, (cell, "a")]) == [1, [None, "a"]]


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ({"Ann": "female"}, "dict"), ([{"Ann": "female"}], "dict"), ({"son"}, "set"),
        (b"son", "bytes"), (np.bytes_("son"), "bytes"), (object(), "object"),
        (pd.Timestamp("2020-01-01"), "Timestamp"), (iter("ab"), "str_ascii_iterator"),
        (pd.DataFrame(), "DataFrame"),
    ],
)  # fmt: skip
def test_a_cell_of_another_type_is_named(cell: Any, kind: str) -> None:
    """Cells of columns that are not read may have any type."""
    for column in (*REQUIRED, *OPTIONAL):
        expected = "text or a list" if column in LISTS else "text or a number"
        found = "list" if isinstance(cell, list) and column not in LISTS else kind
        message = f'x, row 2, column "{column}": {found}, expected {expected}'
        row = dict.fromkeys((*ROW, column), "a")
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            list(text_rows("x", [row, row | {column: cell}]))
    assert text_of(cell, "proof_state") == ""


NESTED: list = []
for _ in range(100_000):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("a\ud800", "surrogates not allowed"),  # JSON can hold it, reports cannot
        (["a\ud800"], "surrogates not allowed"),
        (NESTED, "maximum recursion depth"),
    ],
    ids=["text", "list", "nested"],
)
def test_a_cell_that_cannot_be_written_is_one_line(cell: Any, problem: str) -> None:
    with pytest.raises(InputError, match=f'row 1, column "query": .*{problem}.*, expected'):
        text_of(cell, "query")


@pytest.mark.parametrize("column", ["query", "task_split"])
def test_all_rows_have_the_columns_of_the_first(column: str) -> None:
    """A split that only later rows state would be lost. Other columns may be missing."""
    less = {name: cell for name, cell in ROW.items() if name != column}
    for rows, problem in (([ROW, less], "missing"), ([less, ROW], "not in row 1")):
        expected = f'x, row 2, column "{column}": {problem}, expected the same columns in every row'
        with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
            list(text_rows("x", rows))
    other = {"other": "a"}
    assert len(list(text_rows("x", [ROW | other, ROW, ROW | other]))) == 4


def test_a_data_frame_equals_its_rows() -> None:
    rows = [ROW, ROW | {"target": None}]
    frame = pd.DataFrame(rows)
    expected = list(text_rows("x", rows))
    assert list(text_rows("x", frame)) == expected
    assert list(text_rows("x", (row for _, row in frame.iterrows()))) == expected
    assert list(text_rows("x", frame.astype("string").astype("category"))) == expected
    assert list(text_rows("x", frame.set_index("")))[1] == expected[1]  # a named index is a column
    with pytest.raises(InputError, match='2 columns "story", expected one'):
        next(text_rows("x", pd.concat([frame, frame[["story"]]], axis=1)))
    mine = frame.assign(mine=1)
    assert next(text_rows("x", pd.concat([mine, mine[["mine"]]], axis=1))) == [*frame, "mine"]


@pytest.mark.parametrize("name", ["C:\\temp", "C:\\", "\\in", "O'Hara", 'the "o"', "\u00e9"])
def test_names_of_facts_are_read_as_they_are(name: str) -> None:
    """A backslash in a name starts no escape."""
    row = {"facts": [(name, "son", "Bob")], "query": (name, "Bob"), "target": "son"}
    header, cells = text_rows("x", [row])
    (read,) = parse_rows("x", [header, cells])
    assert read.names == (name, "Bob") and read.query == (0, 1)
