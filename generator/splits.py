"""The split that the rows of a table belong to: train, dev or test. Dev rows are train rows."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from generator.errors import CellError

COLUMN = "task_split"
_OTHER_COLUMNS = (COLUMN, "split", "partition", "subset")  # in any case
# Whole words: "latest", "devices" and "values" state no split.
_SPLIT = re.compile(
    r"(?<![a-z])(test|train|val|dev)(?:s|ing|id|idation|elopment)?(?:set|data)?(?![a-z])"
)
NAMES = (
    "train, training, validation, valid, val, dev, development, test, tests or testing, also with "
    "set or data behind them"
)


def splits_in(text: str) -> set[str]:
    """Returns the splits that the name of a file or a cell states."""
    words = _SPLIT.findall(text.lower())
    return {"dev" if word == "val" else word for word in words}


def split_of_folder(name: str) -> str:
    """Returns the split that the name of a folder is, in any case; empty if it is another name."""
    return next(iter(splits_in(name)), "") if _SPLIT.fullmatch(name.lower()) else ""


def stated_splits(file: str, place: Path | None) -> tuple[set[str], str, bool]:
    """Returns the splits in the name of a table, that of its folder, and whether the folder is a
    part of the data set at `place`."""
    folder = Path(file).parent
    return splits_in(Path(file).name), split_of_folder(folder.name), place in folder.parents


def split_of_row(
    row: Mapping[str, Any], cell: str, name: Collection[str], folder: str, within: bool
) -> str:
    """Returns the split that the name of a table, the column and the folder state, or "".

    Args:
      row: all of its cells.
      cell: that of COLUMN.
      name: splits in the name of the table. Several, as in `gen_train23_test2to10`, state none,
        except train and dev.
      folder: split of its folder.
      within: whether the folder is a part of the data set. Another one counts if nothing else does.
    Raises:
      CellError: an unknown split, or statements that contradict each other.
    """
    if cell and len(splits_in(cell)) != 1:
        raise CellError(COLUMN, f'"{cell}": expected train, validation or test')
    several = set(name) - {"dev"} if "train" in name else set(name)
    found = [("name", split) for split in several if len(several) == 1]
    found += [("column", split) for split in splits_in(cell)]
    if folder and (within or not found):
        found.append(("folder", folder))
    for place, split in found[1:]:
        first, other = found[0]
        if (split == "test") != (other == "test"):
            raise CellError(
                COLUMN, f"the {first} says {other}, but the {place} {split}; expected the same"
            )
    if found:
        return found[0][1]
    if name:
        raise CellError(
            COLUMN, f"the name says {' and '.join(sorted(name))}; expected one of them here"
        )
    _check_columns(row)
    return ""


def _check_columns(row: Mapping[str, Any]) -> None:
    """Raises CellError if a column with another name than COLUMN states the split."""
    for column, text in row.items():
        if str(column).lower() in _OTHER_COLUMNS and splits_in(str(text)):
            raise CellError(column, f'"{text}": expected the name {COLUMN} for this column')
