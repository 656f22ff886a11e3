"""Files of predictions -> `Submission`: CSV, JSON Lines, or the predictions.csv of a run."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clutrr_jax.data.records import Records
from clutrr_jax.data.story_ids import positional_ids
from clutrr_jax.evaluation.predictions import Predictions, read_predictions
from clutrr_jax.language_models.answers import to_relation
from generator.errors import InputError, at
from generator.files import table_rows

UNMAPPED, _MISSING = -1, -2
EXPECTED = "id, prediction and, for several replicas, replica"


class Submission(NamedTuple):
    """Predictions of one model, by name."""

    name: str
    predictions: Predictions  # UNMAPPED where a text gives no relation


def read_submissions(paths: list[Path], ids: list[str], test: Records) -> list[Submission]:
    """Reads files of predictions.

    A submission is named after its file, or after the model if the file is that of a run. Names
    that are not unique are replaced by the path.

    Args:
      paths: the files.
      ids: ids of the test stories; T.K/ROW is accepted as well.
      test: the test records.
    Raises:
      InputError: the message gives file and row of the first error.
    """
    story_of = {name: s for names in (positional_ids(test), ids) for s, name in enumerate(names)}
    short = [path.parent.name if path.stem == "predictions" else path.stem for path in paths]
    names = [s if s and short.count(s) == 1 else str(p) for s, p in zip(short, paths, strict=True)]
    return [
        Submission(name, _read(path, story_of, ids, test))
        for name, path in zip(names, paths, strict=True)
    ]


def _read(path: Path, story_of: dict[str, int], ids: list[str], test: Records) -> Predictions:
    if path.suffix == ".jsonl":
        rows: Iterable[tuple[int, dict[str, Any]]] = _json_lines(path)
    elif path.suffix != ".csv":
        raise InputError(f"{at(path)}: expected a .csv or .jsonl file")
    else:
        header, *cells = table_rows(path)
        if header[:3] == ["replica", "task", "row"]:
            return read_predictions(path, test)
        rows = _csv(path, header, cells)
    best = _best(path, rows, story_of, ids)
    return Predictions(best, best, np.ones(best.shape))


def _best(
    path: Path, rows: Iterable[tuple[int, dict[str, Any]]], story_of: dict[str, int], ids: list[str]
) -> np.ndarray:
    """Relation ids [R, S] of all replicas, from numbered rows in any order."""
    best: dict[int, np.ndarray] = {}
    for number, row in rows:
        name, replica = str(row["id"]), str(row.get("replica", 0))
        if name not in story_of:
            raise InputError(
                f"{at(path, number)}: no test story {name[:60]!r}, expected ids such as {ids[0]!r}"
            )
        if not (replica.isascii() and replica.isdigit() and len(replica) < 10):
            raise InputError(
                f"{at(path, number)}: replica {replica[:60]!r}, expected an integer >= 0"
            )
        relations = best.setdefault(int(replica), np.full(len(ids), _MISSING))
        if relations[story_of[name]] != _MISSING:
            raise InputError(
                f"{at(path, number)}: second prediction for {name!r}, expected one"
                + (" for each replica" if "replica" in row else "")
            )
        relation = to_relation(row["prediction"])
        relations[story_of[name]] = UNMAPPED if relation is None else relation
    for index in sorted(best):
        missing = np.flatnonzero(best[index] == _MISSING)
        if len(missing):
            of_replica = f" of replica {index}" if len(best) > 1 else ""
            raise InputError(
                f"{at(path)}: no prediction{of_replica} for {len(missing):,} of {len(ids):,} test "
                f"stories, such as {ids[missing[0]]!r}; expected one for each"
            )
    return np.stack([best[index] for index in sorted(best)])


def _csv(
    path: Path, header: list[str], rows: list[list[str]]
) -> Iterator[tuple[int, dict[str, str]]]:
    for column in ("id", "prediction"):
        if header.count(column) != 1:
            raise InputError(
                f'{at(path)}: {header.count(column)} columns "{column}", expected {EXPECTED}'
            )
    if not rows:
        raise InputError(f"{at(path)}: no rows, expected a prediction for each test story")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise InputError(f"{at(path, number)}: {len(row)} cells, expected {len(header)}")
        yield number, dict(zip(header, row, strict=True))


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        text = path.read_text("utf-8-sig").rstrip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "not UTF-8 text")
        raise InputError(f"{at(path)}: cannot be read ({reason})") from None
    if not text:
        raise InputError(f"{at(path)}: empty file, expected {EXPECTED}")
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = str(error).splitlines()[0]
            message = f"{at(path, number)}: not JSON ({reason}), expected an object"
            raise InputError(message) from None
        if not isinstance(row, dict) or not isinstance(row.get("id"), str | int):
            raise InputError(f'{at(path, number)}: no "id", expected the keys {EXPECTED}')
        if not isinstance(row.get("replica", 0), str | int):
            raise InputError(f'{at(path, number)}: "replica": expected an integer')
        if not isinstance(row.get("prediction"), str):
            raise InputError(
                f'{at(path, number)}: "prediction" is not text, expected the keys {EXPECTED}'
            )
        yield number, row
