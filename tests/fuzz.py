"""Randomly damaged files, and a check of what a reader does with a file."""

import copy
import csv
import io
import json
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from generator.errors import InputError

MAX_SECONDS = 10  # processor time of a reader

Rows = list[list[str]]

_LONG = (
    "9" * 5000, "a" * 70_000, "[" * 40_000, "a. " * 10_000, "('a','a'," * 3000,
    ",".join(f"N{i}:male" for i in range(400)), str([(0, 1)] * 3000), "{0}" * 3000,
)  # fmt: skip
_SHORT = (
    "", " ", "0", "-1", "1.0", "nan", "null", "[]", "{}", "()", "'", '"', "\\", "\x00", "\ud800",
    "\u0661", "\n", ",", "../../x", "son", "neice", "boss", "21", "22", "(0, 0)", "(0, 99)",
    "[(1, 0), (0, 1)]", "['boss']", "[('a', 'b')]", "Ann:male,Ann:male", ":male", "task_1.0", "1.2",
    "1.2/1", "male:son", "train", "test", "__import__('os')",
)  # fmt: skip
_OTHER = (0, -1, 2**64, 0.5, float("nan"), True, None, [], {}, [[]], [None], {"a": {"a": []}})


def any_text(rng: random.Random) -> str:
    return rng.choice(_LONG if rng.random() < 0.04 else _SHORT)


def edited(rng: random.Random, text: str) -> str:
    """Deletes, moves, inserts or replaces a few characters."""
    for _ in range(rng.randint(1, 3)):
        a, b = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        b = min(b, a + 6)
        new = rng.choice("()[]{},.:;'\"\\ 0129-\n\tnaN\x00\u00e9")
        text = rng.choice((
            text[:a] + text[b:], text[:b] + text[a:], text[:a] + new + text[a:],
            text[:a] + any_text(rng) + text[b:],
        ))  # fmt: skip
    return text


def damaged_json(rng: random.Random, value: Any) -> Any:
    """Drops, renames, duplicates, edits or replaces parts of a JSON value, in 4 of 5 cases."""
    value = [copy.deepcopy(value)]
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        part, key = rng.choice([*_places(value)])
        change = 4 if part is value else rng.randrange(5)
        if change == 0:
            del part[key]
        elif change == 1 and isinstance(part, dict):
            part[edited(rng, key)] = part.pop(key)
        elif change == 2 and isinstance(part, list):
            part.append(part[key])
        elif change == 3 and isinstance(part[key], str):
            part[key] = edited(rng, part[key])
        else:
            part[key] = copy.deepcopy(rng.choice((any_text(rng), rng.choice(_OTHER))))
    return value[0]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """All elements of the containers in a JSON value, as container and key."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def damaged_rows(rng: random.Random, rows: Rows) -> Rows:
    """Drops, duplicates, edits or replaces rows and cells of a table."""
    value = damaged_json(rng, rows)
    lists = [row for row in value if isinstance(row, list)] if isinstance(value, list) else []
    return [[str(cell).encode(errors="replace").decode() for cell in row] for row in lists]


def damaged_bytes(rng: random.Random, content: bytes) -> bytes:
    """Overwrites or deletes some bytes, often near the ends, where sizes are stored."""
    near = rng.randint(0, min(len(content), 300))
    at = rng.choice((rng.randint(0, len(content)), near, len(content) - near))
    new = rng.choice((b"", rng.randbytes(1), bytes(8), b"\xff" * 8))
    return content[:at] + new + content[at + rng.choice((1, 8, len(content))) :]


def csv_bytes(rows: Rows) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


_writable: Path | None = None  # the only folder that may be written to, while a reader is checked
_violations: list[str] = []


def _watch(event: str, arguments: tuple) -> None:
    if _writable is None:
        return
    if event == "open":
        path, _, flags = arguments
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        if writes and not Path(os.path.abspath(os.fsdecode(path))).is_relative_to(_writable):
            _violations.append(f"writes {path!r}")
    elif event in ("pickle.find_class", "subprocess.Popen", "os.system", "os.exec"):
        _violations.append(f"{event} {arguments!r}")


sys.addaudithook(_watch)


@contextmanager
def checked(folder: Path) -> Iterator[None]:
    """Fails for a reader that exceeds the time limit, writes outside the folder, or
    executes what it reads."""
    global _writable
    signal.signal(signal.SIGVTALRM, _timeout)
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS)
    _violations.clear()
    _writable = folder
    try:
        yield
    finally:
        _writable = None
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    assert not _violations, _violations


class Timeout(BaseException):
    """A reader took too long. Not an Exception, which the reader might catch."""


def _timeout(*_: Any) -> None:
    raise Timeout(f"more than {MAX_SECONDS} s")


def error_of(read: Callable[[Path], Any], path: Path) -> str:
    """Reads a file. Returns "", or the message of the InputError: one line that names the file."""
    with checked(path.parent):
        try:
            read(path)
        except InputError as error:
            message = str(error)
            assert path.name in message and message.isprintable(), message
            return message
    return ""
