"""Preparation of a data set for training and evaluation."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from clutrr_jax.data.arrays import Sizes, StoryArrays, build_arrays, entity_pool
from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import Records
from clutrr_jax.data.resample import bank_words
from clutrr_jax.data.vocabulary import (
    HOLDER_AFTER,
    HOLDER_BEFORE,
    SENTENCE_ENDS,
    Vocabulary,
    build_vocabulary,
    known,
)
from generator.config import Config
from generator.errors import InputError, at
from generator.kinship import RELATIONS

# Value of the setting `data`: generate stories, with new train stories in every epoch.
GENERATE = "generate"


@dataclass(frozen=True)
class Prepared:
    """A data set ready to train on."""

    name: str
    train: Records
    test: Records
    train_stories: StoryArrays
    test_stories: StoryArrays
    sizes: Sizes
    fingerprint: str  # hash of all arrays
    resample: Config | None = None  # generator settings, if each epoch has new train stories


def prepare(
    path: str | Path, resample: Config | None = None, max_stories: int | None = None
) -> Prepared:
    """Reads a data set that has a train and a test split.

    Args:
      path: the data set.
      resample: generator settings, if each epoch has new train stories. The vocabulary then has
        all words that these may contain.
      max_stories: size of a random sample of each split that has more stories.
    Raises:
      InputError: the data set cannot be read, or has no train or no test rows.
    """
    data = load(path)
    for split, records in (("train", data.train), ("test", data.test)):
        if records is None:
            raise InputError(f"{at(path)}: no {split} rows, expected *_{split}.csv")
    assert data.train is not None and data.test is not None
    train, test = _sample(data.train, max_stories), _sample(data.test, max_stories)
    pool = entity_pool(train, test)
    if resample:
        pool = max(pool, *(resample.max_size(task)[0] for task in resample.train))
        vocabulary = Vocabulary(bank_words(resample), pool)
    else:
        vocabulary = build_vocabulary(train, pool)
    train_stories = build_arrays(train, vocabulary, seed=0)
    test_stories = build_arrays(test, vocabulary, seed=1)
    tokens = vocabulary.token_ids()
    digest = hashlib.sha256()
    for array in jax.tree.leaves((train_stories, test_stories)):
        digest.update(array.tobytes())
    return Prepared(
        name=data.name,
        train=train,
        test=test,
        train_stories=train_stories,
        test_stories=test_stories,
        sizes=Sizes(
            entities=pool,
            tokens=vocabulary.num_tokens,
            sentence_ends=known(SENTENCE_ENDS, tokens),
            relation_words=tuple(tokens.get(name, -1) for name in RELATIONS),
            holder_words=(known(HOLDER_BEFORE, tokens), known(HOLDER_AFTER, tokens)),
        ),
        fingerprint=digest.hexdigest()[:16],
        resample=resample,
    )


def prepare_run(data: str, generate: dict[str, Any], folder: Path) -> Prepared:
    """Prepares the data set of a run.

    Args:
      data: path of a data set; "" or GENERATE for generated stories.
      generate: generator settings.
      folder: the folder with the generated stories.
    Raises:
      InputError: see `prepare`.
    """
    if data == GENERATE:
        found = prepare(folder, Config.from_json(generate))
        return replace(found, name="generated stories, new train stories in each epoch")
    return prepare(data) if data else replace(prepare(folder), name="generated stories")


def _sample(records: Records, size: int | None) -> Records:
    if size is None or len(records) <= size:
        return records
    rows = np.random.default_rng(0).choice(len(records), size, replace=False)
    return records.select(np.sort(rows))
