"""Audit of CLUTRR data, released or new: `python -m generator audit FILE...`.

An independent prover (`prover`) derives all that follows from the stated facts of each row:

  unique     the label follows, and nothing else does
  ambiguous  the label follows, and another relation too
  wrong      the label does not follow, or is of the other gender than the asked person

The ceiling of a file is the accuracy that a model can expect at most: one for each unique row, and
one part in n for a row with n readings.
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from tqdm import tqdm

from generator.columns import Row
from generator.errors import Parser
from generator.kinship import GENDER_OF, PREDICATE_OF, RELATION_OF, RELATIONS
from generator.prover import derivable
from generator.tables import Table, data_sets
from generator.text import SENTENCE

_CHUNK = 2048
_NAME = re.compile(r"\[([^\[\]]+)\]")


@dataclass
class Seen:
    """What the train files of a data set show: hashes of clauses, sentences and stories."""

    clauses: set[int] = field(default_factory=set)
    sentences: set[int] = field(default_factory=set)
    stories: set[int] = field(default_factory=set)


@dataclass
class Findings:
    """What the audit found in one file."""

    rows: int = 0
    unique: int = 0
    ambiguous: int = 0
    wrong: int = 0
    ceiling: float = 0.0  # sum over the rows
    readings: Counter[str] = field(default_factory=Counter)
    mistakes: list[str] = field(default_factory=list)  # the first wrong rows, in words
    duplicates: int = 0  # stories that stand in the file before
    unnamed: int = 0  # rows with a person of `genders` whom the story does not name
    disagreeing: int = 0  # rows whose f_comb, query or query_edge is not that of the facts
    labels: Counter[tuple[int, int]] = field(default_factory=Counter)  # (label, k)
    clauses: set[str] = field(default_factory=set)
    # Of a test file: what train shows too.
    shared_clauses: set[str] = field(default_factory=set)
    sentences: int = 0  # sentences with two people or more
    shared_sentences: int = 0
    shared_stories: int = 0


def readings(rows: list[Row]) -> list[list[int]]:
    """The relations that follow for the asked pair of each row, from its stated facts."""
    width = max(len(row.relations) for row in rows)
    people = max(len(row.names) for row in rows)
    edges = np.zeros((len(rows), width, 2), np.int64)
    predicates = np.full((len(rows), width), -1)
    for b, row in enumerate(rows):
        size = len(row.relations)
        edges[b, :size] = row.edges[:size]
        predicates[b, :size] = PREDICATE_OF[list(row.relations)]
    found = derivable(edges, predicates, np.array([row.query for row in rows]), people)
    return [
        RELATION_OF[np.flatnonzero(follows), row.genders[row.query[1]]].tolist()
        for follows, row in zip(found, rows, strict=True)
    ]


def audit(table: Table, train: Seen) -> Findings:
    """Audits one file; what a train file shows is added to `train`."""
    result = Findings()
    stories: set[int] = set()
    bar = tqdm(unit=" rows", desc=table.name, leave=False, disable=not sys.stderr.isatty())
    for rows in _chunks(table.rows()):
        for row, relations in zip(rows, readings(rows), strict=True):
            result.rows += 1
            _judge(row, relations, result)
            _compare(row, table.split, train, stories, result)
        bar.update(len(rows))
    bar.close()
    return result


def _chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while chunk := list(islice(rows, _CHUNK)):
        yield chunk


def _judge(row: Row, relations: list[int], result: Findings) -> None:
    result.labels[row.target, row.k] += 1
    result.disagreeing += not _agrees(row)
    result.unnamed += any(f"[{name}]" not in row.story for name in row.names)
    if row.target not in relations:
        result.wrong += 1
        if len(result.mistakes) < 5:
            follows = " or ".join(RELATIONS[r] for r in relations) or "nothing"
            x, y = (row.names[person] for person in row.query)
            result.mistakes.append(
                f"row {row.row_index}: {y} is said to be the {RELATIONS[row.target]} of {x}; "
                f"{follows} follows from {row.clause}"
            )
    else:
        result.unique += len(relations) == 1
        result.ambiguous += len(relations) > 1
        result.ceiling += 1 / len(relations)
        if len(relations) > 1:
            result.readings[" or ".join(sorted(RELATIONS[r] for r in relations))] += 1


def _agrees(row: Row) -> bool:
    """Returns whether f_comb, query and query_edge agree with the facts."""
    x, y = row.query
    return (
        row.clause == "-".join(RELATIONS[r] for r in row.relations[: row.k])
        and row.query_names == (row.names[x], row.names[y])
        and (x, y) == (row.edges[0][0], row.edges[min(row.k, len(row.edges)) - 1][1])
    )


def _compare(row: Row, split: str, train: Seen, stories: set[int], result: Findings) -> None:
    """Duplicates within the file, and what a test row shares with the train files."""
    story, clause = hash(row.story), hash(row.clause)
    result.duplicates += story in stories
    stories.add(story)
    result.clauses.add(row.clause)
    sentences = {hash(text) for text in _forms(row.story)}
    if split == "train":
        train.clauses.add(clause)
        train.stories.add(story)
        train.sentences |= sentences
        return
    result.shared_stories += story in train.stories
    if clause in train.clauses:
        result.shared_clauses.add(row.clause)
    result.sentences += len(sentences)
    result.shared_sentences += len(sentences & train.sentences)


def _forms(story: str) -> Iterator[str]:
    """The sentences about two people or more, with numbers for names."""
    for sentence in SENTENCE.split(story):
        number: dict[str, int] = {}
        text = _NAME.sub(lambda m: f"[{number.setdefault(m[1], len(number))}]", sentence)  # noqa: B023
        if len(number) > 1:
            yield text


def report(name: str, found: dict[str, tuple[str, Findings]]) -> str:
    """The findings of the files of one data set, as text."""
    columns = (
        "file", "rows", "unique", "ambiguous", "wrong", "ceiling", "twice", "unnamed", "disagree",
        "clauses", "in train", "sentences in train", "stories in train",
    )  # fmt: skip
    table: list[tuple[str, ...]] = [columns]
    notes = []
    for file, (split, f) in found.items():
        shared = ("", "", "")
        if split != "train":
            shared = (
                str(len(f.shared_clauses)),
                f"{f.shared_sentences} of {f.sentences}",
                str(f.shared_stories),
            )
        table.append((
            file, str(f.rows), str(f.unique), str(f.ambiguous), str(f.wrong),
            f"{f.ceiling / f.rows:.4f}", str(f.duplicates), str(f.unnamed), str(f.disagreeing),
            str(len(f.clauses)), *shared,
        ))  # fmt: skip
        notes += [
            f"  {file}: {count} ambiguous: {text}" for text, count in f.readings.most_common()
        ]
        notes += [f"  {file}: WRONG: {text}" for text in f.mistakes]
    return "\n".join([name, _aligned(table), *notes, "", _labels(found), ""])


def _labels(found: dict[str, tuple[str, Findings]]) -> str:
    """How often each label stands in each file, for each k."""
    keys = [(file, k) for file, (_, f) in found.items() for k in sorted({k for _, k in f.labels})]
    several = {file for file, _ in keys if sum(file == other for other, _ in keys) > 1}
    head = ["label"]
    for file, k in keys:
        short = file.split(".csv")[0].removesuffix("_test")
        head.append(f"{short} k={k}" if file in several else short)
    counts = defaultdict(dict)  # type: ignore[var-annotated]
    for column, (file, k) in enumerate(keys):
        for (label, of_k), count in found[file][1].labels.items():
            if of_k == k:
                counts[label][column] = count
    order = sorted(counts, key=lambda label: (PREDICATE_OF[label], GENDER_OF[label]))
    rows = [
        (RELATIONS[label], *(str(counts[label].get(i, "")) for i in range(len(keys))))
        for label in order
    ]
    return _aligned([tuple(head), *rows])


def _aligned(rows: list[tuple[str, ...]]) -> str:
    """A table: the first column to the left, the others to the right."""
    width = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, width, strict=True))
        ).rstrip()
        for row in rows
    )


def main(argv: list[str]) -> int:
    """Audits files and prints what it finds; 1 if a label is wrong, else 0."""
    parser = Parser(
        prog="python -m generator audit",
        description="Checks CLUTRR data, released or new: whether each label follows from the "
        "stated facts, alone or beside others; what stands twice; what a test file shares with "
        "the train files. Ends with exit code 1 if a label is wrong.",
        epilog="rows: unique, ambiguous or wrong label; ceiling: the best expected accuracy; "
        "twice: stories that stand in the file before; unnamed: rows with a person whom the story "
        "does not name; disagree: rows whose f_comb, query or query_edge is not that of the facts; "
        "in train: clauses, sentences about several people, and stories that train shows too.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE",
                        help="a .zip, a folder, a .csv, .csv.gz or .parquet file")  # fmt: skip
    wrong = rows = 0
    for name, tables in data_sets(parser.parse_args(argv).files).items():
        train = Seen()
        found = {table.name: (table.split, audit(table, train)) for table in tables}
        print(report(name, found), flush=True)
        wrong += sum(f.wrong for _, f in found.values())
        rows += sum(f.rows for _, f in found.values())
    print(f"{rows} rows, {wrong} wrong labels")
    return 1 if wrong else 0
