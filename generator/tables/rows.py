"""Rows of cells -> `Row`: the columns of CLUTRR, or the fewest that a data set needs.

Each part of a story has one or two columns.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from generator.errors import CellError, InputError, at
from generator.relations.algebra import EXAMPLE, Algebra
from generator.relations.algebras import DEFAULT, algebra_with
from generator.relations.kinship import KINSHIP, UNKNOWN_GENDER
from generator.splits import split_of_row, stated_splits
from generator.tables.cells import (
    CELLS,
    MAX_PEOPLE,
    Pair,
    is_empty,
    parse_cell,
    plain,
    with_brackets,
)
from generator.tables.dialects import Dialect, dialect_of

NO_TARGET = -1

_MISSPELLED = "neice"  # in files written by the original CLUTRR code
_BRACKETED = re.compile(r"\[([^\[\]]+)\]")


class Row(NamedTuple):
    """One parsed story. People are indexed in the order of `names`."""

    algebra: Algebra  # of its relations
    row_index: int  # row of the file, from 1
    split: str  # train, dev or test
    id: str  # "" if the file has no such column
    story: str
    clean_story: str  # "" if the file has no such column
    names: tuple[str, ...]
    genders: tuple[int, ...]  # property in the view of the algebra, or UNKNOWN_GENDER
    edges: tuple[Pair, ...]
    relations: tuple[int, ...]  # of the first edges; the others state none
    query: tuple[int, int]
    query_names: tuple[str, str]
    target: int  # relation, or NO_TARGET
    clause: str  # f_comb
    noise: int  # T of task T.K, or the number of paths; 0 if it is not known
    k: int  # 0 if it is not known
    states_split: bool = True  # in the name of the table or of its folder, or in a cell
    by_number: bool = False  # whether the target is a number and no column says what it stands for
    has_names: bool = True  # whether a column or brackets in the story name all people


def parse_rows(
    file: str,
    table: Iterable[Mapping[str, Any]],
    algebra: Algebra | None = None,
    place: Path | None = None,
    in_memory: bool = False,
) -> Iterator[Row]:
    """Parses the rows of one table, at least one.

    The algebra is by default that of the package which has the first relation; `place` is the path
    of a data set of several tables. The name of a split in memory counts whatever its rows say.
    """
    stated = stated_splits(file, place)
    columns: dict[str, str] = {}  # column of CLUTRR -> that of the table
    misspelled = False
    for index, row in enumerate(table, start=1):
        if not hasattr(row, "items"):  # of a mapping, or a row of a data frame
            kind = type(row).__name__
            raise InputError(f"{at(file, index)}: {kind}, expected columns with their cells")
        cells = row if isinstance(row, dict) else dict(row.items())
        if index == 1:
            first, dialect = cells, dialect_of(file, map(str, cells))
            columns = {dialect.columns.get(column, column): column for column in cells}
            columns = {column: own for column, own in columns.items() if column in CELLS}
        try:
            # A split that only later rows state would be lost.
            for column in cells.keys() ^ first.keys() if cells.keys() != first.keys() else ():
                if column in CELLS or column in dialect.columns:
                    problem = "missing" if column in first else "not in row 1"
                    raise CellError(column, f"{problem}, expected the same columns in every row")
            values = _values(cells, columns, dialect, file)
            if in_memory and len(stated[0]) == 1:
                values.pop("task_split", None)
            found = {column: parse_cell(column, value) for column, value in values.items()
                     if not is_empty(column, value)}  # fmt: skip
            algebra = algebra or _algebra_of(found)
            split = split_of_row(cells, found.get("task_split", ""), *stated)
            yield _row(index, found, split, algebra)
        except CellError as error:
            column, problem = error.args
            raise InputError(f"{at(file, index, columns.get(column, column))}: {problem}") from None
        words = (values.get(column) for column in ("target", "edge_types", "facts"))
        misspelled |= any(_MISSPELLED in str(word) for word in words)
    if misspelled:
        print(f'{file}: "{_MISSPELLED}" is read as "niece"', file=sys.stderr)


def _values(
    row: Mapping[str, Any], columns: Mapping[str, str], dialect: Dialect, file: str
) -> dict[str, Any]:
    """The cells of a row by column of CLUTRR."""
    values = {column: plain(row.get(own)) for column, own in columns.items()}
    if dialect.cells:
        try:
            values |= dialect.cells(row, Path(file).name)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise CellError(None, f"not a row of {dialect.name} ({error!r})") from None
    return values


def _algebra_of(cell: Mapping[str, Any]) -> Algebra:
    """The algebra of the package that the relations of a row belong to."""
    words = [relation for _, relation, _ in cell.get("facts", ())]
    words += cell.get("edge_types", (cell.get("target", ""),))
    return algebra_with(words[0])


def _row(index: int, cell: Mapping[str, Any], split: str, algebra: Algebra) -> Row:
    """The row with these parsed cells, without those that are empty."""
    story, asked = cell.get("story", ""), cell.get("query", ())
    if not asked and "query_edge" not in cell:
        raise CellError("query", "empty, expected the two people of the question")
    names, genders = _people(cell)
    edges, relations = _facts(cell, names, algebra)
    _check_pairs("story_edges" if "story_edges" in cell else "facts", edges, names)
    if not story.strip() and not edges:
        raise CellError("story" if "story" in cell else "facts", "empty, expected text or facts")
    for name in () if "query_edge" in cell else asked:
        if name not in names:
            raise CellError("query", f'no person "{name}", expected two of {", ".join(names)}')
    query = cell.get("query_edge") or (names.index(asked[0]), names.index(asked[1]))
    _check_pairs("query_edge" if "query_edge" in cell else "query", [query], names)
    noise, k = cell.get("task_name", (0, cell.get("k", 0)))
    if cell.get("k", k) != k:
        raise CellError("k", f"{cell['k']}, but task_name says {k}")
    target = _target(cell, algebra) if "target" in cell else NO_TARGET
    stated = [(query[1], target)] if target != NO_TARGET else []
    stated += [(y, relation) for (_, y), relation in zip(edges, relations, strict=False)]
    named = [_relation(cell.get(column, ""), algebra) for column in ("target", "target_text")]
    clause = cell.get("f_comb", "").replace(_MISSPELLED, "niece")
    return Row(
        algebra=algebra,
        row_index=index,
        split=split or "train",
        id=cell.get("id", ""),
        story=with_brackets(story, names),
        clean_story=with_brackets(cell.get("clean_story", ""), names),
        names=names,
        genders=genders or _genders(algebra, len(names), stated),
        edges=edges,
        relations=relations,
        query=query,
        query_names=asked or (names[query[0]], names[query[1]]),
        target=target,
        clause=clause or "-".join(algebra.relations[r] for r in relations[:k]),
        noise=noise,
        k=k,
        states_split=bool(split),
        by_number=target != NO_TARGET and target not in named,
        has_names=bool(genders or "names" in cell or not story or _BRACKETED.search(story)),
    )


def _people(cell: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names and genders of all people. Without a column of names they are those of the facts and
    of the brackets in the story, in order of appearance, or else of the query."""
    column, genders = "names", ()
    if "genders" in cell:
        column, (names, genders) = "genders", cell["genders"]
        if sorted(cell.get("names", names)) != sorted(names):
            raise CellError("names", "other people than those of genders, expected the same")
    elif "names" in cell:
        names = cell["names"]
    elif "query" not in cell:  # elements of STaR have numbers
        column = "story_edges"
        last = max((max(pair) for pair in cell.get(column, ())), default=-1)
        names = tuple(map(str, range(min(last, MAX_PEOPLE) + 1)))
    elif "story_edges" in cell:
        raise CellError("genders", "empty, expected the people whom story_edges numbers")
    else:
        column = "story"
        found = [name for x, _, y in cell.get("facts", ()) for name in (x, y)]
        found += map(str.strip, _BRACKETED.findall(cell.get("story", "")))
        names = tuple(dict.fromkeys(found or cell["query"]))
    if len(names) > MAX_PEOPLE:
        raise CellError(column, f"{len(names):,} people, expected at most {MAX_PEOPLE}")
    if len({*names}) < len(names):
        raise CellError(column, "a name occurs twice: expected different names")
    return names, genders


def _facts(
    cell: Mapping[str, Any], names: Sequence[str], algebra: Algebra
) -> tuple[tuple[Pair, ...], tuple[int, ...]]:
    """Facts as pairs of people, and the relations of the first ones."""
    edges, words = cell.get("story_edges", ()), cell.get("edge_types", ())
    for column, content, other in (("story_edges", edges, words), ("edge_types", words, edges)):
        if other and not content:
            raise CellError(column, "empty, expected the facts")
    relations = tuple([_known(word, algebra, "edge_types") for word in words])
    if len(relations) > len(edges):
        raise CellError("edge_types", f"{len(relations)} relations for {len(edges)} story_edges")
    if "facts" not in cell:
        return edges, relations
    for x, word, y in cell["facts"]:
        if _relation(word, algebra) is None and (problem := _other_order(x, word, y, algebra)):
            raise CellError("facts", problem)
        for name in (x, y):
            if name not in names:
                raise CellError("facts", f'no person "{name}", expected {", ".join(names)}')
    found = (
        tuple([(names.index(x), names.index(y)) for x, _, y in cell["facts"]]),
        tuple([_known(word, algebra, "facts") for _, word, _ in cell["facts"]]),
    )
    if edges and found != (edges, relations):
        raise CellError("facts", "other facts than story_edges and edge_types, expected the same")
    return found


def _check_pairs(column: str, pairs: Sequence[Pair], names: Sequence[str]) -> None:
    """Raises CellError unless each pair is of two different people of the row."""
    if pairs and (highest := max(map(max, pairs))) >= len(names):
        raise CellError(column, f"no person {highest}: the row has {len(names)} people")
    if same := [x for x, y in pairs if x == y]:
        raise CellError(column, f'"{names[same[0]]}" twice, expected two different people')


def _known(word: str, algebra: Algebra, column: str) -> int:
    """The relation of this name. Raises CellError if there is none."""
    if (relation := _relation(word, algebra)) is None:
        known = ", ".join(algebra.relations)
        others = f", or beside the data algebra.json such as {EXAMPLE}"
        others = others if algebra is DEFAULT else ""
        raise CellError(column, f'unknown relation "{word}", expected one of {known}{others}')
    return relation


def _other_order(x: str, word: str, y: str, algebra: Algebra) -> str:
    """Returns a message about a fact whose relation stands at one of its ends, else nothing."""
    for relation, one, other in ((y, x, word), (x, word, y)):
        known = algebra.relations + algebra_with(relation).relations
        if relation in known and len(relation) > 1:  # "d" is an interval relation, and a name
            is_kin = relation in KINSHIP.index
            meaning = f": {other} is the {relation} of {one}" if is_kin else ""
            return (
                f'unknown relation "{word}": the order is (X, relation, Y), as in '
                f"{(one, relation, other)}{meaning}"
            )
    return ""


def _genders(algebra: Algebra, people: int, stated: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """The gender of each person that a relation states: pairs of a person and what they are."""
    genders = [UNKNOWN_GENDER] * people
    if algebra.view:
        for person, relation in stated:
            genders[person] = algebra.view.property[relation]
    return tuple(genders)


def _relation(word: str, algebra: Algebra) -> int | None:
    """Relation of this name; "neice" is niece."""
    return algebra.find("niece" if word == _MISSPELLED and algebra is KINSHIP else word)


def _target(cell: Mapping[str, Any], algebra: Algebra) -> int:
    """A relation by name or, in kinship, by its index in the data set `CLUTRR/v1` on Hugging
    Face."""
    text, name = cell["target"], cell.get("target_text", "")  # of the same data set
    if (target := _relation(text, algebra)) is None:
        count = len(algebra.relations) if algebra is KINSHIP else 0
        number = text.strip().removesuffix(".0")  # of pandas
        if not (number.isascii() and number.isdigit() and len(number) < 3 and int(number) < count):
            known = f"a number below {count} or " if count else ""
            known += ", ".join(algebra.relations)
            raise CellError("target", f'unknown label "{text}", expected {known}')
        target = int(number)
    if _relation(name, algebra) not in (None, target):
        problem = f'"{text}" is {algebra.relations[target]}, but target_text is "{name}"'
        raise CellError("target", problem)
    return target
