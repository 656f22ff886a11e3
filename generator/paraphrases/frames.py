"""The frames of the embedded paraphrase bank, and the word lists that fill them.

A *frame* is a hand-written story about a chain of two, three or four relatives. The files in
`data/` contain one frame per line, below headers with its conditions. The markup of a frame:
    P Q R S       the people. The facts form the chain P-Q, Q-P-R or R-P-Q-S.
    q r s         nouns: the relation of Q to P, of R to P, of S to Q ("brother", "mom", ...)
    p m n         nouns: the relation of P to Q, of P to R, of Q to S
    he him his himself, she hir her herself, ze zem zir zemself, xe xem xyr xemself
                  the pronouns of P, Q, R and S, for either gender
    <city>        a random word from that list in `words.txt`; <city2> is a different one
A header `@ SO sibling | adult kid` gives the possible predicates of Q relative to P (only for two
people; `kin` is any relative but a spouse, `blood` a blood relative) and the age groups of P, Q,
..., so that no grandmother goes to kindergarten.
"""

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from generator.relations.kinship import PREDICATE_ID

_DATA = Path(__file__).parent / "data"
# The people of a frame in the order of the chain.
_CHAINS = {"two_people.txt": "PQ", "three_people.txt": "QPR", "four_people.txt": "RPQS"}
# noun: (X, Y) for the relation of Y to X.
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
# By gender and case.
PRONOUNS = (("he", "him", "his", "himself"), ("she", "her", "her", "herself"))
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
# A noun next to the name: "q Q", "q, Q", "Q, his <adj> q", "Q is my q", "Q, who is P's q", ...
_ADJACENT = (
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
Ages = tuple[tuple[int, int], ...]  # range of ages per person, years


class Slot(NamedTuple):
    """A random word of a list."""

    words: str


class Name(NamedTuple):
    """A person's name."""

    person: str


class Noun(NamedTuple):
    """The relation of `who` to `whose`."""

    whose: str
    who: str


class Pronoun(NamedTuple):
    """A pronoun (he, him, his or himself). In "his q", `of` is Q; otherwise it is empty."""

    person: str
    case: int
    of: str
    capital: bool


Part = str | Slot | Name | Noun | Pronoun


@dataclass(frozen=True, eq=False)
class Frame:
    """A story about a chain of people."""

    chain: str  # such as "QPR"
    predicates: frozenset[int]  # of Q relative to P; all predicates for more than two people
    ages: Ages  # in the order of the chain
    parts: tuple[Part, ...]
    nameless: tuple[Noun, ...]  # nouns that are never next to the name, as in "she saw her p"


def parse(text: str) -> tuple[Part, ...]:
    """Parses the markup of a frame; the last part is always text."""
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
    """The nouns of facts that no noun next to a name states."""
    nouns: list[Noun] = []
    for pair in pairwise(chain):
        letters = [letter for letter, people in _NOUNS.items() if set(people) == set(pair)]
        adjacent = (_ADJACENT.format(noun=letter, name=_NOUNS[letter][1]) for letter in letters)
        if not any(re.search(pattern, text) for pattern in adjacent):
            used = (letter for letter in letters if re.search(rf"(?<!')\b{letter}\b", text))
            nouns += [Noun(*_NOUNS[letter]) for letter in used]
    return tuple(nouns)


@cache
def frames() -> tuple[Frame, ...]:
    """Returns all frames in the order of the files."""
    out = []
    for file, chain in _CHAINS.items():
        for line in (_DATA / file).read_text(encoding="utf-8").splitlines():
            if line.startswith("@"):
                *relatives, ages = line.removeprefix("@").split("|")
                names = relatives[0].split() if relatives else ["any"]
                groups = [_KIN_GROUPS.get(name, (name,)) for name in names]
                allowed = frozenset(PREDICATE_ID[name] for group in groups for name in group)
                by_person = dict(zip("PQRS", ages.split(), strict=False))
                years = tuple(AGES[by_person[person]] for person in chain)
            elif line and not line.startswith("#"):
                out.append(Frame(chain, allowed, years, parse(line), _nameless(line, chain)))
    return tuple(out)


@cache
def words() -> dict[str, tuple[str, ...]]:
    """Returns the word lists by name. Lists named like a relation contain its everyday words."""
    lines = (_DATA / "words.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.split(": ", 1) for line in lines if line and not line.startswith("#"))
    return {slot: tuple(entries.split(" | ")) for slot, entries in rows}
