"""Which paraphrases of a bank are for training, and which only tests show."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from generator.config import SPLITS, Config
from generator.text import PERSON, SENTENCE, Bank, ClauseKey, clause_name


@dataclass(frozen=True)
class SplitBank:
    """The two parts of a bank, and the numbers of the others by name of the clause."""

    train: Bank  # also for dev
    test: Bank
    held_out: dict[str, list[int]]  # for tests only
    left_out: dict[str, list[int]]  # for neither

    def of(self, split: str) -> Bank:
        """The paraphrases for train, dev or test."""
        return self.test if split == "test" else self.train

    def tellable(self) -> np.ndarray:
        """The predicates whose facts all splits can tell, bool [11]."""
        return self.train.tellable() & self.test.tellable()


def split_bank(bank: Bank, config: Config) -> SplitBank:
    """Splits a bank at random, if the settings hold out paraphrases.

    Held out is a part of the paraphrases of each clause, at least one where there are two. What
    contains a held-out paraphrase (as one of two stories told one after the other) is not for
    training; if it is more than what is to be held out of its clause, it is for nothing. The same
    words are on the same side for all clauses that they tell.

    Raises:
      InputError: one part cannot tell all that stories may tell.
    """
    if "paraphrases" not in config.hold_out:
        bank.check(config)
        return SplitBank(bank, bank, {}, {})
    uses: dict[str, list[tuple[ClauseKey, str]]] = {}
    for key, pool in sorted(bank.templates.items()):
        for text in pool:
            uses.setdefault(_words(text), []).append((key, text))
    quota = {
        key: min(max(round(config.paraphrase_fraction * len(pool)), 1), len(pool) - 1)
        for key, pool in bank.templates.items()
    }
    rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(len(SPLITS),)))
    words = sorted(uses)
    words = [words[i] for i in rng.permutation(len(words))]
    shapes = {_shape(text) for text in words}
    parts = {text: {_words(part) for part in _parts(text, shapes)} for text in words}
    held: set[str] = set()
    spoilt: set[str] = set()
    for facts in sorted({len(key[1]) for key in bank.templates}):  # a part tells fewer
        of_length = [text for text in words if len(uses[text][0][0][1]) == facts]
        spoilt |= {text for text in of_length if parts[text] & held}
        for text in sorted(of_length, key=lambda text: text not in spoilt):
            if all(quota[key] > 0 for key, _ in uses[text]):
                held.add(text)
                for key, _ in uses[text]:
                    quota[key] -= 1

    def part(wanted: set[str]) -> dict[ClauseKey, tuple[str, ...]]:
        return {
            key: tuple(text for text in pool if _words(text) in wanted)
            for key, pool in bank.templates.items()
        }

    def numbers(wanted: set[str]) -> dict[str, list[int]]:
        return {
            clause_name(key): [i for i, text in enumerate(pool) if _words(text) in wanted]
            for key, pool in sorted(bank.templates.items())
        }

    train = Bank(bank.name, part(set(words) - held - spoilt))
    test = Bank(bank.name, part(held))
    train.check(config, " in train")
    test.check(config, " in tests")
    return SplitBank(train, test, numbers(held), numbers(spoilt - held))


@lru_cache(1 << 16)
def _words(text: str) -> str:
    """The text with placeholders that count from where they first stand, for whatever clause."""
    number: dict[str, int] = {}
    return PERSON.sub(lambda m: f"{{{number.setdefault(m[0], len(number))}}}", text)


def _shape(text: str) -> str:
    """The text without its people."""
    return PERSON.sub("{}", text)


def _parts(text: str, shapes: set[str]) -> Iterator[str]:
    """Each row of sentences within a text, but not all of them, that has one of the shapes."""
    sentences, bare = SENTENCE.split(text), SENTENCE.split(_shape(text))
    for size in range(1, len(sentences)):
        for at in range(len(sentences) - size + 1):
            if " ".join(bare[at : at + size]) in shapes:
                yield " ".join(sentences[at : at + size])
