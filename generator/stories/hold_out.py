"""Split of a paraphrase bank into paraphrases for training and paraphrases for tests."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from generator.stories.config import SPLITS, Config
from generator.stories.text import PERSON, SENTENCE, Bank, ClauseKey, clause_name


@dataclass(frozen=True)
class SplitBank:
    """The two parts of a bank, and the indices of paraphrases outside training by clause name."""

    train: Bank  # for train and dev stories
    test: Bank
    held_out: dict[str, list[int]]  # used only in tests
    left_out: dict[str, list[int]]  # used in neither part

    def of(self, split: str) -> Bank:
        """Returns the bank for train, dev or test."""
        return self.test if split == "test" else self.train

    def expressible(self) -> np.ndarray:
        """Returns bool [11]: the predicates whose facts both parts can express."""
        return self.train.expressible() & self.test.expressible()


def split_bank(bank: Bank, config: Config) -> SplitBank:
    """Splits a bank at random if the settings hold out paraphrases.

    A fraction of the paraphrases of each clause is held out, at least one where there are two or
    more. A paraphrase that contains a held-out paraphrase (as one of two consecutive stories) is
    not used in training. It is left out of both parts once the quota of its clause is reached. A
    text that occurs under several clauses is on the same side for all of them.
    """
    if "paraphrases" not in config.hold_out:
        bank.check(config)
        return SplitBank(bank, bank, {}, {})
    held, excluded, texts = _choose_held_out(bank, config)

    def part(wanted: set[str]) -> dict[ClauseKey, tuple[str, ...]]:
        return {
            key: tuple(text for text in pool if _normalized(text) in wanted)
            for key, pool in bank.templates.items()
        }

    def indices(wanted: set[str]) -> dict[str, list[int]]:
        return {
            clause_name(key): [i for i, text in enumerate(pool) if _normalized(text) in wanted]
            for key, pool in sorted(bank.templates.items())
        }

    train = Bank(bank.name, part(texts - held - excluded))
    test = Bank(bank.name, part(held))
    train.check(config, " in train")
    test.check(config, " in tests")
    return SplitBank(train, test, indices(held), indices(excluded - held))


def _choose_held_out(bank: Bank, config: Config) -> tuple[set[str], set[str], set[str]]:
    """Returns the held-out texts, the texts that contain one, and all texts, normalized."""
    clauses_of: dict[str, list[ClauseKey]] = {}
    for key, pool in sorted(bank.templates.items()):
        for text in pool:
            clauses_of.setdefault(_normalized(text), []).append(key)
    quota = {
        key: min(max(round(config.paraphrase_fraction * len(pool)), 1), len(pool) - 1)
        for key, pool in bank.templates.items()
    }
    rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(len(SPLITS),)))
    texts = sorted(clauses_of)
    texts = [texts[i] for i in rng.permutation(len(texts))]
    wordings = {_without_people(text) for text in texts}
    parts = {text: {_normalized(part) for part in _parts(text, wordings)} for text in texts}
    held: set[str] = set()
    excluded: set[str] = set()
    # Shorter clauses first: the parts of a text state fewer facts than the text.
    for length in sorted({len(key[1]) for key in bank.templates}):
        of_length = [text for text in texts if len(clauses_of[text][0][1]) == length]
        excluded |= {text for text in of_length if parts[text] & held}
        for text in sorted(of_length, key=lambda text: text not in excluded):
            if all(quota[key] > 0 for key in clauses_of[text]):
                held.add(text)
                for key in clauses_of[text]:
                    quota[key] -= 1
    return held, excluded, set(texts)


def _normalized(text: str) -> str:
    """Renumbers placeholders by first occurrence, so that texts of different clauses compare."""
    index: dict[str, int] = {}
    return PERSON.sub(lambda m: f"{{{index.setdefault(m[0], len(index))}}}", text)


def _without_people(text: str) -> str:
    return PERSON.sub("{}", text)


def _parts(text: str, wordings: set[str]) -> Iterator[str]:
    """Proper runs of consecutive sentences of a text that have one of the given wordings."""
    sentences, wording = SENTENCE.split(text), SENTENCE.split(_without_people(text))
    for size in range(1, len(sentences)):
        for at in range(len(sentences) - size + 1):
            if " ".join(wording[at : at + size]) in wordings:
                yield " ".join(sentences[at : at + size])
