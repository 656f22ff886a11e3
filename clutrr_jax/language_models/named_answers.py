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

# The last of these decides, or else the last of the weak ones that states a relation. The relation
# stands in the line of the marker, or in the next one if nothing else stands there.
_MARKER = re.compile(
    r"\\boxed\s*(?P<box>(?=\{))|<answer>(?P<tag>)|[\"'](?:\w+[_ ])?answer[\"']\s*:\s*(?P<key>)|"
    r"^(?! *</)[^\w\n]*(?:(?:the|so|my|final|correct) )*answer(?:[*_\"' ]*[:=](?P<line>)|"
    r"[^\w\n]*$(?P<heading>))",
    re.IGNORECASE | re.MULTILINE,
)
_WEAK = re.compile(
    r"\banswer(?:[*_\"' ]*:| is\b:?)(?P<answer>)|^[^\w\n]*####(?P<hashes>)|[\"']relation(?:ship)?"
    r"[\"']\s*:(?P<key>)|^[^\w\n]*(?:(?:the|so|final) )*relation(?:ship)?[*_ ]*[:=](?P<line>)",
    re.IGNORECASE | re.MULTILINE,
)
_VALUES = {
    "box": re.compile(r"\{((?:[^{}\n]|\{[^{}\n]*\})*)\}"),
    "tag": re.compile(r"((?s:.{0,300}?))</answer>"),
    "key": re.compile(r"(\"[^\"\n]*\"|\[[^\]]{0,300}\]|[^,}\n]*)"),
}
_LONGEST = 500  # characters of a line that are read
_HAS_WORD = re.compile(r"^(?!\W*(?:json|text|plaintext)\s*$).*[^\W_]", re.IGNORECASE)
_TEX = re.compile(r"\\(?:text\w*|math\w+|operatorname)\s*\{([^{}]*)\}")
_TURN = re.compile(r"<\|[^<>|\n]*\|>|</s>|<eos>|<end_of_turn>")
_SIGNS = r"[\s*_`\"'$.,;:!()\[\]{}#\\-]*"
_ENTITY = r"([^\W_]\w*)"
# "The relation between X and Y is" or "It is" before a name.
_LEAD = re.compile(
    rf"{_SIGNS}(?:(?:so|thus|hence|therefore|the|its|their|final|correct|json),? )*"
    rf"(?:(?:it|this|that)(?:'s| is)\s|"
    rf"(?:relation(?:ship)?|answer|result)(?: (?:between|of|from) {_ENTITY} (?:and|to) {_ENTITY})?"
    rf"(?:[\"'*]*\s?[:=]|\s+is\b:?))",
    re.IGNORECASE,
)
_FACT = re.compile(
    rf"{_SIGNS}{_ENTITY}\s+(?:is\s+)?(\S+)\s+(?:(?:to|of|with)\s+)?{_ENTITY}{_SIGNS}"
)
# Where an explanation may begin: "DC (they are apart)", "DC, because", "DC. So", "DC - they".
_EXPLAINS = re.compile(r"(?<=[.!])\s|\s*\(|[,;]\s|\s(?:because|since|as)\b|\s[-\u2013\u2014]+\s")
# An answer that is one of several, uncertain, conditional or taken back.
_OPEN = re.compile(
    r"\A\W*(?:or|and|else|if|unless|not|may|might|could|either|as well)\b|\b(?:else|wait|actually|"
    r"oops|sorry|correction|instead|alternatively|perhaps|maybe|possibl[ey]|probably not|unsure|"
    r"uncertain|depend\w*|guess|not (?:\w+ )?(?:sure|certain|clear|known|possible|right)|"
    r"no(?=,| wait)|(?:is|was) (?:wrong|incorrect)|on second thought)\b",
    re.IGNORECASE,
)
_CORRECTED = re.compile(
    r"^[^\w\n]*(?:(?:(?:but )?wait|actually|oops|sorry|correction|no(?=,)|hold on|scratch that|"
    r"on second thought|alternatively)\b|or (?:maybe |possibly |perhaps )?\S+[^\w\n]*$)",
    re.IGNORECASE | re.MULTILINE,
)


def to_name(text: str, relations: Sequence[str], query: Sequence[str] = ()) -> str | None:
    """Returns the name that stands after the last marker, "X name Y" included, or else in the last
    or the first line alone; None if there is none, if these two lines differ, or if the answer is
    one of several, uncertain, conditional or taken back.

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
    if markers := [*_MARKER.finditer(text)]:
        return _after(markers[-1], text, len(text), relations, query)
    end = len(text)
    for marker in reversed([*_WEAK.finditer(text)]):
        if name := _after(marker, text, end, relations, query):
            return name
        end = marker.start()
    lines = [line for line in text.splitlines() if line.strip()]
    names = {_alone(line, relations, query) for line in (lines[:1] + lines[-1:])} - {None}
    return names.pop() if len(names) == 1 else None


def _after(
    marker: re.Match[str], text: str, end: int, relations: Sequence[str], query: Sequence[str]
) -> str | None:
    """The relation that is stated after a marker, before the character `end`."""
    pattern = _VALUES.get(str(marker.lastgroup))
    if pattern and (value := pattern.match(text, marker.end(), end)):
        said, rest = value[1].strip(), text[value.end() : end]
    else:
        # The line after a heading, or in a block of code, if nothing stands in that of the marker.
        lines = iter(text[marker.end() : end].splitlines())
        stated = (line for line in lines
                  if _HAS_WORD.search(line) or _alone(line, relations, query))  # fmt: skip
        said, rest = next(stated, ""), "\n".join(lines)
    name = _stated(said, relations, query)
    return None if _CORRECTED.search(rest) else name


def _stated(text: str, relations: Sequence[str], query: Sequence[str]) -> str | None:
    """The relation that a text states, in all or before an explanation."""
    text = text[:_LONGEST]
    ends = [*(match.start() for match in _EXPLAINS.finditer(text)), len(text)]
    for end in reversed(ends):
        if name := _alone(text[:end], relations, query):
            others = "|".join(re.escape(other) for other in relations if other != name)
            listed = re.match(rf"[\W_]*(?:{others})(?!\w)", text[end:]) if others else None
            return None if listed or _OPEN.search(text[end:]) else name
    return None


def _alone(text: str, relations: Sequence[str], query: Sequence[str]) -> str | None:
    """The relation of a text that is its name alone, in any case that fits only one, or a fact
    about the query."""
    if len(text) > _LONGEST:
        return None
    text = _TEX.sub(r"\1", text).replace("\\lt", "<").replace("\\gt", ">").replace("\\_", "_")
    lead = _LEAD.match(text)
    if lead and (lead[1] is None or _is_query(lead[1], lead[2], query)):
        text = text[lead.end() :]
    by_length = sorted(relations, key=len, reverse=True)  # "-1" is not "1" after a sign
    for flags in (0, re.IGNORECASE):
        found = [name for name in by_length
                 if re.fullmatch(_SIGNS + re.escape(name) + _SIGNS, text, flags)]  # fmt: skip
        if found:
            alike = [name for name in found if name.casefold() == found[0].casefold()]
            return found[0] if not flags or len(alike) == 1 else None
    fact = _FACT.fullmatch(text)
    if fact and _is_query(fact[1], fact[3], query):
        return _alone(fact[2], relations, ())
    return None


def _is_query(x: str, y: str, query: Sequence[str]) -> bool:
    ends = zip((x, y), query, strict=True) if len(query) == 2 else [("", "-")]
    return all(word in (name, f"x{name}") for word, name in ends)


def stated_relation(text: str, row: Mapping[str, Any], strict: bool = False) -> str | None:
    """Returns the relation that an answer to an exported prompt states, see `to_relation` for
    kinship and `to_name` for other relations."""
    relations, query = tuple(row["choices"]), row["query"]
    if row["algebra"] == "kinship":
        return to_relation(text, relations, query, row["names"], strict)
    return to_name(text, relations, query)
