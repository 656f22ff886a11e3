"""Story text -> token numbers, once, when a data set is loaded.

Token numbers: 0 padding, 1 unknown word, then the pool of entity tokens, then the words of the
train split in order of first appearance (case folded).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clutrr_jax.data.records import Records

PAD, UNKNOWN, FIRST_ENTITY = 0, 1, 2

_TOKEN = re.compile(r"\[[^\[\]]*\]|'(?:s|t|d|m|ll|re|ve)\b|\w+|[^\w\s]")


@dataclass(frozen=True)
class Vocabulary:
    """The words of a train split. Word w is token `FIRST_ENTITY + entities + w`."""

    words: tuple[str, ...]
    entities: int  # size of the pool of entity tokens

    @property
    def num_tokens(self) -> int:
        return FIRST_ENTITY + self.entities + len(self.words)


def build_vocabulary(train: Records, entities: int) -> Vocabulary:
    """The vocabulary of the train split alone, so that nothing is known of the tests' words."""
    words: dict[str, None] = {}
    for story in train.stories:
        for token in _TOKEN.findall(story):
            if token[0] != "[":
                words.setdefault(token.lower())
    return Vocabulary(tuple(words), entities)


def spans(story: str) -> list[tuple[int, int]]:
    """Where each token of a story starts and ends."""
    return [match.span() for match in _TOKEN.finditer(story)]


def draw_entities(records: Records, pool: int, seed: int) -> np.ndarray:
    """A number below `pool` for each person, drawn without replacement anew for each story. [N]"""
    sizes = np.diff(records.node_start)
    draws = np.random.default_rng(seed).random((len(records), pool)).argsort(axis=1)
    return draws[np.arange(pool) < sizes[:, None]].astype(np.int32)


def encode(
    records: Records, vocabulary: Vocabulary, entities: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of all stories, flat [M], and where each story starts [S + 1].

    `[Name]` becomes the entity token that `entities` [N] gives the person; a name in brackets that
    is none of the story's people is an unknown word.
    """
    first_word = FIRST_ENTITY + vocabulary.entities
    number = {word: first_word + w for w, word in enumerate(vocabulary.words)}
    entity_tokens: Sequence[int] = (entities + FIRST_ENTITY).tolist()
    node_start = records.node_start.tolist()
    flat: list[int] = []
    start = [0]
    for s, story in enumerate(records.stories):
        people = slice(node_start[s], node_start[s + 1])
        names = dict(zip(records.names[people], entity_tokens[people], strict=True))
        for token in _TOKEN.findall(story):
            if token[0] == "[" and len(token) > 1:
                flat.append(names.get(token[1:-1], UNKNOWN))
            else:
                flat.append(number.get(token.lower(), UNKNOWN))
        start.append(len(flat))
    return np.array(flat, np.int32), np.array(start)
