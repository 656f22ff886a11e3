"""Parsers of the cells of a row that do not depend on its algebra."""

import ast
import json
import re
from collections.abc import Mapping, Sequence

from generator.errors import CellError
from generator.kinship import GENDER_NAMES

# Limits of one story: the generator has 150 names per gender, and writes far fewer facts.
MAX_PEOPLE, MAX_EDGES, MAX_STORY = 150, 1000, 1 << 15

# A person in a list that ends with a comma. A name with a comma is in quotes.
_PERSON = re.compile(r"""((?:\s*(["'])(?:(?!\2).)+,(?:(?!\2).)+\2\s*:)?[^,]*),""")
_NAMES = re.compile(r"[(\[]\s*(['\"])((?:(?!\1).)+)\1\s*,\s*(['\"])((?:(?!\3).)+)\3\s*[)\]]")


def _with_escapes(text: str) -> list[str]:
    """The names in a list of JSON that has escapes such as "\\u00eb"; none in any other text."""
    try:
        names = json.loads(text) if "\\" in text else []
    except (ValueError, RecursionError):
        return []
    return names if isinstance(names, list) and all(isinstance(n, str) for n in names) else []


def parse_query(text: str) -> tuple[str, str]:
    """`('Ann', 'Bob')` or `Ann, Bob`."""
    names = _with_escapes(text)
    if not names and (match := _NAMES.fullmatch(text.strip())):
        names = [match[2], match[4]]
    if not names and not text.strip().startswith(("(", "[")):
        names = text.split(",")
    names = [name.strip() for name in names]
    if len(names) != 2 or not all(names):
        raise CellError("query", "expected a pair of names such as ('Ann', 'Bob')")
    return names[0], names[1]


def parse_facts(text: str) -> list[tuple[str, str, str]]:
    """`[('Ann', 'son', 'Bob'), ...]`: Bob is the son of Ann. JSON has the same form."""
    try:
        try:
            facts = json.loads(text)
        except ValueError:
            facts = ast.literal_eval(text.strip())
        for fact in facts:
            if not isinstance(fact, list | tuple) or [type(part) for part in fact] != [str] * 3:
                raise TypeError
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise CellError(
            "facts", "expected a list of triples such as [('Ann', 'son', 'Bob')]: Bob is her son"
        ) from None
    if len(facts) > MAX_EDGES:
        raise CellError("facts", f"{len(facts):,} facts, expected at most {MAX_EDGES}")
    return [tuple(part.strip() for part in fact) for fact in facts]


def parse_genders(cell: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """`Ann:female,Bob:male,'Cy, Jr.':male`."""
    names, genders = [], []
    for person, quote in _PERSON.findall(cell + ","):
        name, _, gender = map(str.strip, person.rpartition(":"))
        if not name or gender.lower() not in GENDER_NAMES:
            raise CellError("genders", f'"{person}": expected NAME:male or NAME:female')
        names.append(name[1:-1].strip() if quote else name)
        genders.append(GENDER_NAMES.index(gender.lower()))
    return different("genders", tuple(names)), tuple(genders)


def parse_names(cell: str) -> tuple[str, ...]:
    """`['Ann', 'Bob']` or `Ann, Bob`."""
    text = cell.strip()
    names = _with_escapes(text)
    if not names and text.startswith(("(", "[")):
        names = [match[1] for match in re.findall(r"(['\"])((?:(?!\1).)+)\1", text)]
    elif not names:
        names = text.split(",")
    names = [name.strip() for name in names]
    if not names or not all(names):
        raise CellError("names", "expected a list of names such as ['Ann', 'Bob']")
    return different("names", tuple(names))


def different(column: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the names. Raises an error if there are too many, or two are the same."""
    if len(names) > MAX_PEOPLE:
        raise CellError(column, f"{len(names):,} people, expected at most {MAX_PEOPLE}")
    if len(set(names)) < len(names):
        raise CellError(column, "a name occurs twice: expected different names")
    return names


def with_brackets(text: str, names: Sequence[str]) -> str:
    """Returns a text with its names in brackets. A text that has them is left as it is."""
    if any(f"[{name}]" in text for name in names):
        return text
    longest_first = sorted(names, key=len, reverse=True)
    pattern = "|".join(map(re.escape, longest_first))
    return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", r"[\g<0>]", text)


def match_cell(
    pattern: re.Pattern[str], cell: Mapping[str, str], column: str, expected: str
) -> re.Match[str]:
    match = pattern.fullmatch(cell[column].strip())
    if not match:
        raise CellError(column, f"expected {expected}")
    return match
