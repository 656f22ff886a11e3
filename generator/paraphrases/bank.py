"""The embedded paraphrase bank: little stories for every clause of length 1, 2 and 3.

The frames of `generator.paraphrase_frames` are fitted to every clause that the rules allow, alone
or one after another, and filled with words. A paraphrase names the relation of each two neighbors
on the path and no other relation. "His" stands only where it can mean but one person, and ages are
such that all people on the path can have them.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, cycle, pairwise, product
from random import Random

from generator.kinship import (
    COMPOSE,
    GENDERS,
    INVERSE,
    NUM_PREDICATES,
    PREDICATE_ID,
    RELATION_OF,
    RELATIONS,
)
from generator.paraphrases.frames import (
    AGES,
    POSSESSIVE,
    PRONOUNS,
    Ages,
    Frame,
    Name,
    Noun,
    Part,
    Pronoun,
    Slot,
    frames,
    words,
)
from generator.text import Bank

_SPOUSE = PREDICATE_ID["SO"]
_CHILD, _PARENT = PREDICATE_ID["child"], PREDICATE_ID["inv-child"]
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

# How paths of 1, 2 and 3 facts are cut into frames, in turn. A frame of three facts is short, and
# short texts overlap more than long ones, so there are few of them.
_CUTS: dict[int, list[tuple[int, ...]]] = {
    1: [(1,)],
    2: [(2,), (1, 1)],
    3: [(3,), (1, 1, 1), (2, 1), (1, 1, 1), (1, 2), (1, 1, 1), (2, 1), (1, 2)],
}
_NEW_CLAUSE = re.compile(
    r"[.;:!?]|, (?:and|but|so|while|which|yet|as|whereas|who|whom|for)\b"
    r"| (?:while|because|when|until|since|that|if|where|after)\b"
)
# Paraphrases for each clause of length 1, 2, 3. The paper (table 1, genders of the first person
# not told apart) has 93, 33 and 10.
PER_CLAUSE = {1: 56, 2: 20, 3: 8}

_UNCLEAR = -1  # no person on the path
Clause = tuple[int, ...]  # predicates along the path


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
def believable(clause: Clause, *pieces: tuple[int, Ages]) -> bool:
    """Whether people can have all the relations of a path and the ages of (start, ages) pieces."""
    ages = [AGES["any"]] * (len(clause) + 1)
    for start, piece in pieces:
        for i, (youngest, oldest) in enumerate(piece, start):
            ages[i] = max(ages[i][0], youngest), min(ages[i][1], oldest)
    for i, predicate in enumerate(clause):
        if predicate in _MARRIED:
            for j in (i, i + 1):
                ages[j] = max(ages[j][0], _MARRIED_AGE), ages[j][1]
    low, high = ages[0]
    for predicate, (youngest, oldest) in zip(clause, ages[1:], strict=True):
        if low > high:
            return False
        older = _OLDER[predicate]
        low, high = max(low + older[0], youngest), min(high + older[1], oldest)
    return low <= high


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
        and believable(clause, (start, placed.ages))
    )


class Writer:
    """Draws the frames, words and pronouns of one clause's paraphrases.

    Args:
      clause: predicates along the path, [k].
      genders: of the people on the path, [k + 1].
      random: source of chance.
    """

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
            if (
                len(fresh) == len(placed)
                and believable(self.clause, *pieces)
                and all(self._unmistakable(place) for place in placed)
            ):
                self.spent |= fresh
                return placed
        return None

    def _unmistakable(self, placed: Placed) -> bool:
        """Whether every noun without its name can mean one person only, by the gender."""
        gender = {person: self.genders[i] for person, i in placed.people.items()}
        return all(
            gender[who] != gender[other]
            for whose, who in placed.frame.nameless
            for other in gender
            if other not in (whose, who)
        )

    def write(self, placed: Sequence[Placed]) -> str:
        seen: set[str] = set()  # words drawn
        texts: list[str] = []
        told: set[int] = set()  # the people of the piece before
        for place in placed:
            people = place.people
            texts.append(self._sentence(place.frame.parts, people, told, seen))
            told = set(people.values())
        return re.sub(r"\b([Aa]) (?=[aeio]|u(?!n[iu]|k|s|t))", r"\1n ", " ".join(texts))

    def _sentence(
        self, parts: Sequence[Part], people: dict[str, int], told: set[int], seen: set[str]
    ) -> str:
        out = []
        mentioned: set[int] = set()
        subject: int | None = None  # whom the clause mentions first
        for i, part in enumerate(parts):
            if isinstance(part, str):
                out.append(part)
                if _NEW_CLAUSE.search(part):
                    subject = None
            elif isinstance(part, Slot):
                word = self.pick(words()[part.words])
                while word in seen:
                    word = self.pick(words()[part.words])
                seen.add(word)
                out.append(word)
            elif isinstance(part, Noun):
                word = self._relation(people[part.whose], people[part.who])
                out.append(self.pick(words().get(word, (word,))))
            else:
                person = people[part.person]
                if isinstance(part, Name):
                    owns = str(parts[i + 1]).startswith("'s")
                    word = f"{{{person}}}"
                    starts = i == 0 and str(parts[1]).startswith(" ")
                    if starts and self._clear(person, told):
                        word = PRONOUNS[self.genders[person]][0].capitalize()
                else:
                    owns = part.case == POSSESSIVE
                    word = PRONOUNS[self.genders[person]][part.case]
                    word = word.capitalize() if part.capital else word
                    others = mentioned - {people[part.of]} if part.of else ()
                    if subject != person and self._alike(person, others):
                        word = f"{{{person}}}'s"  # "his" could be that of another
                out.append(word)
                mentioned.add(person)
                if subject is None and not owns:
                    subject = person
                elif isinstance(part, Pronoun) and not owns and subject != person:
                    subject = _UNCLEAR  # "Carl took him to his son": whose?
        return "".join(out)

    def _alike(self, person: int, others: Iterable[int]) -> bool:
        """Whether some other has the gender of a person."""
        return any(
            self.genders[other] == self.genders[person] for other in others if other != person
        )

    def _clear(self, person: int, told: set[int]) -> bool:
        """Whether a pronoun can open the next piece: it could mean nobody else told of before."""
        clear = person in told and not self._alike(person, told)
        return clear and self.random.random() < 0.5

    def _relation(self, a: int, b: int) -> str:
        predicate = self.clause[a] if b > a else INVERSE[self.clause[b]]
        return RELATIONS[RELATION_OF[predicate, self.genders[b]]]


def _paraphrases(clause: Clause, genders: Sequence[int], random: Random) -> tuple[str, ...]:
    writer = Writer(clause, genders, random)
    doubles = [i for i in range(len(clause) - 1) if _same_person(clause, genders, i)]
    texts: set[str] = set()
    for cuts in cycle(_CUTS[len(clause)]):
        starts = [0, *accumulate(cuts)]
        # One frame with somebody and their double would be absurd; two frames are not.
        if any(start <= i < end - 1 for i in doubles for start, end in pairwise(starts)):
            continue
        placed = writer.place(cuts)
        if placed:
            texts.add(writer.write(placed))
        if len(texts) == PER_CLAUSE[len(clause)]:
            break
    return tuple(sorted(texts))


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
