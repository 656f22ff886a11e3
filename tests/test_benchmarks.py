"""Counts and output of the benchmarks. No test depends on how long anything takes."""

import json
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from ml_collections import ConfigDict

from benchmarks import graphs, lstm, models
from benchmarks.__main__ import BENCHMARKS
from benchmarks.__main__ import main as command
from clutrr_jax.models import MODELS
from clutrr_jax.models.functional import ModelDef
from generator.errors import run_command


def main(arguments: list[str]) -> int:
    return run_command(command, arguments)


def matmul_flops(function, *arguments) -> int:
    return models.matmul_flops(jax.make_jaxpr(function)(*arguments).jaxpr)


def test_matmul_flops_counts_every_scan_iteration() -> None:
    x, w = jnp.ones((3, 5)), jnp.ones((5, 5))

    def recurrent(x, w):
        return jax.lax.scan(lambda h, _: (jnp.tanh(h @ w), None), x, length=7)[0]

    assert matmul_flops(lambda x, w: x @ w, x, w) == 2 * 3 * 5 * 5
    assert matmul_flops(recurrent, x, w) == 7 * 2 * 3 * 5 * 5
    # The backward pass has two products per step: for the state and for the weight.
    backward = jax.grad(lambda w: recurrent(x, w).sum())
    assert 7 * 2 * 75 * 2 <= matmul_flops(backward, w) <= 7 * 2 * 75 * 3


def test_help_names_every_benchmark_and_an_unknown_one_is_one_line(capsys) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert all(f"python -m benchmarks {name} " in printed for name in BENCHMARKS)
    assert main(["nothing"]) == 2
    error = capsys.readouterr().err
    assert 'unknown benchmark "nothing"' in error and error.count("\n") == 1


@pytest.mark.parametrize("name", ["lstm", "graphs"])
def test_a_missing_package_is_a_one_line_error(name: str, monkeypatch, capsys) -> None:
    monkeypatch.setattr(f"benchmarks.{name}.find_spec", lambda _: None)
    assert main([name]) == 2
    error = capsys.readouterr().err
    assert "pip install torch==" in error and error.count("\n") == 1


def test_epochs_of_the_runs_alternate_and_the_first_is_not_timed(monkeypatch) -> None:
    clock, called = [0.0], []
    monkeypatch.setattr(lstm.time, "process_time", lambda: clock[0])
    # Seconds of the epochs: the first compiles; the machine is slower in the third.
    left = {"a": [90, 1, 8, 2], "b": [70, 3, 16, 6]}

    def epoch(name: str) -> None:
        called.append(name)
        clock[0] += left[name].pop(0)

    assert lstm.in_turn([partial(epoch, "a"), partial(epoch, "b")], 3) == ([2, 6], [3])
    assert called == ["a", "b"] * 4


@pytest.mark.parametrize("name", ["gat", "rgcn"])
def test_models_in_pytorch_geometric_have_the_sizes_of_ours(name: str, small) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    spec = MODELS[name]
    params, _ = ModelDef(spec, ConfigDict(spec.config), small.sizes).init(jax.random.key(0))
    ours = sum(x.size for x in jax.tree.leaves(params))
    if name == "gat":  # embeddings of reversed relations, and of the edge from a node to itself
        ours -= (small.sizes.edge_types + 1) * spec.config["edge"]
    model = graphs.torch_model(name, small)
    assert sum(x.numel() for x in model.parameters()) == ours
    run, once = graphs.torch_epochs(name, small)
    before = torch.random.get_rng_state()
    run()
    once()
    assert not torch.equal(before, torch.random.get_rng_state())  # dropout is on


@pytest.mark.slow
def test_figures_are_written_and_compared(small_folder, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(models, "limit_cores", lambda *_: None)  # JAX has its devices already
    command = ["models", "--models=prover", "--repeats=1", f"--data={small_folder}"]
    command += ["--stories=60"]
    file = tmp_path / "figures.json"
    assert main([*command, "--batch=20,50", f"--json={file}"]) == 0
    rows = json.loads(file.read_text())["rows"]
    assert [(row["model"], row["replicas"], row["batch"]) for row in rows] == [
        ("prover", 1, 20), ("prover", 1, 50),
    ]  # fmt: skip
    for row in rows:
        assert min(*row["train"], *row["test"]) > 0
        assert min(row["flops"], row["memory"]) > 0
    capsys.readouterr()
    assert main([*command, "--batch=50", f"--compare={file}"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    # With one epoch per run there is no spread.
    assert line.startswith("prover") and line.endswith("% (epochs differ by 0%)")


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--compare=nothing.json", "nothing.json: cannot be read"),
        ("--models=nothing", 'no model "nothing"'),
        *[
            (wrong, "expected 1 or more")
            for wrong in ("--stories=0", "--batch=100,-1", "--cores=x", "--repeats=0")
        ],
    ],
)
def test_wrong_arguments_are_one_line_errors(
    argument: str, message: str, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["models", argument]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
