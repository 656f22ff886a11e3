"""Ids of test stories in files of predictions."""

import numpy as np

from clutrr_jax.data.records import Records, tasks


def positional_ids(test: Records) -> list[str]:
    """Returns T.K/ROW for each test story; rows count from 1 within their task."""
    ids = np.empty(len(test), object)
    for task, rows in tasks(test):
        ids[rows] = [f"{task}/{row}" for row in range(1, len(rows) + 1)]
    return ids.tolist()


def story_ids(test: Records) -> list[str]:
    """Returns the column `id` if every test story has a different one, otherwise T.K/ROW."""
    ids = set(test.ids) - {""}
    return list(test.ids) if len(ids) == len(test) else positional_ids(test)
