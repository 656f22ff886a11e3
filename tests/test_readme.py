"""The commands and the example model in README.md and docs/."""

import json
import re
import types
from importlib.util import find_spec
from pathlib import Path

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import Records
from clutrr_jax.evaluation.predictions import Predictions, export_predictions
from clutrr_jax.models import MODELS, Spec
from clutrr_jax.models.setting import as_settings
from clutrr_jax.settings import TRAIN
from clutrr_jax.slurm import launcher
from clutrr_jax.training.loop import Trainer
from clutrr_jax.training.replicas import Replicas
from experiments.figure5 import get_config
from generator.relations.kinship import (
    INVERSE,
    PREDICATE_OF,
    PREDICATES,
    RELATION_ID,
    RELATIONS,
    RULES,
)
from tests.language_models.logs import inspect_log, write_inspect, write_lm_eval
from tests.models import test_models as laws
from tests.test_docs import commands, run

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLE = "clutrr_jax/models/bag_of_facts.py"  # the file that README.md adds
TASK = "clutrr_jax/clutrr"  # of inspect
PACKAGES = "clutrr_jax|generator|experiments|benchmarks|tests|docs"


def test_example_model(small, monkeypatch) -> None:
    text = README.read_text()
    section = text[text.index("## Add a model") :]
    source, line = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[:2]
    assert len(source.splitlines()) <= 30
    module = types.ModuleType("bag_of_facts")
    exec(source, module.__dict__)
    name, value = line.strip().rstrip(",").split(": ", maxsplit=1)
    name, spec = name.strip('"'), eval(value, {"Spec": Spec, "bag_of_facts": module})
    monkeypatch.setitem(MODELS, name, spec)

    data = laws.repeat_facts(small)
    laws.test_padding_never_changes_a_logit(name, data)
    laws.test_order_of_people_never_matters(name, data)
    laws.test_order_of_facts_matters_to_models_that_are_given_it_alone(name, data)

    train = ConfigDict(TRAIN | {"batch": 32})
    trainer = Trainer(spec, ConfigDict(spec.config), train, small, Replicas(2))
    state = trainer.init()
    losses = []
    for epoch in (1, 2, 3):
        state, metrics = trainer.epoch(state, epoch)
        losses.append(metrics["loss"])
    assert (losses[2] < losses[0]).all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.params))


def test_model_of_shared_layers(small, monkeypatch) -> None:
    text = (ROOT / "docs" / "own_model.md").read_text()
    (source,) = re.findall(r"```python\n(import jax\n.*?)```", text, re.DOTALL)
    module = types.ModuleType("one_round")
    exec(source, module.__dict__)
    spec = Spec(module.OneRound, "graph", as_settings(module.CONFIG))
    monkeypatch.setitem(MODELS, "one_round", spec)
    data = laws.repeat_facts(small)
    laws.test_padding_never_changes_a_logit("one_round", data)
    laws.test_order_of_people_never_matters("one_round", data)
    laws.test_order_of_facts_matters_to_models_that_are_given_it_alone("one_round", data)


def test_relations_and_rules() -> None:
    text = (ROOT / "docs" / "generator.md").read_text()
    section = text[text.index("## Relations and rules") :].partition("\n## ")[0]
    rules = re.findall(r"`([\w-]+)`, `([\w-]+)` \| `([\w-]+)`", section)
    assert len(rules) == 16 and {(p, q): r for p, q, r in rules} == RULES
    name = r"([\w-]+)"
    row = rf"^\| `{name}` \| {name}, {name} \| `{name}`:? ?(.*) \|$"
    rows = re.findall(row, section, re.MULTILINE)
    found = [name for row in rows for name in (*row[1:3], *filter(None, row[4].split(", ")))]
    assert sorted(found) == sorted(RELATIONS)
    for predicate, male, _, inverse, _ in rows:
        assert PREDICATES[PREDICATE_OF[RELATION_ID[male]]] == predicate
        assert PREDICATES[INVERSE[PREDICATE_OF[RELATION_ID[male]]]] == inverse


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_settings_exist(page: Path) -> None:
    config = get_config().to_dict()  # a grid: more settings than a run
    config["bag_of_facts"] = {"hidden": 100}
    for name in re.findall(r"--((?:config|slurm)(?:\.[a-z\d_]+)+)", page.read_text()):
        settings = {"config": config, "slurm": launcher.settings()}
        for part in name.replace("config.sweep.", "config.").split("."):
            assert part in settings, f"{page.name}: --{name}"
            settings = settings[part]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_and_files_exist(page: Path) -> None:
    text = page.read_text()
    for module in re.findall(r"python3? -m ([\w.]+)", text):
        if module not in ("venv", "pip", "uv"):
            assert find_spec(module), f"{page.name}: python -m {module}"
    for file in re.findall(rf"(?<![\w/])((?:{PACKAGES})/[\w/.-]*\w/?)", text):
        if file not in (EXAMPLE, TASK):
            assert (ROOT / file).exists(), f"{page.name}: {file}"
    for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", text):
        assert (page.parent / link).exists(), f"{page.name}: {link}"
    for target in re.findall(r"`make ([\w-]+)`|^make ([\w-]+)", text, re.MULTILINE):
        assert f"\n{''.join(target)}:" in (ROOT / "Makefile").read_text(), f"{page.name}: {target}"


def test_commands_for_language_models(small_folder, tmp_path, monkeypatch, capsys) -> None:
    """Commands of this project run in their order, on logs with the right answers. Those of the
    harnesses run in tests/language_models/test_harnesses.py."""
    monkeypatch.chdir(tmp_path)
    own = [words for words, _ in commands("docs/language_models.md") if words[0] == "python"]
    names = ["clutrr_jax.language_models"] * 3 + ["clutrr_jax.score"]
    assert [words[2] for words in own] == names
    for words in own:
        if words[2] == names[-1]:
            write_answers(tmp_path, load(small_folder).test)
        assert run(words, small_folder) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in ("answers", "ORGANIZATION__MODEL", "lab/model", "gat"):
        found = [line.split() for line in lines if f" {name} (1 replica)" in line]
        assert sum(line.count("1.00") for line in found) == 4


def write_answers(folder: Path, test: Records) -> None:
    """The predictions that docs/language_models.md scores."""
    lines = (folder / "exports/jsonl/prompts.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    answers = [row["target"] for row in rows]
    for name in ("logs/lm-eval", "logs/inspect", "runs/first/gat"):
        (folder / name).mkdir(parents=True)
    with (folder / "answers.jsonl").open("w") as file:
        for row in rows:
            file.write(json.dumps(row | {"prediction": f"Answer: {row['target']}"}) + "\n")
    write_lm_eval(folder / "logs/lm-eval/ORGANIZATION__MODEL", rows, [answers])
    write_inspect(folder / "logs/inspect/RUN.eval", inspect_log(rows, [answers]))
    best = test.target[None]
    predictions = Predictions(best, best, np.ones(best.shape))
    export_predictions(folder / "runs/first/gat/predictions.csv", predictions, test)


@pytest.mark.slow
def test_the_sweep_of_the_page_chooses_a_point(small_folder, tmp_path, monkeypatch) -> None:
    text = (ROOT / "docs/experiments.md").read_text()
    (code,) = re.findall(r"```python\n(.*?sweep=.*?)```", text, re.DOTALL)
    for written, here in (("data_089907f8.zip", str(small_folder)), ("epochs=20", "epochs=1")):
        assert written in code
        code = code.replace(written, here)
    monkeypatch.chdir(tmp_path)
    found: dict = {}
    exec(code, found)
    sweep = json.loads((tmp_path / "runs/sweep/gat/model.json").read_text())["sweep"]
    settings = found["best"].settings
    point = {"train.learning_rate": settings["train"]["learning_rate"],
             "dropout": settings["dropout"]}  # fmt: skip
    chosen = [each["settings"] for each in sweep["points"] if each["name"] == sweep["chosen"]]
    assert len(sweep["points"]) == 4 and chosen == [point]
    assert found["other"].settings["dropout"] == 0.1
