"""Rows of a table -> `Row`: the published columns, or the fewest that a data set needs.

Each part of a story has one or two columns.
"""

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from generator.algebra import EXAMPLE, Algebra
from generator.algebras import DEFAULT, algebra_with
from generator.errors import CellError, InputError, at
from generator.kinship import KINSHIP, UNKNOWN_GENDER
from generator.row_cells import (
    MAX_EDGES,
    MAX_PEOPLE,
    MAX_STORY,
    different,
    match_cell,
    parse_facts,
    parse_genders,
    parse_names,
    parse_query,
    with_brackets,
)
from generator.splits import split_of_folder, split_of_row, splits_in

MAX_K = 999
NO_TARGET = -1

_MISSPELLED = "neice"  # in files written by the original CLUTRR code

# A pair may be in parentheses or, as in JSON, in square brackets.
_PAIR = re.compile(r"[(\[]\s*(\d{1,6})\s*,\s*(\d{1,6})\s*[)\]]")
_PAIRS = re.compile(rf"\[(?:[\s,]*{_PAIR.pattern})*[\s,]*\]")
_WORD = re.compile(r"'([^'\"]+)'|\"([^'\"]+)\"")
_WORDS = re.compile(r"\[(?:[\s,]*(?:'[^'\"]+'|\"[^'\"]+\"))*[\s,]*\]")
_TASK = re.compile(r"(?:task_)?(\d{1,3})\.(?!0+$)(\d{1,3})")
_LENGTH_AND_PATHS = re.compile(r"_k_(\d{1,3})_b_(\d{1,3})(?!\d)")  # in the name of a file of STaR
_WITH_RELATIONS = ("target", "edge_types", "facts")
# Columns of STaR (Khalid and Schockaert 2025) and of CLUTRR with the same content.
_STAR = {"edges": "story_edges", "edge_labels": "edge_types", "query_label": "target"}
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
    edges: tuple[tuple[int, int], ...]
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
    table: Iterable[Sequence[str]],
    required: Sequence[str] = (),
    algebra: Algebra | None = None,
    place: Path | None = None,
    in_memory: bool = False,
) -> Iterator[Row]:
    """Parses the rows of one table.

    Args:
      file: its path, which may state the split (see `split_of_row`) and appears in messages.
      table: the header, then the rows; all cells as text.
      required: columns that a table of CLUTRR must have.
      algebra: of the relations; by default that of the package which has the first one.
      place: path of the data set, if it has several tables.
      in_memory: whether the table is a split that a program has named, whatever its rows say.
    """
    rows = iter(table)
    header = list(next(rows))
    own_names = {}
    if "edge_labels" in header:
        _check_required(file, header, ("edges", "edge_labels", "query_edge"))
        own_names = {name: own for own, name in _STAR.items()}
        header = [_STAR.get(column, column) for column in header]
    else:
        _check_required(file, header, required)
        _check_columns(file, header)
    for column in header:
        if column and header.count(column) > 1:
            raise InputError(f'{file}: {header.count(column)} columns "{column}", expected one')
    # A row needs one of these columns alone. With story_edges, those with the people are needed.
    may_be_empty: tuple[str, ...] = ("facts", "names", "genders", "task_name")
    if "story_edges" in header:
        may_be_empty = ("story_edges", "edge_types", "task_name")
    stated, folder = splits_in(Path(file).name), Path(file).parent
    is_named = in_memory and len(stated) == 1
    in_folder = split_of_folder(folder.name), place in folder.parents
    index, misspelled = 0, False
    for index, cells in enumerate(rows, start=1):
        if len(cells) != len(header):
            raise InputError(f"{at(file, index)}: {len(cells)} cells, expected {len(header)}")
        cell = {
            # Composed and decomposed accents are the same name. An id is not part of the text.
            column: text if column == "id" else unicodedata.normalize("NFC", text)
            for column, text in zip(header, cells, strict=True)
            if (column not in may_be_empty or text.strip())
            and (column, text.strip()) != ("names", "[]")
            and not (is_named and column == "task_split")
        }
        try:
            algebra = algebra or _algebra_of(cell)
            row = _parse_row(index, cell, split_of_row(cell, stated, *in_folder), algebra)
        except CellError as error:
            column, problem = error.args
            column = own_names.get(column, column)
            raise InputError(f"{at(file, index, column)}: {problem}") from None
        if "task_name" not in cell and (task := _LENGTH_AND_PATHS.search(Path(file).name)):
            row = row._replace(noise=int(task[2]), k=int(task[1]))
        misspelled |= any(_MISSPELLED in cell.get(column, "") for column in _WITH_RELATIONS)
        yield row
    if misspelled:
        print(f'{file}: "{_MISSPELLED}" is read as "niece"', file=sys.stderr)
    if not index:
        raise InputError(f"{file}: no rows, expected at least one story")


def _check_required(file: str, header: Sequence[str], required: Sequence[str]) -> None:
    for column in required:
        if column not in header:
            raise InputError(
                f'{file}: no column "{column}"; expected {", ".join(required)}; found '
                f"{', '.join(header)}"
            )


def _check_columns(file: str, header: Sequence[str]) -> None:
    """Checks that a table has a question, and a story or facts."""
    needed = [("query",), ("story", "facts", "story_edges")]
    if {"story_edges", "edge_types", "query_edge"} & set(header):
        needed += [("story_edges",), ("edge_types",), ("genders", "names")]
    for column, *others in needed:
        if not {column, *others} & set(header):
            raise InputError(
                f'{file}: no column "{column}"; expected query, story or facts, and target (such '
                f"as Ann,Bob, [('Ann', 'son', 'Bob')], and son); found {', '.join(header)}"
            )


def _algebra_of(cell: Mapping[str, str]) -> Algebra:
    """The algebra of the package that the relations of a row belong to."""
    words = [relation for _, relation, _ in parse_facts(cell.get("facts", "[]"))]
    words += [one or other for one, other in _WORD.findall(cell.get("edge_types", ""))]
    return algebra_with((words or [cell.get("target", "")])[0])


def _parse_row(index: int, cell: Mapping[str, str], split: str, algebra: Algebra) -> Row:
    story, clean_story = cell.get("story", ""), cell.get("clean_story", "")
    for column, text in (("story", story), ("clean_story", clean_story)):
        if len(text) > MAX_STORY:
            raise CellError(column, f"{len(text):,} characters, expected at most {MAX_STORY:,}")
    asked = parse_query(cell["query"]) if "query" in cell else ("", "")
    names: tuple[str, ...]
    genders: tuple[int, ...] = ()
    facts = parse_facts(cell["facts"]) if "facts" in cell else []
    if "genders" in cell:
        names, genders = parse_genders(cell["genders"])
        if "names" in cell and sorted(parse_names(cell["names"])) != sorted(names):
            raise CellError("names", "other people than those of genders, expected the same")
    elif "names" in cell:
        names = parse_names(cell["names"])
    elif "query" not in cell:
        pairs = _PAIR.findall(cell["story_edges"])
        count = max((int(x) for pair in pairs for x in pair), default=0) + 1
        names = different("story_edges", tuple(map(str, range(min(count, MAX_PEOPLE + 1)))))
    else:  # those of the facts and the story, in order of appearance, or else of the query
        found = [name for x, _, y in facts for name in (x, y)] + _BRACKETED.findall(story)
        names = different("story", tuple(dict.fromkeys(found or asked)))
    if "facts" in cell:
        edges, relations = _edges(facts, names, algebra)
        if "story_edges" in cell and _parse_edges(cell, algebra) != (edges, relations):
            raise CellError(
                "facts", "other facts than story_edges and edge_types, expected the same"
            )
    elif "story_edges" in cell:
        edges, relations = _parse_edges(cell, algebra)
    elif "edge_types" in cell:
        raise CellError("story_edges", "empty, expected the edges of edge_types")
    else:
        edges, relations = (), ()
    if not story.strip() and not edges:
        raise CellError("story" if "story" in cell else "facts", "empty, expected text or facts")
    query = _query(cell, names, asked)
    asked_in = "query_edge" if "query_edge" in cell else "query"
    for column, parts in (("story_edges", edges), (asked_in, (query,))):
        if parts and (highest := max(map(max, parts))) >= len(names):
            raise CellError(column, f"no person {highest}: the row has {len(names)} people")
        if same := [x for x, y in parts if x == y]:
            who = f'"{names[same[0]]}"' if column == "query" else f"({same[0]}, {same[0]})"
            raise CellError(column, f"{who}: expected two different people")
    noise, k = _parse_task(cell, relations)
    target = _parse_target(cell, algebra) if cell.get("target", "").strip() else NO_TARGET
    named = (_relation(cell.get(column, ""), algebra) for column in ("target", "target_text"))
    clause = cell.get("f_comb", "").replace(_MISSPELLED, "niece")
    return Row(
        algebra=algebra,
        row_index=index,
        split=split or "train",
        id=cell.get("id", ""),
        story=with_brackets(story, names),
        clean_story=with_brackets(clean_story, names),
        names=names,
        genders=genders or _derived_genders(algebra, len(names), edges, relations, query, target),
        edges=edges,
        relations=relations,
        query=query,
        query_names=asked if "query" in cell else (names[query[0]], names[query[1]]),
        target=target,
        clause=clause or "-".join(algebra.relations[r] for r in relations[:k]),
        noise=noise,
        k=k,
        states_split=bool(split),
        by_number=target != NO_TARGET and target not in named,
        has_names=bool(genders or "names" in cell or not story or _BRACKETED.search(story)),
    )


def _query(
    cell: Mapping[str, str], names: Sequence[str], asked: tuple[str, str]
) -> tuple[int, int]:
    """The query pair as indices of people."""
    if "query_edge" in cell:
        pair = match_cell(_PAIR, cell, "query_edge", "a pair such as (0, 3)")
        return int(pair[1]), int(pair[2])
    for name in asked:
        if name not in names:
            raise CellError("query", f'no person "{name}", expected two of {", ".join(names)}')
    return names.index(asked[0]), names.index(asked[1])


def _edges(
    facts: Sequence[tuple[str, str, str]], names: Sequence[str], algebra: Algebra
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Facts as pairs of people, and their relations."""
    index = {name: i for i, name in enumerate(names)}
    edges, relations = [], []
    for x, word, y in facts:
        if (relation := _relation(word, algebra)) is None:
            problem = _other_order(x, word, y, algebra) or _unknown(word, algebra)
            raise CellError("facts", problem)
        for name in (x, y):
            if name not in index:
                raise CellError("facts", f'no person "{name}", expected {", ".join(names)}')
        if x == y:
            raise CellError("facts", f'"{x}" twice in a fact: expected two different people')
        edges.append((index[x], index[y]))
        relations.append(relation)
    return tuple(edges), tuple(relations)


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


def _parse_edges(
    cell: Mapping[str, str], algebra: Algebra
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Facts as pairs of people, and the relations of the first ones."""
    pairs = match_cell(_PAIRS, cell, "story_edges", "a list of pairs such as [(0, 1), (1, 2)]")
    edges = tuple([(int(x), int(y)) for x, y in _PAIR.findall(pairs[0])])
    if not 0 < len(edges) <= MAX_EDGES:
        raise CellError("story_edges", f"{len(edges):,} edges, expected 1 to {MAX_EDGES:,}")
    if "edge_types" not in cell:
        raise CellError("edge_types", "empty, expected the relations of the first edges")
    relations = _parse_relations(cell, algebra)
    if len(relations) > len(edges):
        raise CellError("edge_types", f"{len(relations)} relations for {len(edges)} story_edges")
    return edges, relations


def _parse_task(cell: Mapping[str, str], relations: Sequence[int]) -> tuple[int, int]:
    """Noise type and clause length; 0 if they are not known."""
    text = cell.get("k", "").strip().removesuffix(".0")
    if text and not re.fullmatch(r"0*[1-9]\d{0,2}", text, re.ASCII):
        raise CellError("k", f'"{text}": expected an integer from 1 to {MAX_K}')
    k = int(text or 0)
    if "task_name" in cell:
        task = match_cell(_TASK, cell, "task_name", "a task such as task_1.3")
        if cell["task_name"].strip() == f"{task[1]}.1" and len(relations) > 1:
            problem = f"{len(relations)} relations: expected a task such as task_1.10, as text"
            raise CellError("task_name", problem)
        if k not in (0, int(task[2])):
            raise CellError("k", f"{k}, but task_name is {cell['task_name']}")
        return int(task[1]), int(task[2])
    return 0, k


def _derived_genders(
    algebra: Algebra,
    people: int,
    edges: Sequence[tuple[int, int]],
    relations: Sequence[int],
    query: tuple[int, int],
    target: int,
) -> tuple[int, ...]:
    """The gender of each person that a fact or the answer states."""
    genders = [UNKNOWN_GENDER] * people
    if algebra.view is None:
        return tuple(genders)
    if target != NO_TARGET:
        genders[query[1]] = algebra.view.property[target]
    for (_, y), relation in zip(edges, relations, strict=False):
        genders[y] = algebra.view.property[relation]
    return tuple(genders)


def _parse_relations(cell: Mapping[str, str], algebra: Algebra) -> tuple[int, ...]:
    """`['son', 'aunt']`."""
    words = match_cell(_WORDS, cell, "edge_types", "a list of relations such as ['son', 'aunt']")
    relations = []
    for single, double in _WORD.findall(words[0]):
        word = single or double
        if (relation := _relation(word, algebra)) is None:
            raise CellError("edge_types", _unknown(word, algebra))
        relations.append(relation)
    if not relations:
        raise CellError("edge_types", "no relations, expected those of the first edges")
    return tuple(relations)


def _relation(word: str, algebra: Algebra) -> int | None:
    """Relation of this name; "neice" is niece."""
    return algebra.find("niece" if word == _MISSPELLED and algebra is KINSHIP else word)


def _unknown(word: str, algebra: Algebra) -> str:
    known = ", ".join(algebra.relations)
    others = f", or beside the data algebra.json such as {EXAMPLE}" if algebra is DEFAULT else ""
    return f'unknown relation "{word}", expected one of {known}{others}'


def _parse_target(cell: Mapping[str, str], algebra: Algebra) -> int:
    """A relation by name or, in kinship, by its index in the data set `CLUTRR/v1` on Hugging
    Face."""
    text = cell["target"]
    if (target := _relation(text, algebra)) is None:
        count = len(algebra.relations) if algebra is KINSHIP else 0
        number = text.strip().removesuffix(".0")  # of pandas
        if not (number.isascii() and number.isdigit() and len(number) < 3 and int(number) < count):
            known = f"a number below {count} or " if count else ""
            raise CellError("target", f'unknown label "{text}", expected {known}'
                            + ", ".join(algebra.relations))  # fmt: skip
        target = int(number)
    name = cell.get("target_text", "")  # of the same data set
    if _relation(name, algebra) not in (None, target):
        problem = f'"{text}" is {algebra.relations[target]}, but target_text is "{name}"'
        raise CellError("target", problem)
    return target
