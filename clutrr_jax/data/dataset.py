"""Published files and tables in memory -> a `Dataset` of train and test records.

Supported are a release as .zip or folder, single files, the generator's output, and the data set
`CLUTRR/v1` on Hugging Face (the same columns with a numeric `target`), as files or as read by the
package `datasets`. Files are .csv, .csv.gz, .parquet or .jsonl.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from clutrr_jax.data.copies import count_copies, report_copies, shared_note
from clutrr_jax.data.records import Records, build_records, columns
from clutrr_jax.data.vocabulary import Vocabulary, build_vocabulary, entity_pool
from generator.checks import check_queries, check_splits, report_reading
from generator.errors import InputError
from generator.files import atomic_write, reading
from generator.named import find_data
from generator.relations.algebra import Algebra
from generator.relations.algebras import algebra_of, find_algebra, write_algebra
from generator.tables.cells import is_frame
from generator.tables.readers import Rows, memory_rows, sources, tables_in
from generator.tables.rows import NO_TARGET, Row, parse_rows


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
      source: the path of a .zip, a folder, or a .csv, .csv.gz, .parquet or .jsonl file; the name
        of a fixed data set, such as "clutrr-v1/gen23", which is generated on first use, or of a
        released one, such as "data_089907f8", in a folder of CLUTRR_RELEASES; or what
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
    place = None
    if isinstance(source, str | os.PathLike):
        place = find_data(source)
        name, tables = place.name.removesuffix(".zip"), sources(place)
        algebra = algebra or algebra_of(place)
    else:
        name, tables = "data set", list(_tables(source))
    read: list[tuple[str, list[Row]]] = []
    for file, cells in tables:
        parsed = parse_rows(file, cells, algebra=algebra, place=place, in_memory=not place)
        read.append((file, list(parsed)))
        algebra = read[-1][1][0].algebra
    if not read:
        raise InputError(f"{name}: no data, expected a train and a test split")
    return dataset_of(name, read)


def dataset_of(name: str, tables: Sequence[tuple[str, Sequence[Row]]]) -> Dataset:
    """Returns the data set of some tables, and prints what may be a mistake in them."""
    check_splits(tables)
    for file, rows in tables:
        check_queries(file, rows)
    found: dict[str, Records | None] = {"train": None, "test": None}
    report_reading(name, [row for _, rows in tables for row in rows])
    for split in found:
        part = [(file, row) for file, rows in tables for row in rows
                if (row.split == "test") == (split == "test")]  # fmt: skip
        if part:
            records = found[split] = build_records([row for _, row in part])
            report_copies([file for file, _ in part], records)
    if shared := count_copies(**found)["shared"]:
        print(f"{name}: {shared_note(shared)}", file=sys.stderr)
    return Dataset(name, **found)


def _tables(data: Mapping[str, Iterable[Any]] | Iterable[Any]) -> Iterator[tuple[str, Rows]]:
    """Yields the tables of a data set in memory."""
    if not isinstance(data, Iterable):
        raise InputError(f"{type(data).__name__}: expected the path of a data set, or its rows")
    if not isinstance(data, Mapping):
        # A `datasets.Dataset` knows its split. A data frame may have such a column.
        split = "" if is_frame(data) else str(getattr(data, "split", None) or "")
        data = {"" if "+" in split else split: data}  # the rows of "train+test" say what they are
    for split, rows in data.items():
        name = f"data set/{split}" if split else "data set"
        yield name, memory_rows(name, rows)
