"""Text of stories: paraphrases, of one to three consecutive facts each, cover all facts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from generator.errors import InputError
from generator.relations.kinship import (
    GENDERS,
    NUM_PREDICATES,
    NUM_RELATIONS,
    PREDICATE_ALGEBRA,
    PREDICATE_ID,
    RELATION_OF,
    RELATIONS,
)
from generator.stories.config import Config
from generator.stories.sample import Stories

MAX_PARAPHRASE_FACTS = 3
MAX_SENTENCES = 30  # per paraphrase; `hold_out` considers all runs of consecutive sentences
# (gender of the first person, relations along the walk)
ClauseKey = tuple[int, tuple[int, ...]]
PERSON = re.compile(r"\{(\d)\}")
NAME = re.compile(r"\[([^\[\]]*)\]")  # a person in a story
SENTENCE = re.compile(r"(?<=[.!?])\s+")
_TEMPLATE = re.compile(r"(?:[^{}]|\{\d\})*")


@dataclass(frozen=True)
class Bank:
    """Paraphrase templates by clause. {0}, {1}, ... stand for the people along the walk."""

    name: str
    templates: dict[ClauseKey, tuple[str, ...]]

    def __post_init__(self) -> None:
        """Checks the placeholders and the number of sentences."""
        for key, templates in self.templates.items():
            people = [str(i) for i in range(len(key[1]) + 1)]
            for text in templates:
                where = f'bank "{self.name}", clause {clause_name(key)}: template "{text}"'
                if set(PERSON.findall(text)) != {*people} or not _TEMPLATE.fullmatch(text):
                    expected = ", ".join(f"{{{i}}}" for i in people)
                    raise InputError(
                        f"{where} must contain the placeholders {expected} and no other braces"
                    )
                if len(SENTENCE.findall(text)) >= MAX_SENTENCES:
                    raise InputError(f"{where} has over {MAX_SENTENCES} sentences")

    def expressible(self) -> np.ndarray:
        """Returns bool [11]: the predicates whose facts have templates for all genders."""
        return np.array([not self._missing(predicate) for predicate in range(NUM_PREDICATES)])

    def check(self, config: Config, part: str = "") -> None:
        """Raises InputError if a fact that stories may contain has no template of its own: paths
        contain the predicates in the bodies of rules, and some tasks state answers too."""
        if not self.templates:
            raise InputError(f'bank "{self.name}" is empty; each single fact needs a paraphrase')
        states_answers = any(task.type.stated for task in config.train + config.test)
        rules = PREDICATE_ALGEBRA.rules
        for predicate in np.unique(rules if states_answers else rules[:, :2]):
            for key in self._missing(predicate):
                raise InputError(
                    f'bank "{self.name}" has no paraphrase for clause {clause_name(key)}{part}; '
                    "each single fact needs one for train and, if paraphrases are held out, "
                    "another for tests"
                )

    def _missing(self, predicate: int) -> list[ClauseKey]:
        """The clauses of one fact with this predicate that have no template."""
        keys = [
            (gender, (int(RELATION_OF[predicate, other]),))
            for gender, other in np.ndindex(2, 2)
            if predicate != PREDICATE_ID["SO"] or gender != other
        ]
        return [key for key in keys if not self.templates.get(key)]

    @cached_property
    def pools(self) -> "TemplatePools":
        """Array representation of the templates, for vectorized sampling."""
        return TemplatePools(self)


def clause_name(key: ClauseKey) -> str:
    """Returns the name of a clause in bank files and config.json, such as `male:son-brother`."""
    return f"{GENDERS[key[0]]}:{'-'.join(RELATIONS[r] for r in key[1])}"


class TemplatePools:
    """The templates of a bank in one list, with a lookup from facts to pools of templates."""

    def __init__(self, bank: Bank) -> None:
        self.texts: list[str] = []  # by template index
        sizes: list[int] = []
        # Pool id by number of facts - 1, gender, and the relations of the next three facts (only as
        # many as the pool states are used); -1 if there is no pool.
        self.pool = np.full((MAX_PARAPHRASE_FACTS, 2, *[NUM_RELATIONS] * MAX_PARAPHRASE_FACTS), -1)
        for (gender, relations), pool in bank.templates.items():
            if pool and len(relations) <= MAX_PARAPHRASE_FACTS:
                self.pool[len(relations) - 1, gender][relations] = len(sizes)
                sizes.append(len(pool))
                self.texts += pool
        self.size = np.array(sizes, np.int64)  # [pools]
        self.start = np.cumsum(self.size) - self.size  # [pools] index of the first template

    def sample(
        self, gender: np.ndarray, relations: np.ndarray, limit: np.ndarray, random: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Samples the template that states the next facts, for P positions in walks.

        They have the gender of the person there [P], the relations of the next facts [P, 3],
        arbitrary after the end of the walk, the maximum number of facts to state [P], and random
        numbers [P, 2]. Returns the number of facts that the template states and its index, [P].
        """
        pools = self.pool[:, gender, *relations.T]  # [3, P]
        allowed = (pools >= 0) & (np.arange(MAX_PARAPHRASE_FACTS)[:, None] < limit)
        options = np.cumsum(allowed, axis=0)
        choice = (options > (random[:, 0] * options[-1]).astype(int)).argmax(axis=0)  # [P]
        pool = pools[choice, np.arange(len(gender))]
        return choice + 1, self.start[pool] + (random[:, 1] * self.size[pool]).astype(int)


def texts(
    stories: Stories, people: list[list[str]], bank: Bank, rng: np.random.Generator
) -> Iterator[tuple[str, str, list[str]]]:
    """Yields the texts of stories about people with these names.

    These are the story (all facts, paraphrases in random order), the clean story (the path only, in
    order), and a list with a sentence that states the answer (empty if the bank has none).
    """
    # Three random numbers per template: its number of facts, its index, its place in the text; then
    # one for the answer.
    random = rng.random((len(stories), 3 * stories.edge_relations().shape[1] + 1))
    used = np.zeros(len(stories), np.int64)
    parts = list(_choose_templates(stories, bank, random, used))
    by_story = np.argsort(np.concatenate([part[0] for part in parts]), kind="stable")
    row, walk, template, persons, place = (
        np.concatenate(column)[by_story] for column in zip(*parts, strict=True)
    )
    order, start = np.lexsort((place, row)).tolist(), np.searchsorted(row, range(len(stories) + 1))
    num_path = np.bincount(row[walk == 0], minlength=len(stories)).tolist()
    template, persons, text_of = template.tolist(), persons.tolist(), bank.pools.texts
    gender, last = stories.gender[:, 0].tolist(), stories.query()[:, 1].tolist()
    for_answer = random[np.arange(len(stories)), used]
    paraphrases: list[str] = []
    for i, (first, end) in enumerate(pairwise(start.tolist())):
        names = [f"[{name}]" for name in people[i]]
        paraphrases += [
            text_of[template[j]].format(*[names[person] for person in persons[j]])
            for j in range(first, end)
        ]
        clean = " ".join(paraphrases[first : first + num_path[i]])
        story = " ".join([paraphrases[j] for j in order[first:end]])
        pool = bank.templates.get((gender[i], (int(stories.target[i]),)), ())
        stated = (
            [pool[int(for_answer[i] * len(pool))].format(names[0], names[last[i]])] if pool else []
        )
        yield story, clean, stated


def _choose_templates(
    stories: Stories, bank: Bank, random: np.ndarray, used: np.ndarray
) -> Iterator[tuple[np.ndarray, ...]]:
    """Yields templates that express the facts of stories: rows of stories [P], the walk, template,
    the people for its placeholders [P, 4], some of which are arbitrary, and its place in the text.

    Counts the random numbers that each story has used.
    """
    for walk, (nodes, relations) in enumerate(zip(stories.nodes, stories.relations, strict=True)):
        limit = _facts_without_repeated_people(nodes)
        relations = np.pad(relations, [(0, 0), (0, MAX_PARAPHRASE_FACTS - 1)])
        nodes = np.pad(nodes, [(0, 0), (0, MAX_PARAPHRASE_FACTS - 1)])
        row = np.flatnonzero(relations[:, 0] >= 0)
        at = np.zeros(len(row), np.int64)  # position in the walk
        while len(row):
            window = at[:, None] + np.arange(MAX_PARAPHRASE_FACTS + 1)
            people = nodes[row[:, None], window]
            numbers = random[row[:, None], used[row, None] + np.arange(3)]
            length, template = bank.pools.sample(
                stories.gender[row, people[:, 0]],
                relations[row[:, None], window[:, :-1]],
                limit[row, at],
                numbers[:, :2],
            )
            yield row, np.full(len(row), walk), template, people, numbers[:, 2]
            used[row] += 3
            at = at + length
            unfinished = at < limit.shape[1]
            row, at = row[unfinished], at[unfinished]


def _facts_without_repeated_people(nodes: np.ndarray) -> np.ndarray:
    """Number of facts, up to three, that one template may state from each position of walks.

    A template must not mention the same person under two placeholders. [B, L + 1] people -> [B, L].
    """
    length = nodes.shape[1] - 1
    limit = np.empty((len(nodes), length), np.int64)
    for start in range(length):
        limit[:, start] = min(MAX_PARAPHRASE_FACTS, length - start)
        for stop in range(min(start + MAX_PARAPHRASE_FACTS, length), start + 1, -1):
            repeated = (nodes[:, start:stop] == nodes[:, stop, None]).any(axis=1)
            limit[repeated, start] = stop - start - 1
    return limit
