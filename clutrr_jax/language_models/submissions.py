"""Files of predictions -> `Submission`: CSV, JSON Lines, the predictions.csv of a run, or logs of
evaluation harnesses."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from clutrr_jax.data.records import Records
from clutrr_jax.data.story_ids import positional_ids
from clutrr_jax.evaluation.predictions import Predictions, read_predictions
from clutrr_jax.language_models.answers import to_relation
from clutrr_jax.language_models.harness_logs import (
    Answer,
    inspect_answers,
    json_objects,
    lm_eval_answers,
)
from clutrr_jax.language_models.prompts import question
from generator.errors import InputError, at
from generator.files import table_rows
from generator.kinship import RELATION_ID, RELATIONS

UNMAPPED, _MISSING = -1, -2
EXPECTED = "id, prediction and, for several replicas, replica"


class Submission(NamedTuple):
    """Predictions of one model, by name."""

    name: str
    predictions: Predictions  # UNMAPPED where a text gives no relation


def read_submissions(
    files: Iterable[str | Path], ids: list[str], test: Records
) -> list[Submission]:
    """Reads files of predictions.

    Without a name, a submission is named after its file, or after the model if the file is that of
    a run or of a harness. Such names that are not unique are replaced by the path.

    Args:
      files: FILE or NAME=FILE, where FILE may be the folder of a log of lm-eval.
      ids: ids of the test stories; T.K/ROW is accepted as well.
      test: the test records.
    Raises:
      InputError: the message gives file and row of the first error.
    """
    story_of = {name: s for names in (positional_ids(test), ids) for s, name in enumerate(names)}
    read = []
    for file in files:
        path = str(file)
        given, _, path = ("", "", path) if Path(path).exists() else path.rpartition("=")
        name, predictions = _read(Path(path), story_of, ids, test)
        read.append((path, given, name, predictions))
    short = [name for *_, name, _ in read]
    return [
        Submission(given or (name if name and short.count(name) == 1 else path), predictions)
        for path, given, name, predictions in read
    ]


def check_names(submissions: Sequence[Submission], others: Iterable[str]) -> None:
    """Raises InputError if two submissions, or a submission and another row, have one name."""
    names = [*others, *(s.name for s in submissions)]
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"predictions: two rows named {name!r}, expected each once; NAME=FILE renames one"
            )


def _read(
    path: Path, story_of: dict[str, int], ids: list[str], test: Records
) -> tuple[str, Predictions]:
    """Name and predictions of one submission."""
    name = path.parent.name if path.stem == "predictions" else path.stem
    answers: Iterable[Answer]
    if path.is_dir():
        name, answers = path.resolve().name, lm_eval_answers(path)
    elif path.suffix in (".eval", ".json"):
        name, answers = inspect_answers(path)
    elif path.suffix == ".jsonl":
        answers = _json_answers(path)
    elif path.suffix != ".csv":
        raise InputError(f"{at(path)}: expected .csv, .jsonl, .eval, .json or a folder")
    else:
        header, *cells = table_rows(path)
        if header[:3] == ["replica", "task", "row"]:
            return name, read_predictions(path, test)
        answers = _csv_answers(path, header, cells)
    best = _best(path, answers, story_of, ids, test)
    return name, Predictions(best, best, np.ones(best.shape))


def _best(
    path: Path, answers: Iterable[Answer], story_of: dict[str, int], ids: list[str], test: Records
) -> np.ndarray:
    """Relation ids [R, S] of all replicas, from answers in any order."""
    best: dict[int, np.ndarray] = {}
    for answer in answers:
        if answer.id not in story_of:
            raise InputError(
                f"{answer.place}: no test story {answer.id[:60]!r}, expected ids such as {ids[0]!r}"
            )
        replica, story = answer.replica, story_of[answer.id]
        if not (replica.isascii() and replica.isdigit() and len(replica) < 10):
            raise InputError(f"{answer.place}: replica {replica[:60]!r}, expected an integer >= 0")
        relations = best.setdefault(int(replica), np.full(len(ids), _MISSING))
        if relations[story] != _MISSING:
            raise InputError(
                f"{answer.place}: second prediction for {answer.id!r}, expected one for each "
                "replica"
            )
        if answer.prompt and not _same_story(answer, test, story):
            raise InputError(
                f"{answer.place}: story {answer.id!r} has another text or label, expected the log "
                "of an export of this data"
            )
        relations[story] = relation_id(answer.text)
    for index in sorted(best):
        missing = np.flatnonzero(best[index] == _MISSING)
        if len(missing):
            of_replica = f" of replica {index}" if len(best) > 1 else ""
            raise InputError(
                f"{at(path)}: no prediction{of_replica} for {len(missing):,} of {len(ids):,} test "
                f"stories, such as {ids[missing[0]]!r}; expected one for each"
            )
    if not best:
        raise InputError(f"{at(path)}: no predictions, expected one for each test story")
    return np.stack([best[index] for index in sorted(best)])


def relation_id(text: str) -> int:
    """Relation id that a text states, or UNMAPPED."""
    relation = to_relation(text, RELATIONS)
    return UNMAPPED if relation is None else RELATION_ID[relation]


def _same_story(answer: Answer, test: Records, story: int) -> bool:
    """Equality of story, question and label in the log of a harness and in the data."""
    return (
        answer.prompt.rstrip().endswith(question(test, story))
        and answer.target == RELATIONS[test.target[story]]
    )


def _csv_answers(path: Path, header: list[str], rows: list[list[str]]) -> Iterator[Answer]:
    for column in ("id", "prediction"):
        if header.count(column) != 1:
            raise InputError(
                f'{at(path)}: {header.count(column)} columns "{column}", expected {EXPECTED}'
            )
    for number, cells in enumerate(rows, start=1):
        place = at(path, number)
        if len(cells) != len(header):
            raise InputError(f"{place}: {len(cells)} cells, expected {len(header)}")
        row = dict(zip(header, cells, strict=True))
        yield Answer(place, row["id"], row["prediction"], row.get("replica", "0"))


def _json_answers(path: Path) -> Iterator[Answer]:
    for place, row in json_objects(path):
        if "resps" in row:
            raise InputError(f"{at(path)}: a file of a log of lm-eval, expected the folder")
        if not isinstance(row.get("id"), str | int):
            raise InputError(f'{place}: no "id", expected the keys {EXPECTED}')
        if not isinstance(row.get("replica", 0), str | int):
            raise InputError(f'{place}: "replica": expected an integer')
        if not isinstance(row.get("prediction"), str):
            raise InputError(f'{place}: "prediction" is not text, expected the keys {EXPECTED}')
        # Lines of an export have the prompt too, and are compared with the data.
        prompt, target = str(row.get("prompt", "")), str(row.get("target", ""))
        replica = str(row.get("replica", 0))
        yield Answer(place, str(row["id"]), row["prediction"], replica, prompt, target)
