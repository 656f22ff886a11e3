"""Words of stories as token ids.

Token ids: 0 is padding, 1 an unknown word; then follow the entity tokens, and then the words of the
train split in order of first appearance, in lower case.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.data.records import Records
from clutrr_jax.streams import Stream, content_random
from generator.errors import InputError
from generator.files import read_json, write_text
from generator.relations.kinship import GENDER_OF, MALE, PREDICATE_ID, PREDICATE_OF, RELATIONS

PAD, UNKNOWN, FIRST_ENTITY = 0, 1, 2

# Words before a relation's name whose holder is named before them ("Ann's uncle", "Ann and her
# uncle", "Ann has an uncle"), and words after it whose holder follows ("the uncle of Ann").
# WordPiece splits "'s", which leaves "s".
HOLDER_BEFORE = ("'s", "s", "his", "her", "their", "has", "had", "have")
HOLDER_AFTER = ("of",)
SENTENCE_ENDS = (".", "!", "?", ";", "\n")
# English words for a predicate, other than the names of the relations: for a man, a woman, either.
_FAMILIAR = {
    "child": ("", "", "child children kid kids"),
    "inv-child": ("dad daddy papa", "mom mommy mum mummy mama", "parent parents"),
    "SO": ("hubby", "wives", "spouse spouses"),
    "sibling": ("", "", "sibling siblings"),
    "grand": ("", "", "grandchild grandchildren grandkid grandkids"),
    "inv-grand": ("grandpa granddad grandad", "grandma granny", "grandparent grandparents"),
    "inv-un": ("", "auntie aunty", ""),
}


def _relation_words() -> dict[str, tuple[int, int]]:
    """Predicate and sign of the gender (-1 male, 1 female, 0 either) by word: the names of the
    relations, their plurals, and familiar words."""
    found = {}
    for relation, name in enumerate(RELATIONS):
        sign = -1 if GENDER_OF[relation] == MALE else 1
        found[name] = found[f"{name}s"] = int(PREDICATE_OF[relation]), sign
    for predicate, words in _FAMILIAR.items():
        for sign, same_gender in zip((-1, 1, 0), words, strict=True):
            found |= dict.fromkeys(same_gender.split(), (PREDICATE_ID[predicate], sign))
    return found


RELATION_WORDS = _relation_words()
SPECIAL_WORDS = (*RELATION_WORDS, *HOLDER_BEFORE, *HOLDER_AFTER, *SENTENCE_ENDS)
VOCABULARY = "vocabulary.json"  # file in the folder of a run
ENTITY_POOL = 20  # entities, unless a story has more people

_TOKEN = re.compile(
    r"\[[^\[\]]*\]"  # a name
    r"|'(?:s|t|d|m|ll|re|ve)\b"
    # One word: otherwise "father" in it would be read as a father.
    r"|(?:father|mother|son|daughter|brother|sister)s?[- ]in[- ]laws?\b"
    r"|\w+|[^\w\s]|\n",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Vocabulary:
    """Words of a train split. Word w has token id `FIRST_ENTITY + entities + w`."""

    words: tuple[str, ...]
    entities: int  # number of entity tokens

    @property
    def num_tokens(self) -> int:
        return FIRST_ENTITY + self.entities + len(self.words)

    def token_ids(self) -> dict[str, int]:
        """Returns the token id of each word."""
        first = FIRST_ENTITY + self.entities
        return {word: first + w for w, word in enumerate(self.words)}


def write_vocabulary(path: Path, vocabulary: Vocabulary) -> None:
    """Writes a vocabulary as JSON."""
    write_text(path, json.dumps(asdict(vocabulary), ensure_ascii=False, indent=0) + "\n")


def read_vocabulary(path: Path) -> Vocabulary:
    """Reads what `write_vocabulary` wrote. Raises InputError if it cannot be read."""
    content = read_json(path, {"words": [str], "entities": int})
    return Vocabulary(tuple(content["words"]), content["entities"])


def entity_pool(*parts: Records) -> int:
    """Size of the entity pool: ENTITY_POOL, or the number of people of the largest story."""
    return max(ENTITY_POOL, *(int(np.diff(p.node_start).max(initial=0)) for p in parts))


def build_vocabulary(train: Records, entities: int) -> Vocabulary:
    """Builds the vocabulary of a train split. Words of the tests only remain unknown."""
    return Vocabulary(words_of(train.stories), entities)


def special_tokens(token_ids: Mapping[str, int]) -> dict[str, Any]:
    """Returns the fields of `Sizes` that hold tokens of SPECIAL_WORDS."""

    def known(words: Sequence[str]) -> tuple[int, ...]:
        return tuple(token_ids[word] for word in words if word in token_ids)

    return {
        "sentence_ends": known(SENTENCE_ENDS),
        "relation_words": tuple(
            (token_ids[word], *meaning)
            for word, meaning in RELATION_WORDS.items()
            if word in token_ids
        ),
        "holder_words": (known(HOLDER_BEFORE), known(HOLDER_AFTER)),
    }


def words_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Returns all words in order of first appearance, without names in brackets."""
    found: dict[str, None] = {}
    for text in texts:
        found.update(dict.fromkeys(_TOKEN.findall(text)))
    return tuple(dict.fromkeys(_word(token) for token in found if token[0] != "["))


def tokens_of(text: str, word_ids: Mapping[str, int], name_ids: Mapping[str, int]) -> list[int]:
    """Returns the token ids of a text.

    Args:
      text: a story or a part of it.
      word_ids: token ids of words in lower case. Other words are `UNKNOWN`.
      name_ids: token ids of names, brackets included.
    """
    return [
        name_ids[token] if token in name_ids else word_ids.get(_word(token), UNKNOWN)
        for token in _TOKEN.findall(text)
    ]


def _word(token: str) -> str:
    """Returns the word of the vocabulary: "Father in law" is "father-in-law"."""
    return token.lower().replace(" ", "-")


def spans(story: str) -> list[tuple[int, int]]:
    """Returns start and end of each token in the text."""
    return [match.span() for match in _TOKEN.finditer(story)]


def sentences(story: str) -> list[list[tuple[int, int]]]:
    """Returns start and end of each token, sentence by sentence. Of several marks in a row ("?!")
    the last one ends the sentence."""
    found: list[list[tuple[int, int]]] = []
    after_end = False
    for start, end in spans(story):
        is_end = story[start:end] in SENTENCE_ENDS
        if not found or (after_end and not is_end):
            found.append([])
        found[-1].append((start, end))
        after_end = is_end
    return found


def draw_entities(sizes: np.ndarray, random: np.ndarray) -> np.ndarray:
    """Samples an entity id for each person, without replacement within a story.

    Args:
      sizes: [S] number of people of each story.
      random: [S, E] random numbers of each story for the E entities.
    Returns:
      int32 [N], N people of all stories.
    Raises:
      InputError: a story has more people than there are entities.
    """
    entities = random.shape[1]
    if sizes.max(initial=0) > entities:
        raise InputError(
            f"a story of {sizes.max()} people, expected at most {entities}, the entities of the "
            "vocabulary"
        )
    return random.argsort(axis=1)[np.arange(entities) < sizes[:, None]].astype(np.int32)


def story_random(records: Records, count: int, seed: int) -> np.ndarray:
    """Random numbers of each story, uint64 [S, count].

    They depend on the people, facts and query of the story alone, so that neither the order nor the
    company of the stories changes them.
    """
    facts = np.stack([records.senders, records.relations, records.receivers], axis=1)
    facts, queries = facts.astype(np.int32), np.asarray(records.query, np.int32)
    people, edges = records.node_start.tolist(), records.edge_start.tolist()
    contents = (
        "\n".join(records.names[people[s] : people[s + 1]]).encode()
        + facts[edges[s] : edges[s + 1]].tobytes()
        + queries[s].tobytes()
        for s in range(len(records))
    )
    return content_random(Stream.ENTITIES, seed, contents, count)


def encode(
    records: Records, vocabulary: Vocabulary, entities: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the token ids of all stories, flat [M], and the start of each story, [S + 1].

    `[Name]` becomes an entity token. A name in brackets that is no person of the story is unknown.

    Args:
      records: S stories with N people in all.
      vocabulary: of the train split.
      entities: [N] entity id of each person.
    """
    word_ids = vocabulary.token_ids()
    entity_tokens: Sequence[int] = (entities + FIRST_ENTITY).tolist()
    node_start = records.node_start.tolist()
    flat: list[int] = []
    start = [0]
    for s, story in enumerate(records.stories):
        people = slice(node_start[s], node_start[s + 1])
        bracketed = [f"[{name}]" for name in records.names[people]]
        name_ids = dict(zip(bracketed, entity_tokens[people], strict=True))
        flat += tokens_of(story, word_ids, name_ids)
        start.append(len(flat))
    return np.array(flat, np.int32), np.array(start)
