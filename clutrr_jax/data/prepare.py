"""Preparation of a data set for training and evaluation."""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import Sizes, StoryArrays, build_arrays
from clutrr_jax.data.dataset import Dataset, load
from clutrr_jax.data.records import Records, check_algebras, concatenate
from clutrr_jax.data.vocabulary import (
    VOCABULARY,
    Vocabulary,
    build_vocabulary,
    entity_pool,
    read_vocabulary,
    special_tokens,
)
from clutrr_jax.devices import free_memory, warn_if_too_large
from generator.errors import InputError
from generator.relations.algebra import Algebra
from generator.relations.algebras import DEFAULT, algebra_of

# Bytes in memory for each byte of a file.
_UNPACKED = {".gz": 12.0, ".zip": 12.0, ".parquet": 7.0}
GENERATE = "generate"  # stands for generated stories among the data sets of the setting `data`
TRAIN_SEED, TEST_SEED = 0, 1  # of the entities of the stories


@dataclass(frozen=True)
class Prepared:
    """A data set ready to train on."""

    name: str
    train: Records
    test: Records
    train_stories: StoryArrays
    test_stories: StoryArrays
    sizes: Sizes
    vocabulary: Vocabulary
    fingerprint: str  # hash of all arrays
    tests: str  # hash of the task, k and id of each test story

    @property
    def stories(self) -> str:
        """Hashes of the stories and of their tests, which a run keeps in its config.json."""
        return f"{self.fingerprint}-{self.tests}"

    def is_of(self, folder: Path, stories: Any) -> bool:
        """Returns whether a run in a folder, with these `stories` or this fingerprint, was on these
        data.

        The arrays hold ids. The words and relations that these stand for are in the folder.
        """
        if stories not in (self.stories, self.fingerprint):
            return False
        file, own = folder / VOCABULARY, self.vocabulary.words
        words = read_vocabulary(file).words if file.exists() else own
        # One may have more words, which are not in the stories.
        same = all(word == other for word, other in zip(words, own, strict=False))
        return same and (algebra_of(folder) or DEFAULT) == self.test.algebra


# Reads the stories of a run, given its settings and the folder for generated stories.
Prepare = Callable[[ConfigDict, Path], Prepared]


def prepare(
    source: Dataset | str | Path,
    more: Sequence[str | Path] = (),
    vocabulary: Vocabulary | None = None,
) -> Prepared:
    """Prepares a data set with train and test stories, or the one at a path.

    The train stories of the data sets in `more` are added, except those that are there already or
    in the tests. `vocabulary` is that of a model that is trained further.
    """
    data = source if isinstance(source, Dataset) else load(source)
    test, parts = data.records("test"), [data.records("train")]
    for path in more:
        train = load(path).records("train")
        new = ~np.any([train.are_among(others) for others in (test, *parts)], axis=0)
        if not new.any():
            raise InputError(
                f"{path}: all {len(train):,} train stories are in the other data, expected new "
                "ones; generated stories depend on generate.seed"
            )
        parts.append(train.select(new))
    check_algebras([*parts, test])
    train = concatenate(parts)
    vocabulary = vocabulary or build_vocabulary(train, entity_pool(train, test))
    train_stories = build_arrays(train, vocabulary, TRAIN_SEED)
    test_stories = build_arrays(test, vocabulary, TEST_SEED)
    digest = hashlib.sha256()
    for array in jax.tree.leaves((train_stories, test_stories)):
        digest.update(array.tobytes())
    about = [test.task.tolist(), test.clause_length.tolist(), list(test.ids)]
    return Prepared(
        name=data.name,
        train=train,
        test=test,
        train_stories=train_stories,
        test_stories=test_stories,
        sizes=sizes_of(vocabulary, train.algebra),
        vocabulary=vocabulary,
        fingerprint=digest.hexdigest()[:16],
        tests=hashlib.sha256(json.dumps(about).encode()).hexdigest()[:8],
    )


def sizes_of(vocabulary: Vocabulary, algebra: Algebra) -> Sizes:
    """Returns the sizes of data with this vocabulary and these relations."""
    tokens = special_tokens(vocabulary.token_ids())
    return Sizes(vocabulary.entities, vocabulary.num_tokens, algebra, **tokens)


def data_sets(data: str) -> list[str]:
    """Returns the data sets in a value of the setting `data`.

    Raises:
      InputError: one is empty or there twice, or new stories in every epoch, as before 0.3.0.
    """
    if data == GENERATE:
        raise InputError(
            f'data "{data}": stories are generated once, no longer for every epoch; expected an '
            "empty setting, or FILE,generate"
        )
    # Names of files have commas too.
    parts = [data] if os.path.exists(data) else (data or GENERATE).split(",")
    if "" in parts or len({*map(os.path.realpath, parts)}) < len(parts):
        raise InputError(f'data "{data}": expected different data sets, joined by commas')
    return parts


def bytes_in_memory(path: Path) -> float:
    """Estimates the memory of the stories of a file or folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(_UNPACKED.get(f.suffix, 3.0) * f.stat().st_size for f in files if f.is_file())


def prepare_run(data: str, folder: Path) -> Prepared:
    """Prepares the data set of a run.

    `data` is "" for the generated stories in the folder, or data sets joined by commas: the train
    rows of all and the test rows of the first, where GENERATE stands for the generated stories.
    """
    parts = data_sets(data)
    path, *more = [folder if part == GENERATE else Path(part) for part in parts]
    warn_if_too_large("reading the data", sum(map(bytes_in_memory, [path, *more])), free_memory())
    names = [
        "generated stories" if part == GENERATE else Path(part).name.removesuffix(".zip")
        for part in parts
    ]
    trained_on = f", trained on {' and '.join(names)}" if more else ""
    return replace(prepare(path, more=more), name=names[0] + trained_on)
