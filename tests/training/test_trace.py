"""A trace names the parts of a step, and does not change the numbers."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from clutrr_jax.training.loop import train_model
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.trace import PARTS, parts_of, tracing
from generator.errors import InputError
from tests.training.small import leaves, make_trainer


def test_a_trace_names_the_parts_of_a_step(small, tmp_path) -> None:
    found = []
    for trace in ("", str(tmp_path / "trace")):
        trainer = make_trainer("gat", small, Replicas(1), epochs=2, checkpoint_minutes=9.0)
        folder = tmp_path / f"run{len(found)}"
        folder.mkdir()
        found.append(train_model("gat", trainer, trainer.init(), folder, trace=trace)[0])
    for a, b in zip(leaves(found[0]), leaves(found[1]), strict=True):
        np.testing.assert_array_equal(a, b)
    (file,) = (tmp_path / "trace").glob("plugins/profile/*/*.trace.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    names = {event["name"].split(":")[0] for event in events if "hlo_op" in event.get("args", {})}
    assert names > set(PARTS)
    assert "load" in {event.get("name") for event in events}  # on the host


def test_the_part_of_an_operation_is_its_outermost_scope() -> None:
    program = """
  %a.1 = f32[] add(%b), metadata={op_name="jit(f)/backward/transpose(jvp(forward))/forward/add"}
  ROOT %while = (s32[]) while(%c), metadata={op_name="jit(f)/while"}
  add_fusion.2 = f32[3] fusion(a.1), calls=x, metadata={op_name="jit(f)/while/update/add" line=3}
"""
    assert parts_of(program) == {"a.1": "backward", "add_fusion.2": "update"}


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"setting trace: .*file/x cannot be written"):
        tracing(str(tmp_path / "file" / "x"), "").__enter__()
