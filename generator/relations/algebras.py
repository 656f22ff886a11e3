"""The algebras that come with the package, one file of data each (kinship: the module `kinship`),
and those of the user."""

import json
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from generator.errors import InputError
from generator.files import (
    read_json,
    reading,
    unique_keys,
    write_text,
)
from generator.relations.algebra import Algebra, parse_algebra
from generator.relations.kinship import KINSHIP
from generator.tables.readers import is_foreign, tables_in

DEFAULT = KINSHIP  # of data that name no other
FILE = "algebra.json"  # in the folder of data with an algebra other than kinship
_FILES = {name: Path(__file__).parent / f"{name}.json" for name in ("rcc8", "interval")}
NAMES = (KINSHIP.name, *_FILES)


@cache
def built_in() -> dict[str, Algebra]:
    """The algebras of the package by name."""
    return {KINSHIP.name: KINSHIP} | {n: read_algebra(path) for n, path in _FILES.items()}


def definitions(algebra: Algebra) -> dict[str, str]:
    """A sentence about X and Y for each relation: its own, or those of the same algebra of the
    package; empty if there are none."""
    if algebra.definitions or built_in().get(algebra.name) != algebra:
        return algebra.definition
    return read_json(Path(__file__).parent / "definitions.json").get(algebra.name, {})


def read_algebra(path: Path) -> Algebra:
    """Reads a definition, see `parse_algebra`. Raises InputError if it cannot be used."""
    return _parsed(read_json(path), path)


def _parsed(content: Any, place: object) -> Algebra:
    """Reads a definition, of kinship as KINSHIP with its view. Raises InputError if it gives this
    name to other tables, since text about them would be read as text about people."""
    found = parse_algebra(content, place)
    if not found.is_kinship:
        return found
    if found != replace(KINSHIP, view=None):
        raise InputError(
            f'{place}: name "{found.name}": the package has an algebra of this name with other '
            "tables, expected another name"
        )
    return KINSHIP


def find_algebra(name: str) -> Algebra:
    """Returns the algebra of this name, or that in a JSON file.

    Raises:
      InputError: there is neither, or the file cannot be used.
    """
    if name in NAMES:
        return built_in()[name]
    if not Path(name).is_file():
        raise InputError(f'algebra "{name}": expected {", ".join(NAMES)} or a JSON file')
    return read_algebra(Path(name))


def algebra_of(path: Path) -> Algebra | None:
    """Returns the algebra that data carry in the file `algebra.json`, if there is one.

    It stands in the folder, or in the same folder as a file, or in the .zip.
    """
    if path.suffix != ".zip":
        folder = path if path.is_dir() else path.parent
        folders = (
            [folder]
            if tables_in(folder)
            else [folder, *(f for f in sorted(folder.glob("*/")) if not is_foreign(f.name))]
        )
        files = [folder / FILE for folder in folders if (folder / FILE).is_file()]
        return read_algebra(files[0]) if files else None
    try:
        with reading(path), zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.rpartition("/")[2] == FILE
                     and not is_foreign(name)]  # fmt: skip
            if not names:
                return None
            place = f"{path}/{names[0]}"
            content = json.loads(archive.read(names[0]), object_pairs_hook=unique_keys)
            return _parsed(content, place)
    except (zipfile.BadZipFile, ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged {FILE} or zip ({error})") from None


def write_algebra(folder: Path, algebra: Algebra) -> None:
    """Writes the algebra of the data in a folder; a folder of DEFAULT has no file of it."""
    if algebra == DEFAULT:
        (folder / FILE).unlink(missing_ok=True)
    else:
        text = json.dumps(algebra.to_json(), ensure_ascii=False, indent=1)
        write_text(folder / FILE, text + "\n")


def algebra_with(relation: str) -> Algebra:
    """Returns the algebra of the package that has this relation, or DEFAULT."""
    found = (a for a in built_in().values() if a.find(relation) is not None)
    return next(found, DEFAULT)
