"""The files of a trained model."""

import json
import time
from itertools import count

import jax
import numpy as np
import pytest
from flax import nnx

from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.predictions import prediction_file, read_predictions
from clutrr_jax.experiment import runs
from clutrr_jax.language_models.submissions import read_submissions
from clutrr_jax.settings import default_settings
from clutrr_jax.training import steps
from clutrr_jax.training.inference import predict_tests
from clutrr_jax.training.loop import run_model, train_model
from clutrr_jax.training.replicas import Replicas
from generator.errors import InputError
from tests.training.small import leaves, make_trainer


@pytest.mark.parametrize("name", ["gat", pytest.param("reader_prover", marks=pytest.mark.slow)])
def test_each_file_holds_the_predictions_of_its_parameters(name: str, few, tmp_path) -> None:
    """Parameters of the selected and the last epoch; files of the model and of its variants."""
    trainer = make_trainer(name, few, Replicas(3), selection="dev_loss")
    state = trainer.init()
    best = jax.tree.map(lambda x: x * 1.5 + 0.1, state.params)
    averaged = jax.tree.map(lambda x: x * -2.0, state.params)
    state = state._replace(best_params=best, ema_params=averaged)
    predict_tests("m", trainer.predict, state, few, tmp_path)
    found = []
    for name, (variant, _) in {"": (None, ""), **trainer.predict.model.spec.variants}.items():
        file = read_predictions([tmp_path / prediction_file(name)], few.test)
        expected = [
            trainer.predict(p, state.buffers, few.test_stories, variant) for p in (best, averaged)
        ]
        np.testing.assert_array_equal(file.relation, expected[0][0])
        np.testing.assert_allclose(file.probability, expected[0][1].max(axis=-1), atol=1e-4)
        np.testing.assert_array_equal(file.last, expected[1][0])
        path = tmp_path / prediction_file(name, ".csv")
        exported = read_submissions([path], few.test)[0].predictions
        np.testing.assert_array_equal(exported.relation, file.relation)
        found.append(file.relation)
    assert len({array.tobytes() for array in found}) == len(found)
    first = nnx.state(trainer.predict.first(best, state.buffers), nnx.Param)
    for array, expected in zip(leaves(first), leaves(best), strict=True):
        np.testing.assert_array_equal(array, expected[0])


def test_summary_of_a_training_that_stops_early(small, tmp_path) -> None:
    """The tested epoch of each replica is the last one in which it was trained."""
    config = default_settings("tests", "prover")
    config.train.replicas = 3
    config.prover.share_genders = True  # fewer rules: faster
    config.prover.train.update({"steps": 400, "patience": 2, "learning_rate": 3.0})
    summary = run_model("prover", runs(config)[0].config, small, GroundTruth(small.test), tmp_path)
    history = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    trained = [sum(line["loss"][r] is not None for line in history) for r in range(3)]
    assert summary["selected_epochs"] == trained
    assert min(trained) < max(trained) == len(history) < 400
    accuracy = [history[epoch - 1]["dev_accuracy"][r] for r, epoch in enumerate(trained)]
    assert summary["dev_accuracy"] == accuracy


def test_training_without_dev_stories_is_refused(small, tmp_path) -> None:
    config = default_settings("tests", "prover")
    config.train.dev_fraction = 0.0
    with pytest.raises(InputError, match=r"^prover: train\.dev_fraction 0\.0: none of 120 train"):
        run_model(
            "prover", runs(config)[0].config, small, GroundTruth(small.test), tmp_path / "run"
        )
    assert not (tmp_path / "run").exists()


def test_summary_of_a_training(small, tmp_path) -> None:
    """The prover has one parameter for each rule over 11 predicates, or none: 11 * 11 * 12."""
    config = default_settings("tests", "prover")
    config.train.update({"replicas": 8, "epochs": 5, "selection": "dev_accuracy"})
    config.prover.share_genders = True
    config.prover.train.learning_rate = 1e5  # so high that the best epoch of some is not the last
    summary = run_model("prover", runs(config)[0].config, small, GroundTruth(small.test), tmp_path)
    history = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert (summary["parameters"], summary["epochs"], summary["replicas"]) == (1452, 5, 8)
    accuracy = np.array([line["dev_accuracy"] for line in history])  # [epochs, replicas]
    best = len(accuracy) - accuracy[::-1].argmax(axis=0)  # the latest of ties
    assert best.min() < 5 and summary["selected_epochs"] == best.tolist()
    assert summary["dev_accuracy"] == accuracy[best - 1, range(8)].tolist()


def test_the_first_epoch_says_that_it_compiles_and_its_rate_leaves_that_out(
    small, tmp_path, capsys, monkeypatch
) -> None:
    traces, loss_fn = [], steps.loss_fn
    monkeypatch.setattr(steps, "loss_fn", lambda *a: traces.append(1) or loss_fn(*a))
    trainer = make_trainer("prover", small, Replicas(2))
    own_compile, clock = trainer.compile, count(0.0, 1.0)

    def compile_slowly(*arguments) -> None:
        own_compile(*arguments)
        traces.append(0)
        for _ in range(1000):
            next(clock)

    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(trainer, "compile", compile_slowly)
    _, history = train_model("m", trainer, trainer.init(), tmp_path)
    assert traces[0] == 1 and traces[-1] == 0  # traced before the first epoch, and not again
    assert len(history) == 3 and all(0 < epoch["seconds"] < 1000 for epoch in history)
    line = capsys.readouterr().err
    assert line.index("compiling") < line.index("loss=") and line.count("compiling") == 1
