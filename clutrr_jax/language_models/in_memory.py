"""Predictions in memory -> `Submission`."""

from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.data.records import Records, story_ids
from clutrr_jax.evaluation.predictions import Predictions
from clutrr_jax.language_models.submissions import (
    UNMAPPED,
    Submission,
    check_no_ids,
    given_of,
    read_file,
    relation_id,
    stories_by_id,
    strict_answers,
)
from generator.errors import InputError
from generator.tables.cells import is_frame, plain


def to_submissions(name: str, values: Any, test: Records) -> list[Submission]:
    """Converts the predictions of one model; a file of lm-eval may have two groups of tasks.

    Args:
      name: name of the model.
      values: a file, `Predictions`, or relation names, relation ids or text, [S] or [replicas, S];
        or a list of .npz files, whose replicas are taken together.
        A missing value (None, NaN, "") is a missing answer.
      test: the S test records.
    Raises:
      InputError: predictions of another shape or type, or with ids of stories.
    """
    if isinstance(values, list | tuple) and values and all(map(_is_probabilities, values)):
        values = ",".join(map(str, values))
    if isinstance(values, str | Path):
        path = Path(values)
        return [
            submission._replace(name=name + kind, given=given_of(path))
            for _, kind, submission in read_file(path, test)
        ]
    given = values.relation if isinstance(values, Predictions) else _in_order(name, values, test)
    items = np.atleast_2d(np.array(plain(given), dtype=object))
    story_names = {*story_ids(test)}
    may_be_relations = all(id.isdecimal() and int(id) < test.unstated for id in story_names)
    if name == "id" or ({*map(str, items.flat)} == story_names and not may_be_relations):
        raise InputError(
            f'predictions of "{name}": ids of stories, expected predictions in the order of the '
            "test stories, with their ids as index at most, or the path of a file"
        )
    if items.ndim != 2 or items.shape[1] != len(test) or not len(items):
        raise InputError(
            f'predictions of "{name}": shape {items.shape}, expected one for each of the '
            f"{len(test):,} test stories, with the replicas as first axis"
        )
    check_no_ids(f'predictions of "{name}"', items.flat, test.algebra)
    ids, known = np.empty(items.shape, int), isinstance(values, Predictions)
    for place, item in np.ndenumerate(items):
        relation = UNMAPPED if known and item == UNMAPPED else _relation(item, test, place[1])
        if relation is None:
            raise InputError(
                f'predictions of "{name}", story {place[1]}: {item!r}, expected a relation name, '
                f'text ("" for a missing answer), or a relation id from 0 to {test.unstated - 1}'
            )
        ids[place] = relation
    if not known:
        values = Predictions(ids, ids, np.ones(ids.shape))
    strict = strict_answers(ids, items.tolist(), test, range(len(test)))
    return [Submission(name, values, np.arange(len(test)), strict=strict)]


def _in_order(name: str, values: Any, test: Records) -> Any:
    """Returns predictions in the order of the test stories, where pandas has the ids of these as
    labels of the last axis.

    Raises:
      InputError: the labels are others than these, and not 0, 1, ... in this order.
    """
    if isinstance(values, list | tuple):
        return [_in_order(name, one, test) for one in values]
    axis = "columns" if is_frame(values) else "index"
    index: Any = getattr(values, axis, None)
    if not hasattr(index, "get_indexer"):
        return values
    array, labels, story_of = values.to_numpy(), list(index), stories_by_id(test)
    is_default = labels == list(range(len(labels)))
    others = [id for id in story_ids(test) if not id.isdecimal()]
    numbers = [] if others else [int(id) for id in story_ids(test)]
    if is_default and index.name != "id":
        if numbers != labels and sorted(numbers) == labels:
            raise InputError(
                f'predictions of "{name}": {axis} 0, 1, ..., which may be positions or the ids of '
                'the test stories; expected an array, or an index named "id"'
            )
        return array
    place = {story_of.get(str(label), -1): i for i, label in enumerate(labels)}
    missing = set(range(len(test))) - place.keys()
    if missing or len(labels) > len(test):
        unknown = [label for label in labels if str(label) not in story_of]
        wrong = f"such as {str(unknown[0])[:60]!r}" if unknown else "that occur twice"
        if missing and not unknown:
            wrong = f"that lack {len(missing):,} stories"
        raise InputError(
            f'predictions of "{name}": {axis} with labels {wrong}, expected 0, 1, ... in this '
            "order, or each id of the test stories once"
        )
    return array[..., [place[story] for story in range(len(test))]]


def _is_probabilities(value: Any) -> bool:
    return isinstance(value, str | Path) and str(value).endswith(".npz")


def _relation(item: Any, test: Records, story: int) -> int | None:
    """Relation id of a value in memory; None if it is no prediction."""
    if item is None:
        return UNMAPPED
    if isinstance(item, str):
        return relation_id(item, test, story)
    if isinstance(item, float) and item.is_integer():  # of pandas, if another id is missing
        item = int(item)
    is_id = isinstance(item, int | np.integer) and not isinstance(item, bool)
    return int(item) if is_id and 0 <= item < len(test.algebra.relations) else None
