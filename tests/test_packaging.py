"""The installed package: ranges of versions, and a wheel that works outside the checkout."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import clutrr_jax
from clutrr_jax.__main__ import COMMANDS, USAGE, main
from generator.errors import run_command
from tests.test_docs import main_of

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RANGES = {r.name: r.specifier for r in map(Requirement, PROJECT["dependencies"])}


def pins(file: str) -> dict[str, str]:
    lines = (ROOT / file).read_text().split()
    return dict(line.split("==") for line in lines)  # type: ignore[misc]


def test_pins_are_in_the_ranges_and_the_oldest_are_their_lower_ends() -> None:
    newest, oldest = pins("requirements.txt"), pins("tests/oldest.txt")
    assert newest.keys() - {"pytest"} == oldest.keys() == RANGES.keys()
    for name, specifier in RANGES.items():
        assert specifier.contains(newest[name], prereleases=True), name
        (lower,) = [s.version for s in specifier if s.operator == ">="]
        assert lower == oldest[name]


def test_the_version_stands_in_the_changelog_and_the_citation() -> None:
    assert f"\n## {PROJECT['version']}\n" in (ROOT / "CHANGELOG.md").read_text()[:40]
    assert f"\nversion: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text()


def test_no_module_hides_a_public_name() -> None:
    """`import clutrr_jax.train` would replace the function `clutrr_jax.train`."""
    modules = {path.stem for path in (ROOT / "clutrr_jax").iterdir()}
    assert not modules & set(clutrr_jax.__all__)


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        (["clutrr_jax", "predict"], "RUN"),
        (["clutrr_jax", "score"], "--data DATA --predictions"),
        (["clutrr_jax", "export"], "--data DATA --format"),
        (["clutrr_jax", "report"], "[EXPERIMENT]"),
        (["clutrr_jax", "rules"], "RUN"),
        (["clutrr_jax", "generate"], "--out DIR"),
        (["clutrr_jax", "generate", "--algebra", "rcc8"], "--algebra NAME --out DIR"),
        (["clutrr_jax", "audit"], "FILE"),
        (["clutrr_jax.language_models", "export"], "--data DATA --format"),
        (["clutrr_jax.predict"], "RUN"),
        (["generator"], "--out DIR"),
        (["generator", "--algebra", "rcc8"], "--algebra NAME --out DIR"),
        (["generator", "audit"], "FILE"),
        (["generator", "stats"], "[FILE ...]"),
        (["generator", "import-paraphrases"], "--out BANK.json FILE"),
        (["generator", "workshop"], "--out DIR"),
        (["benchmarks", "models"], "--models A,B,..."),
        (["benchmarks", "generator"], "--seconds"),
        *[(["benchmarks", name], "--data") for name in ("lstm", "graphs")],
    ],
)
def test_usage_is_the_command_that_was_typed(
    command: list[str], needed: str, monkeypatch, capsys
) -> None:
    """Its name and each of its arguments once, and no second usage in the description."""
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit, match="0"):
        run_command(main_of(command[0]), [*command[1:], "--help"])
    usage, description = capsys.readouterr().out.split("\n\n")[:2]
    usage = " ".join(usage.split())
    typed = " ".join(["python -m", *command]).partition(" --")[0]
    assert usage.startswith(f"usage: {typed} [-h]") and needed in usage
    options = re.findall(r"--[\w-]+", usage)
    assert len(options) == len(set(options))
    assert "python -m" not in description


def test_an_unknown_command_is_one_line(capsys) -> None:
    assert run_command(main, ["fit"]) == 2
    assert capsys.readouterr().err.startswith('error: no command "fit", expected one of train, pre')
    assert run_command(main, []) == 0 and capsys.readouterr().out == f"{USAGE}\n"
    assert all(f"  {name}" in USAGE for name in COMMANDS)


def test_the_packages_name_no_file_that_is_not_installed() -> None:
    """Messages and help would send users to pages and experiments that they do not have."""
    for package in ("clutrr_jax", "generator"):
        for path in (ROOT / package).rglob("*.py"):
            assert not re.findall(r"docs/|launch\.py|experiments/", path.read_text()), path


@pytest.mark.slow
def test_a_wheel_works_in_an_empty_folder(tmp_path, small_folder) -> None:
    """The packages that it needs are those of this environment."""
    source = tmp_path / "source"  # setuptools keeps files of earlier builds in the source folder
    for package in ("clutrr_jax", "generator"):
        shutil.copytree(ROOT / package, source / package)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*build, tmp_path / "wheel", source], check=True, cwd=tmp_path)
    (wheel,) = (tmp_path / "wheel").glob("clutrr_jax-*.whl")
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv/bin/python"
    site = subprocess.run(
        [python, "-c", "import site; print(site.getsitepackages()[0])"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site]
    subprocess.run([*install, wheel], check=True)
    (own,) = [path for path in sys.path if path.endswith("site-packages")]
    packages = {path.name for path in Path(own).iterdir()}
    assert not {"clutrr_jax", "generator"} & packages  # installed as editable, if at all
    for path in Path(own).iterdir():
        if not path.name.startswith(("__editable__", "clutrr_jax", "_virtualenv")):
            (Path(site) / path.name).symlink_to(path)
    empty = tmp_path / "empty"
    empty.mkdir()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    for command in (
        ["train", "--workdir=run", "--config.models=gat", f"--config.data={small_folder}",
         "--config.train.epochs=1", "--config.train.replicas=1"],
        ["predict", "run/gat", "--data", str(small_folder), "--out", "p.csv"],
        ["score", "--data", str(small_folder), "--predictions", "p.csv"],
        ["export", "--data", str(small_folder), "--format=jsonl", "--style=zero-shot", "--out=e"],
        ["report", "run"],
        ["generate", "--out", "data", "--train=1.2", "--test=1.3", "--train-rows=5",
         "--test-rows=5"],
    ):  # fmt: skip
        done = subprocess.run(
            [python, "-m", "clutrr_jax", *command],
            cwd=empty, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    where = "import clutrr_jax; print(clutrr_jax.__file__)"
    found = subprocess.run(
        [python, "-c", where], cwd=empty, env=environment, capture_output=True, text=True
    )
    assert found.stdout.strip().startswith(site)
