"""What the benchmarks count (never how long anything takes)."""

import json
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from benchmarks import start
from benchmarks.flops import matmul_flops
from benchmarks.reading import packing
from generator.errors import InputError


def test_products_in_scans_count_every_time() -> None:
    x, w = jnp.ones((3, 5)), jnp.ones((5, 5))

    def recurrent(x, w):
        return jax.lax.scan(lambda h, _: (jnp.tanh(h @ w), None), x, length=7)[0]

    assert matmul_flops(lambda x, w: x @ w, x, w) == 2 * 3 * 5 * 5
    assert matmul_flops(recurrent, x, w) == 7 * 2 * 3 * 5 * 5
    # Backwards there are two products for each: with respect to the state and to the weight.
    backward = jax.grad(lambda w: recurrent(x, w).sum())
    assert 7 * 2 * 75 * 2 <= matmul_flops(backward, w) <= 7 * 2 * 75 * 3


def test_an_unknown_benchmark_is_one_line() -> None:
    command = [sys.executable, "-m", "benchmarks", "nothing"]
    done = subprocess.run(
        command, cwd=Path(__file__).parent.parent, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2 and 'unknown benchmark "nothing"' in done.stderr
    assert "Traceback" not in done.stderr


def test_packing_leaves_no_story_out(small_words) -> None:
    stories = small_words.train_stories
    packed = [program() for program in packing(stories)]
    graphs = sum(int(b.globals["mask"].sum()) for b in packed if hasattr(b, "globals"))
    tokens = sum(int(b.row_mask.sum()) for b in packed if not hasattr(b, "globals"))
    assert graphs == tokens == len(stories.target)


def test_figures_are_written_and_compared(small_folder, tmp_path) -> None:
    def models(*arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "benchmarks", "models", "--models=prover", "--repeats=1"]
        return subprocess.run(
            [*command, f"--data={small_folder}", *arguments],
            cwd=Path(__file__).parent.parent, capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    file = tmp_path / "figures.json"
    done = models("--batch=20,50", f"--json={file}")
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())["rows"]
    assert [(row["model"], row["replicas"], row["batch"]) for row in rows] == [
        ("prover", 1, 20), ("prover", 1, 50),
    ]  # fmt: skip
    for row in rows:
        assert min(*row["train"], *row["test"]) > 0
        assert min(row["flops"], row["test_flops"], row["memory"]) > 0
    # One epoch of each: nothing to tell noise by.
    line = models("--batch=50", "--stories=60", f"--compare={file}").stdout.splitlines()[-1]
    assert line.startswith("prover") and line.endswith("% (epochs differ by 0%)")
    done = models(f"--compare={tmp_path / 'nothing.json'}")
    assert done.returncode == 2 and "nothing.json: expected what --json has written" in done.stderr
    done = models(f"--json={tmp_path / 'nowhere' / 'rows.json'}")
    assert done.returncode == 2 and "there is no such folder" in done.stderr
    for wrong in ("--stories=0", "--batch=100,-1", "--cores=x", "--repeats=0"):
        done = models(wrong)
        assert done.returncode == 2 and "expected 1 or more" in done.stderr, wrong


FAKE = """
import json, pathlib, sys, time
folder = pathlib.Path(next(a for a in sys.argv if a.startswith("--workdir=")).partition("=")[2])
print("Runs on nothing.", flush=True)
print("Read 1 train and 1 test stories.", flush=True)
{then}
(folder / "gat").mkdir()
with (folder / "gat" / "metrics.jsonl").open("w") as file:
    for epoch in (1, 2):
        time.sleep(0.2)
        print(json.dumps(dict(epoch=epoch, seconds=0.15)), file=file, flush=True)
time.sleep(60)
"""


def test_a_start_is_measured_until_its_first_step(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(start, "_ROOT", tmp_path)
    (tmp_path / "launch.py").write_text(FAKE.format(then=""))
    imports, stories, first = start.measure(tmp_path)
    assert 0 < imports <= stories and stories + 0.2 - 0.15 <= first < 60
    (tmp_path / "launch.py").write_text(FAKE.format(then="sys.exit('no room')"))
    with pytest.raises(InputError, match=r"the demo ended after it had said: no room"):
        start.measure(tmp_path)
