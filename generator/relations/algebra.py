"""Relation algebras as data: names, inverses and the composition of two relations.

A fact (X, r, Y) reads "X r Y", or in kinship "Y is the r of X". A composition table has the *heads*
of each pair of relations: if (X, first, Z) and (Z, second, Y), one of the heads holds for (X, Y).
A pair without heads says nothing.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from generator.errors import InputError

# The content of a file, for messages: before and after of points in time.
EXAMPLE = (
    '{"name": "order", "relations": "before after", '
    '"inverse": {"before": "after", "after": "before"}, '
    '"composition": {"before": {"before": "before"}, "after": {"after": "after"}}}'
)
MAX_RELATIONS = 64  # a set of relations is an integer with a bit for each

Sets = tuple[tuple[int, ...], ...]  # sets of relations, ascending


@dataclass(frozen=True)
class View:
    """A coarser view of R relations: Q predicates, and a property of the second element.

    In kinship, son and daughter are the predicate child with a gender. Without facts about an
    element, its properties are equally probable.
    """

    algebra: "Algebra"  # of the predicates
    predicate: tuple[int, ...]  # [R]
    property: tuple[int, ...]  # [R]
    levels: tuple[int, ...]  # [Q] levels from X down to Y in a drawing of (X, predicate, Y)

    @cached_property
    def relation(self) -> np.ndarray:
        """Relation of each predicate and property, [Q, properties]."""
        relation = np.empty((len(self.algebra.relations), max(self.property) + 1), int)
        relation[self.predicate, self.property] = np.arange(len(self.predicate))
        return relation

    def in_words(self, names: Sequence[str], predicate: int, property: int) -> str:
        """Returns the name of a relation, or those of all properties if that is not known."""
        found = [names[relation] for relation in self.relation[predicate]]
        return found[property] if property < len(found) else " or ".join(found)


@dataclass(frozen=True, repr=False)
class Algebra:
    """R relations between two elements."""

    name: str
    relations: tuple[str, ...]  # names
    inverses: Sets  # possible relations of (Y, X) for each of (X, Y)
    # Possible relations of (X, Y) for each pair `first, second`, R * R sets in row-major order;
    # empty if nothing is known.
    heads: Sets
    view: View | None = None  # a coarser view, if there is one
    # A sentence about X and Y for each relation, for prompts; may be empty.
    definitions: tuple[str, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        return f"Algebra({self.name}, {len(self.relations)} relations)"

    @cached_property
    def index(self) -> dict[str, int]:
        """Relations by name."""
        return {name: i for i, name in enumerate(self.relations)}

    def find(self, word: str) -> int | None:
        """The relation of this name, "Mother in law" for mother-in-law; None if there is none."""
        found = self.index.get(word.strip())
        return self._plain_index.get(_plain(word)) if found is None else found

    @cached_property
    def _plain_index(self) -> dict[str, int]:
        """Relations by plain name, without those of which two have the same ("d" and "D")."""
        plain = [*map(_plain, self.relations)]
        return {name: i for i, name in enumerate(plain) if plain.count(name) == 1}

    @cached_property
    def inverse(self) -> np.ndarray:
        """Possible relations of (Y, X) for each of (X, Y), bool [R, R]."""
        return _members(self.inverses, len(self.relations))

    @cached_property
    def composition(self) -> np.ndarray:
        """Heads of each pair of relations, bool [R, R, R]."""
        size = len(self.relations)
        return _members(self.heads, size).reshape(size, size, size)

    @cached_property
    def rules(self) -> np.ndarray:
        """Pairs of relations with a single head, [rules, 3]: first, second, head."""
        return np.argwhere(self.composition & (self.composition.sum(axis=-1, keepdims=True) == 1))

    @property
    def has_rules_only(self) -> bool:
        """Whether no pair of relations has several heads: facts are derived by rules."""
        return max(map(len, self.heads)) <= 1

    @property
    def is_kinship(self) -> bool:
        """Whether the relations are those of CLUTRR, in whose data T of a test T.K is a kind of
        noise; in others it is the number of paths."""
        return self.name == "kinship"

    def sentence(self, x: str, relation: str, y: str) -> str:
        """Returns a fact in words."""
        return f"{y} is the {relation} of {x}" if self.is_kinship else f"{x} {relation} {y}"

    def question(self, x: str, y: str) -> str:
        """Returns the question about a query pair in words."""
        return f"What is {y} to {x}?" if self.is_kinship else f"What is {x} to {y}?"

    @cached_property
    def coarse(self) -> View:
        """Its view, or else the algebra itself, where all elements have the same property."""
        same = tuple(range(len(self.relations)))
        return self.view or View(self, same, (0,) * len(same), (1,) * len(same))

    def to_json(self) -> dict[str, Any]:
        """Returns what `parse_algebra` reads. The view is not part of it."""

        def names(relations: Iterable[int]) -> str:
            return " ".join(self.relations[r] for r in relations)

        size = len(self.relations)
        return {
            "name": self.name,
            "relations": names(range(size)),
            "inverse": {self.relations[r]: names(found) for r, found in enumerate(self.inverses)},
            "composition": {
                first: {
                    second: names(self.heads[a * size + b])
                    for b, second in enumerate(self.relations)
                    if self.heads[a * size + b]
                }
                for a, first in enumerate(self.relations)
            },
        } | ({"definitions": self.definition} if self.definitions else {})

    @cached_property
    def definition(self) -> dict[str, str]:
        """Its definitions by relation."""
        return dict(zip(self.relations, self.definitions, strict=False))


def _plain(word: str) -> str:
    return re.sub(r"[\s_]+", "-", _composed(word).strip().lower())


def _composed(word: str) -> str:
    """Returns a word in the normal form in which the cells of data are read."""
    return unicodedata.normalize("NFC", word)


def _members(sets: Sets, size: int) -> np.ndarray:
    found = np.zeros((len(sets), size), bool)
    for row, members in zip(found, sets, strict=True):
        row[list(members)] = True
    return found


def parse_algebra(content: Any, place: object) -> Algebra:
    """Reads the definition of an algebra.

    Args:
      content: an object with "name", "relations" (names, or one text with blanks between them),
        "inverse" (names by relation) and "composition" (heads by first and second relation; a pair
        that is left out has none); optional are "definitions" (a sentence about X and Y by
        relation).
      place: where the definition stands, for messages.
    Raises:
      InputError: a part is missing, a name is unknown, or the table contradicts the inverses.
    """
    try:
        for key in ("name", "relations", "inverse", "composition"):
            if not isinstance(content, Mapping) or key not in content:
                raise ValueError(f'no "{key}", expected name, relations, inverse and composition')
        return _parse(content)
    except ValueError as error:
        raise InputError(f"{place}: {error}; an example is {EXAMPLE}") from None


def _parse(content: Mapping[str, Any]) -> Algebra:
    """Returns the algebra. Raises ValueError for a part that cannot be used."""
    name, relations = content["name"], _names(content["relations"], "relations")
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ValueError(f"name {name!r}, expected text")
    index = {word: i for i, word in enumerate(relations)}
    if not 1 < len(index) == len(relations) <= MAX_RELATIONS:
        raise ValueError(f"relations: expected 2 to {MAX_RELATIONS} different names")

    def ids(value: Any, where: str) -> tuple[int, ...]:
        found = _names(value, where)
        if unknown := [word for word in found if word not in index]:
            known = ", ".join(relations)
            raise ValueError(f'{where}: unknown relation "{unknown[0]}", expected {known}')
        return tuple(sorted({index[word] for word in found}))

    def table(value: Any, where: str) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: expected an object with a relation as each key")
        ids([*value], where)
        return {_composed(word): entry for word, entry in value.items()}

    inverse = table(content["inverse"], "inverse")
    rows = table(content["composition"], "composition")
    if missing := [word for word in relations if not inverse.get(word)]:
        raise ValueError(f'inverse: none of "{missing[0]}", expected one of each relation')
    heads: list[tuple[int, ...]] = []
    for first in relations:
        row = table(rows.get(first, {}), f"composition of {first}")
        heads += (ids(row.get(s, []), f"composition of {first} and {s}") for s in relations)
    inverses = tuple(ids(inverse[word], f"inverse of {word}") for word in relations)
    words = table(content.get("definitions", {}), "definitions")
    if wrong := [w for w in relations if words and not _is_sentence(words.get(w))]:
        raise ValueError(f'definitions: none of "{wrong[0]}", expected a line of text for each')
    definitions = tuple(words[word].strip() for word in relations if words)
    algebra = Algebra(name, tuple(relations), inverses, tuple(heads), definitions=definitions)
    if problem := _contradiction(algebra):
        raise ValueError(problem)
    return algebra


def _is_sentence(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _names(value: Any, where: str) -> list[str]:
    found = value.split() if isinstance(value, str) else value
    if not isinstance(found, list) or not all(
        isinstance(word, str) and re.fullmatch(r"[^\s'\"]+", word) for word in found
    ):
        expected = "names of relations with blanks between them, without quotes"
        raise ValueError(f"{where} {value!r}, expected {expected}")
    return [*map(_composed, found)]


def _contradiction(algebra: Algebra) -> str:
    """Returns where the tables contradict each other, or an empty string.

    If (X, first, Z) and (Z, second, Y), then (Y, inverse of second, Z) and (Z, inverse of first,
    X): the heads of these pairs have inverses in common, unless one of the pairs has no head.
    """
    names, inverse, heads = algebra.relations, algebra.inverse, algebra.composition
    for a, b in np.argwhere(inverse & ~inverse.T).tolist():
        return f"inverse: {names[b]} is one of {names[a]}, but not the other way round"
    for a, b in product(range(len(names)), repeat=2):
        backward = heads[np.ix_(inverse[b], inverse[a])]
        if not heads[a, b].any() or not backward.any(axis=-1).all():
            continue
        if not (inverse[heads[a, b]].any(axis=0) & backward.any(axis=(0, 1))).any():
            return f"composition of {names[a]} and {names[b]}: contradicts that of their inverses"
    return ""
