"""What a test story is called outside: the `id` of its row, or T.K/ROW, its place in its task."""

import io
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from clutrr_jax.data.files import _read_table, _tables
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
    for name, content in _tables(Path(path)):
        if name.endswith(".parquet"):
            table = pq.read_table(io.BytesIO(content)).to_pydict()
        else:
            header, rows = _read_table(name, content)
            table = dict(zip(header, zip(*rows, strict=True), strict=True))
        # As `load` tells the splits apart.
        base = Path(name).name.lower()
        split = table.get("task_split", ())
        if "test" in base:
            split = ["test"] * len(table["story"])
        elif "train" in base or "valid" in base:
            split = ()
        if "id" in table:
            ids += [str(i) for i, part in zip(table["id"], split, strict=False) if part == "test"]
    return ids if len(set(ids)) == len(test) == len(ids) else places(test)
