"""Predictions -> `Submission`: CSV such as the predictions.csv of a run, JSON Lines, logs of
evaluation harnesses, or values in memory."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from flax.traverse_util import unflatten_dict

from clutrr_jax.data.records import Records, positional_ids, story_ids
from clutrr_jax.evaluation.predictions import Predictions, prediction_file
from clutrr_jax.language_models.answers import to_relation
from clutrr_jax.language_models.harness_logs import (
    Answer,
    inspect_answers,
    json_objects,
    lm_eval_answers,
)
from clutrr_jax.language_models.prompts import question
from clutrr_jax.models import MODELS
from clutrr_jax.models.given import given
from generator.cells import plain
from generator.errors import InputError, at, check_utf8
from generator.files import read_json, table_rows
from generator.kinship import RELATION_ID, RELATIONS

UNMAPPED = -1
EXPECTED = 'id, prediction ("" for no answer) and, for several replicas, replica'


class Unmapped(NamedTuple):
    """One answer that states no relation."""

    replica: int
    id: str  # of the story
    target: str  # relation that is right
    prediction: str  # text of the answer


class Submission(NamedTuple):
    """Predictions of one model, by name."""

    name: str
    predictions: Predictions  # UNMAPPED where a text gives no relation
    unmapped: Sequence[Unmapped] = ()
    given: str = ""  # see `clutrr_jax.models.given`; empty if it is not known


def read_submissions(files: Iterable[str | Path], test: Records) -> list[Submission]:
    """Reads files of predictions.

    Without a name, a submission is named after its file, or after the model if the file is that of
    a run or of a harness. Such names that are not unique are replaced by the path.

    Args:
      files: FILE or NAME=FILE, where FILE may be the folder of a log of lm-eval.
      test: the test records. An answer has the id of a story or T.K/ROW.
    Raises:
      InputError: the message gives file and row of the first error.
    """
    read = [(*split_name(file), _read(split_name(file)[1], test)) for file in files]
    short = [submission.name for *_, submission in read]
    return [
        submission._replace(
            name=label or (name if short.count(name) == 1 and name else str(path)),
            given=_given(path),
        )
        for label, path, submission in read
        for name in [submission.name]
    ]


def read_predictions(path: Path, test: Records) -> Predictions:
    """Reads one file of predictions, see `read_submissions`."""
    return _read(path, test).predictions


def split_name(file: str | Path) -> tuple[str, Path]:
    """Name, "" if there is none, and path of a FILE or NAME=FILE."""
    path = str(file)
    while not os.path.exists(path) and "=" in path:  # names and paths may contain "="
        path = path.partition("=")[2]
    return str(file).removesuffix(path).removesuffix("="), Path(path)


def _given(path: Path) -> str:
    """Column "given" of a file of predictions in the folder of a run; else it is not known."""
    config = path.parent / "config.json"
    settings = read_json(config, {}) if config.exists() else {}
    model = settings.get("model")
    if model not in MODELS or not path.name.startswith("predictions"):
        return ""
    files = {prediction_file(variant): variant for variant in ("", *MODELS[model].variants)}
    return given(unflatten_dict(settings, sep=".").get(model, {}), files.get(path.name, ""))


def check_names(submissions: Sequence[Submission], others: Iterable[str]) -> None:
    """Raises InputError if two submissions, or a submission and another row, have one name."""
    names = [*others, *(s.name for s in submissions)]
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"predictions: two rows named {name!r}, expected each once; NAME=FILE renames one"
            )


def _read(path: Path, test: Records) -> Submission:
    """One submission, with the name of its file or model."""
    check_utf8(path)
    name = path.parent.name if path.stem == "predictions" else path.stem
    answers: Iterable[Answer]
    if path.is_dir():
        name, answers = path.resolve().name, lm_eval_answers(path)
    elif path.suffix in (".eval", ".json"):
        name, answers = inspect_answers(path)
    elif path.suffix == ".jsonl":
        answers = _json_answers(path)
    elif path.suffix != ".csv":
        raise InputError(f"{path}: expected .csv, .jsonl, .eval, .json or a folder")
    else:
        answers = _csv_answers(path)
    return Submission(name, *_collect(path, answers, test))


def _collect(
    path: Path, answers: Iterable[Answer], test: Records
) -> tuple[Predictions, list[Unmapped]]:
    """Predictions of all replicas, from answers in any order, and those that are not mapped."""
    ids = story_ids(test)
    story_of = {name: s for names in (positional_ids(test), ids) for s, name in enumerate(names)}
    # Replica -> story -> relation, relation after the last epoch, probability.
    found: dict[int, dict[int, tuple[int, int, float]]] = defaultdict(dict)
    texts, unmapped = [], []
    for answer in answers:
        if answer.id not in story_of:
            raise InputError(
                f"{answer.place}: no test story {answer.id[:60]!r}, expected ids such as {ids[0]!r}"
            )
        # pandas writes 0 as 0.0 if a cell of the column is missing.
        replica = re.sub(r"(?<=\d)\.0+$", "", answer.replica.strip(), flags=re.ASCII)
        story = story_of[answer.id]
        if not (replica.isascii() and replica.isdigit() and len(replica) < 10):
            raise InputError(f"{answer.place}: replica {replica[:60]!r}, expected an integer >= 0")
        of_replica = found[int(replica)]
        if story in of_replica:
            raise InputError(
                f"{answer.place}: second prediction for {answer.id!r}, expected one for each "
                "replica"
            )
        if not _same_story(answer, test, story):
            raise InputError(
                f"{answer.place}: story {answer.id!r} has another text or label, expected "
                "predictions for this data"
            )
        relation = relation_id(answer.text)
        last = relation_id(answer.last) if answer.last else relation
        of_replica[story] = relation, last, _probability(answer)
        texts.append(answer.text)
        if relation == UNMAPPED:
            target = RELATIONS[test.target[story]]
            unmapped.append(Unmapped(int(replica), ids[story], target, answer.text))
    for index, of_replica in sorted(found.items()):
        missing = [id for story, id in enumerate(ids) if story not in of_replica]
        if missing:
            which = f" of replica {index}" if len(found) > 1 else ""
            raise InputError(
                f"{path}: no prediction{which} for {len(missing):,} of {len(ids):,} test "
                f"stories, such as {missing[0]!r}; expected one for each"
            )
    if not found:
        raise InputError(f"{path}: no predictions, expected one for each test story")
    check_no_ids(str(path), texts)
    every = np.array([[found[index][s] for s in range(len(ids))] for index in sorted(found)])
    relation, last, probability = np.moveaxis(every, -1, 0)
    return Predictions(relation.astype(int), last.astype(int), probability), unmapped


def _probability(answer: Answer) -> float:
    try:
        return float(answer.probability)
    except ValueError:
        raise InputError(
            f"{answer.place}: probability {answer.probability[:60]!r}, expected a number"
        ) from None


def check_no_ids(place: str, predictions: Iterable[Any]) -> None:
    """Raises InputError if all predictions are relation ids as text, which state no relation."""
    if all(isinstance(text, str) and text.strip().isdecimal() for text in predictions):
        raise InputError(f"{place}: all are numbers as text, expected names of relations or text")


def relation_id(text: str) -> int:
    """Relation id that a text states, or UNMAPPED."""
    if text in RELATION_ID:
        return RELATION_ID[text]
    relation = to_relation(text, RELATIONS)
    return UNMAPPED if relation is None else RELATION_ID[relation]


def _same_story(answer: Answer, test: Records, story: int) -> bool:
    """Equality of label and, in the log of a harness, story and question with those of the data.

    A label that is no relation, and a prompt without a label, are those of the user.
    """
    label = RELATIONS[test.target[story]]
    if answer.prompt and answer.target:
        return answer.prompt.rstrip().endswith(question(test, story)) and answer.target == label
    return answer.target not in RELATION_ID or answer.target == label


def _csv_answers(path: Path) -> Iterator[Answer]:
    header, *rows = table_rows(path)
    for column in ("id", "prediction"):
        if header.count(column) != 1:
            raise InputError(
                f'{path}: expected one column "{column}"; the columns are {EXPECTED}; found '
                f"{','.join(header)}"
            )
    for number, cells in enumerate(rows, start=1):
        place = at(path, number)
        if len(cells) != len(header):
            raise InputError(f"{place}: {len(cells)} cells, expected {len(header)}")
        row = dict(zip(header, cells, strict=True))
        row["last"] = row.get("last_prediction", "")
        more = {key: row[key] for key in ("replica", "target", "last", "probability") if key in row}
        yield Answer(place, row["id"], row["prediction"], **more)


def _json_answers(path: Path) -> Iterator[Answer]:
    for place, row in json_objects(path):
        if "resps" in row:
            raise InputError(f"{path}: a file of a log of lm-eval, expected the folder")
        # Lines of an export have the prompt too, and are compared with the data.
        given = {key: value for key, value in row.items() if value is not None}
        row = {"replica": 0, "prompt": "", "target": ""} | given
        for key, kind in (("id", str | int), ("replica", str | int | float), ("prediction", str)):
            if not isinstance(row.get(key), kind):
                raise InputError(
                    f'{place}: "{key}" is missing or not text, expected the keys {EXPECTED}'
                )
        keys = ("id", "prediction", "replica", "prompt", "target")
        yield Answer(place, *(str(row[key]) for key in keys))


def to_predictions(name: str, values: Any, test: Records) -> Predictions:
    """Converts the predictions of one model.

    Args:
      name: name of the model.
      values: a file, `Predictions`, or relation names, relation ids or text, [S] or [replicas, S].
      test: the S test records.
    Raises:
      InputError: predictions of another shape or type, or with ids of stories.
    """
    if isinstance(values, str | Path):
        return read_predictions(Path(values), test)
    if "id" in (name, getattr(getattr(values, "index", None), "name", None)):
        raise InputError(
            f'predictions of "{name}": ids of stories, expected predictions in the order of the '
            "test stories, without ids, or the path of a file"
        )
    given = values.relation if isinstance(values, Predictions) else values
    items = np.atleast_2d(np.array(plain(given), dtype=object))
    if items.ndim != 2 or items.shape[1] != len(test) or not len(items):
        raise InputError(
            f'predictions of "{name}": shape {items.shape}, expected one for each of the '
            f"{len(test):,} test stories, with the replicas as first axis"
        )
    check_no_ids(f'predictions of "{name}"', items.flat)
    ids = np.empty(items.shape, int)
    for place, item in np.ndenumerate(items):
        if isinstance(item, str):
            ids[place] = relation_id(item)
        elif (
            isinstance(item, int | np.integer)
            and not isinstance(item, bool)
            and UNMAPPED <= item < len(RELATIONS)
        ):
            ids[place] = item
        else:
            raise InputError(
                f'predictions of "{name}", story {place[1]}: {item!r}, expected a relation name, '
                f'text ("" for a missing answer), or a relation id from 0 to {len(RELATIONS) - 1}'
            )
    return values if isinstance(values, Predictions) else Predictions(ids, ids, np.ones(ids.shape))
