"""Published files -> a `Dataset` of train and test records.

Read are: a release as .zip or folder, a single CSV, what the generator writes, and the Hugging Face
data set `CLUTRR/v1` (the same columns, `target` a number) as CSV or Parquet, each plain or .csv.gz.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clutrr_jax.data.records import Records, concatenate, parse
from generator.errors import InputError, at
from generator.files import sources


@dataclass(frozen=True)
class Dataset:
    """A data set: what to train on (None in a file of tests alone) and what to test on."""

    name: str
    train: Records | None
    test: Records | None


def load(path: str | Path) -> Dataset:
    """Reads a data set. A file whose name contains `test` is test data, any other is train data
    (the Hugging Face `validation` split too: every replica draws its own dev split); in a single
    file whose name says neither, the column `task_split` decides row by row.

    Raises:
      InputError: nothing there, nothing to read in it, or a row that cannot be used.
    """
    path = Path(path)
    train: list[Records] = []
    test: list[Records] = []
    for name, header, rows in read_tables(path):
        is_test = test_marker(name, header)
        marks: list[bool] = []
        records = parse(name, header, _noted(rows, is_test, marks))
        chosen = np.array(marks)
        for part, some in ((train, ~chosen), (test, chosen)):
            if some.any():
                part.append(records.select(some))
    if not train and not test:
        raise InputError(f"{at(path)}: no data in it, expected files *_train.csv and *_test.csv")
    return Dataset(
        name=path.name.removesuffix(".zip"),
        train=concatenate(train) if train else None,
        test=concatenate(test) if test else None,
    )


def read_tables(path: Path) -> Iterator[tuple[str, list[str], Iterator[list[str]]]]:
    """Name, header and rows of every table of the data set, ordered by name. Raises InputError, be
    it while the rows are read."""
    for source in sources(path):
        rows = source.rows()
        yield source.name, next(rows), rows


def test_marker(name: str, header: list[str]) -> Callable[[list[str]], bool]:
    """What says whether a row of a table is test data, as `load` has it."""
    base = Path(name).name.lower()
    if "test" in base:
        return lambda row: True
    if "train" in base or "valid" in base or "task_split" not in header:
        return lambda row: False
    place = header.index("task_split")
    return lambda row: row[place] == "test"


def _noted(
    rows: Iterator[list[str]], is_test: Callable[[list[str]], bool], marks: list[bool]
) -> Iterator[list[str]]:
    """The same rows; each is marked once the reader has taken it as whole and asks for the next."""
    for row in rows:
        yield row
        marks.append(is_test(row))
