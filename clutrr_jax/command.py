"""What commands share: mistakes of the user in one line, and files that are whole or not there."""

import argparse
import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from generator.errors import InputError, Parser, at


class CommandParser(Parser):
    """Arguments of `python -m clutrr_jax.NAME`, `--data` among them; which may not be shortened."""

    def __init__(self, name: str, description: str):
        super().__init__(
            prog=f"python -m clutrr_jax.{name}",
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.add_argument("--data", required=True, metavar="DATA",
                          help="a CLUTRR data set: .zip, folder, .csv or .parquet")  # fmt: skip


def cache_folder() -> Path:
    """Of the user, for what takes long to make and is the same in another run: compiled programs,
    generated stories, states of a frozen BERT."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "clutrr_jax"


@contextmanager
def writing(folder: Path) -> Iterator[Path]:
    """A place to write files; at the end they move to the folder, which is made if need be.

    Raises:
      InputError: the folder cannot be written; nothing half-written is left.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as place:
            yield Path(place)
            for file in sorted(Path(place).iterdir()):
                file.replace(folder / file.name)
    except OSError as error:
        raise InputError(f"{at(folder)}: cannot be written ({error.strerror})") from None


class Busy(InputError):
    """Another process is at work in the folder."""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Nobody else is in here for this folder, which is made if need be. However the process ends,
    the system gives the folder free.

    Raises:
      Busy: somebody is.
      InputError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a")
    except OSError as error:
        raise InputError(f"{at(folder)}: cannot be written ({error.strerror})") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(
                f"{at(folder)}: another run is at work in it, expected that to end first, or "
                "another --workdir"
            ) from None
        yield


def run(main: Callable[[list[str]], None]) -> NoReturn:
    """Runs a command with the arguments of the process, and ends it."""
    try:
        main(sys.argv[1:])
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    sys.exit(0)
