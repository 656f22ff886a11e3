"""Text of a language model about any relations -> the name of one, or None. Sentences are read for
kinship alone: otherwise the name must follow a marker or be a line of its own.

Exports to evaluation harnesses include a copy of this file.
"""

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from clutrr_jax.language_models.answers import to_relation
from clutrr_jax.language_models.marked_text import BEGIN, END

# The last of these decides, or else the last of the weak ones that states a relation.
_MARKER = re.compile(
    r"\\boxed\s*\{(?P<box>(?:[^{}\n]|\{[^{}\n]*\})*)\}|<answer>(?P<tag>(?s:.{0,300}?))</answer>|"
    r"[\"']answer[\"']\s*:\s*(?P<key>\"[^\"\n]*\"|[^,}\n]*)|^[^\w\n]*####(?P<hashes>[^\n]*)|"
    r"^[^\w\n]*(?:(?:the|so|my|final|correct) )*answer[*_\"' ]*[:=](?P<line>\s*[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_WEAK = re.compile(r"\banswer(?:[*_\"' ]*:| is\b:?)(?P<within>[^\n]*)", re.IGNORECASE)
_TEX = re.compile(r"\\(?:text\w*|math\w+)\s*\{([^{}]*)\}")
_TURN = re.compile(r"<\|[^<>|\n]*\|>|</s>|<eos>|<end_of_turn>")
_SIGNS = " \t\n*_`\"'$.,;:()[]{}#-\\"
# A name, and what explains it: "DC (they are apart)", "DC, because", "DC. So", "DC - they".
_EXPLAINED = re.compile(
    r"(\S{1,99}?)[*_`\"'$.,;:]*(?:(?<=\.)\s|\s*\(|,?\s+(?:because|since|as)\b|\s+[-\u2013\u2014]\s)"
)


def to_name(text: str, relations: Sequence[str], query: Sequence[str] = ()) -> str | None:
    """Returns the name that stands after the last marker, "X name Y" included, or else in the last
    or the first line alone; None if there is none, or if these two lines differ.

    Thoughts are dropped, and so are further examples after an answer and a repeated prompt before.
    """
    text = _TURN.sub("\n", html.unescape(text))
    *_, end = [0, *(match.end() for match in re.finditer(END, text, re.IGNORECASE))]
    text = text[end:]
    if re.search(BEGIN, text, re.IGNORECASE):
        return None
    before, *others = re.split(r"(?im)^[^\w\n]*(?:facts|story|user) ?:", text, maxsplit=1)
    found = _read(before, relations, query)
    if found is None and others:
        found = _read(re.split(r"(?m)^Question:.*$", others[0])[-1], relations, query)
    return found


def _read(text: str, relations: Sequence[str], query: Sequence[str]) -> str | None:
    def after(marker: re.Match[str]) -> str | None:
        value = marker[str(marker.lastgroup)]
        alone = _alone(value, relations, query)
        begin = None if alone else _EXPLAINED.match(value.strip(_SIGNS.replace("(", "")))
        return _alone(begin[1], relations, query) if begin else alone

    if markers := [*_MARKER.finditer(text)]:
        return after(markers[-1])
    if weak := [name for marker in _WEAK.finditer(text) if (name := after(marker))]:
        return weak[-1]
    lines = [line for line in text.splitlines() if line.strip()]
    names = {_alone(line, relations, query) for line in (lines[:1] + lines[-1:])} - {None}
    return names.pop() if len(names) == 1 else None


def _alone(text: str, relations: Sequence[str], query: Sequence[str]) -> str | None:
    """The relation of a text that is its name alone, in any case that fits only one, or a fact
    about the query."""
    text = _TEX.sub(r"\1", text)
    plain = [name.casefold() for name in relations]
    for word in (text.strip(), text.strip(_SIGNS)):
        if word in relations:
            return word
        if plain.count(word.casefold()) == 1:
            return relations[plain.index(word.casefold())]
    words = text.strip(_SIGNS).split()
    if len(words) == 3 and len(query) == 2:
        ends = zip((words[0], words[2]), query, strict=True)
        if all(word in (name, f"x{name}") for word, name in ends):
            return _alone(words[1], relations, ())
    return None


def stated_relation(text: str, row: Mapping[str, Any], strict: bool = False) -> str | None:
    """Returns the relation that an answer to an exported prompt states, see `to_relation` for
    kinship and `to_name` for other relations."""
    relations, query = tuple(row["choices"]), row["query"]
    if row["algebra"] == "kinship":
        return to_relation(text, relations, query, row["names"], strict)
    return to_name(text, relations, query)
