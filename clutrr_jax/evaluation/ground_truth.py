"""Ground truth of test stories: possible answers, baselines, and verdicts on all possible facts."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from clutrr_jax.data.records import UNSTATED, Records, by_people
from clutrr_jax.evaluation.baselines import (
    BASELINES,
    given_rules,
    induced_rules,
    majority,
    predict_with_rules,
    stated_facts,
    stated_predicates,
)
from clutrr_jax.evaluation.predictions import Predictions
from generator.deduction import closure
from generator.kinship import GENDER_OF, INVERSE, PREDICATE_OF, RULE_TABLE, UNKNOWN_GENDER

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
    def possible_answers(self) -> np.ndarray:
        """Number of possible answers of each story, [S].

        If the 16 rules derive n relations for the query pair and the label is one of them, there
        are n. If the label does not follow, it is the only one.
        """
        found = np.ones(len(self.test), int)
        for rows in by_people(self.test):
            part = self.test.select(rows)
            story, (x, y) = np.arange(len(part)), part.query.T
            follows = closure(stated_predicates(part))[story, x, y]
            label_follows = follows[story, PREDICATE_OF[part.target]]
            found[rows] = np.where(label_follows, follows.sum(axis=-1), 1)
        return found

    @property
    def ceilings(self) -> np.ndarray:
        """Best achievable accuracy per story, [S]: no model can know which of the possible answers
        is the label."""
        return 1 / self.possible_answers

    @cached_property
    def baselines(self) -> dict[str, Predictions]:
        """Predictions of each of BASELINES: rules need the facts of the test stories, and induced
        ones also those of training stories."""
        given, induced, most_frequent = BASELINES
        found = {}
        if len(self.test.relations):
            found[given] = predict_with_rules(self.test, given_rules())
            if self.train is not None and len(self.train.relations):
                found[induced] = predict_with_rules(self.test, induced_rules(self.train))
        return found | {most_frequent: majority(self.test)}

    @cached_property
    def verdicts(self) -> list[np.ndarray]:
        """Verdict on each possible fact, per story [P, P, R]: RIGHT, FOLLOWS, WRONG or UNJUDGED."""
        found: list[Any] = [None] * len(self.test)
        for rows in by_people(self.test):
            part = self.test.select(rows)
            derived = closure(stated_predicates(part), RULE_TABLE, INVERSE)[..., PREDICATE_OF]
            gender = part.genders.reshape(len(part), 1, -1, 1)  # of Y
            follows = derived & ((gender == GENDER_OF) | (gender == UNKNOWN_GENDER))
            verdict = np.where(stated_facts(part), RIGHT, np.where(follows, FOLLOWS, WRONG))
            story, (x, y) = np.arange(len(part)), part.query.T
            verdict[story, x, y] = verdict[story, y, x] = UNJUDGED
            people = np.arange(verdict.shape[1])
            verdict[:, people, people] = UNJUDGED
            owner = np.repeat(story, np.diff(part.edge_start))
            unstated = part.relations == UNSTATED
            s, x, y = owner[unstated], part.senders[unstated], part.receivers[unstated]
            verdict[s, x, y] = verdict[s, y, x] = UNJUDGED
            for row, of_story in zip(rows, verdict, strict=True):
                found[row] = of_story.astype(np.int8)
        return found
