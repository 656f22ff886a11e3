"""Parsers of cells, which are text or values: CELLS has one for each column of CLUTRR.

They do not depend on the algebra of a row.
"""

import json
import re
import reprlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from numbers import Number
from typing import Any
from unicodedata import normalize

from generator.errors import CellError
from generator.relations.kinship import GENDER_NAMES

# Limits of one story: the generator has 150 names per gender, and writes far fewer facts.
MAX_PEOPLE, MAX_EDGES, MAX_STORY, MAX_K = 150, 1000, 1 << 15, 999

# A person in a list that ends with a comma. A name with a comma is in quotes.
_PERSON = re.compile(r"""((?:\s*(["'])(?:(?!\2).)+,(?:(?!\2).)+\2\s*:)?[^,]*),""")
# As a number, 1.10 is 1.1.
_TASK = re.compile(r"^(?:task_|(?!\d+\.1$))(\d{1,3})\.(?!0+$)(\d{1,3})$")
_QUOTED_OR_BRACKET = re.compile(r"""'([^']*)'|"([^"]*)"|[()]""")

_BRACKETS = str.maketrans("()", "[]")

Pair = tuple[int, int]


def is_frame(value: Any) -> bool:
    """Returns whether a value is a pandas data frame. The package need not be installed."""
    return hasattr(value, "itertuples") and hasattr(value, "columns")


def plain(value: Any) -> Any:
    """Returns a value with lists in place of arrays, data frame columns and tuples, Python numbers
    in place of those of NumPy, and None in place of NaN. Other values remain as they are."""
    if isinstance(value, str) or value is None:
        return value
    if hasattr(value, "tolist"):  # an array or number of NumPy, JAX or PyTorch, or a pandas column
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return None
    return None if isinstance(value, Number) and value != value else value


def raw_text(value: Any) -> str:
    """Text, also of a number: pandas turns integers into floats if a cell is missing."""
    if not isinstance(value, str):
        if not isinstance(value, Number):
            raise TypeError
        value = str(int(value) if isinstance(value, float) and value.is_integer() else value)
    if not value.isascii():
        value.encode()  # raises ValueError for half a character, which JSON can hold
    return value


def text(value: Any) -> str:
    """Text, in which composed and decomposed accents are the same."""
    return normalize("NFC", raw_text(value))


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    word = text(value).strip()
    if not word:
        raise ValueError
    return word


def listed(value: Any) -> list[Any]:
    """A list, or the text of one: JSON, or lists and tuples of Python without escapes."""
    if isinstance(value, str):
        if "'" not in value and '"' not in value:  # of numbers
            value = value.translate(_BRACKETS)
        elif '"' not in value and "(" not in value and "\\" not in value:  # of relations
            value = value.replace("'", '"')
        try:
            value = json.loads(value)
        except ValueError:
            value = json.loads(_QUOTED_OR_BRACKET.sub(_as_json, value))
    if not isinstance(value, list):
        raise TypeError
    return value


def _as_json(part: re.Match[str]) -> str:
    quoted = part[2] if part[1] is None else part[1]
    return part[0].translate(_BRACKETS) if quoted is None else json.dumps(quoted)


def words(value: Any) -> tuple[str, ...]:
    """`['son', 'aunt']`, at least one."""
    first, *others = map(_word, listed(value))
    return first, *others


def names(value: Any) -> tuple[str, ...]:
    """`['Ann', 'Bob']` or `Ann, Bob`."""
    if isinstance(value, str) and not value.strip().startswith(("(", "[")):
        value = value.split(",")
    return words(value)


def two_names(value: Any) -> tuple[str, str]:
    """`('Ann', 'Bob')` or `Ann, Bob`."""
    first, second = names(value)
    return first, second


def genders(value: Any) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """`Ann:female,Bob:male,'Cy, Jr.':male`."""
    people, found = [], []
    for person, quote in _PERSON.findall(text(value) + ","):
        name, _, gender = map(str.strip, person.rpartition(":"))
        people.append(_word(name[1:-1] if quote else name))
        found.append(GENDER_NAMES.index(gender.lower()))
    return tuple(people), tuple(found)


def facts(value: Any) -> tuple[tuple[str, str, str], ...]:
    """`[('Ann', 'son', 'Bob'), ...]`: Bob is the son of Ann."""
    triples = [tuple(map(_word, listed(fact))) for fact in listed(value)]
    return tuple([(x, relation, y) for x, relation, y in triples])


def pair(value: Any) -> Pair:
    """`(0, 3)`."""
    x, y = listed(value)
    if not x >= 0 <= y or x % 1 or y % 1:
        raise ValueError
    return int(x), int(y)


def pairs(value: Any) -> tuple[Pair, ...]:
    """`[(0, 1), (1, 2)]`."""
    return tuple([pair(part) for part in listed(value)])


def task(value: Any) -> Pair:
    """`task_1.3`: T and K."""
    ((t, k),) = _TASK.findall(text(value).strip())
    return int(t), int(k)


def length(value: Any) -> int:
    """A clause length."""
    number = float(text(value))
    if number not in range(1, MAX_K + 1):
        raise ValueError
    return int(number)


# Column -> its parser, and what it reads.
CELLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "id": (raw_text, "text or a number"),
    **dict.fromkeys(
        ("story", "clean_story", "target", "target_text", "f_comb", "task_split"),
        (text, "text or a number"),
    ),
    "task_name": (task, "a task such as task_1.3"),
    "k": (length, f"an integer from 1 to {MAX_K}"),
    "query": (two_names, "a pair of names such as ('Ann', 'Bob')"),
    "names": (names, "a list of names such as ['Ann', 'Bob']"),
    "genders": (genders, "NAME:male or NAME:female, joined by commas"),
    "facts": (facts, "a list of triples such as [('Ann', 'son', 'Bob')]: Bob is her son"),
    "story_edges": (pairs, "a list of pairs such as [(0, 1), (1, 2)]"),
    "edge_types": (words, "a list of relations such as ['son', 'aunt']"),
    "query_edge": (pair, "a pair such as (0, 3)"),
}
_MOST = {"story": MAX_STORY, "clean_story": MAX_STORY, "facts": MAX_EDGES, "story_edges": MAX_EDGES}


def is_empty(column: str, value: Any) -> bool:
    """Returns whether a cell says nothing."""
    if isinstance(value, str):
        return value.strip() in ("", "[]" if column == "names" else "")
    return value is None or value == []


@lru_cache(1 << 12)  # most columns have few different cells
def _parsed(column: str, text: str) -> Any:
    return CELLS[column][0](text)


def parse_cell(column: str, value: Any) -> Any:
    """Returns the content of a cell of CLUTRR, see CELLS. Raises CellError if it has another."""
    try:
        found = _parsed(column, value) if isinstance(value, str) else CELLS[column][0](value)
    except (ValueError, TypeError, OverflowError, RecursionError):
        expected = CELLS[column][1]
        given = f'"{value[:60]}"' if isinstance(value, str) else reprlib.repr(value)
        raise CellError(column, f"{given}, expected {expected}") from None
    if column in _MOST and len(found) > _MOST[column]:
        raise CellError(column, f"length {len(found):,}, expected at most {_MOST[column]:,}")
    return found


def with_brackets(story: str, people: Sequence[str]) -> str:
    """Returns a text with its names in brackets. A text that has them is left as it is."""
    if any(f"[{name}]" in story for name in people):
        return story
    longest_first = sorted(people, key=len, reverse=True)
    pattern = "|".join(map(re.escape, longest_first))
    return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", r"[\g<0>]", story)
