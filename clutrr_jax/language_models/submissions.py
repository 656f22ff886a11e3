"""Answers of models -> `Submission`: CSV, JSON Lines, logs of evaluation harnesses, or the
probabilities of a run."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from clutrr_jax.data.records import Records, positional_ids, story_ids
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.predictions import (
    UNMAPPED,
    Predictions,
    prediction_file,
    read_predictions,
)
from clutrr_jax.evaluation.scores import Score, Series, score, score_derived
from clutrr_jax.language_models.harness_logs import (
    Answer,
    inspect_answers,
    json_objects,
    lm_eval_answers,
    prompt_text,
)
from clutrr_jax.language_models.named_answers import stated_relation
from clutrr_jax.language_models.prompts import question
from clutrr_jax.models import MODELS
from generator.errors import InputError, at, check_utf8
from generator.files import read_json, reading
from generator.tables.readers import table_rows

_POSITION = re.compile(r"b?\d+\.\d+/\d+")  # T.K/ROW
_EXPECTED = 'id, prediction ("" for no answer) and, for several replicas, replica'


class Submission(NamedTuple):
    """Predictions of one model with R replicas on n of the test stories."""

    name: str
    predictions: Predictions  # [R, n]; UNMAPPED where a text gives no relation
    stories: np.ndarray  # [n] indices of the test stories, ascending
    replicas: Sequence[int] = ()  # [R] numbers and [R, n] texts, as they were read
    texts: Sequence[Sequence[str]] = ()
    given: str = ""  # see `Spec.given`; empty if it is not known
    # [R, n] relations that stand alone or follow a marker, UNMAPPED if a sentence states them; None
    # if there is no free text
    strict: np.ndarray | None = None


def read_submissions(files: Iterable[str | Path], test: Records) -> list[Submission]:
    """Reads FILE or NAME=FILE, where FILE may be the folder of a log of lm-eval, which gives one
    submission for each group of tasks.

    Files of probabilities that are joined by commas are one submission with all of their replicas.
    A story that a file does not have was not asked; it is not among those of the submission.

    Without a name, a submission is named after its file, or after the model if the file is that of
    a run or of a harness. Such names that are not unique are replaced by the path.
    """
    read = [(*split_name(file), *read_file(split_name(file)[1], test)) for file in files]
    names = [name for _, _, name, _ in read]
    return [
        one._replace(
            name=(label or (name if name and names.count(name) == 1 else str(path))) + one.name
        )
        for label, path, name, found in read
        for one in found
    ]


def split_name(file: str | Path) -> tuple[str, Path]:
    """Name, "" if there is none, and path of a FILE or NAME=FILE."""
    path = str(file)
    while not os.path.exists(path) and "=" in path:  # names and paths may contain "="
        path = path.partition("=")[2]
    return str(file).removesuffix(path).removesuffix("="), Path(path)


def given_of(path: Path) -> str:
    """Column "given" of a file in the folder of a run, and of files that agree; else unknown."""
    known = set()
    for file in _files(path):
        of_run = file.stem.partition("_")[0] in ("predictions", "probabilities")
        try:
            config = read_json(file.parent / "config.json", {"model": str}) if of_run else {}
        except InputError:  # none, or not that of a run
            config = {}
        model = config.get("model", "")
        if not (spec := MODELS.get(model)):
            return ""
        # Of a sweep, which has a list, the largest value: what any of its points is given.
        settings = {key.removeprefix(f"{model}."): max(v) if isinstance(v, list) else v
                    for key, v in config.items() if key.startswith(f"{model}.")}  # fmt: skip
        files = {prediction_file(variant, ""): variant for variant in spec.variants}
        variant = files.get(file.stem.replace("probabilities", "predictions"), "")
        known.add(spec.given(spec.config | settings, variant, "start" in config))
    return known.pop() if len(known) == 1 else ""


def _files(path: Path) -> list[Path]:
    """The files of an ensemble, which are joined by commas."""
    joined = path.suffix == ".npz" and not path.exists()
    return [Path(part) for part in str(path).split(",")] if joined else [path]


class Part(NamedTuple):
    """Some of the test stories."""

    name: str
    stories: np.ndarray  # indices, ascending


def read_ids(file: str | Path | None, test: Records) -> Part | None:
    """Reads the ids of some test stories, one in each line; without a file, none."""
    if file is None:
        return None
    if not isinstance(file, str | Path):
        raise InputError(f"ids: {file!r}, expected a file with an id in each line")
    path = Path(file)
    check_utf8(path)
    known = stories_by_id(test)
    found: set[int] = set()
    try:
        with reading(path):
            lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8, expected ids of test stories") from None
    for number, line in enumerate(lines, start=1):
        if (id := line.strip()) and id not in known:
            raise InputError(f"{at(path, number)}: no test story {id[:60]!r}, expected an id")
        found.update({known[id]} if id else ())
    if not found:
        raise InputError(f"{path}: empty, expected ids of test stories, one in each line")
    return Part(path.stem, np.array(sorted(found)))


def score_submission(one: Submission, truth: GroundTruth, part: Part | None = None) -> list[Score]:
    """Scores of all series of a submission, on the stories that it has, and on a part of them."""
    series, of_model = Series(one.name, "model", one.name, one.given), truth.select(one.stories)
    found = score(series, one.predictions, of_model)
    found += score_derived(series, one.predictions, of_model, one.strict)
    return found + (score_part(series, one, truth, part) if part else [])


def score_part(series: Series, one: Submission, truth: GroundTruth, part: Part) -> list[Score]:
    """Scores of a submission on a part of its stories: the row "NAME (PART)"."""
    stories, columns, _ = np.intersect1d(one.stories, part.stories, return_indices=True)
    if not len(stories):
        raise InputError(f"{series.name}: no predictions for stories of {part.name}")
    named = series._replace(name=f"{series.name} ({part.name})", kind="part")
    return score(named, one.predictions.select(columns), truth.select(stories))


def check_names(submitted: Iterable[Sequence[Score]], others: Iterable[str]) -> None:
    """Raises InputError if two series of submissions, or one and another row, have one name, or a
    name would not fit on one line."""
    own = [name for rows in submitted for name in dict.fromkeys(row.series.name for row in rows)]
    names = [*others, "stories", "clauses", "several answers", *own]
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


def read_file(path: Path, test: Records) -> tuple[str, list[Submission]]:
    """Name of a file or its model, and its submissions, each with the end of its name."""
    check_utf8(path)
    of_run = path.stem in ("predictions", "probabilities")
    name, given = path.parent.name if of_run else path.stem, given_of(path)
    if path.suffix == ".npz":
        files = _files(path)
        if len({file.resolve() for file in files}) < len(files):
            raise InputError(f"{path}: a file occurs twice, expected each replica once")
        read = read_predictions(files, test)
        texts = [[test.relation_name(r) for r in one] for one in read.relation]
        stories, replicas = np.arange(len(test)), range(len(texts))
        return name, [Submission("", read, stories, replicas, texts, given)]
    if path.is_dir():
        groups = lm_eval_answers(path).items()
        return path.resolve().name, [joined(end, str(path), a, test) for end, a in groups]
    answers: Iterable[Answer]
    if path.suffix in (".eval", ".json"):
        name, answers = inspect_answers(path)
    elif path.suffix == ".jsonl":
        answers = _json_answers(path)
    elif path.suffix == ".csv":
        answers = _csv_answers(path)
    else:
        raise InputError(f"{path}: expected .csv, .jsonl, .npz, .eval, .json or a folder")
    return name, [joined("", str(path), answers, test)._replace(given=given)]


def stories_by_id(test: Records) -> dict[str, int]:
    """Returns the index of each test story by its id, and by T.K/ROW."""
    ids = story_ids(test)
    # Ids of this form may be positions in a larger data set, whose other stories are not these.
    positions = [] if any(map(_POSITION.fullmatch, ids)) else positional_ids(test)
    return {name: s for names in (positions, ids) for s, name in enumerate(names)}


def joined(name: str, source: str, answers: Iterable[Answer], test: Records) -> Submission:
    """Joins the answers of a source, in any order, with the test stories."""
    ids, story_of = story_ids(test), stories_by_id(test)
    found: dict[int, dict[int, str]] = defaultdict(dict)  # replica -> story -> text
    for answer in answers:
        if answer.id not in story_of:
            raise InputError(
                f"{answer.place}: no test story {answer.id[:60]!r}, expected ids such as {ids[0]!r}"
            )
        replica = answer.replica.strip()
        if "." in replica:  # pandas writes 0 as 0.0 if a cell of the column is missing
            replica = re.sub(r"(?<=\d)\.0+$", "", replica, flags=re.ASCII)
        story = story_of[answer.id]
        if not (replica.isascii() and replica.isdigit() and len(replica) < 10):
            raise InputError(f"{answer.place}: replica {replica[:60]!r}, expected an integer >= 0")
        if story in found[int(replica)]:
            raise InputError(
                f"{answer.place}: second prediction for {answer.id!r}, expected one for each "
                "replica"
            )
        if answer.target and not _same_story(answer, test, story):
            raise InputError(
                f"{answer.place}: story {answer.id!r} has another text or label, expected "
                "predictions for this data, and a prompt that asks about this story last"
            )
        found[int(replica)][story] = answer.text
    if not found:
        raise InputError(
            f"{source}: no predictions, expected one for each test story that was asked"
        )
    stories, replicas = sorted(set().union(*found.values())), sorted(found)
    for index in replicas:
        if missing := [ids[story] for story in stories if story not in found[index]]:
            raise InputError(
                f"{source}: no prediction of replica {index} for {len(missing):,} of "
                f"{len(stories):,} stories, such as {missing[0]!r}; expected the same stories in "
                "every replica"
            )
    texts = [[found[index][story] for story in stories] for index in replicas]
    given = [text for one in texts for text in one if text]
    # Numbers that are names of relations state one.
    if given and all(_is_number(text) and test.algebra.find(text) is None for text in given):
        raise InputError(f"{source}: all are numbers as text, expected names of relations or text")
    relation = np.array([
        [relation_id(text, test, story) for story, text in zip(stories, one, strict=True)]
        for one in texts
    ])  # fmt: skip
    free, strict = False, relation.copy()
    for r, i in np.argwhere(relation != UNMAPPED).tolist():
        if test.algebra.find(texts[r][i]) is None:
            free, strict[r, i] = True, relation_id(texts[r][i], test, stories[i], strict=True)
    predictions = Predictions(relation, relation, np.ones(relation.shape))
    of_text = strict if free and test.algebra.is_kinship else None
    return Submission(name, predictions, np.array(stories), replicas, texts, strict=of_text)


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"\s*\d+(\.0*)?\s*", text))


def relation_id(text: str, test: Records, story: int, strict: bool = False) -> int:
    """Relation id that a text states of the query of a story, or UNMAPPED. Sentences are read for
    kinship alone."""
    algebra = test.algebra
    relation = algebra.index.get(text)
    if relation is None and not algebra.is_kinship:
        relation = algebra.find(text)
    if relation is None:
        told = test.story(story)
        row = {"algebra": algebra.name, "choices": algebra.relations, "query": told.query,
               "names": told.people}  # fmt: skip
        relation = algebra.index.get(stated_relation(text, row, strict) or "")
    return UNMAPPED if relation is None else relation


def _same_story(answer: Answer, test: Records, story: int) -> bool:
    """Equality of label and, in the log of a harness, of the last story and question of the prompt.

    Text around them is that of the user, and so are a label that is no relation, and a prompt
    without a label.
    """
    label = test.relation_name(test.target[story])
    if answer.prompt:
        _, asked, after = answer.prompt.rpartition(question(test, story))
        return bool(asked) and not re.search("Story: |Facts:", after) and answer.target == label
    return answer.target not in test.algebra.index or answer.target == label


def _csv_answers(path: Path) -> Iterator[Answer]:
    for number, row in enumerate(table_rows(path), start=1):
        place = at(path, number)
        for column in ("id", "prediction"):
            if column not in row:
                raise InputError(
                    f'{path}: expected one column "{column}"; the columns are {_EXPECTED}; found '
                    f"{','.join(row)}"
                )
        more = {key: row[key] for key in ("replica", "target") if key in row}
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
                    f'{place}: "{key}" is missing or not text, expected the keys {_EXPECTED}'
                )
        row["prompt"] = prompt_text(row["prompt"])
        keys = ("id", "prediction", "replica", "prompt", "target")
        yield Answer(place, *(str(row[key]) for key in keys))
