"""Tables in memory -> rows of text -> aligned columns."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Number
from typing import Any

from generator.errors import InputError, at, printable

# Columns of a published data set that are read.
REQUIRED = (
    "story", "query", "target", "task_name", "story_edges", "edge_types", "query_edge", "genders",
)  # fmt: skip
# Columns that are read if a table has them.
OPTIONAL = (
    "id", "clean_story", "f_comb", "task_split", "target_text", "facts", "names", "k", "edges",
    "edge_labels", "query_label",
)  # fmt: skip
LISTS = (  # may be lists
    "query", "story_edges", "edge_types", "query_edge", "facts", "names", "edges", "edge_labels",
)  # fmt: skip


def text_rows(name: str, rows: Any) -> Iterator[list[str]]:
    """Yields the header and the rows of a table in memory, all cells as text.

    A missing cell (None, NaN) is empty. Tuples and arrays are read as lists. A cell must be text, a
    number or, in LISTS, a list; other cells are empty in columns that are not read.

    Args:
      name: name of the table in messages.
      rows: mappings from column to cell, which have the columns of the first, or a pandas data
        frame, whose index may have columns too. Class labels of the package `datasets` are read
        as their names.
    """
    if is_frame(rows):
        levels = [level for level in rows.index.names if level not in (None, *rows.columns)]
        frame = rows.reset_index(level=levels)
        for column in (*REQUIRED, *OPTIONAL):
            if (count := list(frame.columns).count(column)) > 1:
                raise InputError(f'{name}: {count} columns "{column}", expected one')
        rows = frame.loc[:, ~frame.columns.duplicated()].to_dict("records")
    elif hasattr(features := getattr(rows, "features", None), "to_dict"):
        rows = with_label_names(name, rows, features.to_dict())  # type: ignore[union-attr]
    if not isinstance(rows, Iterable):
        raise InputError(f"{name}: {type(rows).__name__}, expected rows")
    header: list[str] = []
    index = 0
    for index, row in enumerate(rows, start=1):
        if not hasattr(row, "items"):  # a mapping, or a row of a data frame
            kind = type(row).__name__
            raise InputError(f"{at(name, index)}: {kind}, expected columns with their cells")
        cells = {str(column): cell for column, cell in row.items()}
        if index == 1:
            header = list(cells)
            yield header
        for column in (*REQUIRED, *OPTIONAL):
            if (column in cells) != (column in header):
                problem = "missing" if column in header else "not in row 1"
                raise InputError(
                    f"{at(name, index, column)}: {problem}, expected the same columns in every row"
                )
        yield [_text(name, index, column, cells.get(column)) for column in header]
    if not index:
        raise InputError(f"{name}: no rows, expected at least one story")


def with_label_names(
    name: str, rows: Iterable[Mapping[str, Any]], features: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yields rows with the names of class labels in place of their numbers.

    Args:
      name: name of the table in messages.
      rows: mappings from column to cell.
      features: type of each column, as `datasets` writes it in JSON: a class label has "names",
        and a list the "feature" of its parts.
    """
    has_labels = "ClassLabel" in str(features)
    for index, row in enumerate(rows, start=1):
        if has_labels and hasattr(row, "items"):
            row = {column: _named(name, index, column, cell, features.get(column))
                   for column, cell in row.items()}  # fmt: skip
        yield row


def _named(name: str, index: int, column: str, cell: Any, feature: Any) -> Any:
    """A cell with the names of class labels."""
    if isinstance(feature, list) and feature:
        feature = {"feature": feature[0]}
    if not isinstance(feature, Mapping) or feature.keys().isdisjoint(("names", "feature")):
        return cell
    value = plain(cell)
    if isinstance(value, list):
        return [_named(name, index, column, part, feature.get("feature")) for part in value]
    names = feature.get("names")
    if isinstance(names, Mapping):  # as in a data card: {"0": "aunt", ...}
        names = list(names.values())
    if feature.get("_type") != "ClassLabel" or not names or not isinstance(value, int | float):
        return value
    if value == -1:  # of a missing label
        return None
    if value not in range(len(names)):
        raise InputError(
            f"{at(name, index, column)}: class label {value}, expected one below {len(names)}"
        )
    return names[int(value)]


def is_frame(value: Any) -> bool:
    """Returns whether a value is a pandas data frame. The package need not be installed."""
    return hasattr(value, "itertuples") and hasattr(value, "columns")


def plain(value: Any) -> Any:
    """Returns a value with lists in place of arrays, data frame columns and tuples, Python numbers
    in place of those of NumPy, and None in place of NaN. Other values remain as they are."""
    if isinstance(value, str) or value is None:
        return value
    if hasattr(value, "tolist"):  # an array or number of NumPy, JAX or PyTorch, or a pandas column
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return None
    return None if isinstance(value, Number) and value != value else value


def _text(name: str, index: int, column: str, cell: Any) -> str:
    if type(cell) is str and cell.isascii():
        return cell
    is_read = column in REQUIRED or column in OPTIONAL
    try:
        value = plain(cell)
        if isinstance(value, list) and is_read and column not in LISTS:
            raise TypeError(type(cell).__name__)
        # Text with half a character, which JSON can hold and no report, raises ValueError.
        # Facts are read with escapes: "\t" in the name C:\temp is no tab.
        quote = _in_json if column == "facts" else quoted
        return "" if value is None else _format(value, quote).encode().decode()
    except (TypeError, ValueError, RecursionError) as error:
        if not is_read:
            return ""
        expected = "text or a list" if column in LISTS else "text or a number"
        raise InputError(f"{at(name, index, column)}: {error}, expected {expected}") from None


def _format(value: Any, quote: Callable[[str], str]) -> str:
    """Formats a cell as the released files do. Raises TypeError for a value of another type.

    Args:
      value: the cell.
      quote: puts a name of a list in quotes.
    """
    if isinstance(value, list):
        parts = (quote(v) if isinstance(v, str) else _format(v, quote) for v in value)
        return f"[{', '.join(parts)}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # pandas turns integers into floats if a cell is missing
    if value is None or isinstance(value, str | Number):
        return str(value)
    raise TypeError(type(value).__name__)


def _in_json(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def quoted(name: str) -> str:
    """Returns a name in quotes, without escapes."""
    quote = '"' if "'" in name else "'"
    return f"{quote}{name}{quote}"


def plain_text(rows: Sequence[Sequence[str]]) -> str:
    """Formats a table, header first: columns of words are left-aligned, others right-aligned."""
    rows = [[printable(cell) for cell in row] for row in rows]
    columns = list(zip(*rows, strict=True))
    width = [max(map(len, column)) for column in columns]
    words = [i == 0 or any(cell[:1].isalpha() for cell in c[1:]) for i, c in enumerate(columns)]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if left else cell.rjust(w)
            for cell, w, left in zip(row, width, words, strict=True)
        ).rstrip()
        for row in rows
    )
