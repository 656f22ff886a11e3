"""The commands and the example model in README.md and docs/."""

import re
import types
from importlib.util import find_spec
from pathlib import Path

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from clutrr_jax.models import MODELS, Spec
from clutrr_jax.settings import default_settings
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.trainer import Trainer
from experiments.figure5 import get_config
from experiments.grid import slurm
from tests.models import test_models as laws

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLE = "clutrr_jax/models/bag_of_facts.py"  # the file that README.md adds
PACKAGES = "clutrr_jax|generator|experiments|benchmarks|tests|docs"


def test_example_model(small_words, monkeypatch) -> None:
    text = README.read_text()
    section = text[text.index("## Add a model") :]
    source, line = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[:2]
    assert len(source.splitlines()) <= 30
    module = types.ModuleType("bag_of_facts")
    exec(source, module.__dict__)
    name, value = line.strip().rstrip(",").split(": ", maxsplit=1)
    name, spec = name.strip('"'), eval(value, {"Spec": Spec, "bag_of_facts": module})
    monkeypatch.setitem(MODELS, name, spec)

    laws.test_padding_never_changes_a_logit(name, small_words)
    laws.test_order_of_nodes_and_edges_never_matters(name, small_words)

    train = default_settings("readme", "").train
    train.batch = 32
    trainer = Trainer(
        spec,
        ConfigDict(spec.config),
        train,
        small_words.sizes,
        small_words.train_stories,
        Replicas(2),
    )
    state = trainer.init()
    losses = []
    for epoch in (1, 2, 3):
        state, metrics = trainer.epoch(state, epoch)
        losses.append(metrics.loss)
    assert (losses[2] < losses[0]).all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.params))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_exist(page: Path) -> None:
    config = get_config().to_dict()  # a grid has the settings of a single run, and its own
    config["bag_of_facts"] = {"hidden": 100}
    for name in re.findall(r"--((?:config|slurm)(?:\.[a-z\d_]+)+)", page.read_text()):
        settings = {"config": config, "slurm": slurm.settings()}
        for part in name.split("."):
            assert part in settings, f"{page.name}: --{name}"
            settings = settings[part]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_and_files_exist(page: Path) -> None:
    text = page.read_text()
    for module in re.findall(r"python3? -m ([\w.]+)", text):
        if module not in ("venv", "pip"):
            assert find_spec(module), f"{page.name}: python -m {module}"
    for file in re.findall(rf"(?<![\w/])((?:{PACKAGES})/[\w/.-]*\w/?)", text):
        if file != EXAMPLE:
            assert (ROOT / file).exists(), f"{page.name}: {file}"
    for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", text):
        assert (page.parent / link).exists(), f"{page.name}: {link}"
    for target in re.findall(r"`make ([\w-]+)`|^make ([\w-]+)", text, re.MULTILINE):
        assert f"\n{''.join(target)}:" in (ROOT / "Makefile").read_text(), f"{page.name}: {target}"
