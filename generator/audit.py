"""Audit of CLUTRR data, released or new: `python -m generator audit FILE...`.

An independent prover derives the relations that the stated facts of a row imply for its query pair.
The exit code is 1 if a label is wrong. Columns of the report:

  unique             rows whose label is the only implied relation
  ambiguous          rows for which other relations are implied as well
  wrong              rows without a label, or whose label is not implied or has the wrong gender
  ceiling            best achievable accuracy: a row with n implied relations counts 1 / n
  twice              stories that occur earlier in the file
  unnamed            rows with a person who is not in the story
  disagree           rows whose k, f_comb, query, query_edge or genders contradict the facts
  in train           clauses, sentences about several people, and stories of the train files
  in other tests     stories that an earlier test file has

Rows of other relations than kinship are judged by the relations that path consistency leaves for
their query pair, and a contradiction is wrong; `in train` counts the graphs of the train files.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tqdm import tqdm

from generator.cells import plain_text
from generator.data_sets import Table, data_sets
from generator.deduction import derivable
from generator.errors import Parser
from generator.files import SUFFIXES
from generator.kinship import (
    GENDER_OF,
    KINSHIP,
    PREDICATE_ALGEBRA,
    PREDICATE_OF,
    RELATION_OF,
    RELATIONS,
    UNKNOWN_GENDER,
)
from generator.network_audit import Graph, audit_networks, fact_arrays, network_report
from generator.rows import Row
from generator.stories.text import NAME, SENTENCE

_CHUNK = 2048
_LISTED = 5  # rows of each kind that are described


@dataclass
class Seen:
    """Clauses, sentences and stories in the train files of a data set, and its test stories."""

    clauses: set[str] = field(default_factory=set)
    sentences: set[str] = field(default_factory=set)
    stories: set[str] = field(default_factory=set)
    tests: dict[str, str] = field(default_factory=dict)  # test story -> the first file that has it


@dataclass
class Findings:
    """Results of the audit of one file."""

    rows: int = 0
    unique: int = 0
    ambiguous: int = 0
    wrong: int = 0
    ceiling: float = 0.0  # sum over the rows
    readings: Counter[str] = field(default_factory=Counter)  # implied relations of ambiguous rows
    mistakes: list[str] = field(default_factory=list)  # descriptions of the first wrong rows
    duplicates: int = 0  # stories that occur earlier in the file
    unnamed: int = 0  # rows with a person in `genders` who is not in the story
    disagreeing: int = 0  # rows with a column that contradicts the facts
    doubts: list[str] = field(default_factory=list)  # the first unnamed and disagreeing rows
    labels: Counter[tuple[int, int]] = field(default_factory=Counter)  # (label, k)
    clauses: set[str] = field(default_factory=set)
    # Overlap of a test file with the train files.
    shared_clauses: set[str] = field(default_factory=set)
    sentences: int = 0  # sentences with two people or more
    shared_sentences: int = 0
    shared_stories: int = 0
    copies: Counter[str] = field(default_factory=Counter)  # stories that earlier test files have


def readings(rows: list[Row]) -> list[list[int]]:
    """Returns the relations that the stated facts of each row imply for its query pair, those of
    both genders for a person of unknown gender."""
    people = max(len(row.names) for row in rows)
    edges, relations = fact_arrays(rows)
    predicates = np.where(relations < 0, -1, PREDICATE_OF[relations])
    query = np.array([row.query for row in rows])
    found = derivable(edges, predicates, query, people, PREDICATE_ALGEBRA)
    result = []
    for follows, row in zip(found, rows, strict=True):
        gender = row.genders[row.query[1]]
        genders = slice(None) if gender == UNKNOWN_GENDER else gender
        result.append(RELATION_OF[np.flatnonzero(follows), genders].ravel().tolist())
    return result


def audit(table: Table, seen: Seen) -> Findings:
    """Audits one file. The content of a train or test file is added to `seen`."""
    result = Findings()
    starts = range(0, len(table.rows), _CHUNK)
    for start in tqdm(starts, table.name, leave=False, disable=None, unit=" chunks"):
        rows = table.rows[start : start + _CHUNK]
        for row, relations in zip(rows, readings(rows), strict=True):
            _judge(row, relations, result)
    _compare(table, seen, result)
    return result


def _judge(row: Row, relations: list[int], result: Findings) -> None:
    result.rows += 1
    result.labels[row.target, row.k] += 1
    column = _contradiction(row)
    unnamed = [name for name in row.names if f"[{name}]" not in row.story]
    result.disagreeing += bool(column)
    result.unnamed += bool(unnamed)
    doubts = [f"{column} contradicts the facts"] if column else []
    doubts += [f"the story does not name {name}" for name in unnamed[:1]]
    if len(result.doubts) < _LISTED:
        result.doubts += [f"row {row.row_index}: {text}" for text in doubts]
    if row.target not in relations:
        result.wrong += 1
        result.ceiling += 1
        if len(result.mistakes) < _LISTED:
            follows = " or ".join(RELATIONS[r] for r in relations) or "nothing"
            x, y = (row.names[person] for person in row.query)
            label = _label(row.target)
            said = f"{y} is said to be the {label} of {x}" if row.target >= 0 else label
            result.mistakes.append(
                f"row {row.row_index}: {said}; {follows} follows from {row.clause}"
            )
    else:
        result.unique += len(relations) == 1
        result.ambiguous += len(relations) > 1
        result.ceiling += 1 / len(relations)
        if len(relations) > 1:
            result.readings[" or ".join(sorted(RELATIONS[r] for r in relations))] += 1


def _label(target: int) -> str:
    return RELATIONS[target] if target >= 0 else "no label"


def _contradiction(row: Row) -> str:
    """Returns the first column that contradicts the facts, or an empty string."""
    if row.k > len(row.relations):
        return "task_name"
    x, y = row.query
    facts = zip(row.edges, row.relations, strict=False)
    agrees = {
        "f_comb": row.clause == "-".join(RELATIONS[r] for r in row.relations[: row.k]),
        "query": row.query_names == (row.names[x], row.names[y]),
        "query_edge": (x, y) == (row.edges[0][0], row.edges[row.k - 1][1]),
        "genders": all(
            row.genders[person] in (GENDER_OF[r], UNKNOWN_GENDER) for (_, person), r in facts
        ),
    }
    return next((column for column, is_so in agrees.items() if not is_so), "")


def _compare(table: Table, seen: Seen, result: Findings) -> None:
    """Counts duplicates within the file, and the overlap of a test file with the others."""
    stories = [row.story for row in table.rows]
    result.duplicates = len(stories) - len(set(stories))
    result.clauses = {row.clause for row in table.rows}
    sentences = [set(_forms(story)) for story in stories]
    if table.split == "train":
        seen.clauses |= result.clauses
        seen.stories.update(stories)
        seen.sentences.update(*sentences)
        return
    result.shared_clauses = result.clauses & seen.clauses
    result.shared_stories = sum(story in seen.stories for story in stories)
    result.sentences = sum(map(len, sentences))
    result.shared_sentences = sum(len(forms & seen.sentences) for forms in sentences)
    if table.split == "test":
        files = [seen.tests.setdefault(story, table.name) for story in stories]
        result.copies.update(file for file in files if file != table.name)


def _forms(story: str) -> Iterator[str]:
    """Sentences that name two or more people, with indices in place of the names."""
    for sentence in SENTENCE.split(story):
        index: dict[str, int] = {}
        text = NAME.sub(lambda m: f"[{index.setdefault(m[1], len(index))}]", sentence)  # noqa: B023
        if len(index) > 1:
            yield text


def report(name: str, found: dict[str, tuple[str, Findings]]) -> str:
    """Formats the findings for the files of one data set."""
    table: list[dict[str, object]] = []
    notes = []
    for file, (split, f) in found.items():
        shared = {
            "in train": len(f.shared_clauses),
            "sentences in train": f"{f.shared_sentences} of {f.sentences}",
            "stories in train": f.shared_stories,
            "in other tests": f.copies.total(),
        }
        table.append({
            "file": file, "rows": f.rows, "unique": f.unique, "ambiguous": f.ambiguous,
            "wrong": f.wrong, "ceiling": f"{f.ceiling / f.rows:.4f}", "twice": f.duplicates,
            "unnamed": f.unnamed, "disagree": f.disagreeing, "clauses": len(f.clauses),
        } | (dict.fromkeys(shared, "") if split == "train" else shared))  # fmt: skip
        notes += [
            f"  {file}: {count} ambiguous: {text}" for text, count in f.readings.most_common()
        ]
        notes += [
            f"  {file}: stories that are also in {other}: {count}"
            for other, count in f.copies.items()
        ]
        notes += [f"  {file}: WRONG: {text}" for text in f.mistakes]
        notes += [f"  {file}: {text}" for text in f.doubts]
    lines = [[*table[0]], *([str(cell) for cell in row.values()] for row in table)]
    return "\n".join([name, plain_text(lines), *notes, "", _labels(found), ""])


def _labels(found: dict[str, tuple[str, Findings]]) -> str:
    """A table with the frequency of each label in each file, by k."""
    head, columns = ["label"], []
    for file, (_, f) in found.items():
        lengths = sorted({k for _, k in f.labels})
        short = file.split(".csv")[0].removesuffix("_test")
        head += [f"{short} k={k}" if len(lengths) > 1 else short for k in lengths]
        columns += [(f.labels, k) for k in lengths]
    labels = {label for _, f in found.values() for label, _ in f.labels}
    order = sorted(labels, key=lambda one: (one < 0, PREDICATE_OF[one], GENDER_OF[one]))
    rows = [
        (_label(label), *(str(count[label, k] or "") for count, k in columns)) for label in order
    ]
    return plain_text([tuple(head), *rows])


def main(argv: list[str]) -> int:
    """Audits files and prints the findings. Returns 1 if a label is wrong, else 0."""
    parser = Parser(prog="python -m generator audit", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE",
                        help=f"a .zip, a folder, or a {', '.join(SUFFIXES)} file")  # fmt: skip
    wrong = rows = 0
    for name, tables in data_sets(parser.parse_args(argv).files):
        networks = [table for table in tables if table.rows[0].algebra != KINSHIP]
        if stories := [table for table in tables if table.rows[0].algebra == KINSHIP]:
            seen = Seen()
            found = {table.name: (table.split, audit(table, seen)) for table in stories}
            print(report(name, found), flush=True)
            wrong += sum(f.wrong for _, f in found.values())
        if networks:
            train: set[Graph] = set()
            judged = {table.name: audit_networks(table, train) for table in networks}
            print(network_report(name, judged), flush=True)
            wrong += sum(f.wrong for f in judged.values())
        rows += sum(len(table.rows) for table in tables)
    print(f"{rows} rows, {wrong} wrong labels")
    return 1 if wrong else 0
