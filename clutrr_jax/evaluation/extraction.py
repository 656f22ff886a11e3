"""Fact graphs that a model extracts from test stories: the file `extracted.npz` for the report
page, and precision and recall against the stated facts.

A model that extracts a graph has a method `read(batch)`, which returns the probability of each fact
for the ordered pairs of a story's people, [B, P, P, R] with a sum of at most 1 per pair, and a
method `answer(batch, graph)`, which returns relation logits from such a graph. The query pair is
not part of the graph, because the reasoner does not see it. If the model's `reasoner` has a method
`rules()`, its rules are saved too. So are the facts that single words state, if the model has a
method `word_facts(batch)`, which returns the most probable fact of each token [B, T, 3] (X,
relation, Y) and its probability [B, T]; except over a pretrained encoder, whose tokens are not
words of the story.

The wording of a fact is the first sentence of its story that names both people, with the names
replaced by [A], [B], ... in order of first mention: does a reader fail at new wordings or at known
ones?
"""

from functools import cache
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

import numpy as np

from clutrr_jax.data.batching import InputKind
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.data.records import Records
from clutrr_jax.data.vocabulary import sentences, spans
from clutrr_jax.evaluation.ground_truth import RIGHT, UNJUDGED, GroundTruth
from clutrr_jax.evaluation.predict import per_story
from clutrr_jax.models import has_method
from clutrr_jax.models.prover import gendered
from generator.files import read_arrays
from generator.relations.kinship import RELATION_OF, RELATIONS
from generator.stories.text import NAME

FILE = "extracted.npz"
THRESHOLD = 0.5  # facts with a higher probability count as extracted: at most one per ordered pair
KNOWN, NEW, NO_SENTENCE = (
    "wording of a training story", "new wording", "no sentence names both people"
)  # fmt: skip
WORST = 20  # largest number of single wordings in the table


class Extraction(NamedTuple):
    """Graphs that the first replica of a model extracted from all test stories."""

    relation: list[np.ndarray]  # per story [P, P]: most probable relation of each ordered pair
    probability: list[np.ndarray]  # per story [P, P]: its probability
    # [R, R, R] probabilities of the reasoner's rules `first, second -> head`; None without rules.
    rules: np.ndarray | None
    verdict: list[np.ndarray]  # see `GroundTruth.verdicts`
    # Most probable fact of each of the T words of a story; None if it is not known for words.
    word_fact: list[np.ndarray] | None = None  # per story [T, 3]: X, relation, Y
    word_probability: list[np.ndarray] | None = None  # per story [T]


def write_extracted(folder: Path, model: Any, kind: InputKind, data: Prepared) -> None:
    """Writes the file of a model in evaluation mode, if it extracts a graph."""
    if not has_method(model, "answer"):
        return
    reasoner: Any = getattr(model, "reasoner", None)
    rules = np.zeros(0)
    if hasattr(reasoner, "rules"):
        rules = gendered(np.asarray(reasoner.rules()), data.test.algebra)
    stories = data.test_stories
    has_words = has_method(model, "word_facts") and not stories.of_encoder
    people, words = np.diff(data.test.node_start), np.asarray(stories.n_token)
    found: list[Any] = [None] * len(people)
    for story, (graph, *of_words) in per_story(
        _read_words if has_words else _read, model, kind, stories
    ):
        graph = graph[: people[story], : people[story]]
        of_words = [array[: words[story]] for array in of_words]  # fact and probability
        found[story] = graph.argmax(axis=-1).ravel(), graph.max(axis=-1).ravel(), *of_words
    types = {
        "relation": np.uint8, "chance": np.float16,
        "word_fact": np.uint16, "word_chance": np.float16,
    }  # fmt: skip
    arrays: dict[str, Any] = {
        name: np.concatenate(parts).astype(dtype)
        for (name, dtype), parts in zip(types.items(), zip(*found, strict=True), strict=False)
    }
    np.savez_compressed(folder / FILE, **arrays, rules=rules.astype(np.float16))


def _read(model: Any, batch: Any) -> tuple[Any, ...]:
    return (model.read(batch),)


def _read_words(model: Any, batch: Any) -> tuple[Any, ...]:
    return model.read(batch), *model.word_facts(batch)


def read_extracted(folder: Path, truth: GroundTruth) -> Extraction | None:
    """Reads the file of `write_extracted` for the same stories, see `read_arrays`."""
    arrays = read_arrays(folder / FILE)
    if arrays is None:
        return None
    people = np.diff(truth.test.node_start)

    def matrices(flat: np.ndarray) -> list[np.ndarray]:
        parts = np.split(flat, np.cumsum(people**2)[:-1])
        return [part.reshape(n, n) for part, n in zip(parts, people, strict=True)]

    rules = arrays["rules"].astype(np.float32)
    extraction = Extraction(
        matrices(arrays["relation"].astype(int)),
        matrices(arrays["chance"].astype(np.float32)),
        rules if rules.size else None,
        truth.verdicts,
    )
    if "word_fact" not in arrays:
        return extraction
    ends = np.cumsum([len(spans(story)) for story in truth.test.stories])[:-1]
    return extraction._replace(
        word_fact=np.split(arrays["word_fact"].astype(int), ends),
        word_probability=np.split(arrays["word_chance"].astype(np.float32), ends),
    )


def judged_facts(extraction: Extraction) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Facts of all stories that are not UNJUDGED, as rows (story, x, y, relation): stated [N, 4]
    and extracted [M, 4], and the verdict on each extracted one [M], RIGHT, FOLLOWS or WRONG."""
    stated: list[np.ndarray] = []
    extracted: list[np.ndarray] = []
    verdicts: list[np.ndarray] = []
    for story, verdict in enumerate(extraction.verdict):
        facts = np.argwhere(verdict == RIGHT)
        stated.append(np.insert(facts, 0, story, axis=1))
        x, y = np.nonzero(extraction.probability[story] > THRESHOLD)
        relation = extraction.relation[story][x, y]
        facts = np.stack([x, y, relation], axis=1)
        kind = verdict[x, y, relation]
        extracted.append(np.insert(facts, 0, story, axis=1)[kind != UNJUDGED])
        verdicts.append(kind[kind != UNJUDGED])
    return np.concatenate(stated), np.concatenate(extracted), np.concatenate(verdicts)


def count_facts(group: str, stories: int, stated: int, verdict: np.ndarray) -> dict[str, Any]:
    """Counts, precision and recall of a group of facts: of `stories` with `stated` facts, and
    extracted facts with the verdicts RIGHT, FOLLOWS or WRONG."""
    right, follow, wrong = np.bincount(verdict, minlength=3).tolist()
    return {
        "group": group, "stories": int(stories), "stated": int(stated), "extracted": len(verdict),
        "right": right, "follow": follow, "wrong": wrong, "missing": int(stated) - right,
        "precision": (right + follow) / len(verdict) if len(verdict) else None,
        "recall": right / int(stated) if stated else None,
    }  # fmt: skip


def precision_recall(extraction: Extraction, test: Records) -> list[dict[str, Any]]:
    """Precision and recall of the extracted facts: overall, by clause length and by relation.

    Counts are numbers of facts and leave out pairs that cannot be judged. Precision is
    (right + follow) / extracted: a fact that follows from the stated ones is not an error. Recall
    is right / stated. Either is None if its denominator is 0. Missing facts count for the stated
    relation, wrong facts for the extracted one.
    """
    stated, extracted, verdict = judged_facts(extraction)
    k, count = test.clause_length, len(test)
    by_k = (k[stated[:, 0]], k[extracted[:, 0]])
    by_relation = (stated[:, 3], extracted[:, 3])

    def row(group: str, stories: int, of: tuple[np.ndarray, np.ndarray], key: int) -> dict:
        return count_facts(group, stories, (of[0] == key).sum(), verdict[of[1] == key])

    return [
        count_facts("all", count, len(stated), verdict),
        *(row(f"k = {key}", (k == key).sum(), by_k, key) for key in np.unique(k)),
        *(row(RELATIONS[r], count, by_relation, r) for r in RELATION_OF.ravel()),
    ]


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
