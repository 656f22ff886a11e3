"""The numbers of an epoch do not depend on its segments, nor on where it was interrupted."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from clutrr_jax.training import loop, preemption
from clutrr_jax.training.checkpoints import Checkpoints
from clutrr_jax.training.loop import Trainer, train_model
from clutrr_jax.training.replicas import Replicas
from tests.training.small import NAMES, leaves, make_trainer

EPOCHS = 3
SETTINGS = {"batch": 8, "selection": "dev_loss", "checkpoint_minutes": 100.0}


def set_length(trainer: Trainer, batches: int, monkeypatch) -> None:
    """All segments get this number of batches."""
    monkeypatch.setattr(loop, "segment_length", lambda seconds: batches)
    trainer._segment = batches


def diverging(state: Any) -> Any:
    """The state with parameters of replica 1 that lead to a loss that is not finite."""
    return state._replace(params=jax.tree.map(lambda p: p.at[1].mul(1e30), state.params))


def train(trainer: Trainer, interrupt: Any = None) -> list[np.ndarray]:
    """State and metrics of a training whose replica 1 diverges in epoch 2. `interrupt` is as the
    argument `between` of an epoch."""
    state, found = trainer.init(), []
    for epoch in range(1, EPOCHS + 1):
        state = diverging(state) if epoch == 2 else state
        state, metrics = trainer.epoch(state, epoch, between=interrupt or (lambda *_: None))
        found += metrics.values()
    assert np.asarray(state.diverged_epoch).tolist() == [0, 2]
    return leaves(state) + found


@pytest.mark.parametrize("microbatches", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_numbers_do_not_depend_on_the_segments(name, microbatches, small, monkeypatch) -> None:
    trainer = make_trainer(
        name, small, Replicas(2, microbatches=microbatches), microbatches=microbatches, **SETTINGS
    )
    set_length(trainer, trainer.count, monkeypatch)
    expected = train(trainer)
    for length in (1, 3):
        set_length(trainer, length, monkeypatch)
        stops: list[int] = []
        found = train(trainer, lambda _, done, stops=stops: stops.append(done))
        assert stops == [*range(length, trainer.count, length)] * EPOCHS
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", NAMES)
def test_an_epoch_goes_on_from_where_it_was(name, small, tmp_path, monkeypatch) -> None:
    """Also within its dev batches; replica 1 diverges in the epoch."""
    trainer = make_trainer(name, small, Replicas(2), **SETTINGS)
    set_length(trainer, 1, monkeypatch)
    state, _ = trainer.epoch(trainer.init(), 1)
    state = diverging(state)

    def save(states: Any, done: int) -> None:
        Checkpoints(tmp_path / str(done)).save(1, states, done)

    expected = trainer.epoch(state, 2, between=save)
    assert trainer.count > trainer.batches.steps + 1
    for done in (1, trainer.batches.steps, trainer.count - 1):
        template = trainer.init(), (trainer.init(), trainer.begin(trainer.init()))
        restored = Checkpoints(tmp_path / str(done)).restore(*template)
        assert restored and restored[:2] == (1, done)
        before, within = restored[2]
        found = trainer.epoch(before, 2, done, within)
        for a, b in zip(leaves(expected), leaves(found), strict=True):
            np.testing.assert_array_equal(a, b)


def lines(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "metrics.jsonl").read_text()
    return [
        {name: value for name, value in json.loads(line).items() if name != "seconds"}
        for line in text.splitlines()
    ]


@pytest.mark.parametrize("segments", [0, 7, 11])  # before the signal
def test_a_signal_ends_a_training_between_two_segments(
    segments: int, small, tmp_path, monkeypatch, capsys
) -> None:
    """In the middle of the first epoch or of a later one. The same call goes on to the same
    numbers, and metrics.jsonl has a line for each epoch that the checkpoint has finished."""

    def run(folder: str) -> list[np.ndarray]:
        trainer = make_trainer("gat", small, Replicas(2), **SETTINGS)
        set_length(trainer, 2, monkeypatch)
        (tmp_path / folder).mkdir(exist_ok=True)
        return leaves(train_model("gat", trainer, trainer.init(), tmp_path / folder)[0])

    whole = run("whole")
    asked: list[bool] = []
    monkeypatch.setattr(
        preemption, "requested", lambda: asked.append(True) or len(asked) > segments
    )
    with pytest.raises(SystemExit) as end:
        run("cut")
    assert end.value.code == 75 and "stopped by SIGTERM" in capsys.readouterr().err
    (checkpoint,) = (tmp_path / "cut" / "checkpoints").iterdir()
    calls = 8  # of an epoch, after each segment: 12 steps and 3 batches of dev stories
    epoch, part = divmod(segments + 1, calls)
    assert checkpoint.name == (f"{epoch}.{2 * part}" if part else str(epoch))
    metrics = tmp_path / "cut" / "metrics.jsonl"
    assert (len(lines(tmp_path / "cut")) if metrics.exists() else 0) == epoch
    monkeypatch.setattr(preemption, "requested", lambda: False)
    again = run("cut")
    assert lines(tmp_path / "cut") == lines(tmp_path / "whole")
    for a, b in zip(whole, again, strict=True):
        np.testing.assert_array_equal(a, b)
