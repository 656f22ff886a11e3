"""A training that starts from a model, or goes on from a finished run, needs the same relations and
words; one that is refused leaves the finished run as it was."""

import hashlib
import json
from pathlib import Path

import pytest

import clutrr_jax
from clutrr_jax.data.prepare import prepare_run
from clutrr_jax.experiment import runs
from clutrr_jax.run import check_run_folder, identity
from clutrr_jax.runs import run_experiment
from clutrr_jax.settings import default_settings
from generator.relations.algebra import Algebra, parse_algebra

MODEL = "edge_rnn"


def algebra(*relations: str, name: str = "own") -> Algebra:
    """Relations without compositions, each its own inverse."""
    return parse_algebra(
        {
            "name": name,
            "relations": " ".join(relations),
            "inverse": {relation: relation for relation in relations},
            "composition": {},
        },
        "own",
    )


def data(of: Algebra | None = None, word: str = "met", rows: int = 8) -> clutrr_jax.Dataset:
    """Chains of two facts with text; the relations are the first two of the algebra."""
    first, second = of.relations[:2] if of else ("son", "sister")
    row = {
        "story": f"[A] {word} [B]. [B] {word} [C].",
        "facts": [("A", first, "B"), ("B", second, "C")],
        "query": ("A", "C"),
        "target": second,
    }
    return clutrr_jax.load({"train": [row] * rows, "test": [row] * 2}, algebra=of)


def train(dataset: clutrr_jax.Dataset, models="edge_rnn", **arguments) -> clutrr_jax.Trained:
    return clutrr_jax.train(models, dataset, replicas=1, **arguments)


def content(folder: Path) -> dict[str, bytes]:
    """The files of a run."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("error.txt", ".lock")
    }


def test_a_model_is_not_trained_further_on_other_relations(tmp_path) -> None:
    """The parameters have the same shapes, but each is that of another relation."""
    one, other = algebra("is_male", "lives_with"), algebra("lives_with", "is_male")
    model = train(data(one), epochs=1).model()
    assert train(data(one), epochs=1, start=model).model().algebra == one
    for wrong, found in (
        (data(other), "another algebra of this name"),
        (data(algebra(*one.relations, name="x")), "x"),
        (clutrr_jax.Dataset("mixed", data(one).train, data(other).test), "another algebra"),
    ):
        expected = f"predicts relations of own, expected stories with these and not of {found}"
        with pytest.raises(clutrr_jax.InputError, match=expected):
            train(wrong, epochs=1, start=model, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    for name, kept in {"same": data(one), "other": data(other)}.items():
        kept.to_parquet(tmp_path / name)  # with algebra.json
    assert model.predict(str(tmp_path / "same")).relation.shape == (1, 2)
    for path in (tmp_path / "other", tmp_path / "other" / "test.parquet"):
        for use in (model.predict, model.evaluate):
            with pytest.raises(clutrr_jax.InputError, match="and not of another algebra of this"):
                use(path)


@pytest.mark.slow
def test_a_refused_continuation_leaves_the_finished_run(tmp_path) -> None:
    """Whatever refuses it: the stories, another model, or that it has trained for longer."""
    train(data(), epochs=2, folder=tmp_path)
    before = content(tmp_path / MODEL)
    assert "model.json" in before
    bad = {"gat.heads": 7}
    for expected, refused in {
        "belongs to a run on other stories": lambda: train(data(rows=9), epochs=3, folder=tmp_path),
        "expected a multiple of heads 7": lambda: train(
            data(), [MODEL, "gat"], epochs=3, folder=tmp_path, settings=bad
        ),
        "has trained 2 epochs, expected at least as many, now 1": lambda: train(
            data(), folder=tmp_path, settings={"train.steps": 1}
        ),
    }.items():
        with pytest.raises(clutrr_jax.InputError, match=expected):
            refused()
        assert content(tmp_path / MODEL) == before
    assert train(data(), epochs=2, folder=tmp_path).results["models"][MODEL]["epochs"] == 2
    assert content(tmp_path / MODEL) == before
    assert train(data(), epochs=3, folder=tmp_path).results["models"][MODEL]["epochs"] == 3
    settings = json.loads((tmp_path / MODEL / "config.json").read_text())
    assert settings["train.epochs"] == 3


@pytest.mark.slow
@pytest.mark.parametrize("epochs", [1, 2])  # of a finished run, and of one that goes on
def test_a_run_belongs_to_its_words_and_relations(epochs: int, tmp_path) -> None:
    """Other ones have the same ids, so the arrays of the stories are equal."""
    own = algebra("near", "far")
    for name, kept, other in (
        ("relations", data(own), data(algebra("far", "near"))),
        ("words", data(), data(word="saw")),
    ):
        train(kept, epochs=1, folder=tmp_path / name)
        before = content(tmp_path / name / MODEL)
        expected = "on other stories" if epochs == 2 else "not the data set of this run"
        with pytest.raises(clutrr_jax.InputError, match=expected):
            train(other, epochs=epochs, folder=tmp_path / name)
        assert content(tmp_path / name / MODEL) == before
        train(kept, epochs=epochs, folder=tmp_path / name)


# Digests of the settings that decide whether a folder holds the same run; all are defaults.
IDENTITY = {
    "gat": "3fb1da06", "gcn": "bbce584a", "rgcn": "b995aac3", "edge_rnn": "ead5eb0a",
    "edge_lstm": "a5f3de36", "edge_gru": "ab21fb14", "edge_cnn": "bf46121a",
    "edge_attention": "97b3c5bb", "edge_transformer": "73e13da3", "epignn": "9e0c9414",
    "nbfnet": "c0ab0086", "ctp_linear": "0277296f", "ctp_attentive": "5f507b25",
    "ctp_memory": "ba9bbf8f", "ncrl": "1ca9467b", "prover": "a01176fb",
    "bilstm_mean": "5f7d0bb7", "bilstm_attention": "920310bb", "bilstm_last": "6becb64b",
    "bilstm_2018": "319a5ef6", "rn": "63a64929", "mac": "2fb32a0d", "rmc": "3f1ceace",
    "gnn_2018_mean": "d7a417ad", "gnn_2018_attention": "bea98fb9", "reader_prover": "a96f7329",
    "reader_prover_bert": "17aa91bb", "bert": "4803b54f", "bert_lstm": "5a27f5a3",
    "rat": "84421bf5", "transformer_facts": "721dd757", "transformer": "93b86e96",
}  # fmt: skip


@pytest.mark.parametrize("name", IDENTITY)
def test_folders_of_version_0_2_0_belong_to_the_same_runs(name: str) -> None:
    (run,) = runs(default_settings("single", name))
    text = json.dumps(identity(run), sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:8] == IDENTITY[name]


def test_data_of_version_0_2_0_have_the_same_fingerprint(tmp_path) -> None:
    """Else the folders of their runs are refused."""
    train(data(), epochs=1, folder=tmp_path)
    assert json.loads((tmp_path / "data.json").read_text())["fingerprint"] == "16222089d1ad7f44"


def test_new_stories_in_every_epoch_are_no_longer_generated(tmp_path) -> None:
    """Folders of version 0.2.0 that trained on them are neither resumed nor reported."""
    config = default_settings("single", "gat")
    (run,) = runs(config)
    settings = identity(run) | {"stories": "0-0", "data": "generate"}
    (tmp_path / "gat").mkdir()
    (tmp_path / "gat" / "config.json").write_text(json.dumps(settings))
    (tmp_path / "gat" / "metrics.jsonl").touch()
    with pytest.raises(clutrr_jax.InputError, match='data was "generate", now ""; expected the'):
        check_run_folder(tmp_path / "gat", identity(run))
    config.data = "generate"
    with pytest.raises(clutrr_jax.InputError, match=r"generated once.*; expected an empty setting"):
        run_experiment(config, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(clutrr_jax.InputError, match='data "generate": stories are generated once'):
        prepare_run("generate", tmp_path)
