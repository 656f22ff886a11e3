"""Files to try readers on: whole ones, damaged by chance, and what a reader may do with them."""

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
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from generator.errors import InputError

SECONDS = 10  # of this process's own time, for one file
MEMORY = 1 << 30  # bytes that one file may take

Rows = list[list[str]]

_LONG = (
    "9" * 5000, "a" * 70_000, "[" * 40_000, "a. " * 10_000, "('a','a'," * 3000, "[A] " * 9000,
    ",".join(f"N{i}:male" for i in range(400)), str([(0, 1)] * 3000), '"' * 3001, "{0}" * 3000,
)  # fmt: skip
_SHORT = (
    "", " ", "0", "-1", "1.0", "1e999", "nan", "NaN", "Infinity", "null", "None", "True", "9" * 19,
    "99999999999", "[]", "{}", "()", "[[[]]]", '{"a": [1, {"b": null}]}', "'", '"', "\\", "\x00",
    "\ufeff", "\ud800", "\u0661", "\u202e", "\U0001f600", "\x1b[31m", "\n", "\r", "\r\n", "\x85",
    ",", ";", "=1+1", "%s%n", "{0}", "{1}", "../../x", "/etc/passwd", "C:\\x", "son", "boss", "21",
    "22", "(0, 0)", "(0, 99)", "(999999, 999999)", "[(0, 1)]", "[(1, 0), (0, 1)]", "['son']",
    "['boss']", "[('a', 'b')]", "Ann:female", "Ann:male,Ann:male", ":male", "task_1.0", "task_9.99",
    "0.0", "1.2", "1.2/1", "male:son", "train", "test", "('Ann', 'Bob')", "__import__('os')",
)  # fmt: skip
_NUMBERS = (
    0, 1, -1, 2, 22, 255, 65_535, 10**6, 2**31 - 1, 2**31, 2**53, 2**63, 2**64, 10**40, -(10**400),
    0.5, -0.5, 1e-300, 1e308, float("nan"), float("inf"), True, False, None,
)  # fmt: skip


def any_text(rng: random.Random) -> str:
    """Something that a cell should not hold."""
    return rng.choice(_LONG if rng.random() < 0.04 else _SHORT)


def any_value(rng: random.Random) -> Any:
    """Something that JSON can hold."""
    kind = rng.random()
    if kind < 0.4:
        return rng.choice(_NUMBERS)
    if kind < 0.8:
        return any_text(rng)
    if kind < 0.95:
        return rng.choice(([], {}, [[]], {"": 0}, [None], {"a": {"a": []}}, [1, "a"]))
    nested: Any = 0
    for _ in range(rng.choice((50, 400))):
        nested = [nested]
    return nested


def edited(rng: random.Random, text: str) -> str:
    """A text with a few signs put in, taken out or moved."""
    for _ in range(rng.randint(1, 3)):
        a, b = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        b = min(b, a + 6)
        way = rng.randrange(4)
        if way == 0:
            text = text[:a] + text[b:]
        elif way == 1:
            text = text[:b] + text[a:]
        elif way == 2:
            text = text[:a] + rng.choice("()[]{},.:;'\"\\ 0129-\n\tnaN\x00\u00e9") + text[a:]
        else:
            text = text[:a] + any_text(rng) + text[b:]
    return text


def damaged_rows(rng: random.Random, rows: Rows) -> Rows:
    """A table, its header first, with columns, rows and cells dropped, swapped or replaced."""
    rows = [list(row) for row in rows]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        way, r = rng.randrange(13), rng.randrange(len(rows)) if rows else 0
        if not rows or not rows[r]:
            return rows
        c = rng.randrange(len(rows[r]))
        other = rng.choice(rows)
        if way == 0:
            rows = [row[:c] + row[c + 1 :] for row in rows]
        elif way == 1 and c < len(rows[0]):
            rows[0][c] = rng.choice((any_text(rng), rng.choice(rows[0]), edited(rng, rows[0][c])))
        elif way == 2:
            rows = [[*row, *row[c : c + 1]] for row in rows]
        elif way == 3 and other:
            d = rng.randrange(len(other))
            rows[r][c], other[d] = other[d], rows[r][c]
        elif way == 4:
            rows.insert(r, list(other))
        elif way == 5:
            del rows[r]
        elif way == 6:
            rows[r] = rows[r][:c]
        elif way == 7:
            rows[r].insert(c, any_text(rng))
        elif way == 8:
            rng.shuffle(rows[r])
        elif way == 9:
            rows = rows[:r]
        elif way == 10:
            rows[r][c] = edited(rng, rows[r][c])
        else:
            rows[r][c] = any_text(rng)
    return rows


def damaged_json(rng: random.Random, value: Any) -> Any:
    """JSON with a few of its parts dropped, renamed, swapped or replaced."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 2, 4))):
        part, key = _somewhere(rng, value)
        if key is None:
            return any_value(rng)
        way = rng.randrange(6)
        if way == 0:
            del part[key]
        elif way == 1 and isinstance(part, dict):
            part[edited(rng, key)] = part.pop(key)
        elif way == 2 and isinstance(part, list):
            part.append(part[key])
        elif way == 3 and isinstance(part[key], str):
            part[key] = edited(rng, part[key])
        elif way == 4:
            other, place = _somewhere(rng, value)
            if place is not None:
                part[key] = copy.deepcopy(other[place])
        else:
            part[key] = any_value(rng)
    return value


def _somewhere(rng: random.Random, value: Any) -> tuple[Any, Any]:
    """A container within a JSON value, and a key of it; None where it has none."""
    while True:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        if not keys:
            return value, None
        key = rng.choice(keys)
        if isinstance(value[key], dict | list) and value[key] and rng.random() < 0.8:
            value = value[key]
        else:
            return value, key


def damaged_bytes(rng: random.Random, data: bytes) -> bytes:
    """Bytes flipped, cut off, put in, copied, or replaced by numbers that are no sizes."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        if not data:
            break
        # Half of them near the start or the end, where sizes stand.
        near = min(len(data), 300)
        at = rng.choice((rng.randrange(len(data)), rng.randrange(near), len(data) - near
                         + rng.randrange(near)))  # fmt: skip
        size = min(rng.choice((1, 2, 4, 8, 40)), len(data) - at)
        way = rng.randrange(7)
        if way == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif way == 2:
            del data[at : at + size]
        elif way == 3:
            data[at:at] = rng.randbytes(size)
        elif way == 4:
            data[at:at] = data[rng.randrange(len(data)) :][:size]
        elif way == 5:
            del data[at:]
        else:
            number = rng.choice((0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1, len(data)))
            data[at : at + size] = number.to_bytes(8, rng.choice(("little", "big")))[:size]
    return bytes(data)


def csv_bytes(rows: Rows) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode(errors="surrogatepass")


def json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def parquet_bytes(rng: random.Random, rows: Rows) -> bytes:
    """The table, some of its columns of other types, packed in any way."""
    header, *cells = rows
    columns: dict[str, Any] = {}
    for c, name in enumerate(header):
        column = [row[c].encode(errors="replace").decode() if c < len(row) else None
                  for row in cells]  # fmt: skip
        kind = rng.random()
        if kind < 0.03:
            columns[name] = pa.array([[cell] for cell in column])
        elif kind < 0.06:
            columns[name] = pa.array([rng.choice((0, 3, None)) for _ in column], pa.int64())
        elif kind < 0.09:
            columns[name] = pa.array([rng.choice((0.0, 1e300, None)) for _ in column])
        elif kind < 0.12:
            columns[name] = pa.array([(cell or "").encode() + b"\xff" for cell in column])
        elif kind < 0.2:
            columns[name] = pa.array(column, pa.string()).dictionary_encode()
        else:
            columns[name] = pa.array(column, pa.string())
    names = [name.encode(errors="replace").decode() for name in columns]
    sink = io.BytesIO()
    pq.write_table(
        pa.Table.from_arrays(list(columns.values()), names), sink,
        compression=rng.choice(("none", "snappy", "gzip", "zstd")),
        use_dictionary=rng.random() < 0.5, write_statistics=False,
        data_page_version=rng.choice(("1.0", "2.0")),
    )  # fmt: skip
    return sink.getvalue()


def zip_bytes(rng: random.Random, files: dict[str, bytes]) -> bytes:
    """An archive, whole or with a few odd entries."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, content in files.items():
            if rng.random() < 0.1:
                name = rng.choice((
                    f"../../{name}", f"/{name}", f"C:\\{name}", f"{name}\n.csv", f"./{name}",
                    f"{name}/", f"a//b/{name}", f"\x1b[2J{name}", name.replace("csv", "csv.gz"),
                    name.replace("csv", "parquet"),
                ))  # fmt: skip
            method = rng.choice((0, 8, 8, 8, 8, rng.choice((12, 14))))
            entry = zipfile.ZipInfo(name, (2019, 1, 1, 0, 0, 0))
            entry.compress_type = method
            if rng.random() < 0.05:
                entry.external_attr = 0o120777 << 16  # a symbolic link
            for _ in range(2 if rng.random() < 0.03 else 1):
                archive.writestr(entry, content)
    return sink.getvalue()


def lied_zip(rng: random.Random, data: bytes) -> bytes:
    """An archive with a number of a header replaced: a size, a method, a flag, a place."""
    data = bytearray(data)
    sign = rng.choice((b"PK\x03\x04", b"PK\x01\x02", b"PK\x01\x02", b"PK\x05\x06"))
    places = [i for i in range(len(data)) if data.startswith(sign, i)]
    if places:
        at = rng.choice(places) + 2 * rng.randrange(2, 23)
        form, most = rng.choice((("<H", 2**16), ("<I", 2**32)))
        number = rng.choice((0, 1, 8, 9, 99, most - 1, most // 2, rng.randrange(most)))
        data[at : at + struct.calcsize(form)] = struct.pack(form, number)
    return bytes(data)


class Hang(BaseException):
    """A reader took too long."""


_watched: Path | None = None  # where a reader may write; None: nobody is watched
_wrong: list[str] = []


def _watch(event: str, arguments: tuple) -> None:
    if _watched is None:
        return
    if event == "open":
        path, _, flags = arguments
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        if writes and not Path(os.path.abspath(os.fsdecode(path))).is_relative_to(_watched):
            _wrong.append(f"writes {path!r}")
    elif event in ("pickle.find_class", "subprocess.Popen", "os.system", "os.exec"):
        _wrong.append(f"{event} {arguments!r}")


sys.addaudithook(_watch)


@contextmanager
def guarded(folder: Path) -> Iterator[None]:
    """Raises for what no reader may do: take long, take much memory, write outside the folder, or
    run what it reads."""
    global _watched
    signal.signal(signal.SIGVTALRM, _hang)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _wrong.clear()
    _watched = folder
    try:
        yield
    finally:
        _watched = None
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    assert not _wrong, _wrong
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert grown < MEMORY, f"{grown:,} bytes"


def _hang(*_: Any) -> None:
    raise Hang(f"more than {SECONDS} s")


def loads(read: Callable[[Path], Any], path: Path) -> bool:
    """Whether a file loads; if not, it has been told of in one line that names the file."""
    with guarded(path.parent):
        try:
            read(path)
        except InputError as error:
            message = str(error)
            assert path.name in message and message.isprintable(), message
            return False
    return True
