"""The embedded paraphrase bank: short stories for every clause of one, two or three facts.

All clauses that the rules allow are covered by frames (`generator.paraphrases.frames`), alone or
in sequence, filled with words. A paraphrase names the relation of each two neighbors on the path
and no other relation. "His" is used only where it is unambiguous, and the ages of all people on the
path are plausible.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, cycle, pairwise, product
from random import Random

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
from generator.relations.kinship import (
    GENDERS,
    INVERSE,
    PREDICATE_ID,
    RELATION_OF,
    RELATIONS,
    path_heads,
)
from generator.stories.text import Bank

# Paraphrases per clause of 1, 2 and 3 facts. The paper (table 1) has 93, 33 and 10, without
# distinguishing the gender of the first person.
PER_CLAUSE = {1: 56, 2: 20, 3: 8}
# The lengths of the frames that cover 1, 2 and 3 facts, used in turn. Frames of three facts are
# short, and short texts overlap more than long ones, so they are rare.
_FRAME_LENGTHS: dict[int, list[tuple[int, ...]]] = {
    1: [(1,)],
    2: [(2,), (1, 1)],
    3: [(3,), (1, 1, 1), (2, 1), (1, 1, 1), (1, 2), (1, 1, 1), (2, 1), (1, 2)],
}
_MAX_ATTEMPTS = 40  # to find frames that go together

_SPOUSE = PREDICATE_ID["SO"]
_CHILD, _PARENT = PREDICATE_ID["child"], PREDICATE_ID["inv-child"]
# Range of the age of Y minus the age of X, in years, by the predicate of Y relative to X.
_AGE_DIFFERENCE = {
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
_MIN_MARRIED_AGE = 20
_IMPLIES_MARRIAGE = {PREDICATE_ID[name] for name in ("SO", "in-law", "inv-in-law")}

_NEW_GRAMMATICAL_CLAUSE = re.compile(
    r"[.;:!?]|, (?:and|but|so|while|which|yet|as|whereas|who|whom|for)\b"
    r"| (?:while|because|when|until|since|that|if|where|after)\b"
)
_A_BEFORE_VOWEL = re.compile(r"\b([Aa]) (?=[aeio]|u(?!n[iu]|k|s|t))")
_UNCLEAR = -1  # subject of a grammatical clause with several candidates
Clause = tuple[int, ...]  # predicates along the path


@dataclass(frozen=True, eq=False)
class PlacedFrame:
    """A frame about the people start, start + 1, ... of a path."""

    frame: Frame
    start: int
    chain: str  # that of the frame, or reversed
    ages: Ages  # in the order of `chain`

    @property
    def people(self) -> dict[str, int]:
        """Position on the path of each person of the frame."""
        return {person: self.start + i for i, person in enumerate(self.chain)}


def clauses(length: int) -> list[tuple[Clause, tuple[int, ...]]]:
    """Returns all clauses for which the rules derive an answer, with the genders of their people.

    They are (predicates [length], genders [length + 1]); spouses have opposite genders.
    """
    return [
        (clause, genders)
        for clause in product(sorted(_AGE_DIFFERENCE), repeat=length)
        if path_heads(clause)
        for genders in product(range(len(GENDERS)), repeat=length + 1)
        if all(p != _SPOUSE or genders[i] != genders[i + 1] for i, p in enumerate(clause))
    ]


@cache
def is_plausible(clause: Clause, *pieces: tuple[int, Ages]) -> bool:
    """Returns True if people on a path can have the ages that frames require.

    A piece is the position of the first person, and the age ranges, of a frame.
    """
    ages = [AGES["any"]] * (len(clause) + 1)
    for start, piece in pieces:
        for i, (youngest, oldest) in enumerate(piece, start):
            ages[i] = max(ages[i][0], youngest), min(ages[i][1], oldest)
    for i, predicate in enumerate(clause):
        if predicate in _IMPLIES_MARRIAGE:
            for j in (i, i + 1):
                ages[j] = max(ages[j][0], _MIN_MARRIED_AGE), ages[j][1]
    low, high = ages[0]
    for predicate, (youngest, oldest) in zip(clause, ages[1:], strict=True):
        if low > high:
            return False
        difference = _AGE_DIFFERENCE[predicate]
        low, high = max(low + difference[0], youngest), min(high + difference[1], oldest)
    return low <= high


def _must_be_equal(clause: Clause, genders: Sequence[int], i: int) -> bool:
    """True if persons i and i + 2 are necessarily the same person, as in "her son's mother"."""
    pair = clause[i : i + 2]
    return pair == (_SPOUSE, _SPOUSE) or (
        pair == (_CHILD, _PARENT) and genders[i] == genders[i + 2]
    )


@cache
def _fitting_frames(clause: Clause, start: int, num_facts: int) -> tuple[PlacedFrame, ...]:
    """All frames of a length, in both directions, that suit the relations from person `start`."""
    predicate_of_q = {"P": clause[start], "Q": int(INVERSE[clause[start]])}  # by first person
    return tuple(
        PlacedFrame(frame, start, frame.chain[::direction], frame.ages[::direction])
        for frame in frames()
        if len(frame.chain) == num_facts + 1
        for direction in (1, -1)
        if (num_facts > 1 or predicate_of_q[frame.chain[::direction][0]] in frame.predicates)
        and is_plausible(clause, (start, frame.ages[::direction]))
    )


class ClauseWriter:
    """Samples the frames, words and pronouns for the paraphrases of one clause."""

    def __init__(self, clause: Clause, genders: Sequence[int], random: Random):
        self.clause, self.genders, self.random = clause, genders, random
        self.used_frames: set[Frame] = set()  # a clause uses each frame once

    def choose(self, options: Sequence):
        # Python guarantees reproducibility across versions only for random().
        return options[int(self.random.random() * len(options))]

    def place(self, lengths: Sequence[int]) -> list[PlacedFrame] | None:
        """Chooses unused frames with these numbers of facts; None if none were found that fit."""
        for _ in range(_MAX_ATTEMPTS):
            placed: list[PlacedFrame] = []
            start = 0
            for num_facts in lengths:
                placed.append(self.choose(_fitting_frames(self.clause, start, num_facts)))
                start += num_facts
            unused = {place.frame for place in placed} - self.used_frames
            pieces = [(place.start, place.ages) for place in placed]
            if (
                len(unused) == len(placed)
                and is_plausible(self.clause, *pieces)
                and all(self._is_unambiguous(place) for place in placed)
            ):
                self.used_frames |= unused
                return placed
        return None

    def _is_unambiguous(self, placed: PlacedFrame) -> bool:
        """True if each noun without a name can refer to one person only, by gender."""
        gender = {person: self.genders[i] for person, i in placed.people.items()}
        return all(
            gender[who] != gender[other]
            for whose, who in placed.frame.nameless
            for other in gender
            if other not in (whose, who)
        )

    def write(self, placed: Sequence[PlacedFrame]) -> str:
        """Returns the text of a sequence of frames, with placeholders for names."""
        used_words: set[str] = set()
        people_of = [{}, *(place.people for place in placed)]
        texts = [
            self._fill(place.frame.parts, people, set(previous.values()), used_words)
            for place, (previous, people) in zip(placed, pairwise(people_of), strict=True)
        ]
        return _A_BEFORE_VOWEL.sub(r"\1n ", " ".join(texts))

    def _fill(
        self,
        parts: Sequence[Part],
        people: dict[str, int],
        previous: set[int],
        used_words: set[str],
    ) -> str:
        """Returns the text of one frame."""
        out = []
        mentioned: set[int] = set()
        subject: int | None = None  # first person in the current grammatical clause
        for i, part in enumerate(parts):
            if isinstance(part, str):
                out.append(part)
                if _NEW_GRAMMATICAL_CLAUSE.search(part):
                    subject = None
                continue
            if isinstance(part, Slot):
                while (word := self.choose(words()[part.words])) in used_words:
                    pass
                used_words.add(word)
                out.append(word)
                continue
            if isinstance(part, Noun):
                relation = self._relation(people[part.whose], people[part.who])
                out.append(self.choose(words().get(relation, (relation,))))
                continue
            person = people[part.person]
            if isinstance(part, Name):
                is_possessive = str(parts[i + 1]).startswith("'s")
                is_first = i == 0 and str(parts[1]).startswith(" ")
                out.append(self._name(person, previous if is_first else set()))
            else:
                is_possessive = part.case == POSSESSIVE
                others = mentioned - {people[part.of]} if part.of else set()
                out.append(self._pronoun(part, person, set() if subject == person else others))
            mentioned.add(person)
            if subject is None and not is_possessive:
                subject = person
            elif isinstance(part, Pronoun) and not is_possessive and subject != person:
                subject = _UNCLEAR  # "Carl took him to his son": whose son?
        return "".join(out)

    def _name(self, person: int, previous: set[int]) -> str:
        """The placeholder of a person, or "He" if that clearly is one of the previous people."""
        is_clear = person in previous and not self._has_same_gender(person, previous)
        if is_clear and self.random.random() < 0.5:
            return PRONOUNS[self.genders[person]][0].capitalize()
        return f"{{{person}}}"

    def _pronoun(self, part: Pronoun, person: int, others: set[int]) -> str:
        """A pronoun, or the possessive name if a pronoun could refer to one of the others."""
        if self._has_same_gender(person, others):
            return f"{{{person}}}'s"
        word = PRONOUNS[self.genders[person]][part.case]
        return word.capitalize() if part.capital else word

    def _has_same_gender(self, person: int, others: Iterable[int]) -> bool:
        return any(
            self.genders[other] == self.genders[person] for other in others if other != person
        )

    def _relation(self, a: int, b: int) -> str:
        """The relation of neighbor b to person a on the path."""
        predicate = self.clause[a] if b > a else INVERSE[self.clause[b]]
        return RELATIONS[RELATION_OF[predicate, self.genders[b]]]


def _paraphrases(clause: Clause, genders: Sequence[int], random: Random) -> tuple[str, ...]:
    writer = ClauseWriter(clause, genders, random)
    equal = [i for i in range(len(clause) - 1) if _must_be_equal(clause, genders, i)]
    texts: set[str] = set()
    for lengths in cycle(_FRAME_LENGTHS[len(clause)]):
        starts = [0, *accumulate(lengths)]
        # A frame must not mention the same person under two names; a sequence of frames may.
        if any(start <= i < end - 1 for i in equal for start, end in pairwise(starts)):
            continue
        placed = writer.place(lengths)
        if placed:
            texts.add(writer.write(placed))
        if len(texts) == PER_CLAUSE[len(clause)]:
            break
    return tuple(sorted(texts))


@cache
def bank() -> Bank:
    """Returns the embedded bank; it is the same in every process."""
    random = Random(0)
    templates = {}
    for length in PER_CLAUSE:
        for clause, genders in clauses(length):
            relations = tuple(
                int(RELATION_OF[p, g]) for p, g in zip(clause, genders[1:], strict=True)
            )
            templates[genders[0], relations] = _paraphrases(clause, genders, random)
    return Bank("paraphrase", templates)
