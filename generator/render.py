"""Rendering of generated stories as CSV or Parquet."""

import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from generator.blocks import block
from generator.columns import COLUMNS, format_row
from generator.config import Config, Task
from generator.hold_out import SplitBank
from generator.names import ALL_NAMES, bracketed, name_indices
from generator.stories import Stories
from generator.text import Bank, texts


class Piece(NamedTuple):
    """One block of stories as part of a file."""

    split: str
    task: Task
    block: int
    size: int  # the first `size` stories of the block are used
    first: int  # row index of the first story


class Renderer:
    """Renders pieces as bytes; a file is the concatenation of its pieces.

    Args:
      config: settings of the generator.
      banks: paraphrases for training and for tests.
      form: csv, csv.gz, or parquet, whose pieces are Arrow streams.
    """

    def __init__(self, config: Config, banks: SplitBank, form: str) -> None:
        self.config, self.banks, self.form = config, banks, form
        self.expressible = banks.expressible()

    def __call__(self, piece: Piece) -> bytes:
        stories, rng = block(self.config, piece.split, piece.task, piece.block, self.expressible)
        stories = stories.select(slice(piece.size))
        rows = story_rows(stories, piece.split, piece.first, self.banks.of(piece.split), rng)
        if self.form == "parquet":
            return _arrow(rows)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if piece.first == 0:
            writer.writerow(COLUMNS)
        writer.writerows(rows)
        data = text.getvalue().encode()
        return gzip.compress(data, 5, mtime=0) if self.form == "csv.gz" else data


def story_rows(
    stories: Stories, split: str, first: int, bank: Bank, rng: np.random.Generator
) -> Iterator[tuple[str, ...]]:
    """Yields the cells of each story in the order of COLUMNS; row indices start at `first`."""
    people = name_indices(stories.gender, stories.name)
    text = texts(stories, bracketed(stories.gender, stories.name), bank, rng)
    uuids = _uuids(rng.spawn(1)[0].bytes(16 * len(stories)))
    edges, relations = stories.edges().astype(np.int8), stories.edge_relations().astype(np.int8)
    sizes = (relations >= 0).sum(1).tolist()  # relations are padded with -1
    last = stories.query()[:, 1].tolist()
    genders = stories.gender.tolist()
    family_nodes = stories.family_node.tolist()
    target = stories.target.tolist()
    steps = np.concatenate([stories.proof_people, stories.proof_relations], axis=2).tolist()
    for row, (story, clean_story, stated_target) in enumerate(text):
        n, size = len(people[row]), sizes[row]
        yield format_row(
            index=first + row,
            uuid=uuids[row],
            story=story,
            clean_story=clean_story,
            stated_target=stated_target,
            names=[ALL_NAMES[p] for p in people[row]],
            genders=genders[row][:n],
            edges=edges[row, :size].tobytes(),
            relations=relations[row, :size].tobytes(),
            query=(0, last[row]),
            target=target[row],
            proof=steps[row],
            family_nodes=family_nodes[row][:n],
            task=str(stories.task),
            k=stories.task.k,
            split=split,
        )


def _uuids(random: bytes) -> list[str]:
    """UUIDs of version 4, from 16 random bytes each."""
    raw = np.frombuffer(random, np.uint8).reshape(-1, 16).copy()
    raw[:, 6] = raw[:, 6] & 0x0F | 0x40
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    digits = raw.tobytes().hex()
    return [
        f"{digits[i : i + 8]}-{digits[i + 8 : i + 12]}-{digits[i + 12 : i + 16]}-"
        f"{digits[i + 16 : i + 20]}-{digits[i + 20 : i + 32]}"
        for i in range(0, len(digits), 32)
    ]


def _arrow(rows: Iterable[tuple[str, ...]]) -> bytes:
    """Returns rows as an Arrow stream, without their index."""
    import pyarrow as pa  # only this format needs it

    columns = dict(zip(COLUMNS[1:], list(zip(*rows, strict=True))[1:], strict=True))
    batch = pa.record_batch({name: pa.array(cells) for name, cells in columns.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue().to_pybytes()
