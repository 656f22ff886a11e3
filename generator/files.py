"""JSON, atomic writing, arrays of a run, and the cache folder."""

import csv
import io
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from generator.errors import InputError, at, check_utf8


def cache_folder() -> Path:
    """Per-user cache of what is slow to compute and the same for every run: compiled programs,
    states of a frozen BERT, fixed data sets. The environment variable CLUTRR_CACHE names another
    folder."""
    home = os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")
    return Path(os.environ.get("CLUTRR_CACHE") or Path(home) / "clutrr_jax")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raises InputError for an error of the operating system while a file is read."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def json_values(name: str, file: BinaryIO) -> Iterator[Any]:
    """Yields the value of each line of a JSON Lines file that is not empty."""
    try:
        for index, line in enumerate(filter(str.strip, io.TextIOWrapper(file, "utf-8-sig")), 1):
            try:
                value = json.loads(line, object_pairs_hook=unique_keys)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{at(name, index)}: not a line of JSON ({error})") from None
            yield value
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: damaged, not a UTF-8 file ({error})") from None


def json_lines(path: Path) -> Iterator[Any]:
    """Yields the value of each line of a file."""
    with reading(path), path.open("rb") as file:
        yield from json_values(str(path), file)


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
