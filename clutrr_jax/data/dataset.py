"""Published files and tables in memory -> a `Dataset` of train and test records.

Supported are a release as .zip or folder, single files, the generator's output, and the data set
`CLUTRR/v1` on Hugging Face (the same columns with a numeric `target`), as files or as read by the
package `datasets`. Files are .csv, .csv.gz, .parquet or .jsonl.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from clutrr_jax.data.records import Records, build_records, columns, concatenate
from clutrr_jax.data.vocabulary import Vocabulary, build_vocabulary, entity_pool
from generator.algebra import Algebra
from generator.algebras import algebra_of, find_algebra, write_algebra
from generator.cells import is_frame, text_rows
from generator.errors import InputError
from generator.files import Source, atomic_write, reading, sources, tables_in
from generator.rows import NO_TARGET, Row, parse_rows


@dataclass(frozen=True)
class Dataset:
    """A data set. Files with only tests, or only train rows, leave the other part None."""

    name: str
    train: Records | None
    test: Records | None

    def records(self, split: str, answered: bool = True) -> Records:
        """Returns the train or the test records.

        Args:
          split: train or test.
          answered: whether every row must have a target.
        Raises:
          InputError: there are none, or a row has no target.
        """
        found: Records | None = getattr(self, split)
        if found is None:
            raise InputError(
                f"{self.name}: no {split} rows, expected *_{split}.csv or rows whose "
                f'task_split is "{split}"'
            )
        if answered and (found.target == NO_TARGET).any():
            row = int((found.target == NO_TARGET).argmax()) + 1
            raise InputError(f"{self.name}: no target in {split} row {row}, expected one in each")
        return found

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Words of the train stories, and entities for the people of every story."""
        parts = [part for part in (self.train, self.test) if part is not None]
        return build_vocabulary(parts[0], entity_pool(*parts))

    def to_parquet(self, folder: str | Path) -> list[Path]:
        """Writes train.parquet and test.parquet to a folder and returns them.

        `load` and `datasets.load_dataset` read the folder. The files have the published columns
        that the records hold: id, story, query, target, the task, the facts and the genders.

        Raises:
          InputError: the folder holds other data, or cannot be written.
        """
        import pyarrow as pa  # only this format needs it
        import pyarrow.parquet as pq

        parts = {"train": self.train, "test": self.test}
        files = {Path(folder) / f"{s}.parquet": (s, r) for s, r in parts.items() if r is not None}
        with reading(Path(folder)):
            others = [file.name for file in tables_in(Path(folder)) if file not in files]
        if others:
            raise InputError(f"{folder}: holds other data, {others[0]}; expected an empty folder")
        for file, (split, records) in files.items():
            cells = columns(records) | {"task_split": [split] * len(records)}
            with atomic_write(file) as temporary:
                pq.write_table(pa.table(cells), temporary)
            write_algebra(Path(folder), records.algebra)
        return list(files)


def load(
    source: str | Path | Mapping[str, Iterable[Any]] | Iterable[Any],
    algebra: Algebra | str | Path | None = None,
) -> Dataset:
    """Reads a data set.

    The name of a file or split states what its rows are: `test` for test rows, `train`, `valid` or
    `dev` for train rows (each replica draws its own dev split). Otherwise the column `task_split`
    decides for each row, then a folder named `train`, `validation` or `test`; without any of these
    all rows are train rows. Stories that two files of one split have are reported on stderr.

    Args:
      source: the path of a .zip, a folder, or a .csv, .csv.gz, .parquet or .jsonl file; or what
        `datasets.load_dataset` returns: rows (mappings from column to cell, or a pandas data
        frame), or a mapping from the name of each split to its rows.
      algebra: of the relations: its name, a JSON file, or as read from one. By default that of a
        file algebra.json next to the data, or else that of the package with the first relation.
    Raises:
      InputError: the path does not exist, or the data set is empty or has a row that cannot be
        used.
    """
    if algebra is not None and not isinstance(algebra, Algebra):
        algebra = find_algebra(str(algebra))
    if isinstance(source, str | os.PathLike):
        name, tables = Path(source).name.removesuffix(".zip"), sources(Path(source))
        algebra = algebra or algebra_of(Path(source))
    else:
        name, tables = "data set", list(_tables(source))
    parts: dict[bool, list[Records]] = {False: [], True: []}  # by whether they are test rows
    first: dict[tuple[bool, int], str] = {}  # file of each story
    for file, cells in tables:
        rows = list(parse_rows(file, cells, algebra=algebra))
        algebra = rows[0].algebra
        for is_test, records in parts.items():
            if part := [row for row in rows if (row.split == "test") == is_test]:
                records.append(build_records(file, part))
                _report_copies(file, part, first)
    train, test = parts.values()
    if not train and not test:
        raise InputError(f"{name}: no data, expected a train and a test split")
    return Dataset(
        name=name,
        train=concatenate(train) if train else None,
        test=concatenate(test) if test else None,
    )


def _report_copies(file: str, rows: list[Row], first: dict[tuple[bool, int], str]) -> None:
    """Prints how many stories of a file earlier files of its split have, and adds the others."""
    copies: Counter[str] = Counter()
    for row in rows:
        story = hash((row.story, row.query_names, row.edges, row.relations))
        other = first.setdefault((row.split == "test", story), file)
        copies[other] += other != file
    for other, count in copies.items():
        if count:
            print(
                f"{file}: {count:,} stories are also in {other}, and count twice", file=sys.stderr
            )


def _tables(data: Mapping[str, Iterable[Any]] | Iterable[Any]) -> Iterator[Source]:
    """Yields the tables of a data set in memory."""
    if not isinstance(data, Iterable):
        raise InputError(f"{type(data).__name__}: expected the path of a data set, or its rows")
    if not isinstance(data, Mapping):
        # A `datasets.Dataset` knows its split. A data frame may have such a column.
        split = "" if is_frame(data) else str(getattr(data, "split", None) or "")
        data = {"" if "+" in split else split: data}  # the rows of "train+test" say what they are
    for split, rows in data.items():
        name = f"data set/{split}" if split else "data set"
        yield name, text_rows(name, rows)
