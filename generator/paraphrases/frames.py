"""The frames of the embedded paraphrase bank, and the lists of words that fill them.

A *frame* is a hand-written story of two, three or four relatives in a row. The frames stand in
`data/`, one a line, under headers that say whom they suit. In a frame
    P Q R S       are the people. The chain of facts is P-Q, Q-P-R or R-P-Q-S.
    q r s         is what Q, R is to P and what S is to Q: "brother", "mom", ...
    p m n         is what P is to Q, P is to R, Q is to S.
    he him his himself, she hir her herself, ze zem zir zemself, xe xem xyr xemself
                  are the pronouns of P, Q, R and S, whatever their gender.
    <city>        is a word drawn from that list of `words.txt`; <city2> is another one.
A header `@ SO sibling | adult kid` says what Q may be to P (two people only; `kin` is anyone but
a spouse, `blood` a blood relative), and the age of P, Q, ..., so that nobody's mother goes to
kindergarten.
"""

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from generator.kinship import PREDICATE_ID

_DATA = Path(__file__).parent / "data"
# The people of a frame in the order of its chain of facts.
_CHAINS = {"two_people.txt": "PQ", "three_people.txt": "QPR", "four_people.txt": "RPQS"}
# The noun for what the second is to the first.
_NOUNS = {
    "q": ("P", "Q"),
    "p": ("Q", "P"),
    "r": ("P", "R"),
    "m": ("R", "P"),
    "s": ("Q", "S"),
    "n": ("S", "Q"),
}
_PRONOUNS = {
    "P": "he him his himself",
    "Q": "she hir her herself",
    "R": "ze zem zir zemself",
    "S": "xe xem xyr xemself",
}
PRONOUNS = (("he", "him", "his", "himself"), ("she", "her", "her", "herself"))  # by gender, case
POSSESSIVE = 2  # the case of "his"
_PRONOUN = {
    word: (person, case)
    for person, words in _PRONOUNS.items()
    for case, word in enumerate(words.split())
}
_TOKEN = re.compile(
    rf"<(\w+?)\d?>|\b([PQRS])\b|(?<!')\b([{''.join(_NOUNS)}])\b|(?i:\b({'|'.join(_PRONOUN)})\b)"
)
_OF_NOUN = re.compile(rf"(?: own| famous| little| <adj>)? ([{''.join(_NOUNS)}])\b")
# "q Q", "q, Q", "Q, his <adj> q", "Q is my q", "Q, who is P's q", ...
_BESIDE = (
    r"\b{noun},? {name}\b|\b{name},?(?: (?:over|there|and|which|as|who|whose|is|was|his|her|zir|xyr"
    r"|my|the|a|an|own|famous|also|little|[PQRS]'s|<adj>))* {noun}\b"
)
_BLOOD = ("child", "inv-child", "sibling", "grand", "inv-grand", "un", "inv-un")
_KIN = (*_BLOOD, "in-law", "inv-in-law")
_KIN_GROUPS = {"any": (*_KIN, "SO"), "kin": _KIN, "blood": _BLOOD}
AGES = {
    "kid": (4, 11),
    "young": (6, 17),
    "twenties": (20, 35),
    "grown": (22, 64),
    "adult": (18, 85),
    "old": (62, 90),
    "any": (4, 90),
}
Ages = tuple[tuple[int, int], ...]  # youngest and oldest of each person, years


class Slot(NamedTuple):
    """A word of a list."""

    words: str


class Name(NamedTuple):
    """A person's name."""

    person: str


class Noun(NamedTuple):
    """What `who` is to `whose`."""

    whose: str
    who: str


class Pronoun(NamedTuple):
    """He, him, his or himself; `of` is Q in "his q", else empty."""

    person: str
    case: int
    of: str
    capital: bool


Part = str | Slot | Name | Noun | Pronoun


@dataclass(frozen=True, eq=False)
class Frame:
    """A story for a chain of people; ages and chain run in the same order."""

    chain: str  # such as "QPR"
    kin: frozenset[int]  # what Q may be to P, for two people; else all predicates
    ages: Ages
    parts: tuple[Part, ...]
    nameless: tuple[
        Noun, ...
    ]  # those of facts whose noun is never beside the name: "she saw her p"

    @property
    def facts(self) -> int:
        """How many facts the frame states."""
        return len(self.chain) - 1


def parse(text: str) -> tuple[Part, ...]:
    """The parts of a frame; the last one is text."""
    parts: list[Part] = []
    end = 0
    for match in _TOKEN.finditer(text):
        if text[end : match.start()]:
            parts.append(text[end : match.start()])
        end = match.end()
        slot, name, noun, pronoun = match.groups()
        if slot:
            parts.append(Slot(slot))
        elif name:
            parts.append(Name(name))
        elif noun:
            parts.append(Noun(*_NOUNS[noun]))
        else:
            person, case = _PRONOUN[pronoun.lower()]
            possessed = _OF_NOUN.match(text, end)
            whose, who = _NOUNS[possessed[1]] if possessed else ("", "")
            of = who if whose == person else ""
            parts.append(Pronoun(person, case, of, pronoun[0].isupper()))
    return (*parts, text[end:])


def _nameless(text: str, chain: str) -> tuple[Noun, ...]:
    nouns: list[Noun] = []
    for pair in pairwise(chain):
        letters = [letter for letter, people in _NOUNS.items() if set(people) == set(pair)]
        beside = (_BESIDE.format(noun=letter, name=_NOUNS[letter][1]) for letter in letters)
        if not any(re.search(pattern, text) for pattern in beside):
            used = (letter for letter in letters if re.search(rf"(?<!')\b{letter}\b", text))
            nouns += [Noun(*_NOUNS[letter]) for letter in used]
    return tuple(nouns)


@cache
def frames() -> tuple[Frame, ...]:
    """All frames, in the order of the files."""
    out = []
    for file, chain in _CHAINS.items():
        for line in (_DATA / file).read_text(encoding="utf-8").splitlines():
            if line.startswith("@"):
                *kin, ages = line.removeprefix("@").split("|")
                names = kin[0].split() if kin else ["any"]
                groups = [_KIN_GROUPS.get(name, (name,)) for name in names]
                allowed = frozenset(PREDICATE_ID[name] for group in groups for name in group)
                by_person = dict(zip("PQRS", ages.split(), strict=False))
                years = tuple(AGES[by_person[person]] for person in chain)
            elif line and not line.startswith("#"):
                out.append(Frame(chain, allowed, years, parse(line), _nameless(line, chain)))
    return tuple(out)


@cache
def words() -> dict[str, tuple[str, ...]]:
    """What each slot may hold. A relation's name, too, may be a list: its everyday words."""
    lines = (_DATA / "words.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.split(": ", 1) for line in lines if line and not line.startswith("#"))
    return {slot: tuple(entries.split(" | ")) for slot, entries in rows}
