"""Architectures of pretrained encoders: their states equal those of the reference."""

import json
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE, Unigram
from tokenizers.pre_tokenizers import ByteLevel, Metaspace
from tokenizers.processors import RobertaProcessing, TemplateProcessing

from clutrr_jax.models.pretrained.deberta import by_pair, distance_ids
from clutrr_jax.models.pretrained.folder import read_config
from clutrr_jax.models.pretrained.load import load_encoder
from clutrr_jax.models.pretrained.tokenizer import (
    encode_stories,
    load_tokenizer,
    single_tokens,
)
from tests.encoder_reference import ENCODERS, FILE, batch
from tests.models.small import Stories, call
from tests.tiny_bert import DEBERTA, random_tensors, write_encoder, write_weights


@pytest.mark.parametrize("name", ENCODERS)
def test_states_equal_the_reference(name: str, tmp_path) -> None:
    """transformers 5.23.0 on torch 2.13.0, as stored by tests/encoder_reference.py."""
    encoder = load_encoder(write_encoder(tmp_path, ENCODERS[name]))
    ids, mask = batch()
    with np.load(FILE) as reference:
        np.testing.assert_allclose(call(encoder, ids, mask)[mask], reference[name], atol=1e-4)


@pytest.mark.parametrize("name", ["RoBERTa", "DeBERTa-v2"])
def test_padding_does_not_change_states(name: str, tmp_path) -> None:
    encoder = load_encoder(write_encoder(tmp_path, ENCODERS[name]))
    ids = np.random.default_rng(0).integers(0, 40, (3, 9))
    mask = np.arange(9) < np.array([9, 4, 1])[:, None]
    states = np.asarray(call(encoder, ids, mask))
    other = np.pad(np.where(mask, ids, 7), ((0, 0), (0, 5)), constant_values=3)
    padded = np.asarray(call(encoder, other, np.pad(mask, ((0, 0), (0, 5)))))
    np.testing.assert_allclose(padded[:, :9][mask], states[mask], atol=1e-5)
    assert np.ptp(states[mask], axis=0).min() > 0.1
    single = np.asarray(call(encoder, ids[1:2, :4], mask[1:2, :4]))
    np.testing.assert_allclose(single[0], states[1, :4], atol=1e-5)


def test_roberta_positions_start_at_2(tiny_bert, tmp_path) -> None:
    """An encoder gives the same states under RoBERTa names with two more rows of positions."""
    config = json.loads((tiny_bert / "config.json").read_text())
    tensors = random_tensors(config)
    name = "embeddings.position_embeddings.weight"
    tensors[name] = np.pad(tensors[name], ((2, 0), (0, 0)))
    config |= {"model_type": "roberta", "max_position_embeddings": 514}
    (tmp_path / "config.json").write_text(json.dumps(config))
    write_weights(tmp_path, {f"roberta.{name}": tensor for name, tensor in tensors.items()})
    encoder = load_encoder(tmp_path)
    assert encoder.config.max_tokens == 512
    ids, mask = np.array([[2, 10, 11, 3]]), np.ones((1, 4), bool)
    expected = call(load_encoder(tiny_bert), ids, mask)
    np.testing.assert_array_equal(call(encoder, ids, mask), expected)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_published_names_and_dtypes_are_read(dtype, tiny_bert, tmp_path) -> None:
    """The prefix `bert.`, gamma and beta, 16-bit numbers, and tensors of a head."""
    tensors = random_tensors(json.loads((tiny_bert / "config.json").read_text()))
    half = {name: tensor.astype(dtype) for name, tensor in tensors.items()}
    old = {
        "bert." + name.replace("Norm.bias", "Norm.beta").replace("Norm.weight", "Norm.gamma"): x
        for name, x in half.items()
    }
    folders = tmp_path / "new", tmp_path / "old"
    for folder, some in zip(folders, (half, old), strict=True):
        shutil.copytree(tiny_bert, folder)
        write_weights(folder, some | {"cls.position_ids": np.zeros((1, 3), np.int64)})
    ids, mask = np.array([[2, 10, 11, 3]]), np.ones((1, 4), bool)
    states = [np.asarray(call(load_encoder(folder), ids, mask)) for folder in folders]
    np.testing.assert_array_equal(*states)
    np.testing.assert_allclose(states[0], call(load_encoder(tiny_bert), ids, mask), atol=0.5)


def byte_level_bpe() -> Tokenizer:
    """As of RoBERTa."""
    characters = [*"abcdefghijklmnopqrstuvwxyz0123456789.,'JM", "Ġ"]
    merges = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("1", "7")]
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *characters, *("".join(m) for m in merges)]
    tokenizer = Tokenizer(BPE({t: i for i, t in enumerate(tokens)}, merges, unk_token="<unk>"))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return tokenizer


def sentencepiece() -> Tokenizer:
    """As of DeBERTa."""
    pieces = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", "▁", "▁met", "▁the", "▁1", "▁3"]
    pieces += ["7", "▁aunt", *"abcdefghijklmnopqrstuvwxyzA0123456.'"]
    tokenizer = Tokenizer(Unigram([(t, -float(i)) for i, t in enumerate(pieces)], unk_id=3))
    tokenizer.pre_tokenizer = Metaspace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.add_special_tokens(["[MASK]"])
    return tokenizer


def saved(tokenizer: Tokenizer, folder: Path) -> Tokenizer:
    """Tokenizer from a file with padding and truncation, which are ignored."""
    tokenizer.enable_padding(length=20)
    tokenizer.enable_truncation(3)
    tokenizer.save(str(folder / "tokenizer.json"))
    return load_tokenizer(folder, 99)


@pytest.mark.parametrize(
    ("tokenizer", "people", "expected"),
    [
        (byte_level_bpe, "numbers", "<s> 17* Ġ m e t Ġ 3* . </s> <s> t he Ġ 5* ' s </s>"),
        (byte_level_bpe, "hidden", "<s> <mask>* Ġ m e t <mask>* . </s> <s> t he <mask>* ' s </s>"),
        (
            sentencepiece,
            "numbers",
            "[CLS] ▁1* 7* ▁met ▁3* . [SEP] [CLS] ▁the ▁ 5* ' s [SEP]",
        ),
        (
            sentencepiece,
            "hidden",
            "[CLS] [MASK]* ▁met ▁ [MASK]* ▁ . [SEP] [CLS] ▁the ▁ [MASK]* ▁ ' s [SEP]",
        ),
    ],
)
def test_people_are_found(tokenizer, people: str, expected: str, tmp_path) -> None:
    """In both ways of naming them; `*` marks their tokens. A space belongs to the next token."""
    loaded, stories = saved(tokenizer(), tmp_path), Stories(["[Ann] met [Bo].", "the [Bo]'s"])
    encoded = encode_stories(stories, loaded, np.array([17, 3, 5]), people)
    tokens = zip(map(loaded.id_to_token, encoded.ids), encoded.entity, strict=True)
    assert " ".join(token + "*" * int(entity >= 0) for token, entity in tokens) == expected
    named = encoded.entity[encoded.entity >= 0]
    assert list(dict.fromkeys(named.tolist())) == [17, 3, 5]


def test_words_and_marks_of_one_token(tmp_path) -> None:
    tokenizer = saved(sentencepiece(), tmp_path)
    assert [
        token and tokenizer.id_to_token(token)
        for token in single_tokens(tokenizer, ["aunt", "uncle", ".", "'s", "!"])
    ] == ["▁aunt", None, ".", None, None]


def test_buckets_of_distances(tmp_path) -> None:
    """Distances up to half of the buckets have one each, the longest share the outermost; opposite
    distances have opposite buckets. Without buckets, distances are cut off at the longest."""

    def ids_of(steps: int, **settings) -> np.ndarray:
        folder = write_encoder(tmp_path / f"{settings}", DEBERTA | settings)
        return distance_ids(read_config(folder), steps)

    found = ids_of(64) - 8  # distances 63, ..., -63
    np.testing.assert_array_equal(found[63 - 4 : 63 + 5], np.arange(4, -5, -1))
    assert (np.diff(found) <= 0).all() and found[0] == 7 and found[-1] == -7
    np.testing.assert_array_equal(found, -found[::-1])
    plain = ids_of(64, position_buckets=-1, max_relative_positions=10) - 10
    np.testing.assert_array_equal(plain, np.clip(np.arange(63, -64, -1), -10, 9))


def test_scores_by_pair_are_those_of_the_distance() -> None:
    scores = np.random.default_rng(0).normal(size=(2, 5, 9)).astype("f4")
    expected = [[scores[:, i, 4 - (i - j)] for j in range(5)] for i in range(5)]
    np.testing.assert_array_equal(by_pair(scores), np.moveaxis(np.array(expected), -1, 0))
