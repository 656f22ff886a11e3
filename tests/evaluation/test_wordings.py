"""Wordings of facts, and precision and recall by wording."""

import re
from dataclasses import replace

import numpy as np

from clutrr_jax.data.records import Records
from clutrr_jax.data.vocabulary import SENTENCE_ENDS, sentences, spans
from clutrr_jax.evaluation.extraction import (
    KNOWN,
    NEW,
    NO_SENTENCE,
    WORST,
    Extraction,
    by_wording,
    precision_recall,
    sentence_wordings,
)
from clutrr_jax.evaluation.ground_truth import WRONG
from generator.relations.kinship import NUM_RELATIONS
from tests.data.test_records import records_of
from tests.evaluation.test_extraction import perfect


def stories(*texts: str) -> Records:
    """Stories about Ann, her son Bob and his sister Cy, who is the sought daughter of Ann."""
    return records_of(*({"story": text} for text in texts))


def test_names_become_letters_in_order_of_first_mention() -> None:
    assert sentence_wordings(
        "[Bob] met [Ann]'s  son.\n[Cy] told [Ann] and [Bob] that [Cy] is ill?! Dr. No [x y]"
    ) == [
        ("[A] met [B]'s son.", ["Bob", "Ann"]),
        ("[A] told [B] and [C] that [A] is ill?!", ["Cy", "Ann", "Bob"]),
        ("Dr.", []),
        ("No [A]", ["x y"]),
    ]
    assert sentence_wordings("... [Ann]") == [("...", []), ("[A]", ["Ann"])]
    assert sentence_wordings("") == []
    ((wording, _),) = sentence_wordings(" ".join(f"[{i}]" for i in range(28)))
    assert wording.endswith("[Y] [Z] [AA] [BB]")


def test_sentences_have_all_tokens_of_a_story(small) -> None:
    for story in small.test.stories:
        parts = sentences(story)
        assert [token for part in parts for token in part] == spans(story)
        assert all(story[slice(*part[-1])] in SENTENCE_ENDS for part in parts[:-1])
        assert all(story[slice(*part[0])] not in SENTENCE_ENDS for part in parts)


def test_wordings_by_hand() -> None:
    train = stories("[Cy] has a son [Ann].", "Yes. [Ann] saw [Bob]'s sister [Cy].")
    test = stories(
        "[Ann] has a son [Bob]. [Ann] met [Bob]. [Ann] saw [Bob]'s sister [Cy].",
        "[Ann] had a son [Bob]. [Cy] saw [Ann]'s sister [Bob].",
        "[Ann] has a son. He is [Bob]. [Cy] smiled.",
    )
    found = perfect(test)
    for probability in found.probability:
        probability[0, 1] = 0  # Ann's son Bob is not extracted
    wrong = int(np.flatnonzero(found.verdict[2][2, 1] == WRONG)[0])
    found.relation[2][2, 1], found.probability[2][2, 1] = wrong, 1
    names = "group", "in training", "stories", "stated", "right", "wrong", "precision", "recall"
    rows = by_wording(found, train, test)
    assert [tuple(row[name] for name in names) for row in rows] == [
        (KNOWN, True, 2, 3, 2, 0, 1.0, 2 / 3),
        (NEW, False, 1, 1, 0, 0, None, 0.0),
        (NO_SENTENCE, None, 1, 2, 1, 1, 0.5, 0.5),
        ("[A] has a son [B].", True, 1, 1, 0, 0, None, 0.0),
        ("[A] had a son [B].", False, 1, 1, 0, 0, None, 0.0),
    ]


def imperfect(test: Records) -> Extraction:
    """A graph with missing and additional facts."""
    rng, found = np.random.default_rng(0), perfect(test)
    for relation, probability in zip(found.relation, found.probability, strict=True):
        changed = rng.random(relation.shape) < 0.3
        relation[changed] = rng.integers(NUM_RELATIONS, size=changed.sum())
        probability[changed] = rng.random(changed.sum())
    return found


def test_every_fact_counts_in_one_of_the_first_three_rows(small) -> None:
    found = imperfect(small.test)
    whole = precision_recall(found, small.test)[0]
    rows = by_wording(found, small.train, small.test)
    for name in ("stated", "extracted", "right", "follow", "wrong", "missing"):
        assert sum(row[name] for row in rows[:3]) == whole[name] > 0
    assert 0 < len(rows[3:]) <= WORST
    missing = [row["missing"] for row in rows[3:]]
    assert missing == sorted(missing, reverse=True) and missing[-1] > 0
    for row in rows:
        assert row["missing"] == row["stated"] - row["right"]
        assert row["stories"] <= whole["stories"]


def test_the_own_wordings_of_the_stories_are_not_new(small) -> None:
    rows = by_wording(imperfect(small.test), small.test, small.test)
    assert rows[0]["stated"] > 0 == rows[1]["stated"] == rows[1]["extracted"]
    assert all(row["in training"] for row in rows[3:])


def test_renaming_people_changes_nothing(small) -> None:
    def renamed(records: Records) -> Records:
        return replace(
            records,
            stories=[re.sub(r"\[(.+?)\]", r"[\1-x]", story) for story in records.stories],
            names=[f"{name}-x" for name in records.names],
        )

    found = imperfect(small.test)
    rows = by_wording(found, small.train, small.test)
    assert rows == by_wording(found, renamed(small.train), renamed(small.test))
