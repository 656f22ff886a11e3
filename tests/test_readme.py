"""The README's model of one's own is one that works."""

import re
import types
from pathlib import Path

import jax
import numpy as np
from ml_collections import ConfigDict

from clutrr_jax.models import MODELS, Spec
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.steps import build
from tests.models import test_models as laws
from tests.training.test_steps import TRAIN

README = Path(__file__).parent.parent / "README.md"


def test_a_model_of_ones_own(small_words, monkeypatch) -> None:
    text = README.read_text()
    section = text[text.index("### A model of one's own") :]
    source, line = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[:2]
    assert len(source.splitlines()) <= 30
    module = types.ModuleType("bag_of_facts")
    exec(source, module.__dict__)
    name, value = line.strip().rstrip(",").split(": ", maxsplit=1)
    name, spec = name.strip('"'), eval(value, {"Spec": Spec, "bag_of_facts": module})
    monkeypatch.setitem(MODELS, name, spec)

    laws.test_padding_never_changes_a_logit(name, small_words)
    laws.test_order_of_nodes_and_edges_never_matters(name, small_words)

    stories, replicas = small_words.train_stories, Replicas(2)
    train = ConfigDict(TRAIN)
    programs = build(spec, ConfigDict(spec.config), train, small_words.sizes, stories, replicas)
    state = programs.init()
    losses = []
    for epoch in (1, 2, 3):
        state, metrics = programs.epoch(state, epoch)
        losses.append(np.asarray(replicas.keep(metrics.loss)))
    assert (losses[2] < losses[0]).all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.params))
