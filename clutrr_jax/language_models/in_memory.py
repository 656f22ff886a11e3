"""Predictions in memory -> `Submission`."""

from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.data.records import Records, story_ids
from clutrr_jax.evaluation.predictions import UNMAPPED, Predictions
from clutrr_jax.language_models.harness_logs import Answer
from clutrr_jax.language_models.submissions import Submission, joined, read_file, stories_by_id
from generator.errors import InputError
from generator.tables.cells import is_frame, plain


def to_submissions(name: str, values: Any, test: Records) -> list[Submission]:
    """Converts the predictions of one model; a file of lm-eval may have two groups of tasks.

    Values are a file, `Predictions`, or relation names, relation ids or text, [S] or [replicas, S];
    or a list of .npz files, whose replicas are taken together. A missing value (None, NaN, "") is a
    missing answer.
    """
    if isinstance(values, list | tuple) and values and all(map(_is_probabilities, values)):
        values = ",".join(map(str, values))
    if isinstance(values, str | Path):
        return [one._replace(name=name + one.name) for one in read_file(Path(values), test)[1]]
    source, ids = f'predictions of "{name}"', story_ids(test)
    known = isinstance(values, Predictions)
    given = values.relation if known else _in_order(source, values, test)
    items = np.atleast_2d(np.array(plain(given), dtype=object))
    may_be_relations = all(id.isdecimal() and int(id) < test.unstated for id in ids)
    if name == "id" or ({*map(str, items.flat)} == {*ids} and not may_be_relations):
        raise InputError(
            f"{source}: ids of stories, expected predictions in the order of the test stories, "
            "with their ids as index at most, or the path of a file"
        )
    if items.ndim != 2 or items.shape[1] != len(test) or not len(items):
        raise InputError(
            f"{source}: shape {items.shape}, expected one for each of the {len(test):,} test "
            "stories, with the replicas as first axis"
        )
    is_ids = not known and isinstance(given, np.ndarray) and given.dtype.kind in "iu"
    if is_ids and ((given >= 0) & (given < test.unstated)).all():
        relation = np.atleast_2d(given).astype(int)
        values, known = Predictions(relation, relation, np.ones(relation.shape)), True
    if known:
        if not ((values.relation >= UNMAPPED) & (values.relation < test.unstated)).all():
            raise InputError(f"{source}: expected relation ids from 0 to {test.unstated - 1}")
        return [Submission(name, values, np.arange(len(test)))]
    answers = (
        Answer(source, ids[story], _text(f"{source}, story {story}", item, test), str(replica))
        for (replica, story), item in np.ndenumerate(items)
    )
    return [joined(name, source, answers, test)]


def _in_order(source: str, values: Any, test: Records) -> Any:
    """Predictions in the order of the test stories, where pandas has the ids of these as labels of
    the last axis."""
    if isinstance(values, list | tuple):
        return [_in_order(source, one, test) for one in values]
    axis = "columns" if is_frame(values) else "index"
    index: Any = getattr(values, axis, None)
    if not hasattr(index, "get_indexer"):
        return values
    array, labels, story_of = values.to_numpy(), list(index), stories_by_id(test)
    if labels == list(range(len(labels))) and index.name != "id":
        ids, named = [*story_ids(test)], [*map(str, labels)]
        if ids != named and {*ids} == {*named}:
            raise InputError(
                f"{source}: {axis} 0, 1, ..., which may be positions or the ids of the test "
                'stories; expected an array, or an index named "id"'
            )
        return array
    place = {story_of.get(str(label), -1): i for i, label in enumerate(labels)}
    if place.keys() != {*range(len(test))} or len(labels) > len(test):
        unknown = [label for label in labels if str(label) not in story_of] or labels
        raise InputError(
            f"{source}: {axis} with labels such as {str(unknown[0])[:60]!r}, expected 0, 1, ... in "
            "this order, or each id of the test stories once"
        )
    return array[..., [place[story] for story in range(len(test))]]


def _is_probabilities(value: Any) -> bool:
    return isinstance(value, str | Path) and str(value).endswith(".npz")


def _text(place: str, item: Any, test: Records) -> str:
    """A value in memory as text: "" for a missing one, and the name of a relation id."""
    if item is None or isinstance(item, str):
        return item or ""
    # Of pandas, ids are floats if another one is missing.
    is_integer = isinstance(item, float) and item.is_integer()
    is_id = is_integer or (isinstance(item, int | np.integer) and not isinstance(item, bool))
    if not is_id or not 0 <= item < len(test.algebra.relations):
        raise InputError(
            f'{place}: {item!r}, expected a relation name, text ("" for a missing answer), or a '
            f"relation id from 0 to {test.unstated - 1}"
        )
    return test.algebra.relations[int(item)]
