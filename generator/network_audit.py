"""The part of `python -m generator audit` for graphs of facts, such as those of STaR.

The relations that path consistency leaves for the query pair are the possible answers.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from tqdm import tqdm

from generator.cells import plain_text
from generator.data_sets import Table
from generator.path_consistency import possible_relations
from generator.rows import Row

_CHUNK = 2048
_LISTED = 5  # wrong rows that are described


# Facts, relations, query pair and label
Graph = tuple[tuple[tuple[int, int], ...], tuple[int, ...], tuple[int, int], int]


@dataclass
class NetworkFindings:
    """Results of the audit of one file."""

    split: str
    rows: int = 0
    unique: int = 0
    ambiguous: int = 0
    wrong: int = 0
    ceiling: float = 0.0  # sum over the rows
    mistakes: list[str] = field(default_factory=list)  # descriptions of the first wrong rows
    duplicates: int = 0  # graphs that occur earlier in the file
    in_train: int = 0  # graphs of a test or dev file that a train file has
    labels: Counter[tuple[str, str]] = field(default_factory=Counter)  # (label, cell B.K)


def fact_arrays(rows: list[Row]) -> tuple[np.ndarray, np.ndarray]:
    """Facts of rows: edges [N, E, 2] and relations [N, E], -1 where a row has fewer facts."""
    width = max(len(row.relations) for row in rows)
    edges = np.zeros((len(rows), width, 2), np.int64)
    relations = np.full((len(rows), width), -1)
    for i, row in enumerate(rows):
        size = len(row.relations)
        edges[i, :size], relations[i, :size] = row.edges[:size], row.relations
    return edges, relations


def audit_networks(table: Table, train: set[Graph]) -> NetworkFindings:
    """Audits one file. The graphs of a train file are added to `train`."""
    result = NetworkFindings(table.split)
    starts = range(0, len(table.rows), _CHUNK)
    for start in tqdm(starts, table.name, leave=False, disable=None, unit=" chunks"):
        rows = table.rows[start : start + _CHUNK]
        query = np.array([row.query for row in rows])
        possible = possible_relations(*fact_arrays(rows), query, rows[0].algebra)
        for row, found in zip(rows, possible, strict=True):
            _judge(row, np.flatnonzero(found).tolist(), result)
    graphs = [(row.edges, row.relations, row.query, row.target) for row in table.rows]
    result.duplicates = len(graphs) - len(set(graphs))
    if table.split == "train":
        train.update(graphs)
    else:
        result.in_train = sum(graph in train for graph in graphs)
    return result


def _judge(row: Row, possible: list[int], result: NetworkFindings) -> None:
    names = row.algebra.relations
    label = names[row.target] if row.target >= 0 else "no label"
    result.rows += 1
    result.labels[label, f"{row.noise}.{row.k}"] += 1
    if row.target in possible:
        result.unique += len(possible) == 1
        result.ambiguous += len(possible) > 1
        result.ceiling += 1 / len(possible)
        return
    result.wrong += 1
    result.ceiling += 1
    if len(result.mistakes) < _LISTED:
        x, y = (row.names[element] for element in row.query)
        found = f"{' or '.join(names[r] for r in possible)} is possible"
        result.mistakes.append(
            f"row {row.row_index}: ({x}, {y}) is said to be {label}; "
            f"{found if possible else 'the facts contradict each other'}"
        )


def network_report(name: str, found: dict[str, NetworkFindings]) -> str:
    """Formats the findings for the files of one data set."""
    head = ("file", "rows", "unique", "ambiguous", "wrong", "ceiling", "twice", "in train")
    table: list[tuple[str, ...]] = [head]
    cells: dict[str, Counter[tuple[str, str]]] = {}  # of each split
    for file, f in found.items():
        ceiling, in_train = f"{f.ceiling / f.rows:.4f}", "" if f.split == "train" else f.in_train
        row = (file, f.rows, f.unique, f.ambiguous, f.wrong, ceiling, f.duplicates, in_train)
        table.append(tuple(map(str, row)))
        cells.setdefault(f.split, Counter()).update(f.labels)
    lines = [name, plain_text(table)]
    lines += [f"  {file}: WRONG: {text}" for file, f in found.items() for text in f.mistakes]
    for split, labels in cells.items():
        columns = list(dict.fromkeys(cell for _, cell in labels))
        rows = [
            (label, *(str(labels[label, cell] or "") for cell in columns))
            for label in dict.fromkeys(label for label, _ in labels)
        ]
        lines += ["", plain_text([(f"label, {split} B.K", *columns), *rows])]
    return "\n".join([*lines, ""])
