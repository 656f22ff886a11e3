"""The notebooks in examples/ run from the first to the last cell."""

import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

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
    assert len(results(notebook)) == len(before) > 0


def results(notebook) -> list:
    """Outputs that are values of a cell."""
    outputs = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    return [output.data for output in outputs if output.output_type == "execute_result"]
