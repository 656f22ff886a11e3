"""The graph that a model extracts from each test story: kept for the report, and compared with the
stated facts.

A model that extracts one has a method `read(batch)`: the chance of each fact, [B, P, P, R], for the
ordered pairs of the story's people, at most 1 in all for each pair; and a method `answer(batch,
read)`: the relation logits from any such graph. What it reads of the asked pair is no part of the
graph, as its reasoner does not see it. Of a model whose `reasoner` has `rules()` these are kept,
too.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clutrr_jax.data.prepare import Prepared
from clutrr_jax.data.records import UNSTATED, Records, by_people
from clutrr_jax.evaluation.attention import by_story, first_replica, read_arrays
from clutrr_jax.evaluation.baselines import derive, given_rules, stated_facts
from clutrr_jax.models import Spec
from clutrr_jax.training.steps import State
from generator.errors import InputError, at
from generator.kinship import INVERSE, NUM_RELATIONS, PREDICATE_OF, RELATION_OF, RELATIONS

FILE = "extracted.npz"
SURE = 0.5  # a fact whose chance is higher counts as extracted: at most one of each ordered pair
# What an extracted fact is: stated; not stated, but following from what is by the 16 rules and
# inverses; neither. Or of a pair that cannot be judged: somebody and himself, the asked pair, and
# two of whom it is only known that a fact of them is not told.
RIGHT, FOLLOWS, WRONG, UNJUDGED = range(4)
COLUMNS = (
    "group", "stories", "stated", "extracted", "right", "follow", "wrong", "missing",
    "precision", "recall",
)  # fmt: skip


class Extraction(NamedTuple):
    """Of the first replica of one model on all test stories."""

    relation: list[np.ndarray]  # [P, P] of each story: the likeliest of each ordered pair
    chance: list[np.ndarray]  # [P, P] and its chance
    # [R, R, R] chances of the rules `first, second -> head` that composed them; of a reasoner
    # without rules None
    rules: np.ndarray | None


def write_extracted(folder: Path, spec: Spec, config: Any, data: Prepared, state: State) -> None:
    """`extracted.npz` of a trained model, of its first replica, if it extracts a graph.

    Args:
      folder: the model's.
      spec: the model, from the registry.
      config: its settings.
      data: with the test stories.
      state: after training.
    """
    if not hasattr(spec.model, "answer"):
        return
    model = first_replica(spec, config, data, state)
    reasoner: Any = getattr(model, "reasoner", None)
    rules = np.asarray(reasoner.rules()) if hasattr(reasoner, "rules") else np.zeros(0)
    people = np.diff(data.test.node_start)
    relation: list[Any] = [None] * len(people)
    chance: list[Any] = [None] * len(people)
    stories = data.test_stories
    for story, read in by_story(lambda m, batch: m.read(batch), model, spec.kind, stories):
        read = read[: people[story], : people[story]]
        relation[story], chance[story] = read.argmax(axis=-1).ravel(), read.max(axis=-1).ravel()
    np.savez_compressed(
        folder / FILE,
        relation=np.concatenate(relation).astype(np.uint8),
        chance=np.concatenate(chance).astype(np.float16),
        rules=rules.astype(np.float16),
    )


def read_extracted(folder: Path, test: Records) -> Extraction | None:
    """What `write_extracted` wrote for these stories; None if it wrote nothing.

    Raises:
      InputError: the file is damaged, or of other stories.
    """
    path = folder / FILE
    if not path.exists():
        return None
    people = np.diff(test.node_start)
    pairs, what = int((people**2).sum()), "what a model read"
    most = 16 * pairs + 8 * NUM_RELATIONS**3
    relation, chance, rules = read_arrays(path, ("relation", "chance", "rules"), most, what)
    shares = [chance, rules]
    good = relation.dtype == np.uint8 and all(array.dtype == np.float16 for array in shares)
    if (
        not good
        or (relation >= NUM_RELATIONS).any()
        or not all(((array >= 0) & (array <= 1)).all() for array in shares)
        or rules.shape not in ((0,), (NUM_RELATIONS,) * 3)
    ):
        raise InputError(f"{at(path)}: damaged, expected {what}")
    if relation.shape != (pairs,) or chance.shape != (pairs,):
        raise InputError(f"{at(path)}: of other stories, expected {pairs} pairs of people")

    def matrices(flat: np.ndarray) -> list[np.ndarray]:
        parts = np.split(flat, np.cumsum(people**2)[:-1])
        return [part.reshape(n, n) for part, n in zip(parts, people, strict=True)]

    return Extraction(
        matrices(relation.astype(int)),
        matrices(chance.astype(np.float32)),
        rules.astype(np.float32) if rules.size else None,
    )


def judged(test: Records) -> list[np.ndarray]:
    """What each fact would be if it were extracted, [P, P, R] of each story: RIGHT, FOLLOWS, WRONG
    or UNJUDGED."""
    found: list[Any] = [None] * len(test)
    for rows in by_people(test):
        part = test.select(rows)
        stated = stated_facts(part)
        verdict = np.where(stated, RIGHT, np.where(_closure(stated, part), FOLLOWS, WRONG))
        story, (x, y) = np.arange(len(part)), part.query.T
        verdict[story, x, y] = verdict[story, y, x] = UNJUDGED
        people = np.arange(verdict.shape[1])
        verdict[:, people, people] = UNJUDGED
        owner = np.repeat(story, np.diff(part.edge_start))
        untold = part.relations == UNSTATED
        s, x, y = owner[untold], part.senders[untold], part.receivers[untold]
        verdict[s, x, y] = verdict[s, y, x] = UNJUDGED
        for row, of_story in zip(rows, verdict, strict=True):
            found[row] = of_story.astype(np.int8)
    return found


def _closure(stated: np.ndarray, records: Records) -> np.ndarray:
    """All that follows from facts [S, P, P, R] of stories of as many people each, by the 16 rules
    and by turning a fact round."""
    gender = records.genders.reshape(stated.shape[:2])
    # What X is to Y when Y is the r of X, for both genders of X, [2, R].
    turned = RELATION_OF[INVERSE[PREDICATE_OF]].T
    known, before = stated, np.zeros_like(stated)
    while (known != before).any():
        before = known
        known = derive(known, given_rules())
        for sex in (0, 1):
            s, x, y, r = np.nonzero(known & (gender == sex)[:, :, None, None])
            known[s, y, x, turned[sex, r]] = True
    return known


def extracted(extraction: Extraction, query: np.ndarray) -> list[np.ndarray]:
    """The chance that counts of each ordered pair, [P, P] of each story: none of nobody but
    himself, nor of the asked pair."""
    found = []
    for chance, (x, y) in zip(extraction.chance, query, strict=True):
        part = chance * ~np.eye(len(chance), dtype=bool)
        part[x, y] = part[y, x] = 0
        found.append(part)
    return found


def compare(extraction: Extraction, test: Records) -> list[dict[str, Any]]:
    """Precision and recall of the extracted facts: in all, by clause length, by relation.

    Stated, extracted, right, follow, wrong and missing are numbers of facts, those of pairs that
    cannot be judged left out. Precision is right / (right + wrong): what follows from the stated
    facts without being stated is no error of reading, and stands apart. Recall is right / stated.
    Either is None where nothing is to be divided by. The relation of a missing fact is the stated
    one, that of a wrong fact the extracted one.
    """
    ks = test.clause_length
    # [S, R] how many facts of each relation each story has.
    stated, counts = (
        np.zeros((len(test), NUM_RELATIONS), int),
        np.zeros((3, len(test), NUM_RELATIONS), int),
    )
    sure = [chance > SURE for chance in extracted(extraction, test.query)]
    for story, verdict in enumerate(judged(test)):
        stated[story] = (verdict == RIGHT).sum(axis=(0, 1))
        x, y = np.nonzero(sure[story])
        relation = extraction.relation[story][x, y]
        kind = verdict[x, y, relation]
        judged_ones = kind != UNJUDGED
        np.add.at(counts[:, story], (kind[judged_ones], relation[judged_ones]), 1)

    def row(group: str, stories: np.ndarray, relations: Any = slice(None)) -> dict[str, Any]:
        right, follow, wrong = (int(count[stories][:, relations].sum()) for count in counts)
        all_stated = int(stated[stories][:, relations].sum())
        values = (
            group, int(stories.sum()), all_stated, right + follow + wrong, right, follow, wrong,
            all_stated - right,
            right / (right + wrong) if right + wrong else None,
            right / all_stated if all_stated else None,
        )  # fmt: skip
        return dict(zip(COLUMNS, values, strict=True))

    everything = np.ones(len(test), bool)
    return [
        row("all", everything),
        *(row(f"k = {k}", ks == k) for k in np.unique(ks)),
        *(row(RELATIONS[r], everything, [r]) for r in RELATION_OF.ravel()),
    ]
