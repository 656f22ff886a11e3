"""Stories as token ids of a pretrained tokenizer, with the person that each token names.

How a story names people, the setting `people` of a model (Sinha et al. 2019, appendix 1.1):

- `numbers`: each person is a number, which stays the same in all epochs. Other models see other
  entities in every epoch; here that would mean to compute all states of a frozen encoder again.
- `hidden`: each person is the mask token. The model replaces the states of mask tokens by its own
  entity vectors, and so can see other entities in every epoch.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tokenizers import Encoding, Tokenizer

from clutrr_jax.data.records import Records
from clutrr_jax.models.pretrained.folder import reading
from generator.errors import InputError
from generator.stories.text import NAME

PEOPLE = ("numbers", "hidden")
MASK_TOKENS = ("[MASK]", "<mask>")  # of BERT and DeBERTa, and of RoBERTa


class EncodedStories(NamedTuple):
    """Tokens of S stories, one story after another; M tokens in all."""

    ids: np.ndarray  # [M] token ids
    entity: np.ndarray  # [M] entity id of the person that the token names, -1 if none
    start: np.ndarray  # [S + 1] first token of each story, and M


def load_tokenizer(folder: Path, vocab_size: int) -> Tokenizer:
    """Loads `tokenizer.json` of a Hugging Face folder.

    Raises InputError if it is missing or damaged, or has more tokens than the encoder knows.
    """
    path = folder / "tokenizer.json"
    with reading(path):
        tokenizer = Tokenizer.from_file(str(path))
        # Padding and truncation are settings of the file; stories are encoded whole.
        tokenizer.no_padding()
        tokenizer.no_truncation()
    if max(tokenizer.get_vocab().values(), default=0) >= vocab_size:
        raise InputError(f"{path}: more tokens than the vocab_size {vocab_size} of config.json")
    if all(tokenizer.token_to_id(token) is None for token in MASK_TOKENS):
        raise InputError(f"{path}: no mask token, expected {' or '.join(MASK_TOKENS)}")
    return tokenizer


def encode_stories(
    records: Records, tokenizer: Tokenizer, entities: np.ndarray, people: str
) -> EncodedStories:
    """Encodes stories in which names in brackets are replaced as one of `PEOPLE` says: by entity
    ids of all people [N], or mask tokens.

    Raises InputError if the tokenizer has no token for an unknown word.
    """
    mask = next(token for token in MASK_TOKENS if tokenizer.token_to_id(token) is not None)
    texts, owners = [], []
    for s, story in enumerate(records.stories):
        rows = slice(records.node_start[s], records.node_start[s + 1])
        entity_of = dict(zip(records.names[rows], entities[rows].tolist(), strict=True))
        text, owner = _replace_names(story, entity_of, mask if people == "hidden" else None)
        texts.append(text)
        owners.append(owner)
    ids, entity, start = [], [], [0]
    for encoding, owner in zip(_encode(tokenizer, texts), owners, strict=True):
        ends = np.array([end for _, end in encoding.offsets])
        ids.append(encoding.ids)
        # Tokens such as [CLS] cover no text and end at 0: they get the last element of owner.
        entity.append(owner[ends - 1])
        start.append(start[-1] + len(ends))
    return EncodedStories(
        np.concatenate(ids).astype(np.int32), np.concatenate(entity), np.array(start)
    )


def _replace_names(
    story: str, entity_of: dict[str, int], mask: str | None
) -> tuple[str, np.ndarray]:
    """Returns the text, and the entity id that each character names, -1 if none, with one more -1
    at the end. A name in brackets that is not in `entity_of` is text."""
    parts, owner = [], []
    for i, part in enumerate(NAME.split(story)):  # text and names alternate
        entity = entity_of.get(part, -1) if i % 2 else -1
        if entity >= 0:
            part = mask or str(entity)
        parts.append(part)
        owner += [entity] * len(part)
    return "".join(parts), np.array([*owner, -1], np.int32)


def single_tokens(tokenizer: Tokenizer, words: Sequence[str]) -> list[int | None]:
    """Returns the token id of each word, or None if it has several tokens. Words follow a space,
    punctuation marks do not."""
    encodings = _encode(tokenizer, [f" {word}" for word in words], add_special_tokens=False)
    # Byte-level BPE writes the space as "Ġ", SentencePiece as "▁".
    return [
        (encoding.ids[0] if encoding.tokens in ([word], [f"Ġ{word}"], [f"▁{word}"]) else None)
        if word[0].isalpha()
        else tokenizer.token_to_id(word)
        for word, encoding in zip(words, encodings, strict=True)
    ]


def _encode(
    tokenizer: Tokenizer, texts: list[str], add_special_tokens: bool = True
) -> list[Encoding]:
    try:
        return tokenizer.encode_batch(texts, add_special_tokens=add_special_tokens)
    except Exception as error:  # the class that the package raises
        raise InputError(f"tokenizer: cannot encode the stories ({error})") from None
