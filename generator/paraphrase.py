"""The embedded paraphrase bank: little stories for every clause of length 1, 2 and 3.

A *frame* is a hand-written story of two, three or four relatives in a row. The frames stand in
`paraphrase_data/`, one a line, under headers that say whom they suit; `bank` fits them to every
clause that the rules allow, alone or one after another. In a frame
    P Q R S       are the people. The chain of facts is P-Q, Q-P-R or R-P-Q-S.
    q r s         is what Q, R is to P and what S is to Q: "brother", "mom", ...
    p m n         is what P is to Q, P is to R, Q is to S.
    he him his himself, she hir her herself, ze zem zir zemself, xe xem xyr xemself
                  are the pronouns of P, Q, R and S, whatever their gender.
    <city>        is a word drawn from that list of `words.txt`; <city2> is another one.
A header `@ SO sibling | adult kid` says what Q may be to P (two people only; `kin` is anyone but a
spouse, `blood` a blood relative), and the age of each, so that nobody's mother goes to kindergarten.

A paraphrase names the relation of each two neighbors in the chain and no other relation.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from random import Random

from generator.kinship import (
    COMPOSE,
    FEMALE,
    GENDERS,
    INVERSE,
    NUM_PREDICATES,
    PREDICATE_ID,
    RELATION_OF,
    RELATIONS,
)
from generator.story import Bank

_DATA = Path(__file__).parent / "paraphrase_data"
# The people of a frame in the order of its chain of facts.
_CHAINS = {"two_people.txt": "PQ", "three_people.txt": "QPR", "four_people.txt": "RPQS"}
_NOUNS = {"q": "PQ", "p": "QP", "r": "PR", "m": "RP", "s": "QS", "n": "SQ"}  # what 2nd is to 1st
_PRONOUNS = {
    "P": "he him his himself",
    "Q": "she hir her herself",
    "R": "ze zem zir zemself",
    "S": "xe xem xyr xemself",
}
_BY_GENDER = (("he", "him", "his", "himself"), ("she", "her", "her", "herself"))
_PRONOUN = {
    word: (person, case)
    for person, words in _PRONOUNS.items()
    for case, word in enumerate(words.split())
}
_TOKEN = re.compile(
    rf"<(\w+?)\d?>|\b([PQRS])\b|(?<!')\b([{''.join(_NOUNS)}])\b|(?i:\b({'|'.join(_PRONOUN)})\b)"
)
_SPOUSE = PREDICATE_ID["SO"]
_CHILD, _PARENT = PREDICATE_ID["child"], PREDICATE_ID["inv-child"]
_BLOOD = ("child", "inv-child", "sibling", "grand", "inv-grand", "un", "inv-un")
_KIN = (*_BLOOD, "in-law", "inv-in-law")
_KIN_GROUPS = {"any": (*_KIN, "SO"), "kin": _KIN, "blood": _BLOOD}
_AGES = {
    "kid": (4, 11),
    "young": (6, 17),
    "twenties": (20, 35),
    "grown": (22, 64),
    "adult": (18, 85),
    "old": (62, 90),
    "any": (4, 90),
}
# How many years older than X someone is who is the ... of X.
_OLDER = {
    PREDICATE_ID[name]: years
    for name, years in {
        "child": (-45, -18),
        "inv-child": (18, 45),
        "SO": (-12, 12),
        "sibling": (-15, 15),
        "grand": (-75, -38),
        "inv-grand": (38, 75),
        "in-law": (-50, -16),
        "inv-in-law": (16, 50),
        "un": (-50, -2),
        "inv-un": (2, 50),
    }.items()
}
# Whoever is married, or came to the family by marriage, is grown up.
_MARRIED_AGE = 20
_MARRIED = {PREDICATE_ID[name] for name in ("SO", "in-law", "inv-in-law")}

# Paraphrases for each clause of length 1, 2, 3. The paper (table 1, genders of the first person
# not told apart) has 93, 33 and 10.
PER_CLAUSE = {1: 56, 2: 20, 3: 8}

Clause = tuple[int, ...]  # predicates along the path
Part = str | tuple[str, ...]
Ages = tuple[tuple[int, int], ...]  # youngest and oldest of each person, years


@dataclass(frozen=True, eq=False)
class Frame:
    """A story for a chain of people; ages and chain run in the same order."""

    chain: str  # such as "QPR"
    kin: frozenset[int]  # what Q may be to P, for two people; else all predicates
    ages: Ages
    parts: tuple[Part, ...]

    @property
    def facts(self) -> int:
        return len(self.chain) - 1


@dataclass(frozen=True, eq=False)
class Placed:
    """A frame on the people start, start + 1, ... of a path."""

    frame: Frame
    start: int
    chain: str  # the frame's, or the same backwards
    ages: Ages

    @property
    def people(self) -> dict[str, int]:
        """The place on the path of each person of the frame."""
        return {person: self.start + i for i, person in enumerate(self.chain)}


def _parse(text: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    end = 0
    for match in _TOKEN.finditer(text):
        if text[end : match.start()]:
            parts.append(text[end : match.start()])
        slot, name, noun, pronoun = match.groups()
        if slot:
            parts.append(("slot", slot))
        elif name:
            parts.append(("name", name))
        elif noun:
            parts.append(("noun", *_NOUNS[noun]))
        else:
            person, case = _PRONOUN[pronoun.lower()]
            parts.append(("pronoun", person, str(case), "capital" * pronoun[0].isupper()))
        end = match.end()
    return (*parts, text[end:])


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
                years = tuple(_AGES[by_person[person]] for person in chain)
            elif line and not line.startswith("#"):
                out.append(Frame(chain, allowed, years, _parse(line)))
    return tuple(out)


@cache
def words() -> dict[str, tuple[str, ...]]:
    """What each slot may hold. A relation's name, too, may be a slot: its everyday words."""
    lines = (_DATA / "words.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.split(": ", 1) for line in lines if line and not line.startswith("#"))
    return {slot: tuple(entries.split(" | ")) for slot, entries in rows}


def _heads(clause: Clause) -> set[int]:
    """What the ends of a path may be to each other, by the rules in any bracketing."""
    if len(clause) == 1:
        return set(clause)
    return {
        int(COMPOSE[first, second])
        for cut in range(1, len(clause))
        for first, second in product(_heads(clause[:cut]), _heads(clause[cut:]))
        if COMPOSE[first, second] >= 0
    }


def clauses(length: int) -> list[tuple[Clause, tuple[int, ...]]]:
    """Every clause that the rules fold to some head, with the genders of its people.

    Returns:
      (predicates [length], genders [length + 1]); a husband's spouse is a wife and vice versa.
    """
    in_rules = [p for p in range(NUM_PREDICATES) if p in _OLDER]
    return [
        (clause, genders)
        for clause in product(in_rules, repeat=length)
        if _heads(clause)
        for genders in product(range(len(GENDERS)), repeat=length + 1)
        if all(p != _SPOUSE or genders[i] != genders[i + 1] for i, p in enumerate(clause))
    ]


@cache
def _believable(clause: Clause, *pieces: tuple[int, Ages]) -> bool:
    """Whether people can have all the relations of a path and the ages of (start, ages) pieces."""
    ages = [_AGES["any"]] * (len(clause) + 1)
    for start, piece in pieces:
        for i, (youngest, oldest) in enumerate(piece, start):
            ages[i] = max(ages[i][0], youngest), min(ages[i][1], oldest)
    for i, predicate in enumerate(clause):
        if predicate in _MARRIED:
            for j in (i, i + 1):
                ages[j] = max(ages[j][0], _MARRIED_AGE), ages[j][1]
    low, high = ages[0]
    for predicate, (youngest, oldest) in zip(clause, ages[1:], strict=True):
        older = _OLDER[predicate]
        low, high = max(low + older[0], youngest), min(high + older[1], oldest)
        if low > high:
            return False
    return True


def _same_person(clause: Clause, genders: Sequence[int], i: int) -> bool:
    """Whether the persons i and i + 2 can only be one and the same, as in "her son's mother"."""
    pair = clause[i : i + 2]
    return pair == (_SPOUSE, _SPOUSE) or (
        pair == (_CHILD, _PARENT) and genders[i] == genders[i + 2]
    )


@cache
def _placed(start: int, facts: int) -> tuple[Placed, ...]:
    """All frames of so many facts, either way round, on the path from person `start`."""
    return tuple(
        Placed(frame, start, frame.chain[::way], frame.ages[::way])
        for frame in frames()
        if frame.facts == facts
        for way in (1, -1)
    )


@cache
def _fitting(clause: Clause, start: int, facts: int) -> tuple[Placed, ...]:
    """Those of `_placed` that suit the relations of a clause."""
    first = {"P": clause[start], "Q": int(INVERSE[clause[start]])}  # what Q would be to P
    return tuple(
        placed
        for placed in _placed(start, facts)
        if (facts > 1 or first[placed.chain[0]] in placed.frame.kin)
        and _believable(clause, (start, placed.ages))
    )


class _Writer:
    """Draws the frames, words and pronouns of one clause's paraphrases."""

    def __init__(self, clause: Clause, genders: Sequence[int], random: Random):
        self.clause, self.genders, self.random = clause, genders, random
        self.spent: set[Frame] = set()  # no frame twice in a clause

    def pick(self, options: Sequence):
        # random() alone is promised to stay the same in all versions of Python.
        return options[int(self.random.random() * len(options))]

    def place(self, cuts: Sequence[int]) -> list[Placed] | None:
        """A fresh frame for each piece of the path; None where no fresh ones go together."""
        for _ in range(40):
            placed: list[Placed] = []
            start = 0
            for facts in cuts:
                placed.append(self.pick(_fitting(self.clause, start, facts)))
                start += facts
            fresh = {place.frame for place in placed} - self.spent
            pieces = [(place.start, place.ages) for place in placed]
            if len(fresh) == len(placed) and _believable(self.clause, *pieces):
                self.spent |= fresh
                return placed
        return None

    def write(self, placed: Sequence[Placed]) -> str:
        seen: set[str] = set()  # words drawn
        texts: list[str] = []
        told: set[int] = set()  # the people of the piece before
        for place in placed:
            people = place.people
            texts.append(self._sentence(place.frame.parts, people, told, seen))
            told = set(people.values())
        text = re.sub(r"\b([Aa]) (?=[aeio]|u(?!n[iu]|k|s|t))", r"\1n ", " ".join(texts))
        return text

    def _sentence(
        self, parts: Sequence[Part], people: dict[str, int], told: set[int], seen: set[str]
    ) -> str:
        out = []
        for i, part in enumerate(parts):
            if isinstance(part, str):
                out.append(part)
                continue
            kind, *args = part
            if kind == "slot":
                word = self.pick(words()[args[0]])
                while word in seen:
                    word = self.pick(words()[args[0]])
                seen.add(word)
                out.append(word)
            elif kind == "noun":
                word = self._relation(people[args[0]], people[args[1]])
                out.append(self.pick(words().get(word, (word,))))
            elif kind == "pronoun":
                word = _BY_GENDER[self.genders[people[args[0]]]][int(args[1])]
                out.append(word.capitalize() if args[2] else word)
            else:
                person = people[args[0]]
                if i == 0 and parts[1].startswith(" ") and self._clear(person, told):
                    out.append("She" if self.genders[person] == FEMALE else "He")
                else:
                    out.append(f"{{{person}}}")
        return "".join(out)

    def _clear(self, person: int, told: set[int]) -> bool:
        """Whether a pronoun can open the next piece: it could mean nobody else told of before."""
        same = [other for other in told if self.genders[other] == self.genders[person]]
        return same == [person] and self.random.random() < 0.5

    def _relation(self, a: int, b: int) -> str:
        predicate = self.clause[a] if b > a else INVERSE[self.clause[b]]
        return RELATIONS[RELATION_OF[predicate, self.genders[b]]]


def _cuts(length: int) -> Iterator[tuple[int, ...]]:
    """The ways to cut a path into pieces, in turn, so that each has its share of the bank."""
    # One piece of three facts is short, and short texts overlap more than long ones.
    threes = [(3,), (1, 1, 1), (2, 1), (1, 1, 1), (1, 2), (1, 1, 1), (2, 1), (1, 2)]
    ways = {1: [(1,)], 2: [(2,), (1, 1)], 3: threes}[length]
    while True:
        yield from ways


def _paraphrases(clause: Clause, genders: Sequence[int], random: Random) -> tuple[str, ...]:
    writer = _Writer(clause, genders, random)
    odd = {i for i in range(len(clause) - 1) if _same_person(clause, genders, i)}
    texts: set[str] = set()
    for cuts in _cuts(len(clause)):
        if len(texts) == PER_CLAUSE[len(clause)]:
            return tuple(sorted(texts))
        starts = [sum(cuts[:i]) for i in range(len(cuts))]
        # One sentence of someone and their doubles would be absurd; two sentences are not.
        if any(i in odd for start, facts in zip(starts, cuts, strict=True)
               for i in range(start, start + facts - 1)):  # fmt: skip
            continue
        placed = writer.place(cuts)
        if placed:
            texts.add(writer.write(placed))
    raise AssertionError("_cuts never ends")


@cache
def bank() -> Bank:
    """The embedded bank: the same one in every run."""
    random = Random(0)
    templates = {}
    for length in PER_CLAUSE:
        for clause, genders in clauses(length):
            relations = tuple(
                int(RELATION_OF[p, g]) for p, g in zip(clause, genders[1:], strict=True)
            )
            templates[genders[0], relations] = _paraphrases(clause, genders, random)
    return Bank("paraphrase", templates)
