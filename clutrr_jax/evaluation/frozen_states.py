"""Stories as a pretrained encoder reads them, with its states if it is frozen: these are computed
once and cached on disk.

States are kept as float16, with a relative rounding error of at most 0.05 %. At 384 dimensions that
is 770 bytes per token, or 0.3 GB for 10,000 released stories.
"""

import hashlib
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from clutrr_jax.data.arrays import Sizes, StoryArrays
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.data.records import Records
from clutrr_jax.data.vocabulary import FIRST_ENTITY, SPECIAL_WORDS, UNKNOWN, special_tokens
from clutrr_jax.evaluation.predict import per_story
from clutrr_jax.models.pretrained.folder import find_folder, read_config
from clutrr_jax.models.pretrained.load import load_encoder
from clutrr_jax.models.pretrained.tokenizer import encode_stories, load_tokenizer, single_tokens
from generator.errors import InputError
from generator.files import atomic_write, cache_folder

BATCH = 16  # stories of one encoder call; larger batches do not fit the cache of a CPU core


def with_states(data: Prepared, config: Any) -> Prepared:
    """Replaces the words of a data set by the tokens of an encoder, see `encoder_input`."""
    sizes, convert = encoder_input(data.sizes, config)
    return replace(
        data,
        train_stories=convert(data.train, data.train_stories),
        test_stories=convert(data.test, data.test_stories),
        sizes=sizes,
    )


def encoder_input(
    sizes: Sizes, config: Any
) -> tuple[Sizes, Callable[[Records, StoryArrays], StoryArrays]]:
    """Sizes of data for a model over an encoder, and the function that converts stories. Their
    words become the tokens of the encoder, each with its frozen state, or with its token id if the
    encoder is trained. Raises InputError if the folder is invalid or a story is too long."""
    folder = find_folder(config.folder)
    encoder_config = read_config(folder)
    encoder = None if config.train_encoder else load_encoder(folder)
    fingerprint = _fingerprint(folder) if encoder else b""
    tokenizer = load_tokenizer(folder, encoder_config.vocab_size)
    # Special words keep a token id of their own, if the tokenizer has them as one token. All other
    # words become UNKNOWN: models see them through their states only.
    first_word = FIRST_ENTITY + sizes.entities
    word_of_token = np.full(encoder_config.vocab_size, UNKNOWN)
    ids: dict[str, int] = {}
    for w, token in enumerate(single_tokens(tokenizer, SPECIAL_WORDS)):
        if token is not None:
            ids[SPECIAL_WORDS[w]] = word_of_token[token] = first_word + w

    def convert(records: Records, stories: StoryArrays) -> StoryArrays:
        encoded = encode_stories(records, tokenizer, np.asarray(stories.entity), config.people)
        n_token = np.diff(encoded.start)
        if n_token.max() > encoder_config.max_tokens:
            raise InputError(
                f"a story of {n_token.max()} tokens, expected at most "
                f"{encoder_config.max_tokens}, the maximum of the encoder {folder}"
            )
        words = word_of_token[encoded.ids]
        tokens = np.where(encoded.entity < 0, words, FIRST_ENTITY + encoded.entity)
        stories = stories._replace(
            token_start=jnp.asarray(encoded.start[:-1], jnp.int32),
            n_token=jnp.asarray(n_token, jnp.int32),
            tokens=jnp.asarray(tokens, jnp.int32),
            pieces=jnp.asarray(encoded.ids, jnp.int32),
        )
        if encoder is None:
            return stories
        states = jnp.asarray(cached_states(encoder, fingerprint, stories))
        return stories._replace(states=states, pieces=None)

    changed = replace(
        sizes,
        states=encoder_config.hidden_size,
        encoder=encoder_config if config.train_encoder else None,
        **special_tokens(ids),
    )
    return changed, convert


def cached_states(encoder: Any, fingerprint: bytes, stories: StoryArrays) -> np.ndarray:
    """States of all tokens of the encoder, float16 [M, H], from the cache folder if they are there;
    `fingerprint` is the digest of the encoder's files."""
    ids, start = np.asarray(stories.pieces), np.asarray(stories.token_start)
    digest = hashlib.sha256(fingerprint + ids.tobytes() + start.tobytes())
    path = cache_folder() / "bert" / f"{digest.hexdigest()[:32]}.npy"
    try:
        return np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError):  # missing or damaged
        pass
    states = compute_states(encoder, stories)
    with atomic_write(path) as temporary:
        np.save(temporary, states)
    return states


def compute_states(encoder: Any, stories: StoryArrays) -> np.ndarray:
    """States of all tokens of the encoder, float16 [M, H]."""
    start, count = np.asarray(stories.token_start), np.asarray(stories.n_token)
    states = np.zeros((len(stories.tokens), encoder.config.hidden_size), np.float16)
    outputs = per_story(_encode, encoder, "tokens", stories, BATCH)
    for story, found in tqdm(
        outputs, total=len(count), desc="frozen states", unit="story", file=sys.stderr
    ):
        states[start[story] : start[story] + count[story]] = found[: count[story]]
    return states


def _encode(encoder: Any, batch: TokenBatch) -> jax.Array:
    # Full precision on accelerators too, where the default is lower.
    with jax.default_matmul_precision("highest"):
        return encoder(batch.pieces, batch.mask).astype(jnp.float16)


def _fingerprint(folder: Path) -> bytes:
    """Digest of the files that determine the states of given token ids."""
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    with (folder / "model.safetensors").open("rb") as file:
        return digest.digest() + hashlib.file_digest(file, "sha256").digest()
