"""Fact graphs that a model extracts from test stories: the file `extracted.npz` for the report
page, and precision and recall against the stated facts.

A model that extracts a graph has a method `read(batch)`, which returns the probability of each fact
for the ordered pairs of a story's people, [B, P, P, R] with a sum of at most 1 per pair, and a
method `answer(batch, read)`, which returns relation logits from such a graph. The query pair is not
part of the graph, because the reasoner does not see it. If the model's `reasoner` has a method
`rules()`, its rules are saved too.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clutrr_jax.data.batching import InputKind
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.data.records import UNSTATED, Records, by_people
from clutrr_jax.evaluation.attention import read_arrays
from clutrr_jax.evaluation.baselines import stated_facts, stated_predicates
from clutrr_jax.evaluation.learned_rules import gendered
from clutrr_jax.evaluation.predict import per_story
from generator.errors import InputError, at
from generator.kinship import (
    GENDER_OF,
    INVERSE,
    NUM_RELATIONS,
    PREDICATE_OF,
    RELATION_OF,
    RELATIONS,
    RULE_TABLE,
)
from generator.prover import closure

FILE = "extracted.npz"
THRESHOLD = 0.5  # facts with a higher probability count as extracted: at most one per ordered pair
# Verdicts on an extracted fact: it is stated; it is not, but follows from the stated facts by the
# 16 rules and inverses; neither. Some pairs cannot be judged: a person with themselves, the query
# pair, and pairs with a fact whose relation the data does not give.
RIGHT, FOLLOWS, WRONG, UNJUDGED = range(4)
COLUMNS = (
    "group", "stories", "stated", "extracted", "right", "follow", "wrong", "missing",
    "precision", "recall",
)  # fmt: skip


class Extraction(NamedTuple):
    """Graphs that the first replica of a model extracted from all test stories."""

    relation: list[np.ndarray]  # per story [P, P]: most probable relation of each ordered pair
    probability: list[np.ndarray]  # per story [P, P]: its probability
    # [R, R, R] probabilities of the reasoner's rules `first, second -> head`; None without rules.
    rules: np.ndarray | None
    verdict: list[np.ndarray]  # see `judge_facts`


def write_extracted(folder: Path, model: Any, kind: InputKind, data: Prepared) -> None:
    """Writes the file of a model in evaluation mode, if it extracts a graph."""
    if not hasattr(model, "answer"):
        return
    reasoner: Any = getattr(model, "reasoner", None)
    rules = gendered(np.asarray(reasoner.rules())) if hasattr(reasoner, "rules") else np.zeros(0)
    people = np.diff(data.test.node_start)
    relation: list[Any] = [None] * len(people)
    probability: list[Any] = [None] * len(people)
    for story, facts in per_story(type(model).read, model, kind, data.test_stories):
        facts = facts[: people[story], : people[story]]
        relation[story] = facts.argmax(axis=-1).ravel()
        probability[story] = facts.max(axis=-1).ravel()
    np.savez_compressed(
        folder / FILE,
        relation=np.concatenate(relation).astype(np.uint8),
        chance=np.concatenate(probability).astype(np.float16),
        rules=rules.astype(np.float16),
    )


def read_extracted(folder: Path, test: Records) -> Extraction | None:
    """Reads the file of `write_extracted` for the same stories; None if there is none.

    Raises:
      InputError: the file is damaged, or was written for other stories.
    """
    path = folder / FILE
    if not path.exists():
        return None
    people = np.diff(test.node_start)
    pairs, expected = int((people**2).sum()), "an extracted graph"
    max_bytes = 16 * pairs + 8 * NUM_RELATIONS**3
    names = ("relation", "chance", "rules")
    relation, probability, rules = read_arrays(path, names, max_bytes, expected)
    if not (
        relation.dtype == np.uint8
        and (relation < NUM_RELATIONS).all()
        and all(a.dtype == np.float16 and ((a >= 0) & (a <= 1)).all() for a in (probability, rules))
        and rules.shape in ((0,), (NUM_RELATIONS,) * 3)
    ):
        raise InputError(f"{at(path)}: damaged, expected {expected}")
    if relation.shape != (pairs,) or probability.shape != (pairs,):
        raise InputError(f"{at(path)}: written for other stories, expected {pairs} pairs of people")

    def matrices(flat: np.ndarray) -> list[np.ndarray]:
        parts = np.split(flat, np.cumsum(people**2)[:-1])
        return [part.reshape(n, n) for part, n in zip(parts, people, strict=True)]

    return Extraction(
        matrices(relation.astype(int)),
        matrices(probability.astype(np.float32)),
        rules.astype(np.float32) if rules.size else None,
        judge_facts(test),
    )


def judge_facts(test: Records) -> list[np.ndarray]:
    """Verdict on each possible fact, per story [P, P, R]: RIGHT, FOLLOWS, WRONG or UNJUDGED."""
    found: list[Any] = [None] * len(test)
    for rows in by_people(test):
        part = test.select(rows)
        derived = closure(stated_predicates(part), RULE_TABLE, INVERSE)[..., PREDICATE_OF]
        gender = part.genders.reshape(len(part), 1, -1, 1)  # of Y
        follows = derived & (gender == GENDER_OF)
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


def precision_recall(extraction: Extraction, test: Records) -> list[dict[str, Any]]:
    """Precision and recall of the extracted facts: overall, by clause length and by relation.

    Each row has the keys COLUMNS. Counts are numbers of facts and leave out pairs that cannot be
    judged. Precision is (right + follow) / extracted: a fact that follows from the stated ones is
    not an error. Recall is right / stated. Either is None if its denominator is 0. Missing facts
    count for the stated relation, wrong facts for the extracted one.
    """
    ks = test.clause_length
    stated = np.zeros((len(test), NUM_RELATIONS), int)
    counts = np.zeros((3, len(test), NUM_RELATIONS), int)  # right, follow, wrong
    for story, verdict in enumerate(extraction.verdict):
        stated[story] = (verdict == RIGHT).sum(axis=(0, 1))
        x, y = np.nonzero(extraction.probability[story] > THRESHOLD)
        relation = extraction.relation[story][x, y]
        kind = verdict[x, y, relation]
        judged = kind != UNJUDGED
        np.add.at(counts[:, story], (kind[judged], relation[judged]), 1)

    def row(group: str, stories: np.ndarray, relations: Any = slice(None)) -> dict[str, Any]:
        right, follow, wrong = (int(count[stories][:, relations].sum()) for count in counts)
        all_stated = int(stated[stories][:, relations].sum())
        extracted = right + follow + wrong
        values = (
            group, int(stories.sum()), all_stated, extracted, right, follow, wrong,
            all_stated - right,
            (right + follow) / extracted if extracted else None,
            right / all_stated if all_stated else None,
        )  # fmt: skip
        return dict(zip(COLUMNS, values, strict=True))

    everything = np.ones(len(test), bool)
    return [
        row("all", everything),
        *(row(f"k = {k}", ks == k) for k in np.unique(ks)),
        *(row(RELATIONS[r], everything, [r]) for r in RELATION_OF.ravel()),
    ]
