"""Predictions -> `Submission`: CSV such as the predictions.csv of a run, JSON Lines, logs of
evaluation harnesses, or values in memory."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clutrr_jax.data.records import Records, positional_ids, story_ids
from clutrr_jax.evaluation.predictions import Predictions, prediction_file, read_predictions
from clutrr_jax.language_models.answers import to_relation
from clutrr_jax.language_models.export import MULTIPLE_CHOICE, TASK
from clutrr_jax.language_models.harness_logs import (
    Answer,
    inspect_answers,
    json_objects,
    lm_eval_answers,
    prompt_text,
)
from clutrr_jax.language_models.prompts import question
from clutrr_jax.models import MODELS
from generator.algebra import Algebra
from generator.errors import InputError, at, check_utf8
from generator.files import read_json
from generator.tables.readers import table_rows

UNMAPPED = -1
_POSITION = re.compile(r"\d+\.\d+/\d+")  # T.K/ROW
EXPECTED = 'id, prediction ("" for no answer) and, for several replicas, replica'
# Group of tasks of lm-eval -> end of the name of its answers.
_KINDS = {TASK: "", MULTIPLE_CHOICE: " (multiple choice)"}


class Submission(NamedTuple):
    """Predictions of one model with R replicas on n of the test stories."""

    name: str
    predictions: Predictions  # [R, n]; UNMAPPED where a text gives no relation
    stories: np.ndarray  # [n] indices of the test stories, ascending
    replicas: Sequence[int] = ()  # [R] numbers and [R, n] texts in the file; empty for arrays
    texts: Sequence[Sequence[str]] = ()
    given: str = ""  # see `Spec.given`; empty if it is not known
    # [R, n] relations that stand alone or follow a marker, UNMAPPED if a sentence states them; None
    # if there is no free text
    strict: np.ndarray | None = None


def read_submissions(files: Iterable[str | Path], test: Records) -> list[Submission]:
    """Reads files of predictions.

    Files of probabilities that are joined by commas are one submission with all of their replicas.
    A story that a file does not have was not asked; it is not among those of the submission.

    Without a name, a submission is named after its file, or after the model if the file is that of
    a run or of a harness. Such names that are not unique are replaced by the path. A folder of
    lm-eval gives one submission for each group of tasks.

    Args:
      files: FILE or NAME=FILE, where FILE may be the folder of a log of lm-eval.
      test: the test records. An answer has the id of a story or, unless ids of the data have this
        form themselves, T.K/ROW.
    Raises:
      InputError: the message gives file and row of the first error.
    """
    read = [(label, path, *one) for label, path in map(split_name, files)
            for one in read_file(path, test)]  # fmt: skip
    short = [(name, kind) for _, _, name, kind, _ in read]
    return [
        submission._replace(
            name=(label or (name if name and short.count((name, kind)) == 1 else str(path))) + kind,
            given=given_of(path),
        )
        for label, path, name, kind, submission in read
    ]


def split_name(file: str | Path) -> tuple[str, Path]:
    """Name, "" if there is none, and path of a FILE or NAME=FILE."""
    path = str(file)
    while not os.path.exists(path) and "=" in path:  # names and paths may contain "="
        path = path.partition("=")[2]
    return str(file).removesuffix(path).removesuffix("="), Path(path)


def given_of(path: Path) -> str:
    """Column "given" of a file in the folder of a run, and of files that agree; else unknown."""
    known = {_given_of_one(file) for file in _files(path)}
    return known.pop() if len(known) == 1 else ""


def _given_of_one(path: Path) -> str:
    what = path.stem.partition("_")[0]
    if what not in ("predictions", "probabilities"):
        return ""
    try:
        config = read_json(path.parent / "config.json", {"model": str})
    except InputError:  # none, or not that of a run
        return ""
    if (model := config["model"]) not in MODELS:
        return ""
    prefix = f"{model}."
    settings = MODELS[model].config | {
        key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)
    }
    variants = ("", *MODELS[model].variants)
    files = {prediction_file(variant, path.suffix): variant for variant in variants}
    variant = files.get(path.name.replace(what, "predictions"), "")
    return MODELS[model].given(settings, variant, "start" in config)


def _files(path: Path) -> list[Path]:
    """The files of an ensemble, which are joined by commas."""
    joined = path.suffix == ".npz" and not path.exists()
    return [Path(part) for part in str(path).split(",")] if joined else [path]


def check_names(submissions: Sequence[Submission], others: Iterable[str]) -> None:
    """Raises InputError if two submissions, or a submission and another row, have one name, or a
    name would not fit on one line."""
    names = [*others, "ceiling", "stories", *(s.name for s in submissions)]
    for name in names:
        if not name.isprintable() or name != name.strip():
            raise InputError(
                f"predictions: name {name!r}, expected text on one line without blanks around it, "
                "control characters and other blanks than spaces"
            )
        if names.count(name) > 1:
            raise InputError(
                f"predictions: two rows named {name!r}, expected each once; NAME=FILE renames one"
            )


def read_file(path: Path, test: Records) -> list[tuple[str, str, Submission]]:
    """Name of a file or its model, kind (see `_KINDS`) and submission without a name."""
    check_utf8(path)
    of_run = path.stem in ("predictions", "probabilities")
    name = path.parent.name if of_run else path.stem
    if path.suffix == ".npz":
        files = _files(path)
        if len({file.resolve() for file in files}) < len(files):
            raise InputError(f"{path}: a file occurs twice, expected each replica once")
        found = read_predictions(files, test)
        replicas = list(range(len(found.relation)))
        texts = [[test.relation_name(r) for r in one] for one in found.relation]
        return [(name, "", Submission("", found, np.arange(len(test)), replicas, texts))]
    answers: Iterable[Answer]
    if path.is_dir():
        name = path.resolve().name
        groups = lm_eval_answers(path)
        return [(name, _KINDS[g], _collect(path, answers, test)) for g, answers in groups.items()]
    if path.suffix in (".eval", ".json"):
        name, answers = inspect_answers(path)
    elif path.suffix == ".jsonl":
        answers = _json_answers(path)
    elif path.suffix != ".csv":
        raise InputError(f"{path}: expected .csv, .jsonl, .npz, .eval, .json or a folder")
    else:
        answers = _csv_answers(path)
    return [(name, "", _collect(path, answers, test))]


def stories_by_id(test: Records) -> dict[str, int]:
    """Returns the index of each test story by its id, and by T.K/ROW."""
    ids = story_ids(test)
    # Ids of this form may be positions in a larger data set, whose other stories are not these.
    positions = [] if any(map(_POSITION.fullmatch, ids)) else positional_ids(test)
    return {name: s for names in (positions, ids) for s, name in enumerate(names)}


def _collect(path: Path, answers: Iterable[Answer], test: Records) -> Submission:
    """Submission without a name, from answers in any order."""
    ids, story_of = story_ids(test), stories_by_id(test)
    found: dict[int, dict[int, Answer]] = defaultdict(dict)  # replica -> story -> answer
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
                "predictions for this data, and a prompt that asks about this story last"
            )
        of_replica[story] = answer._replace(prompt="")  # prompts may be long
    if not found:
        raise InputError(f"{path}: no predictions, expected one for each test story that was asked")
    stories = sorted(set().union(*found.values()))
    replicas = sorted(found)
    for index in replicas:
        missing = [story for story in stories if story not in found[index]]
        if missing:
            raise InputError(
                f"{path}: no prediction of replica {index} for {len(missing):,} of "
                f"{len(stories):,} stories, such as {ids[missing[0]]!r}; expected the same "
                "stories in every replica"
            )
    ordered = [[found[index][story] for story in stories] for index in replicas]
    check_no_ids(str(path), (answer.text for one in ordered for answer in one), test.algebra)
    every = np.array([[*map(partial(_numbers, test), stories, one)] for one in ordered])
    relation, last, probability = np.moveaxis(every, -1, 0)
    predictions = Predictions(relation.astype(int), last.astype(int), probability)
    texts = [[answer.text for answer in one] for one in ordered]
    strict = strict_answers(predictions.relation, texts, test, stories)
    return Submission("", predictions, np.array(stories), replicas, texts, strict=strict)


def _numbers(test: Records, story: int, answer: Answer) -> tuple[int, int, float]:
    """Relation, relation after the last epoch, and probability."""
    relation = relation_id(answer.text, test, story)
    last = relation_id(answer.last, test, story) if answer.last else relation
    return relation, last, _probability(answer)


def _probability(answer: Answer) -> float:
    try:
        return float(answer.probability or 1)  # an empty cell states none
    except ValueError:
        raise InputError(
            f"{answer.place}: probability {answer.probability[:60]!r}, expected a number"
        ) from None


def check_no_ids(place: str, predictions: Iterable[Any], algebra: Algebra) -> None:
    """Raises InputError if all answers are relation ids as text, which state no relation. Numbers
    that are names of relations do."""

    def is_id(answer: Any) -> bool:
        is_number = isinstance(answer, str) and re.fullmatch(r"\s*\d+(\.0*)?\s*", answer)
        return bool(is_number) and algebra.find(answer) is None

    given = [one for one in predictions if one is not None and one != ""]
    if given and all(map(is_id, given)):
        raise InputError(f"{place}: all are numbers as text, expected names of relations or text")


def strict_answers(
    relation: np.ndarray, texts: Sequence[Sequence[Any]], test: Records, stories: Sequence[int]
) -> np.ndarray | None:
    """See `Submission.strict`."""
    free, strict = False, relation.copy()
    for replica, i in np.argwhere(relation != UNMAPPED).tolist():
        text = texts[replica][i]
        if isinstance(text, str) and test.algebra.find(text) is None:
            free, strict[replica, i] = True, relation_id(text, test, stories[i], strict=True)
    return strict if free else None


def relation_id(text: str, test: Records, story: int, strict: bool = False) -> int:
    """Relation id that a text states of the query of a story, or UNMAPPED. Free text is read for
    kinship alone."""
    algebra = test.algebra
    relation = algebra.index.get(text)
    if relation is None and algebra.is_kinship:
        told = test.story(story)
        name = to_relation(text, algebra.relations, told.query, told.people, strict)
        relation = algebra.index.get(name or "")
    elif relation is None:
        relation = algebra.find(text)
    return UNMAPPED if relation is None else relation


def _same_story(answer: Answer, test: Records, story: int) -> bool:
    """Equality of label and, in the log of a harness, of the last story and question of the prompt.

    Text around them is that of the user, and so are a label that is no relation, and a prompt
    without a label.
    """
    label = test.relation_name(test.target[story])
    if answer.prompt and answer.target:
        _, asked, after = answer.prompt.rpartition(question(test, story))
        return bool(asked) and "Story: " not in after and answer.target == label
    return answer.target not in test.algebra.index or answer.target == label


def _csv_answers(path: Path) -> Iterator[Answer]:
    for number, row in enumerate(table_rows(path), start=1):
        place = at(path, number)
        for column in ("id", "prediction"):
            if column not in row:
                raise InputError(
                    f'{path}: expected one column "{column}"; the columns are {EXPECTED}; found '
                    f"{','.join(row)}"
                )
        row["last"] = row.get("last_prediction", "")
        more = {key: row[key] for key in ("replica", "target", "last", "probability") if key in row}
        yield Answer(place, row["id"], row["prediction"], **more)


def _json_answers(path: Path) -> Iterator[Answer]:
    for place, row in json_objects(path):
        if "resps" in row:
            raise InputError(f"{path}: a file of a log of lm-eval, expected the folder")
        # null and NaN are missing. Lines of an export also have the prompt.
        missing = {"prediction": ""} if "prediction" in row else {}
        given = {key: value for key, value in row.items() if value is not None and value == value}
        row = {"replica": 0, "prompt": "", "target": ""} | missing | given
        for key, kind in (("id", str | int), ("replica", str | int | float), ("prediction", str)):
            if not isinstance(row.get(key), kind):
                raise InputError(
                    f'{place}: "{key}" is missing or not text, expected the keys {EXPECTED}'
                )
        with suppress(ValueError):
            row["prompt"] = prompt_text(row["prompt"])
        keys = ("id", "prediction", "replica", "prompt", "target")
        yield Answer(place, *(str(row[key]) for key in keys))
