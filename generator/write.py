"""Writing a data set: train, test and dev files, and config.json.

Blocks of stories are computed by any number of processes and written in order. A file has a name of
its own until it is whole; beside it a journal notes where each block ends, so that the same command
goes on where it was stopped.
"""

import csv
import gzip
import io
import json
import multiprocessing
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from generator import VERSION
from generator.blocks import BLOCK, block, check
from generator.clause_sets import allowed_clauses, is_listable
from generator.config import Config, Task
from generator.errors import InputError
from generator.files import write_text
from generator.hold_out import SplitBank, split_bank
from generator.kinship import RELATIONS
from generator.paraphrases.load import load_bank
from generator.puzzle import COLUMNS, rows
from generator.text import Bank, clause_name

FORMATS = ("csv", "csv.gz", "parquet")


class Piece(NamedTuple):
    """Part of a file: one block of stories of one task."""

    split: str
    task: Task
    block: int
    size: int  # how many stories of the block are wanted, from its first
    first: int  # row number of its first story


def write_dataset(config: Config, out: Path, workers: int = 1, form: str = "csv") -> list[Path]:
    """Writes what the settings ask for into a folder, and returns the files.

    Files that are there and whole are left as they are.

    Raises:
      InputError: the settings cannot be met, the folder cannot be written, or it holds data of
        other settings.
    """
    bank = load_bank(config)
    banks = split_bank(bank, config)
    files = {out / f"{name}.{form}": pieces for name, pieces in _files(config).items()}
    for split, task in sorted({piece[:2] for pieces in files.values() for piece in pieces}):
        check(config, split, task)
    _start_folder(out, _description(config, bank, banks, [path.name for path in files]))
    todo = {path: pieces for path, pieces in files.items() if not path.exists()}
    for path in files.keys() - todo.keys():
        _tidy(path)
    total = sum(piece.size for pieces in todo.values() for piece in pieces)
    with ExitStack() as stack:
        bar = stack.enter_context(
            tqdm(total=total, unit=" stories", disable=not sys.stderr.isatty(), smoothing=0)
        )
        compute: Callable[[Iterable[Piece]], Iterator[bytes]]
        if workers > 1:
            pool = stack.enter_context(
                multiprocessing.Pool(workers, _start_worker, (config, banks, form))
            )
            compute = partial(pool.imap, _compute)
        else:
            compute = partial(map, Renderer(config, banks, form))
        for path, pieces in todo.items():
            _write_file(path, pieces, compute, bar)
    return list(files)


def _files(config: Config) -> dict[str, list[Piece]]:
    """The pieces of each file, by its name without the ending."""
    found = {}
    for split in ("train", "dev"):
        tasks = config.tasks(split)
        found[f"{','.join(map(str, tasks))}_{split}"] = (split, tasks)
    found |= {f"{task}_test": ("test", (task,)) for task in config.test}
    files = {}
    for name, (split, tasks) in found.items():
        pieces, first = [], 0
        for task in tasks:
            rows = config.rows(split, task)
            for start in range(0, rows, BLOCK):
                size = min(BLOCK, rows - start)
                pieces.append(Piece(split, task, start // BLOCK, size, first + start))
            first += rows
        if pieces:
            files[name] = pieces
    return files


def _description(config: Config, bank: Bank, banks: SplitBank, files: list[str]) -> str:
    """The text of config.json."""
    words = sorted((clause_name(key), pool) for key, pool in bank.templates.items())
    clauses = {
        str(k): [
            "-".join(RELATIONS[r] for r in clause[:k])
            for clause in allowed_clauses(config, "test", k)
        ]
        for k in sorted({task.k for task in config.train})
        if config.holds_out_clauses(k) and is_listable(config, k)
    }
    settings = config.to_json()
    settings["bank"] = Path(config.bank).name  # the folder may move, and the bank with it
    content = {
        "generator": f"clutrr-jax {VERSION}",
        "settings": settings,
        "bank": {"name": bank.name, "sha256": sha256(json.dumps(words).encode()).hexdigest()},
        "files": files,
        "held_out": {"clauses": clauses, "paraphrases": banks.held_out},
        "left_out": {"paraphrases": banks.left_out},
    }
    text = json.dumps(content, indent=1)
    text = re.sub(r"\[[^\[\]{}]*\]", lambda array: " ".join(array[0].split()), text)
    return text + "\n"


def _start_folder(out: Path, description: str) -> None:
    path = out / "config.json"
    try:
        out.mkdir(parents=True, exist_ok=True)
        if path.exists():
            if path.read_bytes() != description.encode():
                raise InputError(
                    f"{path}: the folder holds data of other settings; choose another --out"
                )
            return
        write_text(path, description)
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror})") from None


def _write_file(
    path: Path,
    pieces: list[Piece],
    compute: Callable[[Iterable[Piece]], Iterator[bytes]],
    bar: tqdm,
) -> None:
    part = path.with_name(f"{path.name}.part")
    journal = path.with_name(f"{path.name}.journal")
    try:
        ends = _progress(part, journal)
        bar.update(sum(piece.size for piece in pieces[: len(ends)]))
        todo = pieces[len(ends) :]
        with open(part, "ab") as data, open(journal, "a") as notes:
            data.truncate(ends[-1] if ends else 0)
            for piece, content in zip(todo, compute(todo), strict=True):
                data.write(content)
                data.flush()
                ends.append(data.tell())
                notes.write(f"{ends[-1]}\n")
                notes.flush()
                bar.update(piece.size)
            os.fsync(data.fileno())
        if path.suffix == ".parquet":
            _to_parquet(part, ends, path)
        else:
            os.replace(part, path)
        _tidy(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def _tidy(path: Path) -> None:
    """Removes what was needed while a file was not whole."""
    for ending in ("part", "journal", "whole"):
        path.with_name(f"{path.name}.{ending}").unlink(missing_ok=True)


def _progress(part: Path, journal: Path) -> list[int]:
    """Where the pieces end that are written."""
    if not part.exists():
        journal.unlink(missing_ok=True)
    if not journal.exists():
        return []
    written = part.stat().st_size
    lines = journal.read_text(errors="replace").split("\n")[:-1]
    if not all(line.isascii() and line.isdigit() and len(line) < 20 for line in lines):
        raise InputError(f"{journal}: damaged, expected numbers; remove it to write the file anew")
    ends = [end for end in map(int, lines) if end <= written]
    journal.write_text("".join(f"{end}\n" for end in ends))
    return ends


def _to_parquet(part: Path, ends: list[int], path: Path) -> None:
    """Turns Arrow streams, one after the other, into a Parquet file of as many row groups."""
    import pyarrow as pa  # not needed for any other form
    import pyarrow.parquet as pq

    whole = path.with_name(f"{path.name}.whole")
    with open(part, "rb") as data:
        first = pa.ipc.open_stream(data.read(ends[0])).read_all()
        with pq.ParquetWriter(whole, first.schema) as writer:
            writer.write_table(first)
            for start, end in pairwise(ends):
                writer.write_table(pa.ipc.open_stream(data.read(end - start)).read_all())
    os.replace(whole, path)


class Renderer:
    """Computes pieces of files."""

    def __init__(self, config: Config, banks: SplitBank, form: str) -> None:
        self.config, self.banks, self.form = config, banks, form
        self.tellable = banks.tellable()

    def __call__(self, piece: Piece) -> bytes:
        stories, rng = block(self.config, piece.split, piece.task, piece.block, self.tellable)
        stories = stories.select(slice(piece.size))
        table = rows(stories, piece.split, piece.first, self.banks.of(piece.split), rng)
        if self.form == "parquet":
            return _arrow(table)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if piece.first == 0:
            writer.writerow(COLUMNS)
        writer.writerows(table)
        data = text.getvalue().encode()
        return gzip.compress(data, 5, mtime=0) if self.form == "csv.gz" else data


def _arrow(table: Iterable[tuple[str, ...]]) -> bytes:
    """Rows as an Arrow stream, without their number."""
    import pyarrow as pa

    columns = dict(zip(COLUMNS[1:], list(zip(*table, strict=True))[1:], strict=True))
    batch = pa.record_batch({name: pa.array(cells) for name, cells in columns.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue().to_pybytes()


_render: Renderer  # of a worker process


def _start_worker(config: Config, banks: SplitBank, form: str) -> None:
    global _render
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends its workers,
    threading.Thread(target=_end_with_main, daemon=True).start()  # even when it is killed
    _render = Renderer(config, banks, form)


def _end_with_main() -> None:
    main = multiprocessing.parent_process()
    assert main is not None
    main.join()
    os._exit(1)


def _compute(piece: Piece) -> bytes:
    return _render(piece)
