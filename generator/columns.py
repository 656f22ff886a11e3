"""The published columns of a story: formats and parses one row.

The columns are those of the data sets that Sinha et al. (2019) released (docs/generator.md).
"""

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from generator.cells import REQUIRED, quoted
from generator.errors import InputError, at
from generator.files import SPLIT_FOLDERS
from generator.kinship import GENDERS, NUM_RELATIONS, RELATION_ID, RELATIONS

COLUMNS = (
    "", "id", "story", "query", "text_query", "target", "text_target", "clean_story",
    "proof_state", "f_comb", "task_name", "story_edges", "edge_types", "query_edge", "genders",
    "syn_story", "node_mapping", "task_split",
)  # fmt: skip

# Limits of one story: the generator has 150 names per gender, and writes far fewer facts.
MAX_PEOPLE, MAX_EDGES, MAX_STORY = 150, 1000, 1 << 15

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


def format_row(
    *,
    index: int,  # of the row in its file, from 0
    uuid: str,
    story: str,  # with names in [brackets]
    clean_story: str,  # without noise
    stated_target: list[str],  # sentences that state the answer
    names: Sequence[str],
    genders: Sequence[int],  # index in GENDERS
    edges: Iterable[Sequence[int]],  # people (x, y) of the facts, the path first
    relations: Sequence[int],  # of the facts, index in RELATIONS
    query: tuple[int, int],
    target: int,
    # Steps (x, z, y, r, p, q) from the root: (x, r, y) follows from (x, p, z) and (z, q, y).
    proof: Iterable[Sequence[int]],
    family_nodes: Sequence[int],  # each person's index in the family
    task: str,  # such as "1.3"
    k: int,  # number of facts on the path
    split: str,  # train, dev or test
) -> tuple[str, ...]:
    """Returns the cells of one story, in the order of COLUMNS."""
    facts = format_facts(names, genders, edges, relations, query)
    return (
        str(index),
        uuid,
        story,
        facts["query"],
        "",
        RELATIONS[target],
        str(stated_target),
        clean_story,
        _format_proof(proof, names),
        "-".join([RELATIONS[r] for r in relations[:k]]),
        f"task_{task}",
        facts["story_edges"],
        facts["edge_types"],
        facts["query_edge"],
        facts["genders"],
        "",
        str({node: i for i, node in enumerate(family_nodes)}),
        split,
    )


def format_facts(
    names: Sequence[str],
    genders: Sequence[int],
    edges: Iterable[Sequence[int]],
    relations: Iterable[int],
    query: tuple[int, int],
) -> dict[str, str]:
    """Returns the cells of the facts and the question by column; arguments as in `format_row`."""
    x, y = query
    return {
        "query": f"({quoted(names[x])}, {quoted(names[y])})",
        "story_edges": str([*map(tuple, edges)]),
        "edge_types": str([RELATIONS[r] for r in relations]),
        "query_edge": f"({x}, {y})",
        "genders": ",".join([f"{n}:{GENDERS[g]}" for n, g in zip(names, genders, strict=True)]),
    }


def _format_proof(steps: Iterable[Sequence[int]], names: Sequence[str]) -> str:
    """`[{fact: [fact, fact]}, ...]`, from the root."""
    triples = [
        ((names[x], RELATIONS[r], names[y]), (names[x], RELATIONS[p], names[z]),
         (names[z], RELATIONS[q], names[y]))
        for x, z, y, r, p, q in steps
    ]  # fmt: skip
    return str([{head: [first, second]} for head, first, second in triples])


class Row(NamedTuple):
    """One parsed story. People are indexed in the order of `genders`."""

    row_index: int  # row of the file, from 1
    split: str  # train, dev or test
    id: str  # "" if the file has no such column
    story: str
    clean_story: str  # "" if the file has no such column
    names: tuple[str, ...]
    genders: tuple[int, ...]  # index in GENDERS
    edges: tuple[tuple[int, int], ...]
    relations: tuple[int, ...]  # of the first edges, index in RELATIONS; the others state none
    query: tuple[int, int]
    query_names: tuple[str, str]
    target: int  # index in RELATIONS
    clause: str  # f_comb
    noise: int  # T of task T.K
    k: int


class _CellError(Exception):
    """A cell that cannot be parsed: its column, and the problem."""


def parse_rows(file: str, table: Iterable[Sequence[str]]) -> Iterator[Row]:
    """Parses the rows of one table.

    Args:
      file: its path, which decides the split (see `_parse_split`) and appears in messages.
      table: the header, which includes REQUIRED, then the rows; all cells as text.
    """
    rows = iter(table)
    header = next(rows)
    for column in REQUIRED:
        if column not in header:
            raise InputError(
                f'{file}: no column "{column}"; expected '
                f"{', '.join(REQUIRED)}; found {', '.join(header)}"
            )
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
        misspelled |= _MISSPELLED in cell["target"] + cell["edge_types"]
        yield row
    if misspelled:
        print(f'{file}: "{_MISSPELLED}" is read as "niece"', file=sys.stderr)
    if not index:
        raise InputError(f"{file}: no rows, expected at least one story")


def _splits_in(text: str) -> set[str]:
    # At the start of a word: "latest" states no split.
    words = re.findall(r"(?<![a-z])(?:test|train|val|dev)", text.lower())
    return {"dev" if word == "val" else word for word in words}


def _parse_row(index: int, cell: Mapping[str, str], stated: set[str], default: str) -> Row:
    story, clean_story = cell["story"], cell.get("clean_story", "")
    for column, text in (("story", story), ("clean_story", clean_story)):
        if len(text) > MAX_STORY:
            raise _CellError(column, f"{len(text):,} characters, expected at most {MAX_STORY:,}")
    if not story.strip():
        raise _CellError("story", "empty, expected text")
    names, genders = _parse_genders(cell["genders"])
    pairs = _match(_PAIRS, cell, "story_edges", "a list of pairs such as [(0, 1), (1, 2)]")
    edges = tuple([(int(x), int(y)) for x, y in _PAIR.findall(pairs[0])])
    if not 0 < len(edges) <= MAX_EDGES:
        raise _CellError("story_edges", f"{len(edges):,} edges, expected 1 to {MAX_EDGES:,}")
    relations = _parse_relations(cell)
    if len(relations) > len(edges):
        raise _CellError("edge_types", f"{len(relations)} relations for {len(edges)} story_edges")
    pair = _match(_PAIR, cell, "query_edge", "a pair such as (0, 3)")
    query = int(pair[1]), int(pair[2])
    for column, parts in (("story_edges", edges), ("query_edge", (query,))):
        if (highest := max(map(max, parts))) >= len(names):
            raise _CellError(column, f"no person {highest}: the row has {len(names)} people")
        if same := [x for x, y in parts if x == y]:
            raise _CellError(column, f"({same[0]}, {same[0]}): expected two different people")
    asked = _match(_NAMES, cell, "query", "a pair of names such as ('Ann', 'Bob')")
    task = _match(_TASK, cell, "task_name", "a task such as task_1.3")
    k = int(task[2])
    if cell["task_name"].strip() == f"{task[1]}.1" and len(relations) > 1:
        raise _CellError(
            "task_name", f"{len(relations)} relations: expected a task such as task_1.10, as text"
        )
    clause = cell.get("f_comb", "").replace(_MISSPELLED, "niece")
    return Row(
        row_index=index,
        split=_parse_split(stated, cell.get("task_split", ""), default),
        id=cell.get("id", ""),
        story=_with_brackets(story, names),
        clean_story=_with_brackets(clean_story, names),
        names=names,
        genders=genders,
        edges=edges,
        relations=relations,
        query=query,
        query_names=(asked[2], asked[4]),
        target=_parse_target(cell),
        clause=clause or "-".join(RELATIONS[r] for r in relations[:k]),
        noise=int(task[1]),
        k=k,
    )


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
        if not name or gender.lower() not in GENDERS:
            raise _CellError("genders", f'"{person}": expected NAME:male or NAME:female')
        names.append(name)
        genders.append(GENDERS.index(gender.lower()))
    if len(names) > MAX_PEOPLE:
        raise _CellError("genders", f"{len(names):,} people, expected at most {MAX_PEOPLE}")
    if len(set(names)) < len(names):
        raise _CellError("genders", "a name occurs twice: expected different names")
    return tuple(names), tuple(genders)
