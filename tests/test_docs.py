"""The commands of README.md and the pages in docs/ run, on small data and for one epoch.

A block of commands that cannot run here has a comment above it: <!-- not run: REASON -->. The
commands of docs/language_models.md are in tests/test_readme.py, those of docs/results.md,
docs/robustness.md, docs/studies.md, docs/workshop.md, docs/performance.md and docs/notes/ are
measurements.
"""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import positional_ids
from generator.errors import run_command
from generator.relations.kinship import RELATIONS
from tests.command_line import launch

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *(f"docs/{name}.md" for name in (
    "algebras", "distributed", "experiments", "generator", "models", "outputs", "own_model",
))]  # fmt: skip
BLOCK = re.compile(r"(<!-- not run: [^\n]+ -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROGRAMS = ("python ", "srun ", "lm_eval ", "inspect ")  # the others install something


def commands(page: str) -> list[tuple[list[str], bool]]:
    """The commands in the code blocks of a page, and whether they run."""
    found = []
    for comment, language, block in BLOCK.findall((ROOT / page).read_text()):
        for line in "" if language else block.replace("\\\n", "").splitlines():
            if line.startswith(PROGRAMS):
                found.append((shlex.split(line, comments=True), not comment))
    return found


def main_of(name: str) -> Callable[[list[str]], int | None]:
    """The function behind `python -m NAME`."""
    is_package = find_spec(name).submodule_search_locations
    return import_module(f"{name}.__main__" if is_package else name).main


def run(words: list[str], data: Path) -> int:
    """Runs a command in this process, on less data and for one epoch. Returns its exit code."""
    _, program, *arguments = [re.sub(r"DATA$|\bdata_\w+\.zip", str(data), word) for word in words]
    if program == "-m":
        name, *arguments = arguments
        generates = name == "generator" and {"audit", "stats"}.isdisjoint(arguments)
        arguments += ["--train-rows=20", "--test-rows=4"] if generates else []
        return run_command(main_of(name), arguments)
    # Grids have tests of their own; here they only write their report, on generated stories.
    arguments = [word for word in arguments if not word.endswith("=RELEASES")]
    few = ["--config.scale=smoke", "--config.only=none"]
    if re.search("single|my_experiment", arguments[0]):
        few = ["--config.train.epochs=1", "--config.train.replicas=2"]
        if not any(word.startswith("--config.data=") for word in arguments):
            few += ["--config.generate.train_rows=20", "--config.generate.test_rows=4"]
    done = launch(*arguments, *few, config=None)
    print(done.out, done.err)
    return done.code


@pytest.mark.parametrize("page", PAGES)
def test_blocks_that_do_not_run_say_why(page: str) -> None:
    for words, runs in commands(page):
        assert words[0] == "python" or not runs, f"{page}: {shlex.join(words)}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_commands_run(page: str, registry, small_folder, tmp_path, monkeypatch) -> None:
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    write_files(tmp_path, small_folder)
    monkeypatch.chdir(tmp_path)
    for words, runs in commands(page):
        assert not runs or run(words, small_folder) == 0, shlex.join(words)


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page in a language."""
    found = BLOCK.findall((ROOT / page).read_text())
    return [block for _, of, block in found if of == language]


@pytest.mark.parametrize("version", ["1.31", "1.37"])
def test_manifests_follow_the_schemas_of_kubernetes(version: str) -> None:
    manifests = [m for b in blocks("docs/distributed.md", "yaml") for m in yaml.safe_load_all(b)]
    assert {"Job", "Pod", "Role", "Service"} < {manifest["kind"] for manifest in manifests}
    for manifest in manifests:
        kubernetes_validate.validate(manifest, version, strict=True)


def test_shell_scripts_pass_shellcheck(tmp_path) -> None:
    scripts = [ROOT / ".ci" / "run", ROOT / ".ci" / "slurm"]
    for index, block in enumerate(blocks("docs/distributed.md", "bash")):
        scripts.append(tmp_path / f"{index}.sh")
        scripts[-1].write_text(block)
    assert len(scripts) == 4
    shellcheck = Path(sys.executable).parent / "shellcheck"
    done = subprocess.run([shellcheck, "--shell=bash", *scripts], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_meshes_of_eight_devices_are_those_of_the_table() -> None:
    """A row has replicas, microbatches and the shape of the mesh."""
    text = (ROOT / "docs/distributed.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) x (\d+) \|", text, re.MULTILINE)
    assert len(rows) == 6
    code = """if True:
    import sys, jax
    from clutrr_jax.training.replicas import Replicas
    jax.config.update("jax_num_cpu_devices", 8)
    for row in sys.argv[1:]:
        count, microbatches = map(int, row.split(","))
        replicas = Replicas(count, microbatches=microbatches)
        print(count, microbatches, *replicas.mesh.shape.values())
    """
    settings = [",".join(row[:2]) for row in rows]
    command = [sys.executable, "-c", code, *settings]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert [tuple(line.split()) for line in done.stdout.splitlines()] == rows, done.stderr


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
