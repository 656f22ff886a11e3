"""Checks of a whole data set: splits that rows state, and what its reader should know of it."""

import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from generator.errors import InputError, at
from generator.implied import implied, otherwise
from generator.relations.kinship import GENDER_OF, KINSHIP, UNKNOWN_GENDER
from generator.splits import COLUMN, NAMES
from generator.tables.rows import NO_TARGET, Row

# Stories whose targets are compared with their facts, if they have at most so many people.
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
            f"{where}: neither the name nor the column {COLUMN} states a split, as for other rows; "
            f"expected {NAMES}"
        )


def check_queries(file: str, rows: Sequence[Row]) -> None:
    """Raises InputError if the query columns of a row contradict each other or its story."""
    for row in rows:
        x, y = row.query
        problem = ""
        if row.query_names != (row.names[x], row.names[y]):
            problem = "query and query_edge name different people: expected the same"
        for name in row.query_names:
            if row.story and f"[{name}]" not in row.story:
                problem = (
                    f'"[{name}]" is not in the story: expected two people, with names in brackets'
                )
        if problem:
            raise InputError(f"{at(file, row.row_index, 'query')}: {problem}")


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
    if partly := sum(map(_has_names_without_brackets, rows)):
        notes.append(
            f"{partly:,} stories have some of their names in [brackets] and others not: for models "
            "that read text the latter are no people"
        )
    for split in ("train", "dev", "test"):
        count = Counter(row.id for row in rows if row.split == split and row.id)
        if twice := [id for id, n in count.items() if n > 1]:
            notes.append(
                f'several {split} stories have the same id, such as "{twice[0]}": all are kept, '
                "and predictions name test stories by T.K/ROW"
            )
    for split in ("train", "dev", "test"):
        wrong = _contradictions([row for row in rows if row.split == split])
        if sum(wrong) * 2 > len(wrong):
            notes.append(
                f"{sum(wrong) / len(wrong):.0%} of {len(wrong):,} {split} targets contradict the "
                "facts or genders of their stories: a fact (X, relation, Y) says what Y is to X, "
                "and a target what the second person of the query is to the first"
            )
    for note in notes:
        print(f"{name}: {note}", file=sys.stderr)


def _contradictions(rows: Sequence[Row]) -> list[bool]:
    """Returns whether the target of a story contradicts its facts or genders, for about `_CHECKED`
    stories, and fewer if they are large."""
    rows = [row for row in rows if row.target != NO_TARGET]
    rows = [row for row in rows if row.relations or row.genders[row.query[1]] != UNKNOWN_GENDER]
    people = max((len(row.names) for row in rows), default=0)
    most = _CHECKED * min(1.0, (_PEOPLE / max(1, people)) ** 2)
    rows = rows[:: max(1, math.ceil(len(rows) / most))]
    if not rows:
        return []
    found = implied(rows)
    underived = [i for i, follows in enumerate(found) if not follows]
    misread = dict(zip(underived, otherwise([rows[i] for i in underived]), strict=True))
    return [
        not has_gender_of_target(row)
        or (row.target not in found[i] if found[i] else bool(misread[i]))
        for i, row in enumerate(rows)
    ]


def _has_names_without_brackets(row: Row) -> bool:
    """Returns whether a story has a name in brackets, and another one only without."""
    others = [name for name in row.names if f"[{name}]" not in row.story]
    if len(others) == len(row.names):
        return False
    return any(re.search(rf"(?<!\w){re.escape(name)}(?![\w'])", row.story) for name in others)


def has_gender_of_target(row: Row) -> bool:
    """Returns whether the person that the target describes may have its gender."""
    if row.algebra != KINSHIP or row.target == NO_TARGET:
        return True
    return row.genders[row.query[1]] in (GENDER_OF[row.target], UNKNOWN_GENDER)


def content(
    text: str, facts: Iterable[tuple[str, str, str]], query: tuple[str, str]
) -> tuple[int | None, int]:
    """Returns a hash of the text of a story, None without one, and a hash of its facts and query.

    Brackets, case, spaces, and the order of sentences and of facts are ignored.
    """
    sentences = (re.sub(r"[\[\]\s]", "", part).casefold() for part in _SENTENCE_END.split(text))
    said = tuple(sorted(filter(None, sentences)))
    stated = (*sorted(" ".join(fact) for fact in facts), " to ".join(query))
    return hash(said) if said else None, hash(" and ".join(stated).casefold())
