"""Shared parts of the commands: exit codes and folder locks."""

import fcntl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from generator.errors import InputError, check_utf8, run_command


class FolderLocked(InputError):
    """Another process holds the lock on a folder."""


@contextmanager
def folder_lock(folder: Path, wait: bool = False) -> Iterator[None]:
    """Holds an exclusive lock on a folder, which is created if necessary, and `wait`s until another
    process releases it, or raises FolderLocked. It ends with the process, however that ends."""
    check_utf8(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise FolderLocked(
                f"{folder}: another run is using it; wait until that run ends, or choose "
                "another folder"
            ) from None
        yield


def run(main: Callable[[list[str]], int | None]) -> NoReturn:
    """Runs a command with the arguments of the process, and exits."""
    sys.exit(run_command(main, sys.argv[1:]))
