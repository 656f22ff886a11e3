"""Facts to text: the clause of a story is covered by paraphrases of one to three facts each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from generator.config import MEMORY, MIXED, Config
from generator.errors import InputError
from generator.kinship import (
    GENDERS,
    NUM_PREDICATES,
    PREDICATE_ID,
    RELATION_OF,
    RELATIONS,
    RULE_TABLE,
)
from generator.stories import Stories

MAX_PIECE = 3  # facts that one paraphrase states
# (gender of the first person, relations along the walk)
ClauseKey = tuple[int, tuple[int, ...]]
MAX_SENTENCES = 30  # of a paraphrase: all rows of its sentences are looked at
_TEXT = re.compile(r"(?:[^{}]|\{\d\})*")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True)
class Bank:
    """Paraphrases by clause. {0}, {1}, ... in a template stand for the people along the walk."""

    name: str
    templates: dict[ClauseKey, tuple[str, ...]]

    def __post_init__(self) -> None:
        """Raises InputError for a template with wrong placeholders, or too many sentences."""
        for key, templates in self.templates.items():
            people = {str(i) for i in range(len(key[1]) + 1)}
            for text in templates:
                if not _TEXT.fullmatch(text) or set(re.findall(r"\{(\d)\}", text)) != people:
                    expected = ", ".join(f"{{{i}}}" for i in sorted(people))
                    raise InputError(
                        f'bank "{self.name}", clause {clause_name(key)}: template "{text}" must '
                        f"hold the placeholders {expected} and no other braces"
                    )
                if len(_SENTENCE.findall(text)) >= MAX_SENTENCES:
                    raise InputError(
                        f'bank "{self.name}", clause {clause_name(key)}: template "{text}" '
                        f"has over {MAX_SENTENCES} sentences"
                    )

    def tellable(self) -> np.ndarray:
        """Of which predicates single facts can be told, whatever the genders, bool [11]."""
        return np.array([not self._missing(predicate) for predicate in range(NUM_PREDICATES)])

    def check(self, config: Config, part: str = "") -> None:
        """Raises InputError unless each single fact that a path may have can be told.

        That is so for any clause, then. In tasks 6 and 7 the answer is told as well.
        """
        if not self.templates:
            raise InputError(f'bank "{self.name}" is empty; each single fact needs a paraphrase')
        answers = any(task.noise in (MEMORY, MIXED) for task in config.train + config.test)
        for predicate in np.unique(RULE_TABLE if answers else RULE_TABLE[:, :2]):
            for key in self._missing(predicate):
                raise InputError(
                    f'bank "{self.name}" has no paraphrase for clause {clause_name(key)}{part}; '
                    "each single fact needs one for train and, if paraphrases are held out, "
                    "another for tests"
                )

    def _missing(self, predicate: int) -> list[ClauseKey]:
        """The clauses of one fact of a predicate that have no paraphrase; couples are mixed."""
        keys = [
            (gender, (int(RELATION_OF[predicate, other]),))
            for gender, other in np.ndindex(2, 2)
            if predicate != PREDICATE_ID["SO"] or gender != other
        ]
        return [key for key in keys if not self.templates.get(key)]

    @cached_property
    def covers(self) -> "_Cover":
        """Paraphrases by the facts that follow, for quick look-up."""
        return _Cover(self)


def clause_name(key: ClauseKey) -> str:
    """`male:son-brother`, as in config.json."""
    return f"{GENDERS[key[0]]}:{'-'.join(RELATIONS[r] for r in key[1])}"


class _Cover(dict):
    """(gender, relations of the next up to three facts) -> the templates for 1, 2, 3 of them.

    Relations are bytes; an entry lists (number of facts, templates) for each number there are
    templates for. Entries are made when first asked for.
    """

    def __init__(self, bank: Bank) -> None:
        self.bank = bank

    def __missing__(self, key: tuple[int, bytes]) -> list[tuple[int, tuple[str, ...]]]:
        gender, relations = key
        templates = self.bank.templates
        found = [
            (length, pool)
            for length in range(1, len(relations) + 1)
            if (pool := templates.get((gender, tuple(relations[:length]))))
        ]
        if not found:
            raise InputError(
                f'bank "{self.bank.name}" has no paraphrase for clause '
                f"{clause_name((gender, (relations[0],)))}; a bank needs one for each single fact"
            )
        self[key] = found
        return found


def texts(
    stories: Stories, people: list[list[str]], bank: Bank, rng: np.random.Generator
) -> Iterator[tuple[str, str, list[str]]]:
    """The text of each story.

    Args:
      stories: B stories.
      people: for each story, its people's names as they stand in the text.
      bank: paraphrases to draw from.
      rng: source of chance.
    Returns:
      For each story: its text in random order of the paraphrases, the text of the path alone in
      the order of the path, and a sentence that states the answer.
    """
    covers = bank.covers
    b = len(stories)
    walks = [
        _Walks(nodes, relations, stories.gender)
        for nodes, relations in zip(stories.nodes, stories.relations, strict=True)
    ]
    facts = sum(walk.length for walk in walks)
    # Three random numbers per paraphrase: how many facts, which of the texts, which place.
    chances = rng.random((b, 3 * facts + 1)).tolist()
    answer_gender = stories.gender[:, 0].tolist()
    answer = stories.target.tolist()
    for row in range(b):
        chance = iter(chances[row])
        names = people[row]
        pieces: list[tuple[float, str]] = []
        clean = ""
        for walk in walks:
            told = walk.tell(row, names, covers, chance)
            if walk is walks[0]:
                clean = " ".join([text for _, text in told])
            pieces += told
        if len(pieces) > 1:
            pieces.sort()
            story = " ".join([text for _, text in pieces])
        else:
            story = clean
        stated = []
        if pool := bank.templates.get((answer_gender[row], (answer[row],))):
            text = pool[int(next(chance) * len(pool))]
            stated = [text.format(names[0], names[walks[0].last[row]])]
        yield story, clean, stated


class _Walks:
    """Walk w of all stories, as plain lists."""

    def __init__(self, nodes: np.ndarray, relations: np.ndarray, gender: np.ndarray) -> None:
        self.length = length = relations.shape[1]
        self.nodes = nodes.tolist()
        self.last = nodes[:, -1].tolist()
        self.present = (relations[:, 0] >= 0).tolist()
        self.relations = relations.astype(np.uint8).tobytes()
        self.gender = np.take_along_axis(gender, nodes[:, :-1].clip(0), 1).tolist()
        # How many facts from here on meet nobody twice, up to three: what one paraphrase may state.
        reach = np.empty((len(nodes), length), np.int64)
        for start in range(length):
            reach[:, start] = min(MAX_PIECE, length - start)
            for stop in range(start + MAX_PIECE, start + 1, -1):
                for other in range(start, stop):
                    if stop <= length:
                        again = nodes[:, stop] == nodes[:, other]
                        reach[again, start] = np.minimum(reach[again, start], stop - start - 1)
        self.reach = reach.tolist()

    def tell(
        self, row: int, names: list[str], covers: _Cover, chance: Iterator[float]
    ) -> list[tuple[float, str]]:
        """The paraphrases of one story's walk in its order, each with a random place."""
        if not self.present[row]:
            return []
        people = [names[i] for i in self.nodes[row]]
        gender, reach = self.gender[row], self.reach[row]
        offset = row * self.length
        told = []
        at = 0
        while at < self.length:
            start = offset + at
            options = covers[gender[at], self.relations[start : start + reach[at]]]
            facts, pool = options[int(next(chance) * len(options))]
            text = pool[int(next(chance) * len(pool))]
            told.append((next(chance), text.format(*people[at : at + facts + 1])))
            at += facts
        return told
