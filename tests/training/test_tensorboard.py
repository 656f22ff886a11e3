"""TensorBoard events equal metrics.jsonl, also after a resume."""

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event

from clutrr_jax.training.hooks import EpochEnd, TensorBoard
from generator.errors import InputError


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


def test_scalars_are_those_of_the_metrics(tmp_path: Path) -> None:
    line = {
        "epoch": 1,
        "loss": [2.0, 3.0],
        "dev_accuracy": [0.25, 0.5],
        "dev_loss": [1.0, 1.5],
        "seconds": 1.0,
    }
    no_state: Any = None
    end = EpochEnd(no_state, line, speed=100.0, diverged=np.zeros(2), is_last=True)
    TensorBoard(tmp_path, 0, learning_rate=0.5)(end)
    found = {v.tag: (e.step, v.simple_value) for e in events(tmp_path) for v in e.summary.value}
    assert found == {
        "loss/replica_0": (1, 2.0),
        "loss/replica_1": (1, 3.0),
        "dev_accuracy/replica_0": (1, 0.25),
        "dev_accuracy/replica_1": (1, 0.5),
        "dev_loss/replica_0": (1, 1.0),
        "dev_loss/replica_1": (1, 1.5),
        "learning_rate": (1, 0.5),
        "stories_per_second": (1, 100.0),
    }


def test_a_resume_drops_the_epochs_after_its_checkpoint(tmp_path: Path) -> None:
    TensorBoard(tmp_path, 3, 0.5).writer.close()
    starts = [e.step for e in events(tmp_path) if e.session_log.status == e.session_log.START]
    assert starts == [4]


def test_a_missing_package_is_one_line(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(InputError, match=r"^setting tensorboard: .*pip install tensorboardX"):
        TensorBoard(tmp_path / "events", 0, 0.5)
    assert not (tmp_path / "events").exists()
