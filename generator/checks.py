"""Checks of a whole data set: splits that rows state, and what its reader should know of it."""

import re
import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from generator.errors import InputError
from generator.implied import implied
from generator.kinship import GENDER_OF, KINSHIP, UNKNOWN_GENDER
from generator.rows import NO_TARGET, Row

SPLIT_NAMES = (
    "train, training, validation, valid, val, dev, development, test, tests or testing, also with "
    "set or data behind them"
)
# Stories whose targets are compared with their facts, and people that these have at most.
_CHECKED, _PEOPLE = 1000, 30
_SENTENCE_END = re.compile(r"[.!?]+")


def check_splits(tables: Sequence[tuple[str, Sequence[Row]]]) -> None:
    """Raises InputError if some rows of a data set state a split, and others do not.

    Args:
      tables: name and rows of each table.
    """
    silent = {file: row.row_index for file, rows in tables for row in rows[::-1]
              if not row.states_split}  # fmt: skip
    if silent and any(row.states_split for _, rows in tables for row in rows):
        (file, row), *others = silent.items()
        where = f"{', '.join(silent)}" if others else f"{file}, row {row}"
        raise InputError(
            f"{where}: states no split, in its name or the column task_split, as other rows do; "
            f"expected {SPLIT_NAMES}"
        )


def report_reading(name: str, rows: Sequence[Row]) -> None:
    """Prints on stderr which cells of a data set may mean something else than is read."""
    notes = []
    if any(row.by_number for row in rows):
        notes.append(
            "numbers in the column target are read as those of CLUTRR/v1 (0 is aunt, 20 is "
            "sister-in-law)"
        )
    if not all(row.has_names for row in rows):
        notes.append(
            "stories without names in [brackets], and without the column names or genders: their "
            "people are those of facts and query alone"
        )
    for split in ("train", "dev", "test"):
        count = Counter(row.id for row in rows if row.split == split and row.id)
        if twice := [id for id, n in count.items() if n > 1]:
            notes.append(
                f'several {split} stories have the same id, such as "{twice[0]}": all are kept, '
                "and predictions name test stories by T.K/ROW"
            )
    checked, contradicting = _contradictions(rows)
    if contradicting * 2 > checked:
        notes.append(
            f"{contradicting / checked:.0%} of {checked:,} targets contradict the facts or genders "
            "of their stories: a fact (X, relation, Y) says what Y is to X, and a target what the "
            "second person of the query is to the first"
        )
    for note in notes:
        print(f"{name}: {note}", file=sys.stderr)


def _contradictions(rows: Sequence[Row]) -> tuple[int, int]:
    """Returns how many targets are compared with what their stories state, at most about
    `_CHECKED`, and how many of these contradict it."""
    rows = [row for row in rows if row.target != NO_TARGET and len(row.names) <= _PEOPLE]
    rows = [row for row in rows if row.relations or row.genders[row.query[1]] != UNKNOWN_GENDER]
    rows = rows[:: -(-len(rows) // _CHECKED) or 1]
    if not rows:
        return 0, 0
    both = zip(rows, implied(rows), implied(rows, backwards=True), strict=True)
    wrong = [
        not has_gender_of_target(row)
        or (row.target not in follows if follows else row.target in backwards)
        for row, follows, backwards in both
    ]
    return len(rows), sum(wrong)


def has_gender_of_target(row: Row) -> bool:
    """Returns whether the person that the target describes may have its gender."""
    if row.algebra != KINSHIP or row.target == NO_TARGET:
        return True
    return row.genders[row.query[1]] in (GENDER_OF[row.target], UNKNOWN_GENDER)


def content(text: str, facts: Iterable[tuple[str, str, str]], query: tuple[str, str]) -> int:
    """Returns a hash of what a story says, without its question.

    Brackets, case, spaces and the order of sentences are ignored. A story without text is its facts
    in any order, and its query.
    """
    sentences = (re.sub(r"[\[\]\s]", "", part).casefold() for part in _SENTENCE_END.split(text))
    said: Hashable = tuple(sorted(filter(None, sentences)))
    return hash(said or (frozenset(facts), query))
