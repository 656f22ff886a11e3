"""Writing a data set: train, test and dev files, and config.json.

Any number of processes compute blocks of stories. A file is assembled from its pieces, each of
which is written atomically to a hidden folder, so that an interrupted command can be resumed.
"""

import json
import multiprocessing
import re
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from unicodedata import normalize

from tqdm import tqdm

from generator import VERSION
from generator.errors import InputError
from generator.files import atomic_write, reading, write_text
from generator.paraphrases.load import load_bank
from generator.relations.kinship import RELATIONS
from generator.stories.blocks import check
from generator.stories.clause_sets import allowed_clauses, is_listable
from generator.stories.config import Config
from generator.stories.hold_out import SplitBank, split_bank
from generator.stories.render import Piece, Renderer, pieces
from generator.stories.text import Bank, clause_name
from generator.tables.rows import Row

FORMATS = ("csv", "csv.gz", "parquet", "jsonl")

Render = Callable[[Piece], bytes]
Compute = Callable[[Iterable[Piece]], Iterator[bytes]]


def write_dataset(config: Config, out: Path, workers: int = 1, form: str = "csv") -> list[Path]:
    """Writes a data set to a folder.

    Existing files are kept, and an interrupted call is resumed. The bytes do not depend on the
    number of workers.

    Args:
      config: settings of the generator.
      out: the folder, which is created if necessary.
      workers: number of processes.
      form: one of FORMATS.
    Returns:
      The files, without config.json.
    """
    bank, banks = _banks(config)
    files = {out / f"{name}.{form}": parts for name, parts in dataset_files(config).items()}
    write_description(out, _description(config, bank, banks, [path.name for path in files]))
    return write_files(files, Renderer(config, banks, form), workers)


def generate_rows(config: Config) -> list[tuple[str, list[Row]]]:
    """Returns the rows of the files that `write_dataset` would write, by their names in order."""
    render = Renderer(config, _banks(config)[1])
    found = []
    for name, parts in sorted(dataset_files(config).items()):
        rows = [row for part in parts for row, *_ in render.stories(part)]
        found.append((name, [row._replace(story=normalize("NFC", row.story)) for row in rows]))
    return found


def _banks(config: Config) -> tuple[Bank, SplitBank]:
    """The paraphrases. Raises InputError if there are no stories of these settings."""
    bank = load_bank(config)
    banks, files = split_bank(bank, config), dataset_files(config)
    if not files:
        raise InputError("no stories: expected a task and a number of rows above 0")
    for split, task in sorted({piece[:2] for parts in files.values() for piece in parts}):
        check(config, split, task)
    return bank, banks


def write_files(files: dict[Path, list[Piece]], render: Render, workers: int = 1) -> list[Path]:
    """Writes the files that do not exist yet, each with its pieces, and returns all of them."""
    missing = {path: parts for path, parts in files.items() if not path.exists()}
    total = sum(piece.size for parts in missing.values() for piece in parts)
    with (
        tqdm(total=total, unit=" stories", disable=None, smoothing=0) as bar,
        _pool(render, workers if missing else 1) as compute,
    ):
        for path in files:
            if path in missing:
                _write_file(path, missing[path], compute, bar)
            shutil.rmtree(_parts_folder(path), ignore_errors=True)
    return list(files)


def dataset_files(config: Config) -> dict[str, list[Piece]]:
    """Returns the pieces of each file of a data set, by its name without the suffix."""
    files = {}
    for split in ("train", "dev"):
        tasks = config.tasks(split)
        files[f"{','.join(map(str, tasks))}_{split}"] = pieces(config, split, tasks)
    files |= {f"{task}_test": pieces(config, "test", [task]) for task in config.test}
    return {name: parts for name, parts in files.items() if parts}


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
    settings["bank"] = Path(config.bank).name  # data set and bank may move to another folder
    content = {
        "generator": f"clutrr-jax {VERSION}",
        "settings": settings,
        "bank": {"name": bank.name, "sha256": sha256(json.dumps(words).encode()).hexdigest()},
        "files": files,
        "held_out": {"clauses": clauses, "paraphrases": banks.held_out},
        "left_out": {"paraphrases": banks.left_out},
    }
    text = json.dumps(content, indent=1) + "\n"
    return re.sub(r"\[[^\[\]{}]*\]", lambda array: " ".join(array[0].split()), text)


def write_description(out: Path, description: str) -> None:
    """Writes config.json of a folder of stories, which must not have one of other settings."""
    path = out / "config.json"
    with reading(path):
        existing = path.read_bytes() if path.exists() else None
    if existing is None:
        write_text(path, description)
    elif existing != description.encode():
        raise InputError(f"{path}: holds data of other settings; expected another folder")


def _write_file(path: Path, contents: list[Piece], compute: Compute, bar: tqdm) -> None:
    parts = [_parts_folder(path) / str(index) for index in range(len(contents))]
    todo = [(piece, part) for piece, part in zip(contents, parts, strict=True) if not part.exists()]
    bar.update(sum(piece.size for piece in contents) - sum(piece.size for piece, _ in todo))
    rendered = compute([piece for piece, _ in todo])
    for (piece, part), content in zip(todo, rendered, strict=True):
        with atomic_write(part) as temporary:
            temporary.write_bytes(content)
        bar.update(piece.size)
    with atomic_write(path) as temporary:
        if path.suffix == ".parquet":
            _join_parquet(parts, temporary)
        else:
            with temporary.open("wb") as file:
                file.writelines(part.read_bytes() for part in parts)


def _parts_folder(path: Path) -> Path:
    return path.with_name(f".{path.name}.parts")


def _join_parquet(parts: list[Path], path: Path) -> None:
    """Writes Parquet files as the row groups of one."""
    import pyarrow.parquet as pq  # only this format needs it

    with pq.ParquetWriter(path, pq.read_schema(parts[0])) as writer:
        for part in parts:
            writer.write_table(pq.read_table(part))


@contextmanager
def _pool(render: Render, workers: int) -> Iterator[Compute]:
    """Yields a function that renders pieces in order, in this process or in several."""
    if workers == 1:
        yield partial(map, render)
        return
    # The caller may have threads, such as those of JAX, with which a forked process can hang.
    context = multiprocessing.get_context("forkserver")
    with context.Pool(workers, _start_worker, (render,)) as pool:
        yield partial(pool.imap, _render)


_renderer: Render  # of a worker process


def _start_worker(render: Render) -> None:
    global _renderer
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends its workers
    _renderer = render


def _render(piece: Piece) -> bytes:
    return _renderer(piece)
