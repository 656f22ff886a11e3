"""Facts to text: the clause of a story is covered by paraphrases of one to three facts each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from generator.config import MEMORY, MIXED, Config
from generator.errors import InputError
from generator.kinship import (
    GENDERS,
    NUM_PREDICATES,
    NUM_RELATIONS,
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
PERSON = re.compile(r"\{(\d)\}")
SENTENCE = re.compile(r"(?<=[.!?])\s+")


@lru_cache(1 << 16)  # the parts of a bank are banks too
def _look(text: str) -> tuple[set[str] | None, int]:
    """The placeholders of a template, None where there are other braces; and its sentences."""
    named = set(PERSON.findall(text)) if _TEXT.fullmatch(text) else None
    return named, len(SENTENCE.findall(text)) + 1


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
                named, sentences = _look(text)
                if named != people:
                    expected = ", ".join(f"{{{i}}}" for i in sorted(people))
                    raise InputError(
                        f'bank "{self.name}", clause {clause_name(key)}: template "{text}" must '
                        f"hold the placeholders {expected} and no other braces"
                    )
                if sentences > MAX_SENTENCES:
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
    def pools(self) -> "_Pools":
        """The paraphrases by the facts that follow, for quick look-up."""
        return _Pools(self)


def clause_name(key: ClauseKey) -> str:
    """`male:son-brother`, as in config.json."""
    return f"{GENDERS[key[0]]}:{'-'.join(RELATIONS[r] for r in key[1])}"


class _Pools:
    """The templates of a bank by number, and which ones tell the facts that follow."""

    def __init__(self, bank: Bank) -> None:
        self.name = bank.name
        self.texts: list[str] = []  # by number of the template
        self.start: list[int] = []  # of each pool, the number of its first template
        self.size: list[int] = []
        # [3, gender, relations of the next three facts]: the pool that tells 1, 2, 3 of them, or -1
        self.pool = np.full((MAX_PIECE, 2, *[NUM_RELATIONS] * MAX_PIECE), -1)
        for (gender, relations), pool in bank.templates.items():
            if pool and len(relations) <= MAX_PIECE:
                self.pool[len(relations) - 1, gender][relations] = len(self.start)
                self.start.append(len(self.texts))
                self.size.append(len(pool))
                self.texts += pool

    def draw(
        self, gender: np.ndarray, relations: np.ndarray, reach: np.ndarray, chance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """How many of the next facts are told at once, and by which template, [P] each.

        Args:
          gender: [P] of the person with whom the facts begin.
          relations: [P, 3] of the next facts; anything where there are fewer.
          reach: [P] how many of them may be told at once.
          chance: [P, 2] random numbers.
        """
        pools = self.pool[:, gender, *relations.T]  # [3, P]
        fits = (pools >= 0) & (np.arange(MAX_PIECE)[:, None] < reach)
        options = np.cumsum(fits, axis=0)
        if (options[-1] == 0).any():
            row = int((options[-1] == 0).argmax())
            raise InputError(
                f'bank "{self.name}" has no paraphrase for clause '
                f"{clause_name((int(gender[row]), (int(relations[row, 0]),)))}; a bank needs one "
                "for each single fact"
            )
        drawn = (options > (chance[:, 0] * options[-1]).astype(int)).argmax(axis=0)  # [P]
        pool = pools[drawn, np.arange(len(gender))]
        size = np.array(self.size)[pool]
        return drawn + 1, np.array(self.start)[pool] + (chance[:, 1] * size).astype(int)


class Told(NamedTuple):
    """What tells B stories: P paraphrases, those of a story one after the other, along its walks,
    the path first."""

    start: np.ndarray  # [B + 1] the first paraphrase of each story
    of_path: np.ndarray  # [B] how many tell the path
    template: np.ndarray  # [P] number in Bank.pools
    people: np.ndarray  # [P, 4] those who its placeholders stand for; anything where there is none
    order: np.ndarray  # [P] the paraphrases in the order of the text, story by story
    chance: np.ndarray  # [B] a random number that is left


def tell(stories: Stories, bank: Bank, rng: np.random.Generator) -> Told:
    """Draws the paraphrases of B stories from a bank."""
    b = len(stories)
    facts = sum(relations.shape[1] for relations in stories.relations)
    # Three random numbers per paraphrase: how many facts, which of the texts, which place.
    chances = rng.random((b, 3 * facts + 1))
    used = np.zeros(b, np.int64)
    found: list[tuple[np.ndarray, ...]] = []
    for w, (nodes, relations) in enumerate(zip(stories.nodes, stories.relations, strict=True)):
        reach = _reach(nodes)
        relations = np.pad(relations, [(0, 0), (0, MAX_PIECE - 1)])
        nodes = np.pad(nodes, [(0, 0), (0, MAX_PIECE - 1)])
        row = np.flatnonzero(relations[:, 0] >= 0)
        at = np.zeros(len(row), np.int64)
        while len(row):
            follow = at[:, None] + np.arange(MAX_PIECE + 1)
            people = nodes[row[:, None], follow]
            chance = chances[row[:, None], used[row, None] + np.arange(3)]
            told, template = bank.pools.draw(
                stories.gender[row, people[:, 0]],
                relations[row[:, None], follow[:, :-1]],
                reach[row, at],
                chance[:, :2],
            )
            found.append((row, np.full(len(row), w), template, people, chance[:, 2]))
            used[row] += 3
            at = at + told
            left = at < reach.shape[1]
            row, at = row[left], at[left]
    row, walk, template, people, place = (np.concatenate(part) for part in zip(*found, strict=True))
    along = np.argsort(row, kind="stable")
    row, walk, template, people, place = (a[along] for a in (row, walk, template, people, place))
    return Told(
        start=np.searchsorted(row, np.arange(b + 1)),
        of_path=np.bincount(row[walk == 0], minlength=b),
        template=template,
        people=people,
        order=np.lexsort((place, row)),
        chance=chances[np.arange(b), used],
    )


def _reach(nodes: np.ndarray) -> np.ndarray:
    """How many facts from each on meet nobody twice, up to three, for walks over the people `nodes`
    [B, L + 1]: what one paraphrase may state. [B, L]"""
    length = nodes.shape[1] - 1
    reach = np.empty((len(nodes), length), np.int64)
    for start in range(length):
        reach[:, start] = min(MAX_PIECE, length - start)
        for stop in range(start + MAX_PIECE, start + 1, -1):
            for other in range(start, stop):
                if stop <= length:
                    again = nodes[:, stop] == nodes[:, other]
                    reach[again, start] = np.minimum(reach[again, start], stop - start - 1)
    return reach


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
    told = tell(stories, bank, rng)
    text_of = bank.pools.texts
    template, of_piece = told.template.tolist(), told.people.tolist()
    order, start = told.order.tolist(), told.start.tolist()
    answer_gender = stories.gender[:, 0].tolist()
    last = stories.nodes[0][:, -1].tolist()
    rows = zip(people, told.of_path.tolist(), stories.target.tolist(), told.chance, strict=True)
    for row, (names, of_path, answer, chance) in enumerate(rows):
        first, end = start[row], start[row + 1]
        pieces = [
            text_of[template[piece]].format(*[names[i] for i in of_piece[piece]])
            for piece in range(first, end)
        ]
        clean = " ".join(pieces[:of_path])
        story = " ".join([pieces[piece - first] for piece in order[first:end]])
        stated = []
        if pool := bank.templates.get((answer_gender[row], (answer,))):
            stated = [pool[int(chance * len(pool))].format(names[0], names[last[row]])]
        yield story, clean, stated
