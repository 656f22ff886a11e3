"""Reading of untrusted files, and atomic writing.

Tables are read as text, row by row, from .csv, .csv.gz, .parquet or .jsonl files, alone, in a
folder or in a .zip. Nothing is unpacked to disk, and the size after unpacking is limited.
"""

import csv
import gzip
import io
import json
import re
import secrets
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from generator.cells import text_rows, with_label_names
from generator.errors import InputError, at, check_utf8
from generator.splits import NAMES, split_of_folder

SUFFIXES = (".csv", ".csv.gz", ".parquet", ".jsonl")
# Limits of the size after unpacking. The released data unpack to 5 times their size.
MAX_RATIO = 100
MAX_UNPACKED = 1 << 30  # bytes
ALWAYS_UNPACKED = 1 << 20  # bytes, whatever the ratio
MAX_ROW = 1 << 20  # characters of a row of CSV
MAX_LINE = 1 << 24  # characters of a line of JSON: logs of language models have long prompts
_BATCH = 1024  # rows of Parquet
# Beginnings of names that are hidden or not the user's; "." and ".." are none.
_FOREIGN = re.compile(r"(?i)(?:^|[/\\])(?:~\$|__macosx(?:[/\\]|$)|\.+[^./\\])")
# Names of tables that are not read.
_UNREAD = re.compile(
    r"(?i)^[^.].*\.(?:csv|tsv|jsonl|ndjson|parquet|xlsx?|arrow|feather)(?:\.[a-z0-9]+)?$"
)

csv.field_size_limit(MAX_ROW)


# One table: its name (of a table in a .zip, the path of the archive and the path within it), and an
# iterator over the header, then the rows, all cells as text, which raises InputError.
Source = tuple[str, Iterator[list[str]]]


def sources(path: Path) -> list[Source]:
    """The tables of a file or folder, ordered by name; at least one, of one data set."""
    with reading(path):
        if path.is_dir():
            found = [(str(file), table_rows(file)) for file in _folder_tables(path)]
        elif path.is_file() and path.suffix == ".zip":
            found = _zip_sources(path)
        elif path.is_file() and path.name.endswith(SUFFIXES):
            found = [(str(path), table_rows(path))]
        elif not path.exists():
            raise InputError(f"{path}: no such file or folder, expected CLUTRR data")
        else:
            raise InputError(f"{path}: expected a folder, a .zip, or one of {', '.join(SUFFIXES)}")
    if not found:
        raise InputError(f"{path}: no data, expected {', '.join(SUFFIXES)} files")
    check_utf8(*(file for file, _ in found))
    _check_unique(path, found)
    _warn_of_missing(path)
    return found


def _warn_of_missing(path: Path) -> None:
    """Prints which files of generated data are missing, after an interruption for example."""
    with suppress(InputError):
        names = read_json(path / "config.json", {"generator": str, "files": [str]})["files"]
        missing = [name for name in names if not (path / name).exists()]
        if missing:
            more = f" and {len(missing) - 1} others" if missing[1:] else ""
            print(f"{path}: {missing[0]}{more} of config.json are missing", file=sys.stderr)


def _check_unique(path: Path, found: list[Source]) -> None:
    """Raises InputError for `a/train.csv` and `b/train.csv`, or `train.csv` and `train.csv.gz`."""
    first: dict[tuple[str, str], str] = {}
    for file, _ in found:
        table, name = Path(file), file.removeprefix(f"{path}/")
        split = table.parent.name if split_of_folder(table.parent.name) else ""
        other = first.setdefault((split, Path(table.name.removesuffix(".gz")).stem), name)
        if other != name:
            raise InputError(
                f"{path}: several tables of one name, {other} and {name}; expected one data set"
            )


def _folder_tables(path: Path) -> list[Path]:
    """The tables in a folder, or in the only data set in it."""
    if files := tables_in(path):
        return files
    inner = {folder.name: files for folder in path.iterdir()
             if not is_foreign(folder.name) and (files := tables_in(folder))}  # fmt: skip
    if len(inner) > 1:
        names = ", ".join(sorted(inner))
        raise InputError(f"{path}: several data sets, expected one of {names}")
    return next(iter(inner.values()), [])


def tables_in(folder: Path) -> list[Path]:
    """The tables in a folder or, if it has none, in its folders of one split each."""
    if not folder.is_dir():
        return []
    every = sorted(file for file in folder.iterdir() if file.is_file())
    files = [file for file in every if _is_table(file.name)]
    inner = [f for f in sorted(folder.iterdir()) if f.is_dir() and not is_foreign(f.name)]
    splits = [] if split_of_folder(folder.name) else [f for f in inner if split_of_folder(f.name)]
    of_splits = [file for split in splits for file in tables_in(split)]
    if files and of_splits:
        raise InputError(f"{of_splits[0]}: a table beside {files[0]}; expected one data set")
    for other in inner if of_splits else ():
        if other not in splits and any(_is_table(file.name) for file in other.iterdir()):
            raise InputError(f"{other}: the name states no split, as others do; expected {NAMES}")
    if files:
        _check_read(folder, (file.name for file in every))
    return files or of_splits


def _check_read(place: Path, names: Iterable[str]) -> None:
    """Raises InputError for a table in a format that is not read, unless it is foreign."""
    for name in names:
        is_unread = _UNREAD.search(re.split(r"[/\\]", name)[-1]) and not name.endswith(SUFFIXES)
        if is_unread and not is_foreign(name):
            raise InputError(f"{place}/{name}: expected a table that ends in {', '.join(SUFFIXES)}")


def _is_table(name: str) -> bool:
    """Returns whether a path within an archive or folder is that of a table."""
    return name.endswith(SUFFIXES) and not is_foreign(name)


def is_foreign(name: str) -> bool:
    """Returns whether a part of a path within an archive or folder is hidden, or one that an
    operating system or editor adds."""
    return bool(_FOREIGN.search(name))


def _zip_sources(path: Path) -> list[Source]:
    try:
        with zipfile.ZipFile(path) as archive:
            every = [m for m in archive.infolist() if not m.is_dir()]
            members = [m for m in every if _is_table(m.filename)]
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise InputError(f"{path}: damaged or truncated zip ({error})") from None
    _check_read(path, (member.filename for member in every))
    check_size(str(path), sum(m.file_size for m in members), unpacked_limit(path.stat().st_size))
    return [
        (f"{path}/{member.filename}", _member_rows(path, member))
        for member in sorted(members, key=lambda m: m.filename)
    ]


def unpacked_limit(size: int) -> int:
    """The number of bytes that a file of `size` bytes may unpack to."""
    return min(MAX_UNPACKED, ALWAYS_UNPACKED + MAX_RATIO * size)


def check_size(name: str, size: int, limit: int) -> None:
    """Raises InputError if a file unpacks to more than `limit` bytes."""
    if size > limit:
        raise InputError(
            f"{name}: unpacks to {size:,} bytes or more, expected at most {limit:,} "
            f"({MAX_RATIO} times its size, at most {MAX_UNPACKED:,})"
        )


def table_rows(path: Path) -> Iterator[list[str]]:
    """Yields the header and the rows of one file: CSV unless its name ends otherwise."""
    with reading(path), path.open("rb") as file:
        yield from _rows(str(path), file, path.stat().st_size)


def json_lines(path: Path) -> Iterator[Any]:
    """Yields the value of each line of a JSON Lines file that is not empty."""
    with reading(path), path.open("rb") as file:
        yield from _json_lines(str(path), file)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raises InputError for an error of the operating system while a file is read."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def _member_rows(path: Path, member: zipfile.ZipInfo) -> Iterator[list[str]]:
    name = f"{path}/{member.filename}"
    # The zipfile module bounds the size of what it unpacks for these methods only.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(f"{name}: unsupported compression method, expected deflate")
    try:
        # Reading stops after `file_size` bytes.
        with zipfile.ZipFile(path) as archive, archive.open(member) as file:
            yield from _rows(name, file, member.file_size)  # type: ignore[arg-type]
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{name}: damaged, encrypted or truncated zip ({error})") from None


def _rows(name: str, file: BinaryIO, size: int) -> Iterator[list[str]]:
    if name.endswith(".parquet"):
        limit = unpacked_limit(size)
        return _limited(name, text_rows(name, _parquet(name, file, limit)), limit)
    if name.endswith(".jsonl"):
        return text_rows(name, _json_lines(name, file))
    if name.endswith(".gz"):
        unpacked: Any = gzip.GzipFile(fileobj=file)
        return _csv(name, unpacked, unpacked_limit(size))
    return _csv(name, file, size)


def _limited(name: str, rows: Iterator[list[str]], limit: int) -> Iterator[list[str]]:
    """Yields rows of at most `limit` characters in all."""
    total = 0
    for cells in rows:
        total += sum(map(len, cells))
        check_size(name, total, limit)
        yield cells


def _csv(name: str, file: BinaryIO, limit: int) -> Iterator[list[str]]:
    """Yields the rows of a CSV file of at most `limit` characters, without empty lines."""
    total = in_row = 0

    def lines() -> Iterator[str]:
        nonlocal total, in_row
        with io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
            while line := text.readline(MAX_ROW):
                total += len(line)
                in_row += len(line)
                check_size(name, total, limit)
                if in_row >= MAX_ROW:
                    raise csv.Error(f"over {MAX_ROW:,} characters")
                yield line

    index = -1
    try:
        for row in csv.reader(lines(), strict=True):
            in_row = 0
            if row:
                index += 1
                yield row
    except csv.Error as error:
        raise InputError(f"{at(name, max(index + 1, 1))}: not a CSV row ({error})") from None
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{name}: damaged, not a UTF-8 CSV file ({error})") from None
    if index < 0:
        raise InputError(f"{name}: empty file, expected a table with a header")


def _json_lines(name: str, file: BinaryIO) -> Iterator[Any]:
    index = 0
    with io.TextIOWrapper(file, "utf-8-sig") as lines:
        try:
            while line := lines.readline(MAX_LINE):
                if line.strip():
                    index += 1
                    if len(line) == MAX_LINE:
                        raise ValueError(f"over {MAX_LINE:,} characters")
                    yield json.loads(line, object_pairs_hook=unique_keys)
        except UnicodeDecodeError as error:
            raise InputError(f"{name}: damaged, not a UTF-8 file ({error})") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{at(name, index)}: not a line of JSON ({error})") from None


def _parquet(name: str, file: BinaryIO, limit: int) -> Iterator[Mapping[str, Any]]:
    """Yields the rows of a Parquet file that unpacks to at most `limit` bytes."""
    import pyarrow as pa  # only this format needs it
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(io.BytesIO(file.read())) as parquet:
            groups = [parquet.metadata.row_group(i) for i in range(parquet.num_row_groups)]
            check_size(name, sum(group.total_byte_size for group in groups), limit)
            columns = parquet.schema_arrow.names
            if len(set(columns)) < len(columns):
                raise ValueError("two columns of the same name")
            features = _features(parquet.schema_arrow.metadata)
            rows = (row for batch in parquet.iter_batches(_BATCH) for row in batch.to_pylist())
            yield from with_label_names(name, rows, features)
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise InputError(f"{name}: damaged, not a readable Parquet file ({error})") from None


def _features(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """The types of columns that the package `datasets` has written to a Parquet file, if any."""
    try:
        found = json.loads((metadata or {}).get(b"huggingface", b"{}"))
        check_shape(found, {"info": {"features": dict}})
    except (ValueError, RecursionError):
        return {}
    return found["info"]["features"]


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yields a temporary path in the same folder, which is renamed to `path` at the end.

    The folder is created if necessary. After an error the temporary file is removed and `path` is
    as it was before.
    """
    check_utf8(path)
    temporary = path.with_name(f".{secrets.token_hex(4)}.{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Returns rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def write_text(path: Path, text: str) -> None:
    """Writes a UTF-8 text file atomically."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Object of JSON with these keys and values. Raises ValueError if a key occurs twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f'"{key}" twice in an object')
        found[key] = value
    return found


def read_json(path: Path, shape: dict[str, Any] | None = None) -> dict[str, Any]:
    """Reads a JSON object that contains what `check_shape` describes, without repeated keys."""
    try:
        with reading(path):
            text = path.read_text(encoding="utf-8")
        value = json.loads(text, object_pairs_hook=unique_keys)
        check_shape(value, shape or {})
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged, not the expected JSON ({error})") from None
    return value


def check_shape(value: Any, shape: Any, place: str = "the file") -> None:
    """Raises ValueError unless a JSON value has the given shape.

    A shape is a type, a list with the shape of each element, or a dictionary with the shape of each
    required key. `{"*": shape}` is a dictionary with any keys.
    """
    kind: Any = type(shape) if isinstance(shape, dict | list) else shape
    accepted: Any = int | float if kind is float else kind
    if not isinstance(value, accepted):
        raise ValueError(f"{place}: expected {getattr(kind, '__name__', kind)}")
    if isinstance(shape, list):
        for i, element in enumerate(value):
            check_shape(element, shape[0], f"{place}.{i}")
    if isinstance(shape, dict):
        for key in value if "*" in shape else shape:
            if key not in value:
                raise ValueError(f'{place}: no "{key}"')
            check_shape(value[key], shape.get("*", shape.get(key)), f"{place}.{key}")


def read_arrays(path: Path) -> dict[str, Any] | None:
    """Reads an `.npz` file of a run; None if there is none. Raises InputError if it is damaged."""
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except Exception:  # NumPy and zipfile raise a dozen kinds for damaged files
        raise InputError(f"{path}: damaged, expected NumPy arrays of a run") from None
