"""Files that a user gives, as they are, damaged or made to do harm: tables as text, row by row, and
JSON objects. Nothing is unpacked to disk, and nothing is read that is larger than it should be.

Tables are .csv, .csv.gz or .parquet, by themselves, in a folder or in a .zip.
"""

import csv
import gzip
import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, NamedTuple

from generator.errors import InputError, at
from generator.parquet import pages

SUFFIXES = (".csv", ".csv.gz", ".parquet")
# What is compressed may unpack to this much. The released data unpack to 5 times their size.
MAX_RATIO = 100
MAX_UNPACKED = 1 << 30  # bytes
ALWAYS_UNPACKED = 1 << 20  # bytes, whatever the ratio
MAX_ROW = 1 << 20  # characters of a row of CSV
# Of one story: as many people as the generator has names, and far more of the rest than it makes.
MAX_PEOPLE, MAX_EDGES, MAX_STORY = 150, 1000, 1 << 15
_BATCH = 1024  # rows of Parquet

csv.field_size_limit(MAX_ROW)


class Source(NamedTuple):
    """One table: `rows()` reads it anew each time, its header first, all cells as text. It raises
    InputError."""

    name: str  # path, within a .zip too
    rows: Callable[[], Iterator[list[str]]]


def sources(path: Path) -> list[Source]:
    """The tables of a file or folder, ordered by name.

    Raises:
      InputError: no such file, or none of the kinds that can be read.
    """
    try:
        if path.is_dir():
            files = sorted(f for f in path.iterdir() if _is_table(f.name) and f.is_file())
            return [Source(str(file), partial(table_rows, file)) for file in files]
        if path.is_file() and path.suffix == ".zip":
            return _zip_sources(path)
        if path.is_file() and path.name.endswith(SUFFIXES):
            return [Source(str(path), partial(table_rows, path))]
        if not path.exists():
            raise InputError(f"{at(path)}: there is no such file or folder, expected CLUTRR data")
    except OSError as error:
        raise InputError(f"{at(path)}: cannot be read ({error.strerror or error})") from None
    raise InputError(f"{at(path)}: expected a folder, a .zip, or one of {', '.join(SUFFIXES)}")


def _is_table(name: str) -> bool:
    base = name.rpartition("/")[2]
    return base.endswith(SUFFIXES) and not base.startswith(".")


def _zip_sources(path: Path) -> list[Source]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if _is_table(m.filename)]
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise InputError(f"{at(path)}: damaged or truncated zip ({error})") from None
    _check_size(str(path), sum(m.file_size for m in members), _most(path.stat().st_size))
    return [
        Source(f"{path}/{member.filename}", partial(_member_rows, path, member))
        for member in sorted(members, key=lambda m: m.filename)
    ]


def _most(size: int) -> int:
    """To how many bytes so many may unpack."""
    return min(MAX_UNPACKED, ALWAYS_UNPACKED + MAX_RATIO * size)


def _check_size(name: str, size: int, most: int) -> None:
    if size > most:
        raise InputError(f"{at(name)}: unpacks to {size:,} bytes or more, expected at most {most:,}"
                         f" ({MAX_RATIO} times its size, at most {MAX_UNPACKED:,})")  # fmt: skip


def table_rows(path: Path) -> Iterator[list[str]]:
    """Header and rows of one file, CSV if its name does not say otherwise. Raises InputError."""
    try:
        with path.open("rb") as file:
            yield from _rows(str(path), file, path.stat().st_size)
    except OSError as error:
        raise InputError(f"{at(path)}: cannot be read ({error.strerror or error})") from None


def _member_rows(path: Path, member: zipfile.ZipInfo) -> Iterator[list[str]]:
    name = f"{path}/{member.filename}"
    # Others are unpacked without a bound, and nobody uses them.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(f"{at(name)}: compressed by an unusual method, expected deflate")
    try:
        # A member never gives more bytes than its `file_size`.
        with zipfile.ZipFile(path) as archive, archive.open(member) as file:
            yield from _rows(name, file, member.file_size)  # type: ignore[arg-type]
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{at(name)}: damaged, locked or truncated zip ({error})") from None


def _rows(name: str, file: BinaryIO, size: int) -> Iterator[list[str]]:
    if name.endswith(".parquet"):
        yield from _parquet(name, file, _most(size))
    elif name.endswith(".gz"):
        yield from _csv(name, gzip.GzipFile(fileobj=file), _most(size))  # type: ignore[arg-type]
    else:
        yield from _csv(name, file, size)


def _csv(name: str, file: BinaryIO, most: int) -> Iterator[list[str]]:
    """Rows of CSV of at most so many characters; empty lines are none."""
    total = of_row = 0

    def lines() -> Iterator[str]:
        nonlocal total, of_row
        with io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
            while line := text.readline(MAX_ROW):
                total += len(line)
                of_row += len(line)
                _check_size(name, total, most)
                if of_row >= MAX_ROW:
                    raise csv.Error(f"over {MAX_ROW:,} characters")
                yield line

    number = -1
    try:
        for row in csv.reader(lines(), strict=True):
            of_row = 0
            if row:
                number += 1
                yield row
    except csv.Error as error:
        raise InputError(f"{at(name, max(number + 1, 1))}: not a CSV row ({error})") from None
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{at(name)}: damaged, not a UTF-8 CSV file ({error})") from None
    if number < 0:
        raise InputError(f"{at(name)}: empty file, expected a table with a header")


def _parquet(name: str, file: BinaryIO, most: int) -> Iterator[list[str]]:
    """Rows of Parquet whose text is not larger than that in all; a cell without a value is empty.
    Columns of other things than texts and numbers are left out."""
    import pyarrow as pa  # not needed for any other form
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    def is_text(kind: pa.DataType) -> bool:
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return any(
            test(kind)
            for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
        )

    def characters(column: pa.Array) -> int:
        if not pa.types.is_dictionary(column.type):
            return column.nbytes
        return pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0

    content = io.BytesIO(file.read())
    total = 0
    try:
        with pq.ParquetFile(content) as parquet:
            _check_size(name, _parquet_size(content.getvalue(), parquet.metadata), most)
            fields = list(parquet.schema_arrow)
        texts = [field.name for field in fields if is_text(field.type)]
        header = [f.name for f in fields if f.name in texts or pa.types.is_primitive(f.type)]
        if len(set(header)) < len(header):
            raise ValueError("two columns of the same name")
        yield header
        # Equal texts are kept once, until it is known how much all of them are.
        with pq.ParquetFile(content, read_dictionary=texts) as parquet:
            for batch in parquet.iter_batches(_BATCH, columns=header):
                total += sum(map(characters, batch.columns))
                _check_size(name, total, most)
                columns = [column.cast(pa.string()).to_pylist() for column in batch.columns]
                yield from ([cell or "" for cell in row] for row in zip(*columns, strict=True))
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise InputError(f"{at(name)}: damaged, not a readable Parquet file ({error})") from None


def _parquet_size(content: bytes, metadata: Any) -> int:
    """To how many bytes a Parquet file unpacks, by what it says of itself; pyarrow takes as much
    memory. Raises ValueError for what cannot be."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    unpacked = 0
    for column in (group.column(number) for group in groups for number in range(group.num_columns)):
        first = column.data_page_offset
        if column.has_dictionary_page and 0 < (column.dictionary_page_offset or 0) < first:
            first = column.dictionary_page_offset
        for page in pages(content, first, column.total_compressed_size):
            # A value of a dictionary takes a byte at least; other pages are read as far as needed.
            if page.values > (page.unpacked if page.is_dictionary else column.num_values):
                raise ValueError("a page has more values than it can")
            unpacked += page.unpacked
    return max(unpacked, sum(group.total_byte_size for group in groups))


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yields a temporary path in the same folder, which is renamed to `path` at the end.

    The folder is created if necessary. After an error the temporary file is removed and `path` is
    as it was before.

    Raises:
      InputError: the file cannot be written.
    """
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{at(path)}: cannot be written ({error.strerror or error})") from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_text(path: Path, text: str) -> None:
    """Writes a UTF-8 text file atomically. Raises InputError if it cannot be written."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_json(path: Path, shape: Any = None) -> dict[str, Any]:
    """A JSON object.

    Args:
      path: the file.
      shape: what it must hold: a type, a list of one shape, or an object of shapes by key, where
        "*" is any key and there may be other keys. A float is any number below 1e100.
    Raises:
      InputError: no such file, or something else in it.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        check_shape(value, shape or {})
    except OSError as error:
        raise InputError(f"{at(path)}: cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{at(path)}: damaged, not the expected JSON ({error})") from None
    return value


def check_shape(value: Any, shape: Any, place: str = "") -> None:
    """Raises ValueError for a value that is not as `read_json` has it, and says where."""
    if isinstance(shape, dict):
        fits = isinstance(value, dict)
        for key, part in shape.items() if fits else ():
            if key == "*":
                for name, one in value.items():
                    check_shape(one, part, f"{place}.{name}")
            elif key not in value:
                raise ValueError(f'no "{key}"' + (f' in "{place[1:]}"' if place else ""))
            else:
                check_shape(value[key], part, f"{place}.{key}")
    elif isinstance(shape, list):
        fits = isinstance(value, list)
        for number, one in enumerate(value) if fits else ():
            check_shape(one, shape[0], f"{place}.{number}")
    else:
        kinds = shape.__args__ if isinstance(shape, UnionType) else (shape,)
        fits = any(_is(value, kind) for kind in kinds)
    if not fits:
        if isinstance(shape, dict | list):
            expected = "an object" if isinstance(shape, dict) else "a list"
        else:
            expected = getattr(shape, "__name__", str(shape))
        raise ValueError((f'"{place[1:]}": ' if place else "") + f"expected {expected}")


def _is(value: Any, kind: type) -> bool:
    if kind is float:
        # An int may be of any length, and no float.
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e100
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
