"""Precision and recall by wording: does a reader fail at new wordings or at known ones?

The wording of a fact is the first sentence of its story that names both people, with the names
replaced by [A], [B], ... in order of first mention.
"""

from functools import cache
from string import ascii_uppercase
from typing import Any

import numpy as np

from clutrr_jax.data.records import Records
from clutrr_jax.data.vocabulary import sentences
from clutrr_jax.evaluation.extraction import Extraction, count_facts, judged_facts
from clutrr_jax.evaluation.ground_truth import RIGHT
from generator.stories.text import NAME

KNOWN, NEW, NO_SENTENCE = (
    "wording of a training story", "new wording", "no sentence names both people"
)  # fmt: skip
WORST = 20  # largest number of single wordings in the table


def sentence_wordings(story: str) -> list[tuple[str, list[str]]]:
    """Returns the wording of each sentence and the names in it, in order of first mention."""
    found = []
    for tokens in sentences(story):
        text = story[tokens[0][0] : tokens[-1][1]]
        names = list(dict.fromkeys(NAME.findall(text)))
        letter = {name: ascii_uppercase[i % 26] * (i // 26 + 1) for i, name in enumerate(names)}
        parts = NAME.split(text)  # every other one is a name
        parts[1::2] = [f"[{letter[name]}]" for name in parts[1::2]]
        found.append((" ".join("".join(parts).split()), names))
    return found


def fact_wordings(facts: np.ndarray, test: Records) -> list[str]:
    """The wording of each fact (story, x, y, relation) [N, 4], or NO_SENTENCE."""
    wordings, found = cache(lambda story: sentence_wordings(test.stories[story])), []
    for story, x, y, _ in facts.tolist():
        pair = {test.names[test.node_start[story] + person] for person in (x, y)}
        both = (wording for wording, names in wordings(story) if pair.issubset(names))
        found.append(next(both, NO_SENTENCE))
    return found


def by_wording(extraction: Extraction, train: Records, test: Records) -> list[dict[str, Any]]:
    """Precision and recall of the extracted facts by their wording.

    The first rows are KNOWN, NEW and NO_SENTENCE, which together count every fact once. Then follow
    up to WORST wordings, those with most missing facts first. Each row has the keys of
    `count_facts`, and "in training": True if a training story has such a sentence. Stories are
    those with facts of the row.
    """
    stated, extracted, verdict = judged_facts(extraction)
    both = np.concatenate([stated, extracted])
    index: dict[str, int] = {}
    wording = np.array([index.setdefault(w, len(index)) for w in fact_wordings(both, test)], int)
    of_stated, of_extracted = wording[: len(stated)], wording[len(stated) :]
    wordings, count = list(index), len(index)
    trained = {w for story in train.stories for w, _ in sentence_wordings(story)}
    is_known = np.array([w in trained for w in wordings], bool)
    no_sentence = np.array([w == NO_SENTENCE for w in wordings], bool)

    def row(group: str, of: np.ndarray, in_training: bool | None) -> dict[str, Any]:
        """Row of the wordings `of`, a mask."""
        stories = len(np.unique(both[of[wording], 0]))
        counts = count_facts(group, stories, of[of_stated].sum(), verdict[of[of_extracted]])
        return {"group": group, "in training": in_training} | counts

    missing = np.bincount(of_stated, minlength=count)
    missing -= np.bincount(of_extracted[verdict == RIGHT], minlength=count)
    missing[no_sentence] = 0  # has its own row
    worst = np.argsort(-missing, kind="stable")[:WORST]
    return [
        row(KNOWN, is_known, True),
        row(NEW, ~is_known & ~no_sentence, False),
        row(NO_SENTENCE, no_sentence, None),
        *(row(wordings[w], np.arange(count) == w, bool(is_known[w])) for w in worst if missing[w]),
    ]
