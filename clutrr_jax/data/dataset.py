"""Published files -> a `Dataset` of train and test records.

Supported are a release as .zip or folder, single files, the generator's output, and the data set
`CLUTRR/v1` on Hugging Face (the same columns with a numeric `target`). Tables are .csv, .csv.gz or
.parquet files.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from clutrr_jax.data.records import Records, build_records, concatenate
from clutrr_jax.data.vocabulary import Vocabulary, build_vocabulary, entity_pool
from generator.errors import InputError, at
from generator.files import sources
from generator.tables import read_rows


@dataclass(frozen=True)
class Dataset:
    """A data set. Files with only tests, or only train rows, leave the other part None."""

    name: str
    train: Records | None
    test: Records | None

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Words of the train stories, and entities for the people of every story."""
        parts = [part for part in (self.train, self.test) if part is not None]
        return build_vocabulary(parts[0], entity_pool(*parts))


def load(path: str | Path) -> Dataset:
    """Reads a data set.

    The name of a file states its split: `test` for test rows, `train`, `valid` or `dev` for train
    rows (each replica draws its own dev split). Otherwise the column `task_split` decides for each
    row, and without that column all rows are train rows.

    Args:
      path: a .zip, a folder, or a .csv, .csv.gz or .parquet file.
    Raises:
      InputError: the path does not exist, holds no data, or has a row that cannot be used.
    """
    path = Path(path)
    parts: dict[bool, list[Records]] = {False: [], True: []}  # by whether they are test rows
    for source in sources(path):
        rows = list(read_rows(source))
        for is_test, records in parts.items():
            if part := [row for row in rows if (row.split == "test") == is_test]:
                records.append(build_records(source.name, part))
    train, test = parts.values()
    if not train and not test:
        raise InputError(f"{at(path)}: no data, expected files *_train.csv and *_test.csv")
    return Dataset(
        name=path.name.removesuffix(".zip"),
        train=concatenate(train) if train else None,
        test=concatenate(test) if test else None,
    )
