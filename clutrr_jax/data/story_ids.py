"""What a test story is called outside: the `id` of its row, or T.K/ROW, its place in its task."""

from pathlib import Path

import numpy as np

from clutrr_jax.data.dataset import read_tables, test_marker
from clutrr_jax.data.records import Records, tasks


def places(test: Records) -> list[str]:
    """T.K/ROW of each test story; rows count from 1 within their task, as in predictions.csv."""
    names = np.empty(len(test), object)
    for task, rows in tasks(test):
        names[rows] = [f"{task}/{row}" for row in range(1, len(rows) + 1)]
    return names.tolist()


def story_ids(path: str | Path, test: Records) -> list[str]:
    """The ids of the test stories of a data set: the column `id` where every test row has one of
    its own, else T.K/ROW.

    Args:
      path: the data set, as for `load`.
      test: the test records that `load` read from it.
    """
    ids: list[str] = []
    for name, header, rows in read_tables(Path(path)):
        if "id" in header:
            place, is_test = header.index("id"), test_marker(name, header)
            ids += [row[place] for row in rows if is_test(row)]
    return ids if len(set(ids)) == len(test) == len(ids) else places(test)
