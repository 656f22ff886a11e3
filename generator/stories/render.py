"""Rendering of generated stories as CSV, JSON Lines or Parquet."""

import gzip
import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import chain
from typing import NamedTuple
from uuid import UUID

import numpy as np

from generator.files import csv_text
from generator.stories.blocks import BLOCK, block
from generator.stories.config import Config, Task
from generator.stories.hold_out import SplitBank
from generator.stories.names import names_of
from generator.stories.text import texts
from generator.tables.columns import COLUMNS, format_row, story_row
from generator.tables.rows import Row


class Piece(NamedTuple):
    """One block of stories as part of a file."""

    split: str
    task: Task
    block: int
    size: int  # the first `size` stories of the block are used
    first: int  # row index of the first story


def pieces(config: Config, split: str, tasks: Iterable[Task]) -> list[Piece]:
    """Returns the pieces of a file with the stories of some tasks of a split."""
    found: list[Piece] = []
    for task in tasks:
        first = found[-1].first + found[-1].size if found else 0
        rows = config.rows(split, task)
        for start in range(0, rows, BLOCK):
            size = min(BLOCK, rows - start)
            found.append(Piece(split, task, start // BLOCK, size, first + start))
    return found


class Renderer:
    """Renders pieces as bytes, which `write` joins to files; those of Parquet are files too.

    With `test`, the stories are written as tests of this T, whatever their task and split.
    """

    def __init__(
        self, config: Config, banks: SplitBank, form: str = "csv", test: int | None = None
    ) -> None:
        self.config, self.banks, self.form, self.test = config, banks, form, test
        self.expressible = banks.expressible()

    def __call__(self, piece: Piece) -> bytes:
        rows = (format_row(*story) for story in self.stories(piece))
        if self.form == "parquet":
            return _parquet(rows)
        if self.form == "jsonl":
            return b"".join(map(_json_line, rows))
        data = csv_text(chain([] if piece.first else [COLUMNS], rows)).encode()
        return gzip.compress(data, 5, mtime=0) if self.form == "csv.gz" else data

    def stories(self, piece: Piece) -> Iterator[tuple[Row, list[str], list, list[int]]]:
        """Yields the arguments of `format_row` for each story; the first is its `Row`."""
        stories, rng = block(self.config, piece.split, piece.task, piece.block, self.expressible)
        stories = stories.select(slice(piece.size))
        people = names_of(stories.gender, stories.name)
        text = texts(stories, people, self.banks.of(piece.split), rng)
        edges, relations = stories.edges().tolist(), stories.edge_relations().tolist()
        num_facts = (stories.edge_relations() >= 0).sum(1).tolist()  # then follows padding
        last = stories.query()[:, 1].tolist()
        genders, family_nodes = stories.gender.tolist(), stories.family_node.tolist()
        target, noise = stories.target.tolist(), self.test or piece.task.noise
        task = f"{noise}.{piece.task.k}"
        split = "test" if self.test else piece.split
        steps = np.concatenate([stories.proof_people, stories.proof_relations], axis=2).tolist()
        for row, (story, clean_story, stated_target) in enumerate(text):
            n, e = len(people[row]), num_facts[row]
            index = piece.first + row
            found = story_row(
                row_index=index + 1,
                id=_uuid(split, task, index, people[row][0], people[row][last[row]], story),
                story=story,
                clean_story=clean_story,
                names=people[row],
                genders=tuple(genders[row][:n]),
                edges=tuple(map(tuple, edges[row][:e])),
                relations=relations[row][:e],
                query=(0, last[row]),
                target=target[row],
                noise=noise,
                k=piece.task.k,
                split=split,
            )
            yield found, stated_target, steps[row], family_nodes[row][:n]


def _uuid(*content: str | int) -> str:
    """Id of a story, which other stories do not have, also those of other settings."""
    digest = sha256("\0".join(map(str, content)).encode()).digest()
    return str(UUID(bytes=digest[:16], version=4))


def _json_line(row: tuple[str, ...]) -> bytes:
    """Returns a row as a line of JSON, without its index."""
    cells = dict(zip(COLUMNS[1:], row[1:], strict=True))
    return f"{json.dumps(cells, ensure_ascii=False)}\n".encode()


def _parquet(rows: Iterable[tuple[str, ...]]) -> bytes:
    """Returns rows as a Parquet file, without their index."""
    import pyarrow as pa  # only this format needs it
    import pyarrow.parquet as pq

    columns = dict(zip(COLUMNS[1:], list(zip(*rows, strict=True))[1:], strict=True))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()
