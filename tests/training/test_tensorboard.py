"""Event files hold what metrics.jsonl holds, once, also after a second start."""

import struct
import sys
from pathlib import Path

import pytest
from tensorboardX.proto.event_pb2 import Event

from clutrr_jax.training.tensorboard import Scalars
from generator.errors import InputError


def events(folder: Path) -> list[Event]:
    """Of all files in the order of their writing: each is its length, a checksum, itself, another
    checksum."""
    found = []
    for path in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns):
        content, place = path.read_bytes(), 0
        while place < len(content):
            (length,) = struct.unpack_from("<Q", content, place)
            found.append(Event.FromString(content[place + 12 : place + 12 + length]))
            place += length + 16
    return found


def test_scalars_are_those_of_the_metrics(tmp_path: Path) -> None:
    line = {"epoch": 1, "loss": [2.0, 3.0], "dev_accuracy": [0.25, 0.5], "seconds": 1.0}
    scalars = Scalars(tmp_path, first=1)
    scalars.write(line, learning_rate=0.5, speed=100.0)
    scalars.close()
    found = {v.tag: (e.step, v.simple_value) for e in events(tmp_path) for v in e.summary.value}
    assert found == {
        "loss/replica_0": (1, 2.0),
        "loss/replica_1": (1, 3.0),
        "dev_accuracy/replica_0": (1, 0.25),
        "dev_accuracy/replica_1": (1, 0.5),
        "learning_rate": (1, 0.5),
        "stories_per_second": (1, 100.0),
    }


def test_a_second_start_takes_back_what_comes_after_its_checkpoint(tmp_path: Path) -> None:
    Scalars(tmp_path, first=4).close()
    starts = [e.step for e in events(tmp_path) if e.session_log.status == e.session_log.START]
    assert starts == [4]


def test_without_the_package_it_is_one_line(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(
        InputError, match=r"^setting tensorboard: .*pip install tensorboardX=="
    ) as e:
        Scalars(tmp_path / "events", first=1)
    assert "\n" not in str(e.value) and not (tmp_path / "events").exists()
