"""The algebras that come with the package, one file of data each (kinship: `generator.kinship`),
and those of the user."""

from functools import cache
from pathlib import Path

from generator.algebra import Algebra, parse_algebra
from generator.errors import InputError
from generator.files import read_json
from generator.kinship import KINSHIP

FILE = "algebra.json"  # in the folder of data with an algebra other than kinship
_FILES = {name: Path(__file__).parent / f"{name}.json" for name in ("rcc8", "interval")}
NAMES = (KINSHIP.name, *_FILES)


@cache
def built_in() -> dict[str, Algebra]:
    """The algebras of the package by name."""
    return {KINSHIP.name: KINSHIP} | {n: read_algebra(path) for n, path in _FILES.items()}


def read_algebra(path: Path) -> Algebra:
    """Reads a definition, see `parse_algebra`. Raises InputError if it cannot be used."""
    return parse_algebra(read_json(path), path)


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


def algebra_with(relation: str) -> Algebra:
    """Returns the algebra of the package that has this relation, by default kinship."""
    found = (a for a in built_in().values() if a.find(relation) is not None)
    return next(found, KINSHIP)
