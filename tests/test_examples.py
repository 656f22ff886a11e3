"""The notebooks in examples/ run from the first to the last cell, and so do its scripts."""

import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import clutrr_jax
from examples import other_wordings, prune, train_gat
from generator.paraphrases.load import parse_clause, read_bank
from generator.stories.config import Config

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_committed_with_outputs_and_without_errors(path: Path) -> None:
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output.output_type for cell in cells for output in cell.outputs}
    assert "execute_result" in kinds and "error" not in kinds


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES.parent))
    monkeypatch.delenv("XLA_FLAGS", raising=False)  # those of the tests make training slow
    # Commands such as !python run in the environment of the tests.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(path, as_version=4)
    before = results(notebook)
    NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert len(results(notebook)) >= len(before) > 0


def test_own_training_loop_learns_the_relations_of_two_facts(tmp_path, monkeypatch) -> None:
    settings = {"train": "1.2", "test": "1.2", "train_rows": 500, "test_rows": 50}
    clutrr_jax.generate(**settings, language="synthetic").to_parquet(tmp_path)
    monkeypatch.setattr(train_gat, "LAYERS", 2)
    evaluation = train_gat.main(["--data", str(tmp_path), "--steps", "100", "--replicas", "2"])
    accuracy = {row["model"]: row for row in evaluation.accuracy}
    assert accuracy["my GAT"]["replicas"] == 2
    assert accuracy["my GAT"]["accuracy"] > accuracy["majority label"]["accuracy"] + 0.5


@pytest.mark.slow
def test_a_training_that_falls_behind_is_pruned_and_tested(tmp_path) -> None:
    settings = {"train": "1.2", "test": "1.2", "train_rows": 500, "test_rows": 50}
    clutrr_jax.generate(**settings, language="synthetic").to_parquet(tmp_path)
    trials = prune.main(["--data", str(tmp_path)])
    assert [len(trial.values) for trial in trials] == [prune.EPOCHS, prune.EPOCHS, prune.WARMUP]
    pruned = trials[-1].run.results["models"]["edge_lstm"]
    assert (pruned["epochs"], trials[-1].run.accuracy[0]["count"]) == (prune.WARMUP, 50)


def test_banks_of_other_wordings_state_all_facts(tmp_path) -> None:
    other_wordings.main(tmp_path)
    banks = {path.stem: read_bank(path) for path in tmp_path.glob("*.json")}
    for bank in banks.values():
        bank.check(Config())
    daughter, aunt = (0, parse_clause("daughter")), (1, parse_clause("aunt"))
    assert banks["arrows"].templates[daughter] == ("{1} -> daughter -> {0} ;",)
    assert "{0} visited his lass {1}." in banks["only_familiar"].templates[daughter]
    assert "{0} visited his daughter {1}." in banks["familiar"].templates[daughter]
    cake = "{1} baked a cake yesterday. Her niece {0} ate most of it."
    assert cake in banks["chatty"].templates[aunt]
    assert "{0} kennt als Nichte von {1} alle Geschichten." in banks["german"].templates[aunt]


def results(notebook) -> list:
    """Outputs that are values of a cell."""
    outputs = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    return [output.data for output in outputs if output.output_type == "execute_result"]
