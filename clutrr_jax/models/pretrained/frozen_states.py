"""A data set -> the states that a frozen BERT gives its stories, computed once and kept on disk.

How a text names people, the setting `people` of a model (Sinha et al. 2019, appendix 1.1):

- `numbers`: each person is a number, drawn for each story once and for all. The other models are
  shown other entities in every epoch; these are not, since their states would have to be computed
  anew.
- `hidden`: each person is the piece [MASK]. Who is who is left to the model, which puts its own
  entity vectors there and so can be shown others in every epoch.

States are kept as float16, half the memory: 770 bytes per word piece of a model of 384 dimensions,
0.3 GB for 10,000 released stories. It rounds each number by 0.05 % at most.
"""

import hashlib
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from tqdm import tqdm

from clutrr_jax.command import cache_folder
from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.data.batching import MAX_BUCKETS, best_lengths, chunk
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.data.records import Records
from clutrr_jax.data.vocabulary import FIRST_ENTITY, UNKNOWN
from clutrr_jax.models.pretrained.encoder import Bert
from clutrr_jax.models.pretrained.folder import find_folder
from clutrr_jax.models.pretrained.wordpiece import FIRST, HIDDEN, LAST, WordPiece, read_wordpiece
from generator.errors import InputError, at, one_of
from generator.files import atomic_write
from generator.kinship import RELATIONS

PEOPLE = ("numbers", "hidden")
PIECES = 1024  # that the encoder reads at once; more of them leave the cache of a core

_NAME = re.compile(r"\[([^\[\]]*)\]")


def with_states(data: Prepared, config: Any) -> Prepared:
    """The data set as the word pieces of an encoder, each with its frozen state.

    Args:
      data: as words.
      config: `folder` of the encoder (empty: see `find_folder`) and `people`.
    Raises:
      InputError: a setting or a file of the folder cannot be used, or a story is too long for it.
    """
    one_of(config, "people", *PEOPLE)
    folder = find_folder(config.folder)
    encoder = Bert(folder)
    tokenizer = read_wordpiece(folder, encoder.config.vocab_size)
    identity = _fingerprint(folder)
    # The pieces that are a relation's name are the only words that keep a number.
    first_word = FIRST_ENTITY + data.sizes.entities
    relation_words = [
        first_word + r if name in tokenizer.vocabulary else -1 for r, name in enumerate(RELATIONS)
    ]
    token_of = np.full(max(tokenizer.vocabulary.values()) + 1, UNKNOWN)
    for name, token in zip(RELATIONS, relation_words, strict=True):
        if token >= 0:
            token_of[tokenizer.vocabulary[name]] = token

    def read(records: Records, stories: StoryArrays) -> StoryArrays:
        entities = np.asarray(stories.entity)
        pieces, entity, start = write_pieces(records, tokenizer, entities, config.people)
        longest = int(np.diff(start).max())
        if longest > encoder.config.max_position_embeddings:
            raise InputError(
                f"{at(data.name)}: a story of {longest} word pieces, expected at most "
                f"{encoder.config.max_position_embeddings}, the max_position_embeddings of {folder}"
            )
        return stories._replace(
            token_start=jnp.asarray(start[:-1], jnp.int32),
            n_token=jnp.asarray(np.diff(start), jnp.int32),
            tokens=jnp.asarray(
                np.where(entity < 0, token_of[pieces], FIRST_ENTITY + entity), jnp.int32
            ),
            states=jnp.asarray(cached_states(encoder, identity, pieces, start)),
        )

    return replace(
        data,
        train_stories=read(data.train, data.train_stories),
        test_stories=read(data.test, data.test_stories),
        sizes=replace(
            data.sizes,
            states=encoder.config.hidden_size,
            relation_words=tuple(relation_words),
        ),
    )


def write_pieces(
    records: Records, tokenizer: WordPiece, entities: np.ndarray, people: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Word pieces of all stories, flat [M], the entity that each names [M], -1 where it is a word,
    and where each story starts [S + 1].

    Args:
      entities: [N] the number of each person.
      people: how the text names them.
    """
    hidden = [tokenizer.vocabulary[HIDDEN]]
    pieces: list[int] = []
    entity: list[int] = []
    start = [0]
    for s, story in enumerate(records.stories):
        of_story = slice(records.node_start[s], records.node_start[s + 1])
        number = dict(zip(records.names[of_story], entities[of_story].tolist(), strict=True))
        written = {
            name: hidden if people == "hidden" else tokenizer(str(n)) for name, n in number.items()
        }
        for part, name in story_pieces(story, tokenizer, written):
            pieces += part
            entity += [number.get(name, -1)] * len(part)
        start.append(len(pieces))
    return np.array(pieces, np.int32), np.array(entity, np.int32), np.array(start)


def story_pieces(
    story: str, tokenizer: WordPiece, written: Mapping[str, list[int]]
) -> list[tuple[list[int], str]]:
    """A story in parts: the pieces of each, and whom it names, "" where it is text. A name in
    brackets is `written` so; one that is nobody's is text."""
    parts = [([tokenizer.vocabulary[FIRST]], "")]
    for number, text in enumerate(_NAME.split(story)):  # text and names by turns
        if number % 2 and text in written:
            parts.append((written[text], text))
        else:
            parts.append((tokenizer(text), ""))
    return [*parts, ([tokenizer.vocabulary[LAST]], "")]


def cached_states(
    encoder: Bert, identity: bytes, pieces: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """States of flat pieces, float16 [M, H], from the user's cache folder where they are there.

    Args:
      identity: of the encoder, to tell it from others.
      pieces, start: as `write_pieces` gives them.
    """
    digest = hashlib.sha256(identity + pieces.tobytes() + start.tobytes()).hexdigest()[:32]
    cache = cache_folder() / "bert"
    path = cache / f"{digest}.npy"
    try:
        states = np.load(path, mmap_mode="r")
        shape = (len(pieces), encoder.config.hidden_size)
        if (states.shape, states.dtype) == (shape, np.float16):
            return states
    except (OSError, ValueError, EOFError):  # not there, or the disk was full: computed anew
        pass
    states = compute_states(encoder, pieces, start)
    with atomic_write(path) as part:
        np.save(part, states)
    return states


def compute_states(encoder: Bert, pieces: np.ndarray, start: np.ndarray) -> np.ndarray:
    """StoryArrays of like length are read together, padded to one of a few lengths."""
    graph, weights = nnx.split(encoder)

    @jax.jit
    def read(weights, stories, mask):
        # On accelerators too: what is frozen should be what the reference gives.
        with jax.default_matmul_precision("highest"):
            return nnx.merge(graph, weights)(stories, mask).astype(jnp.float16)

    lengths = np.diff(start)
    bounds = best_lengths(lengths, MAX_BUCKETS)
    bucket = np.searchsorted(bounds, lengths)
    states = np.zeros((len(pieces), encoder.config.hidden_size), np.float16)
    with tqdm(total=len(lengths), desc="frozen states", unit="story", file=sys.stderr) as bar:
        for b, bound in enumerate(bounds):
            rows = np.flatnonzero(bucket == b)
            for some in chunk(rows, max(1, min(len(rows), PIECES // bound))):
                steps = np.arange(bound)
                mask = (steps < lengths[some][:, None]) & (some >= 0)[:, None]  # [B, T]
                place = (start[some][:, None] + steps)[mask]
                batch = np.zeros(mask.shape, np.int32)
                batch[mask] = pieces[place]
                states[place] = np.asarray(read(weights, batch, mask))[mask]
                bar.update(int((some >= 0).sum()))
    return states


def _fingerprint(folder: Path) -> bytes:
    """Of all that makes the states what they are, but the pieces."""
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    with (folder / "model.safetensors").open("rb") as file:
        return digest.digest() + hashlib.file_digest(file, "sha256").digest()
