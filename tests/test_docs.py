"""The commands of README.md and the pages in docs/ run, on small data and for one epoch.

A block of commands that cannot run here has a comment above it: <!-- not run: REASON -->. The
commands of docs/language_models.md are in tests/test_readme.py, those of docs/results.md,
docs/robustness.md, docs/studies.md, docs/workshop.md, docs/performance.md and docs/notes/ are
measurements.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import positional_ids
from generator.relations.kinship import RELATIONS

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *(f"docs/{name}.md" for name in (
    "algebras", "distributed", "experiments", "generator", "models", "outputs", "own_model",
))]  # fmt: skip
BLOCK = re.compile(r"(<!-- not run: .+ -->\n)?^```\n(.*?)^```", re.DOTALL | re.MULTILINE)
PROGRAMS = ("python ", "srun ", "lm_eval ", "inspect ")  # the others install something


def commands(page: str) -> list[tuple[list[str], bool]]:
    """The commands in the code blocks of a page, and whether they run."""
    found = []
    for comment, block in BLOCK.findall((ROOT / page).read_text()):
        for line in block.replace("\\\n", "").splitlines():
            if line.startswith(PROGRAMS):
                found.append((shlex.split(line, comments=True), not comment))
    return found


def small(words: list[str], data: Path) -> list[str]:
    """A command that does the same as `words`, with less data and for one epoch."""
    words = [re.sub(r"DATA$|\bdata_089907f8\.zip", str(data), word) for word in words]
    words = [word for word in words if not word.endswith("=RELEASES")]  # grids generate stories
    if "launch.py" not in words:
        generates = words[:3] == GENERATOR and "audit" not in words
        return [*words, *(["--train-rows=20", "--test-rows=4"] if generates else [])]
    script = words.index("launch.py")
    # Grids have tests of their own; here they only write their report.
    few = ["--config.scale=smoke", "--config.only=none"]
    if re.search("single|my_experiment", words[script + 1]):
        few = ["--config.train.epochs=1", "--config.train.replicas=2"]
        if not any(word.startswith(f"--config.data={data}") for word in words):
            few += ["--config.generate.train_rows=20", "--config.generate.test_rows=4"]
    return [*words[:script], str(ROOT / "launch.py"), *words[script + 1 :], *few]


GENERATOR = ["python", "-m", "generator"]


@pytest.mark.parametrize("page", PAGES)
def test_blocks_that_do_not_run_say_why(page: str) -> None:
    for words, runs in commands(page):
        assert words[0] == "python" or not runs, f"{page}: {shlex.join(words)}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_commands_run(page: str, small_folder, tmp_path) -> None:
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    write_files(tmp_path, small_folder)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for words, runs in commands(page):
        if runs:
            command = small(words, small_folder)
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"


def write_files(folder: Path, data: Path) -> None:
    """Files that the commands read: an experiment, an algebra and answers to the test stories."""
    (example,) = re.findall(
        r"```python\n(\"\"\"Bag.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    (experiment,) = re.findall(
        r"```python\n(from clutrr_jax import register.*?)```",
        (ROOT / "docs/own_model.md").read_text(),
        re.DOTALL,
    )
    (folder / "my_experiment.py").write_text(f"{example}\n{experiment}")
    (algebra,) = re.findall(
        r"```json\n(.*?)```", (ROOT / "docs/algebras.md").read_text(), re.DOTALL
    )
    (folder / "folders.json").write_text(algebra)
    test = load(data).test
    lines = [
        f'{{"id": "{i}", "prediction": "{RELATIONS[t]}"}}'
        for i, t in zip(positional_ids(test), test.target, strict=True)
    ]
    (folder / "answers.jsonl").write_text("\n".join(lines))
