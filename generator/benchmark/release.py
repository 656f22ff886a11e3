"""The release clutrr-v1: eight data sets, one folder each.

All are written with the same seed, so they hold out the same paraphrases and the same clauses of
k = 3. A file that several of them have is written once; the others have a hard link to it.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from hashlib import file_digest, sha256
from importlib.resources import files as resources
from pathlib import Path

import numpy as np

from generator.benchmark.seen_and_new import write_diagnosis
from generator.errors import InputError
from generator.files import csv_text, write_text
from generator.stories.config import Config, Task
from generator.tables.readers import table_rows
from generator.write import dataset_files, write_dataset

VERSIONS = ("v1",)
# A data set in the YAML header of the data card, README.md.
_CARD_ENTRY = """\
- config_name: {name}
  data_files:
  - split: train
    path: {name}/*_train.{form}
  - split: test
    path: {name}/*_test.{form}"""
_ROWS = 10_000  # train stories of a data set
_TEST_ROWS = 1000  # stories of a test
# Noise types by the name of the data set that trains on them.
_NOISE = {"clean": 1, "supporting": 2, "irrelevant": 3, "disconnected": 4, "all": 5}


def _config(noise: int, lengths: tuple[int, ...], test: list[Task]) -> Config:
    rows = [_ROWS // len(lengths)] * len(lengths)
    rows[0] += _ROWS - sum(rows)
    return Config(
        train=tuple(Task(noise, k) for k in lengths),
        test=tuple(test),
        train_rows=tuple(rows),
        test_rows=_TEST_ROWS,
    )


_CLEAN_TESTS = [Task(1, k) for k in range(2, 11)]
_NOISE_TESTS = [Task(noise, k) for noise in _NOISE.values() for k in (2, 3, 4)]
CONFIGS = {
    "gen23": _config(1, (2, 3), _CLEAN_TESTS),
    "gen234": _config(1, (2, 3, 4), _CLEAN_TESTS),
    **{name: _config(noise, (2, 3), _NOISE_TESTS) for name, noise in _NOISE.items()},
    "diagnosis": _config(1, (2, 3), [Task(1, 3)]),
}


def write_benchmark(version: str, out: Path, workers: int = 1, form: str = "csv") -> list[Path]:
    """Writes a release: a folder for each of CONFIGS, and README.md, its data card.

    An interrupted call is resumed. All files are compared with the checksums of the release. The
    arguments and the result are those of `write_dataset`.
    """
    first: dict[tuple, Path] = {}  # of several files with the same stories
    written = []
    for name, config in CONFIGS.items():
        for file, parts in dataset_files(config).items():
            path = out / name / f"{file}.{form}"
            held_out = [config.holds_out_clauses(piece.task.k) for piece in parts]
            _link(first.setdefault((*parts, *held_out), path), path)
        written += write_data_set(name, out / name, workers, form)
    write_text(out / "README.md", card(version, CONFIGS, form))
    _check(version, out, written, form)
    return written


def write_data_set(name: str, out: Path, workers: int = 1, form: str = "csv") -> list[Path]:
    """Writes one of CONFIGS, see `write_dataset`."""
    write = write_diagnosis if name == "diagnosis" else write_dataset
    return write(CONFIGS[name], out, workers, form)


def card(version: str, configs: Iterable[str], form: str) -> str:
    """Returns the data card of a release with these data sets, as on the Hugging Face Hub."""
    text = resources("generator.benchmark").joinpath(f"{version}.md").read_text("utf-8")
    entries = "\n".join(_CARD_ENTRY.format(name=name, form=form) for name in configs)
    return text.replace("{configs}", entries)


def _check(version: str, out: Path, written: list[Path], form: str) -> None:
    """Raises InputError unless all files have the stories of the release."""
    expected = published_checksums(version)
    found: dict[int, str] = {}  # by inode: links to one file are read once
    for path in written:
        inode = path.stat().st_ino
        if inode not in found:
            found[inode] = checksum(path)
        name = path.relative_to(out).as_posix().removesuffix(f".{form}")
        if found[inode] != expected[f"{name}.csv"]:
            raise InputError(
                f"{path}: not the stories of clutrr-{version}, expected an unchanged generator "
                f"and the NumPy of requirements.txt (this is NumPy {np.__version__})"
            )


def _link(source: Path, target: Path) -> None:
    """Makes `target` the same file as `source`, if that exists and the file system has links."""
    with suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(source, target)


def checksum(path: Path) -> str:
    """Returns the SHA-256 of a table as CSV, whatever its format, or of a JSON file."""
    if path.suffix in (".csv", ".json"):
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    # Parquet and JSON Lines have no row numbers.
    rows = [{"": str(index)} | row for index, row in enumerate(table_rows(path))]
    return sha256(csv_text([[*rows[0]], *([*row.values()] for row in rows)]).encode()).hexdigest()


def published_checksums(version: str) -> dict[str, str]:
    """Returns the SHA-256 of each CSV file of a release, by its path in the release. Release "star"
    has the graphs of `generator.networks` in the sizes of STaR."""
    text = resources("generator.benchmark").joinpath(f"{version}.sha256").read_text("utf-8")
    return {name: digest for digest, name in (line.split("  ") for line in text.splitlines())}
