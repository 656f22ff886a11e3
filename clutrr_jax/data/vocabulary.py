"""Story text -> token numbers, once, when a data set is loaded.

Token numbers: 0 padding, 1 unknown word, then the pool of entity tokens, then the words of the
train split in order of first appearance (case folded).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
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

    def numbers(self) -> "Numbers":
        """The token of each word."""
        first = FIRST_ENTITY + self.entities
        return Numbers((word, first + w) for w, word in enumerate(self.words))


class Numbers(dict[str, int]):
    """The tokens of words in small letters, and so of any others, whatever their case."""

    def __missing__(self, word: str) -> int:
        self[word] = number = self.get(word.lower(), UNKNOWN)
        return number


def build_vocabulary(train: Records, entities: int) -> Vocabulary:
    """The vocabulary of the train split alone, so that nothing is known of the tests' words."""
    return Vocabulary(words_of(train.stories), entities)


def words_of(texts: Iterable[str]) -> tuple[str, ...]:
    """All words of the texts, in order of first appearance; names in brackets are none."""
    found: dict[str, None] = {}
    for text in texts:
        found.update(dict.fromkeys(_TOKEN.findall(text)))
    return tuple(dict.fromkeys(token.lower() for token in found if token[0] != "["))


def tokens_of(text: str, number: Numbers, names: Mapping[str, int]) -> list[int]:
    """The tokens of a text, given those of its words and of `[names]`."""
    return [names[token] if token in names else number[token] for token in _TOKEN.findall(text)]


def spans(story: str) -> list[tuple[int, int]]:
    """Where each token of a story starts and ends."""
    return [match.span() for match in _TOKEN.finditer(story)]


def draw_entities(sizes: np.ndarray, pool: int, seed: int | Sequence[int]) -> np.ndarray:
    """A number below `pool` for each person, drawn without replacement anew for each story. [N]

    Args:
      sizes: [S] how many people each story has.
      pool: how many numbers there are.
      seed: of the draw.
    """
    draws = np.random.default_rng(seed).random((len(sizes), pool)).argsort(axis=1)
    return draws[np.arange(pool) < sizes[:, None]].astype(np.int32)


def encode(
    records: Records, vocabulary: Vocabulary, entities: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of all stories, flat [M], and where each story starts [S + 1].

    `[Name]` becomes the entity token that `entities` [N] gives the person; a name in brackets that
    is none of the story's people is an unknown word.
    """
    number = vocabulary.numbers()
    entity_tokens: Sequence[int] = (entities + FIRST_ENTITY).tolist()
    node_start = records.node_start.tolist()
    flat: list[int] = []
    start = [0]
    for s, story in enumerate(records.stories):
        people = slice(node_start[s], node_start[s + 1])
        bracketed = [f"[{name}]" for name in records.names[people]]
        names = dict(zip(bracketed, entity_tokens[people], strict=True))
        flat += tokens_of(story, number, names)
        start.append(len(flat))
    return np.array(flat, np.int32), np.array(start)
