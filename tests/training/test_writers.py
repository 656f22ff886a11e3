"""Metrics in metrics.jsonl, TensorBoard, W&B and the writers of a user; the callback of a user."""

import json
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event
from wandb.proto.wandb_internal_pb2 import Record

from clutrr_jax.training.loop import train_model
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.writers import JsonLines, Own, TensorBoard, open_all, scalars
from generator.errors import InputError
from tests.test_continuing import MODEL, data, train
from tests.training.small import make_trainer

LINE = {
    "epoch": 1,
    "seconds": 2.0,
    "loss": [2.0, None],  # replica 1 is no longer trained
    "dev_accuracy": [0.25, 0.5],
    "dev_loss": [1.0, 1.5],
}
VALUES = {
    "seconds": 2.0,
    "stories_per_second": 50.0,
    "loss/replica_0": 2.0,
    "dev_accuracy/replica_0": 0.25,
    "dev_accuracy/replica_1": 0.5,
    "dev_loss/replica_0": 1.0,
    "dev_loss/replica_1": 1.5,
}


class Kept:
    """A writer of a user."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.closed = 0

    def write(self, step, values) -> None:
        self.steps.append(step)
        self.values = values

    def close(self) -> None:
        self.closed += 1


def events(folder: Path) -> list[Event]:
    """Reads all events of all files. A record is its length, a checksum, the event, a checksum."""
    found = []
    for path in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns):
        content, offset = path.read_bytes(), 0
        while offset < len(content):
            (length,) = struct.unpack_from("<Q", content, offset)
            found.append(Event.FromString(content[offset + 12 : offset + 12 + length]))
            offset += length + 16
    return found


def tensorboard_steps(folder: Path, name: str) -> list[int]:
    """The steps of a metric that TensorBoard shows: a start drops those from its step on."""
    found: list[int] = []
    for event in events(folder):
        if event.session_log.status == event.session_log.START:
            found = [step for step in found if step < event.step]
        found += [event.step for value in event.summary.value if value.tag == name]
    return found


def wandb_rows(folder: Path) -> dict[str, list[dict]]:
    """The rows of each offline file, in the order of time. A file is a header of 7 bytes and
    blocks of 32 KiB, of records or parts of one: a checksum, length, kind and content."""
    found = {}
    for path in sorted(folder.glob("offline-run-*/*.wandb"), key=lambda path: path.parent.name):
        content, offset, record, rows = path.read_bytes(), 7, b"", []
        while offset < len(content):
            if 2**15 - offset % 2**15 < 7:  # padding at the end of a block
                offset += 2**15 - offset % 2**15
                continue
            _, length, kind = struct.unpack_from("<IHB", content, offset)
            record += content[offset + 7 : offset + 7 + length]
            offset += 7 + length
            if kind in (1, 4):  # a whole record, or the last part of one
                items = Record.FromString(record).history.item
                rows.append({i.nested_key[0] if i.nested_key else i.key: json.loads(i.value_json)
                             for i in items})  # fmt: skip
                record = b""
        found[str(path.relative_to(folder))] = [row for row in rows if row]
    return found


def test_writers_get_the_metrics_of_a_line_by_name(tmp_path) -> None:
    values = scalars(LINE, stories_per_epoch=100)
    assert values == VALUES
    for writer in (JsonLines(tmp_path / "metrics.jsonl", 2), TensorBoard(tmp_path, 0)):
        writer.write(1, values)
        writer.close()
    assert json.loads((tmp_path / "metrics.jsonl").read_text()) == LINE
    folder = tmp_path / "tensorboard"
    found = {v.tag: (e.step, v.simple_value) for e in events(folder) for v in e.summary.value}
    assert found == {name: (1, value) for name, value in VALUES.items()}


def test_what_a_user_changes_reaches_nobody_else(small, tmp_path) -> None:
    class Clearing(Kept):
        def write(self, step, values) -> None:
            values.clear()

    def callback(line: dict) -> bool:
        line["loss"].clear()
        return True

    trainer, kept = make_trainer("gat", small, Replicas(1), epochs=2), Kept()
    own = Own([Clearing(), kept], callback)
    _, history = train_model("gat", trainer, trainer.init(), tmp_path, own=own)
    assert kept.values["loss/replica_0"] == history[0]["loss"][0] and len(history) == 1


@pytest.mark.slow
def test_after_a_resume_each_writer_has_each_epoch_once(small, tmp_path, monkeypatch) -> None:
    """The training fails after epoch 3 was written, and resumes from its checkpoint of epoch 2."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    (tmp_path / "config.json").write_text('{"seed": 0}')
    fails = True

    def callback(line: dict) -> None:
        if line["epoch"] == 3 and fails:
            raise OSError("power loss")

    def start(kept: Kept) -> list[dict]:
        trainer = make_trainer("gat", small, Replicas(2), epochs=4, checkpoint_minutes=0.0)
        own = Own([kept], callback)
        log = "tensorboard,wandb"
        return train_model("gat", trainer, trainer.init(), tmp_path, log, own=own)[1]

    first, second = Kept(), Kept()
    with pytest.raises(OSError, match="power loss"):
        start(first)
    fails = False
    history = start(second)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3, 4] and lines == history
    for name in ("dev_loss/replica_1", "stories_per_second"):
        assert tensorboard_steps(tmp_path / "tensorboard", name) == [1, 2, 3, 4]
    # Two offline files of one W&B run, which ignores epoch 3 of the second one.
    (one, two) = wandb_rows(tmp_path / "wandb").items()
    assert Path(one[0]).name == Path(two[0]).name
    assert [[row["_step"] for row in rows] for _, rows in (one, two)] == [[1, 2, 3], [3, 4]]
    assert [row["dev_loss/replica_1"] for row in one[1][:2] + two[1]] == [
        line["dev_loss"][1] for line in history
    ]
    assert (first.steps, second.steps) == ([1, 2, 3], [3, 4])
    assert (first.closed, second.closed) == (1, 1)


@pytest.mark.slow
def test_the_callback_finishes_a_training(tmp_path) -> None:
    """Its tests are run; the same call finds it finished, one with more epochs continues it."""
    seen: list[dict] = []

    def callback(line: dict) -> bool:
        seen.append(line)
        return line["epoch"] == 2

    kept = Kept()
    for _ in range(2):
        run = train(data(), epochs=5, folder=tmp_path, writers=[kept], callback=callback)
        assert [line["epoch"] for line in seen] == kept.steps == [1, 2]
    summary = json.loads((tmp_path / MODEL / "model.json").read_text())
    assert (summary["epochs"], summary["stopped_by_callback"]) == (2, True)
    assert kept.values["dev_accuracy/replica_0"] == seen[-1]["dev_accuracy"][0]
    assert run.predictions[MODEL].relation.shape == (1, 2)
    train(data(), epochs=6, folder=tmp_path)
    summary = json.loads((tmp_path / MODEL / "model.json").read_text())
    assert (summary["epochs"], summary["stopped_by_callback"]) == (6, False)


@pytest.mark.slow
def test_what_the_callback_raises_reaches_the_caller_and_the_run_resumes(tmp_path) -> None:
    class Pruned(Exception):
        pass

    def callback(line: dict) -> None:
        raise Pruned

    with pytest.raises(Pruned):
        train(data(), epochs=2, folder=tmp_path, callback=callback)
    assert train(data(), epochs=2, folder=tmp_path).results["models"][MODEL]["epochs"] == 2


def test_wrong_writers_and_callbacks_are_one_line() -> None:
    for expected, arguments in {
        r"writers: \[1\], expected objects with write and close": {"writers": [1]},
        "callback: 3, expected a function": {"callback": 3},
        "models edge_rnn,gat: expected one": {"models": "edge_rnn,gat", "writers": [Kept()]},
        'log "wand": expected one of tensorboard, wandb': {"settings": {"log": "wand"}},
    }.items():
        with pytest.raises(InputError, match=f"^{expected}"):
            train(data(), **arguments)


@pytest.mark.parametrize("value", [1, "False", np.array([True, False])])
def test_a_callback_that_returns_something_else_is_refused(value: object, tmp_path) -> None:
    """Such as the number of characters that `file.write` returns, which would end the training."""
    with pytest.raises(InputError, match=r"callback: returned .*, expected True, False or None"):
        train(data(), epochs=2, folder=tmp_path, callback=lambda line: value)


@pytest.mark.parametrize("name, package", [("tensorboard", "tensorboardX"), ("wandb", "wandb")])
def test_a_missing_package_is_one_line(name, package, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"^log {name}: .*pip install {package}"):
        list(open_all(tmp_path, name, 0, 1))
    assert not any(tmp_path.iterdir())


def test_wandb_that_cannot_start_is_one_line(tmp_path, monkeypatch) -> None:
    import wandb

    def init(**settings) -> None:
        raise wandb.errors.UsageError("No API key configured.\nUse `wandb login`.")

    monkeypatch.setattr(wandb, "init", init)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match=r"^log wandb: cannot start \(No API key configured\.\)$"):
        list(open_all(tmp_path, "wandb", 0, 1))
