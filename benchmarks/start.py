"""How soon the demo takes its first training step: `python -m benchmarks start`.

Seconds from its start until JAX is there (imports), until its stories are generated and read, and
until the first step of its first model: with an empty cache; with the compiled programs that this
has left there, but not the stories; and with both. Where an epoch is one program, its first step is
seen when it ends: what the second epoch took, all steps but the first, is taken off.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import whole
from generator.errors import InputError, Parser

_ROOT = Path(__file__).parent.parent
_POINTS = ("imports", "stories", "first step")


def main(argv: list[str]) -> int:
    """Prints a line for each start, and the medians."""
    parser = Parser(
        prog="python -m benchmarks start",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runs", type=whole, default=3, help="starts of each kind [3]")
    runs = parser.parse_args(argv).runs
    print(f"{len(os.sched_getaffinity(0))} core(s); seconds from the start of the demo until:")
    print(f"{'cache':10}" + "".join(f"{name:>12}" for name in _POINTS), flush=True)
    measured: dict[str, list[list[float]]] = {"empty": [], "programs": [], "warm": []}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as cache:
            for kind, rows in measured.items():
                if kind == "programs":
                    shutil.rmtree(Path(cache) / "clutrr_jax" / "stories", ignore_errors=True)
                rows.append(measure(Path(cache)))
                _print(kind, rows[-1])
    print("medians")
    for kind, rows in measured.items():
        _print(kind, [statistics.median(column) for column in zip(*rows, strict=True)])
    return 0


def _print(kind: str, row: list[float]) -> None:
    print(f"{kind:10}" + "".join(f"{seconds:11.1f}s" for seconds in row), flush=True)


def measure(cache: Path) -> list[float]:
    """The seconds of one start of the demo, which is ended after two epochs.

    Args:
      cache: holds the compiled programs and the stories.
    Raises:
      InputError: the demo ended before.
    """
    with tempfile.TemporaryDirectory() as workdir:
        command = [sys.executable, "launch.py", "--config=experiments/demo.py"]
        start = time.perf_counter()
        demo = subprocess.Popen(
            [*command, f"--workdir={workdir}"], cwd=_ROOT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=os.environ | {"XDG_CACHE_HOME": str(cache)},
        )  # fmt: skip
        assert demo.stdout is not None
        said, line, ended = {}, "nothing was said", 0.0
        try:
            for line in demo.stdout:
                said[line.partition(" ")[0]] = time.perf_counter() - start
                if line.startswith("Read"):
                    break
            while demo.poll() is None:
                time.sleep(0.005)
                files = Path(workdir).glob("*/metrics.jsonl")
                epochs = [epoch for file in files for epoch in file.read_text().split("\n")[:-1]]
                if epochs and not ended:
                    ended = time.perf_counter() - start
                if len(epochs) > 1:
                    return [said["Runs"], said["Read"], ended - json.loads(epochs[1])["seconds"]]
        finally:
            demo.kill()
            rest = demo.communicate()[0]
    last = (line + rest).strip().splitlines()[-1]
    raise InputError(f"the demo ended after it had said: {last}")
