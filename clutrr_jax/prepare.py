"""A data set -> everything that training and evaluation need of it, and its fingerprint."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import jax

from clutrr_jax.data.files import load
from clutrr_jax.data.records import Records
from clutrr_jax.data.stories import Sizes, Stories, build_stories, entity_pool
from clutrr_jax.data.text import FIRST_ENTITY, build_vocabulary
from generator.errors import InputError, at
from generator.kinship import RELATIONS


@dataclass(frozen=True)
class Prepared:
    """A data set ready to train on."""

    name: str
    train: Records
    test: Records
    train_stories: Stories
    test_stories: Stories
    sizes: Sizes
    fingerprint: str  # of all that a model sees, to tell one data set from another


def prepare(path: str | Path) -> Prepared:
    """Reads a data set that has a train and a test split.

    Raises:
      InputError: it cannot be read, or one of the splits is missing.
    """
    data = load(path)
    for split, records in (("train", data.train), ("test", data.test)):
        if records is None:
            raise InputError(f"{at(path)}: no {split} rows in it, expected *_{split}.csv")
    assert data.train is not None and data.test is not None
    pool = entity_pool(data.train, data.test)
    vocabulary = build_vocabulary(data.train, pool)
    train_stories = build_stories(data.train, vocabulary, seed=0)
    test_stories = build_stories(data.test, vocabulary, seed=1)
    first_word = FIRST_ENTITY + pool
    tokens = {word: first_word + w for w, word in enumerate(vocabulary.words)}
    digest = hashlib.sha256()
    for array in jax.tree.leaves((train_stories, test_stories)):
        digest.update(array.tobytes())
    return Prepared(
        name=data.name,
        train=data.train,
        test=data.test,
        train_stories=train_stories,
        test_stories=test_stories,
        sizes=Sizes(
            entities=pool,
            tokens=vocabulary.num_tokens,
            sentence_ends=tuple(tokens[mark] for mark in (".", "!", "?") if mark in tokens),
            relation_words=tuple(tokens.get(name, -1) for name in RELATIONS),
        ),
        fingerprint=digest.hexdigest()[:16],
    )
