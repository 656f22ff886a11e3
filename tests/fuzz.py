"""Randomly damaged files, and a check of what a reader does with a file."""

import copy
import csv
import io
import json
import os
import random
import resource
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from generator.errors import InputError

MAX_SECONDS = 10  # processor time of a reader
MAX_MEMORY = 1 << 30  # bytes by which a reader may raise the peak memory of the process

Rows = list[list[str]]

_LONG = (
    "9" * 5000, "a" * 70_000, "[" * 40_000, "a. " * 10_000, "('a','a'," * 3000, "[A] " * 9000,
    ",".join(f"N{i}:male" for i in range(400)), str([(0, 1)] * 3000), '"' * 3001, "{0}" * 3000,
)  # fmt: skip
_SHORT = (
    "", " ", "0", "-1", "1.0", "1e999", "nan", "null", "True", "9" * 19, "[]", "{}", "()",
    '{"a": [1, {"b": null}]}', "'", '"', "\\", "\x00", "\ufeff", "\ud800", "\u0661", "\U0001f600",
    "\x1b[31m", "\n", "\r", "\x85", ",", "%s%n", "{0}", "../../x", "son", "neice", "boss", "21",
    "22", "(0, 0)", "(0, 99)", "(999999, 999999)", "[(0, 1)]", "[(1, 0), (0, 1)]", "['son']",
    "['boss']", "[('a', 'b')]", "Ann:female", "Ann:male,Ann:male", ":male", "task_1.0", "task_9.99",
    "1.2", "1.2/1", "male:son", "train", "test", "('Ann', 'Bob')", "__import__('os')",
)  # fmt: skip
_NUMBERS = (
    0, 1, -1, 22, 2**31, 2**53, 2**64, 10**40, 0.5, 1e308, float("nan"), float("inf"), True, None,
)  # fmt: skip
_DEEP: Any = []
for _ in range(400):
    _DEEP = [_DEEP]


def any_text(rng: random.Random) -> str:
    return rng.choice(_LONG if rng.random() < 0.04 else _SHORT)


def any_json(rng: random.Random) -> Any:
    other = ([], {}, [[]], {"": 0}, [None], {"a": {"a": []}}, [1, "a"], _DEEP)
    return rng.choice((rng.choice(_NUMBERS), any_text(rng), copy.deepcopy(rng.choice(other))))


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
    value = copy.deepcopy(value)
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        part, key = _container_and_key(rng, value)
        if key is None:
            return any_json(rng)
        change = rng.randrange(5)
        if change == 0:
            del part[key]
        elif change == 1 and isinstance(part, dict):
            part[edited(rng, key)] = part.pop(key)
        elif change == 2 and isinstance(part, list):
            part.append(part[key])
        elif change == 3 and isinstance(part[key], str):
            part[key] = edited(rng, part[key])
        else:
            part[key] = any_json(rng)
    return value


def _container_and_key(rng: random.Random, value: Any) -> tuple[Any, Any]:
    """A random container within a JSON value with one of its keys, or None if it is empty."""
    while True:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        if not keys:
            return value, None
        key = rng.choice(keys)
        if not (isinstance(value[key], dict | list) and value[key] and rng.random() < 0.8):
            return value, key
        value = value[key]


def damaged_rows(rng: random.Random, rows: Rows) -> Rows:
    """Drops, duplicates, edits or replaces rows and cells of a table."""
    value = damaged_json(rng, rows)
    lists = [row for row in value if isinstance(row, list)] if isinstance(value, list) else []
    return [[_utf8(cell) for cell in row] for row in lists]


def _utf8(cell: Any) -> str:
    return str(cell).encode(errors="replace").decode()


def damaged_bytes(rng: random.Random, content: bytes) -> bytes:
    """Overwrites, inserts or deletes bytes, often near the ends, where sizes are stored."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        near = rng.randint(0, min(len(content), 300))
        at = rng.choice((rng.randint(0, len(content)), near, len(content) - near))
        new = rng.choice((b"", rng.randbytes(1), rng.randbytes(8), bytes(8), b"\xff" * 8, b"\x7f"))
        end = at + rng.choice((0, 1, len(new), len(new), 40, len(content)))
        content = content[:at] + new + content[end:]
    return content


def csv_bytes(rows: Rows) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def parquet_bytes(rng: random.Random, rows: Rows) -> bytes:
    """A table with random encodings; missing cells are null."""
    header, *cells = rows
    columns = [
        pa.array([row[c] if c < len(row) else None for row in cells], pa.string())
        for c in range(len(header))
    ]
    other = pa.array(rng.choice(([0] * len(cells), [[0]] * len(cells), [b"\xff"] * len(cells))))
    columns = [rng.choice((column, column.dictionary_encode())) for column in columns]
    if columns and rng.random() < 0.2:
        columns[rng.randrange(len(columns))] = other
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, header), sink,
                   compression=rng.choice(("none", "snappy", "gzip", "zstd")),
                   data_page_version=rng.choice(("1.0", "2.0")))  # fmt: skip
    return sink.getvalue()


def zip_with_wrong_header(rng: random.Random, content: bytes) -> bytes:
    """Replaces one field of one header: a size, a method, a flag or an offset."""
    data = bytearray(content)
    signature = rng.choice((b"PK\x03\x04", b"PK\x01\x02", b"PK\x01\x02", b"PK\x05\x06"))
    places = [i for i in range(len(data)) if data.startswith(signature, i)]
    if places:
        at = rng.choice(places) + 2 * rng.randrange(2, 23)
        field, limit = rng.choice((("<H", 2**16), ("<I", 2**32)))
        number = rng.choice((0, 1, 8, 9, 99, limit - 1, limit // 2, rng.randrange(limit)))
        data[at : at + struct.calcsize(field)] = struct.pack(field, number)
    return bytes(data)


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
    """Fails for a reader that exceeds the time or memory limit, writes outside the folder, or
    executes what it reads."""
    global _writable
    signal.signal(signal.SIGVTALRM, _timeout)
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _violations.clear()
    _writable = folder
    try:
        yield
    finally:
        _writable = None
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    assert not _violations, _violations
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert grown < MAX_MEMORY, f"{grown:,} bytes"


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
