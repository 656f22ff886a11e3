"""Rows of a table -> `Row`: the published columns, or the fewest that a data set needs.

Each part of a story has one or two columns; docs/data.md describes them.
"""

import ast
import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from generator.errors import InputError, at
from generator.files import SPLIT_FOLDERS
from generator.kinship import (
    GENDER_NAMES,
    GENDER_OF,
    NUM_RELATIONS,
    RELATION_ID,
    RELATIONS,
    UNKNOWN_GENDER,
)

# Limits of one story: the generator has 150 names per gender, and writes far fewer facts.
MAX_PEOPLE, MAX_EDGES, MAX_STORY = 150, 1000, 1 << 15
MAX_K = 999
NO_TARGET = -1

_MISSPELLED = "neice"  # in files written by the original CLUTRR code
_ID_OF = RELATION_ID | {_MISSPELLED: RELATION_ID["niece"]}
_KNOWN = ", ".join(RELATIONS)

# A pair may be in parentheses or, as in JSON, in square brackets.
_PAIR = re.compile(r"[(\[]\s*(\d{1,6})\s*,\s*(\d{1,6})\s*[)\]]")
_PAIRS = re.compile(rf"\[(?:[\s,]*{_PAIR.pattern})*[\s,]*\]")
_WORD = re.compile(r"'([\w -]+)'|\"([\w -]+)\"")
_WORDS = re.compile(r"\[(?:[\s,]*(?:'[\w -]+'|\"[\w -]+\"))*[\s,]*\]")
_NAMES = re.compile(r"[(\[]\s*(['\"])((?:(?!\1).)+)\1\s*,\s*(['\"])((?:(?!\3).)+)\3\s*[)\]]")
_TASK = re.compile(r"(?:task_)?(\d{1,3})\.(?!0+$)(\d{1,3})")
_WITH_RELATIONS = ("target", "edge_types", "facts")
_BRACKETED = re.compile(r"\[([^\[\]]+)\]")


class Row(NamedTuple):
    """One parsed story. People are indexed in the order of `names`."""

    row_index: int  # row of the file, from 1
    split: str  # train, dev or test
    id: str  # "" if the file has no such column
    story: str
    clean_story: str  # "" if the file has no such column
    names: tuple[str, ...]
    genders: tuple[int, ...]  # index in GENDERS, or UNKNOWN_GENDER
    edges: tuple[tuple[int, int], ...]
    relations: tuple[int, ...]  # of the first edges, index in RELATIONS; the others state none
    query: tuple[int, int]
    query_names: tuple[str, str]
    target: int  # index in RELATIONS, or NO_TARGET
    clause: str  # f_comb
    noise: int  # T of task T.K; 0 if it is not known
    k: int  # 0 if it is not known


class _CellError(Exception):
    """A cell that cannot be parsed: its column, and the problem."""


def parse_rows(
    file: str, table: Iterable[Sequence[str]], required: Sequence[str] = ()
) -> Iterator[Row]:
    """Parses the rows of one table.

    Args:
      file: its path, which decides the split (see `_parse_split`) and appears in messages.
      table: the header, then the rows; all cells as text.
      required: columns that the table must have.
    """
    rows = iter(table)
    header = next(rows)
    _check_columns(file, header, required)
    for column in header:
        if column and header.count(column) > 1:
            raise InputError(f'{file}: {header.count(column)} columns "{column}", expected one')
    stated, folder = _splits_in(Path(file).name), Path(file).parent.name
    default = _splits_in(folder).pop() if folder in SPLIT_FOLDERS else "train"
    index, misspelled = 0, False
    for index, cells in enumerate(rows, start=1):
        if len(cells) != len(header):
            raise InputError(f"{at(file, index)}: {len(cells)} cells, expected {len(header)}")
        cell = {
            # Composed and decomposed accents are the same name. An id is not part of the text.
            column: text if column == "id" else unicodedata.normalize("NFC", text)
            for column, text in zip(header, cells, strict=True)
        }
        try:
            row = _parse_row(index, cell, stated, default)
        except _CellError as error:
            column, problem = error.args
            raise InputError(f"{at(file, index, column)}: {problem}") from None
        misspelled |= any(_MISSPELLED in cell.get(column, "") for column in _WITH_RELATIONS)
        yield row
    if misspelled:
        print(f'{file}: "{_MISSPELLED}" is read as "niece"', file=sys.stderr)
    if not index:
        raise InputError(f"{file}: no rows, expected at least one story")


def _check_columns(file: str, header: Sequence[str], required: Sequence[str]) -> None:
    for column in required:
        if column not in header:
            raise InputError(
                f'{file}: no column "{column}"; expected {", ".join(required)}; found '
                f"{', '.join(header)}"
            )
    needed = [("query",), ("story", "facts", "story_edges")]
    if {"story_edges", "edge_types", "query_edge"} & set(header):
        needed += [("story_edges",), ("edge_types",), ("genders", "names")]
    for column, *others in needed:
        if not {column, *others} & set(header):
            raise InputError(
                f'{file}: no column "{column}"; expected query, story or facts, and target '
                f"(docs/data.md); found {', '.join(header)}"
            )


def _splits_in(text: str) -> set[str]:
    # At the start of a word: "latest" states no split.
    words = re.findall(r"(?<![a-z])(?:test|train|val|dev)", text.lower())
    return {"dev" if word == "val" else word for word in words}


def _parse_row(index: int, cell: Mapping[str, str], stated: set[str], default: str) -> Row:
    story, clean_story = cell.get("story", ""), cell.get("clean_story", "")
    for column, text in (("story", story), ("clean_story", clean_story)):
        if len(text) > MAX_STORY:
            raise _CellError(column, f"{len(text):,} characters, expected at most {MAX_STORY:,}")
    asked = _parse_query(cell["query"])
    names: tuple[str, ...]
    genders: tuple[int, ...] = ()
    facts = _parse_facts(cell["facts"]) if "facts" in cell else []
    if "genders" in cell:
        names, genders = _parse_genders(cell["genders"])
    elif "names" in cell:
        names = _parse_names(cell["names"])
    else:  # those of the facts and the story, in order of appearance, or else of the query
        found = [name for x, _, y in facts for name in (x, y)] + _BRACKETED.findall(story)
        names = _different("story", tuple(dict.fromkeys(found or asked)))
    if "facts" in cell:
        edges, relations = _edges(facts, names)
    elif "story_edges" in cell:
        edges, relations = _parse_edges(cell)
    else:
        edges, relations = (), ()
    if not story.strip() and not edges:
        raise _CellError("story" if "story" in cell else "facts", "empty, expected text or facts")
    query = _query(cell, names, asked)
    asked_in = "query_edge" if "query_edge" in cell else "query"
    for column, parts in (("story_edges", edges), (asked_in, (query,))):
        if parts and (highest := max(map(max, parts))) >= len(names):
            raise _CellError(column, f"no person {highest}: the row has {len(names)} people")
        if same := [x for x, y in parts if x == y]:
            who = f'"{names[same[0]]}"' if column == "query" else f"({same[0]}, {same[0]})"
            raise _CellError(column, f"{who}: expected two different people")
    noise, k = _parse_task(cell, relations)
    target = _parse_target(cell) if cell.get("target", "").strip() else NO_TARGET
    clause = cell.get("f_comb", "").replace(_MISSPELLED, "niece")
    return Row(
        row_index=index,
        split=_parse_split(stated, cell.get("task_split", ""), default),
        id=cell.get("id", ""),
        story=_with_brackets(story, names),
        clean_story=_with_brackets(clean_story, names),
        names=names,
        genders=genders or _derived_genders(len(names), edges, relations, query, target),
        edges=edges,
        relations=relations,
        query=query,
        query_names=asked,
        target=target,
        clause=clause or "-".join(RELATIONS[r] for r in relations[:k]),
        noise=noise,
        k=k,
    )


def _parse_query(text: str) -> tuple[str, str]:
    """`('Ann', 'Bob')` or `Ann, Bob`."""
    if match := _NAMES.fullmatch(text.strip()):
        return match[2].strip(), match[4].strip()
    first, *others = (name.strip() for name in text.split(","))
    if len(others) != 1 or not (first and others[0]) or first[0] in "([":
        raise _CellError("query", "expected a pair of names such as ('Ann', 'Bob')")
    return first, others[0]


def _query(
    cell: Mapping[str, str], names: Sequence[str], asked: tuple[str, str]
) -> tuple[int, int]:
    """The query pair as indices of people."""
    if "query_edge" in cell:
        pair = _match(_PAIR, cell, "query_edge", "a pair such as (0, 3)")
        return int(pair[1]), int(pair[2])
    for name in asked:
        if name not in names:
            raise _CellError("query", f'no person "{name}", expected two of {", ".join(names)}')
    return names.index(asked[0]), names.index(asked[1])


def _parse_facts(text: str) -> list[tuple[str, str, str]]:
    """`[('Ann', 'son', 'Bob'), ...]`: Bob is the son of Ann. JSON has the same form."""
    try:
        try:
            facts = json.loads(text)
        except ValueError:
            facts = ast.literal_eval(text.strip())
        for fact in facts:
            if not isinstance(fact, list | tuple) or [type(part) for part in fact] != [str] * 3:
                raise TypeError
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise _CellError(
            "facts", "expected a list of triples such as [('Ann', 'son', 'Bob')]: Bob is her son"
        ) from None
    if len(facts) > MAX_EDGES:
        raise _CellError("facts", f"{len(facts):,} facts, expected at most {MAX_EDGES}")
    return [tuple(part.strip() for part in fact) for fact in facts]


def _edges(
    facts: Sequence[tuple[str, str, str]], names: Sequence[str]
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Facts as pairs of people, and their relations."""
    index = {name: i for i, name in enumerate(names)}
    edges, relations = [], []
    for x, word, y in facts:
        for name in (x, y):
            if name not in index:
                raise _CellError("facts", f'no person "{name}", expected {", ".join(names)}')
        if x == y:
            raise _CellError("facts", f'"{x}" twice in a fact: expected two different people')
        if (relation := _relation(word)) is None:
            raise _CellError("facts", f'unknown relation "{word}", expected one of {_KNOWN}')
        edges.append((index[x], index[y]))
        relations.append(relation)
    return tuple(edges), tuple(relations)


def _parse_edges(
    cell: Mapping[str, str],
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Facts as pairs of people, and the relations of the first ones."""
    pairs = _match(_PAIRS, cell, "story_edges", "a list of pairs such as [(0, 1), (1, 2)]")
    edges = tuple([(int(x), int(y)) for x, y in _PAIR.findall(pairs[0])])
    if not 0 < len(edges) <= MAX_EDGES:
        raise _CellError("story_edges", f"{len(edges):,} edges, expected 1 to {MAX_EDGES:,}")
    relations = _parse_relations(cell)
    if len(relations) > len(edges):
        raise _CellError("edge_types", f"{len(relations)} relations for {len(edges)} story_edges")
    return edges, relations


def _parse_task(cell: Mapping[str, str], relations: Sequence[int]) -> tuple[int, int]:
    """Noise type and clause length; 0 if they are not known."""
    if "task_name" in cell:
        task = _match(_TASK, cell, "task_name", "a task such as task_1.3")
        if cell["task_name"].strip() == f"{task[1]}.1" and len(relations) > 1:
            problem = f"{len(relations)} relations: expected a task such as task_1.10, as text"
            raise _CellError("task_name", problem)
        return int(task[1]), int(task[2])
    text = cell.get("k", "").strip().removesuffix(".0")
    if text and not re.fullmatch(r"0*[1-9]\d{0,2}", text, re.ASCII):
        raise _CellError("k", f'"{text}": expected an integer from 1 to {MAX_K}')
    return 0, int(text or 0)


def _derived_genders(
    people: int,
    edges: Sequence[tuple[int, int]],
    relations: Sequence[int],
    query: tuple[int, int],
    target: int,
) -> tuple[int, ...]:
    """The gender of each person that a fact or the answer states."""
    genders = [UNKNOWN_GENDER] * people
    if target != NO_TARGET:
        genders[query[1]] = int(GENDER_OF[target])
    for (_, y), relation in zip(edges, relations, strict=False):
        genders[y] = int(GENDER_OF[relation])
    return tuple(genders)


def _with_brackets(text: str, names: Sequence[str]) -> str:
    """Returns a text with its names in brackets. A text that has them is left as it is."""
    if any(f"[{name}]" in text for name in names):
        return text
    longest_first = sorted(names, key=len, reverse=True)
    pattern = "|".join(map(re.escape, longest_first))
    return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", r"[\g<0>]", text)


def _match(
    pattern: re.Pattern[str], cell: Mapping[str, str], column: str, expected: str
) -> re.Match[str]:
    match = pattern.fullmatch(cell[column].strip())
    if not match:
        raise _CellError(column, f"expected {expected}")
    return match


def _parse_relations(cell: Mapping[str, str]) -> tuple[int, ...]:
    """`['son', 'aunt']`."""
    words = _match(_WORDS, cell, "edge_types", "a list of relations such as ['son', 'aunt']")
    relations = []
    for single, double in _WORD.findall(words[0]):
        word = single or double
        if (relation := _relation(word)) is None:
            raise _CellError("edge_types", f'unknown relation "{word}", expected one of {_KNOWN}')
        relations.append(relation)
    if not relations:
        raise _CellError("edge_types", "no relations, expected those of the first edges")
    return tuple(relations)


def _relation(word: str) -> int | None:
    """Index of a relation by its name: "Mother in law" is mother-in-law."""
    return _ID_OF.get(re.sub(r"[\s_]+", "-", word.strip().lower()))


def _parse_target(cell: Mapping[str, str]) -> int:
    """A relation by name, or by its index in the data set `CLUTRR/v1` on Hugging Face."""
    text = cell["target"]
    if (target := _relation(text)) is not None:
        return target
    number = text.removesuffix(".0")  # of pandas, if a target is missing
    if not (
        number.isascii() and number.isdigit() and len(number) < 3 and int(number) < NUM_RELATIONS
    ):
        raise _CellError(
            "target", f'unknown label "{text}", expected a number below {NUM_RELATIONS} or {_KNOWN}'
        )
    target, name = int(number), cell.get("target_text", "")  # of the same data set
    if _relation(name) not in (None, target):
        raise _CellError("target", f'"{text}" is {RELATIONS[target]}, but target_text is "{name}"')
    return target


def _parse_split(stated: set[str], cell: str, default: str) -> str:
    """The split that the file's name states, else the cell, else the folder (`default`).

    A name with several splits, such as `gen_train23_test2to10`, states none: the cell must.
    """
    splits = stated if len(stated) == 1 else _splits_in(cell)
    if len(splits) == 1:
        return next(iter(splits))
    if stated or cell:
        raise _CellError("task_split", f'"{cell}": expected train, validation or test')
    return default


def _parse_genders(cell: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """`Ann:female,Bob:male`."""
    names, genders = [], []
    for person in cell.split(","):
        name, _, gender = map(str.strip, person.rpartition(":"))
        if not name or gender.lower() not in GENDER_NAMES:
            raise _CellError("genders", f'"{person}": expected NAME:male or NAME:female')
        names.append(name)
        genders.append(GENDER_NAMES.index(gender.lower()))
    return _different("genders", tuple(names)), tuple(genders)


def _parse_names(cell: str) -> tuple[str, ...]:
    """`['Ann', 'Bob']` or `Ann, Bob`."""
    text = cell.strip()
    if text[:1] in "([":
        quoted = re.findall(r"(['\"])((?:(?!\1).)+)\1", text)
        names = [match[1].strip() for match in quoted]
    else:
        names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise _CellError("names", "expected a list of names such as ['Ann', 'Bob']")
    return _different("names", tuple(names))


def _different(column: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the names. Raises an error if there are too many, or two are the same."""
    if len(names) > MAX_PEOPLE:
        raise _CellError(column, f"{len(names):,} people, expected at most {MAX_PEOPLE}")
    if len(set(names)) < len(names):
        raise _CellError(column, "a name occurs twice: expected different names")
    return names
