"""Ground truth of test stories: possible answers, baselines, and verdicts on all possible facts."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from clutrr_jax.data.clauses import number_clauses
from clutrr_jax.data.records import Records, by_people
from clutrr_jax.evaluation.baselines import (
    BASELINES,
    answers,
    induced,
    majority,
    predict_with,
    stated_facts,
    stated_predicates,
)
from clutrr_jax.evaluation.predictions import Predictions
from generator.relations.deduction import closure

# Verdicts on a fact: it is stated; it is not, but follows from the stated facts by the 16 rules and
# inverses; neither. Some pairs cannot be judged: a person with themselves, the query pair, and
# pairs with a fact whose relation the data does not give.
RIGHT, FOLLOWS, WRONG, UNJUDGED = range(4)


@dataclass(frozen=True)
class GroundTruth:
    """Facts about S test stories. Each part is computed once, when it is first used."""

    test: Records
    train: Records | None = None  # stories from which rules are induced

    def select(self, stories: np.ndarray) -> "GroundTruth":
        """The same for some of the stories: indices, ascending."""
        if len(stories) == len(self.test):
            return self
        return GroundTruth(self.test.select(stories), self.train)

    @cached_property
    def clauses(self) -> np.ndarray:
        """Number of the clause of each story, see `number_clauses`, [S]."""
        return number_clauses(self.test)

    @cached_property
    def possible_answers(self) -> np.ndarray:
        """Number of possible answers of each story, [S].

        If n relations follow from the facts, or are left possible by them, and the label is one of
        them, there are n. Otherwise the label is the only one. In kinship, n counts predicates.
        """
        if not len(self.test.relations):
            return np.ones(len(self.test), int)
        follows = answers(self.test, coarse=True)
        predicate = np.array(self.test.algebra.coarse.predicate)[self.test.target]
        label_follows = follows[np.arange(len(follows)), predicate]
        return np.where(label_follows, follows.sum(axis=-1), 1)

    @cached_property
    def baselines(self) -> dict[str, Predictions]:
        """Predictions of each of BASELINES: rules need the facts of the test stories, and induced
        ones also those of training stories."""
        given, from_rows, most_frequent = BASELINES
        found = {}
        if len(self.test.relations):
            found[given] = predict_with(self.test.algebra, self.test)
            if self.train is not None and len(self.train.relations):
                found[from_rows] = predict_with(induced(self.train), self.test)
        return found | {most_frequent: majority(self.test)}

    @cached_property
    def verdicts(self) -> list[np.ndarray]:
        """Verdict on each possible fact, per story [P, P, R]: RIGHT, FOLLOWS, WRONG or UNJUDGED."""
        found: list[Any] = [None] * len(self.test)
        view = self.test.algebra.coarse
        rules, inverse = view.algebra.rules, view.algebra.inverse.argmax(axis=1)
        for rows in by_people(self.test):
            part = self.test.select(rows)
            derived = closure(stated_predicates(part), rules, inverse)[..., list(view.predicate)]
            gender = part.genders.reshape(len(part), 1, -1, 1)  # of Y
            is_known = gender < view.relation.shape[1]
            follows = derived & ((gender == view.property) | ~is_known)
            verdict = np.where(stated_facts(part), RIGHT, np.where(follows, FOLLOWS, WRONG))
            story, (x, y) = np.arange(len(part)), part.query.T
            verdict[story, x, y] = verdict[story, y, x] = UNJUDGED
            people = np.arange(verdict.shape[1])
            verdict[:, people, people] = UNJUDGED
            owner = np.repeat(story, np.diff(part.edge_start))
            unstated = part.relations == part.unstated
            s, x, y = owner[unstated], part.senders[unstated], part.receivers[unstated]
            verdict[s, x, y] = verdict[s, y, x] = UNJUDGED
            for row, of_story in zip(rows, verdict, strict=True):
                found[row] = of_story.astype(np.int8)
        return found
