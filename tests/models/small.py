"""Small settings of all models, and helpers for the tests of models."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
from flax import nnx
from ml_collections import ConfigDict

from clutrr_jax.data.batching import GRAPHS, Shape, count_names
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.models import MODELS

# Settings of any model that has them.
SETTINGS = {
    "embedding": 8, "hidden": 8, "readout": 12, "layers": 1, "heads": 2,
    "node": 8, "edge": 6, "iterations": 3, "g": 8, "head": 6, "key": 4, "dim": 8, "depth": 2,
    "memory": 8, "loops": 2, "dropout": 0.3, "word_dropout": 0.3,
}  # fmt: skip
OWN = {
    "edge_transformer": {"layers": 2},
    "gat": {"rounds": 2, "steps": 1},
    "nbfnet": {"width": 16, "layers": 3},
} | {name: {"rounds": 2} for name in ("gcn", "rgcn", "gnn_2018_mean", "gnn_2018_attention")}
OWN |= {
    f"ctp_{kind}": {"rules": 3, "depth": 1, "memory": 16, "share_genders": True}
    for kind in ("linear", "attentive", "memory")
}


def small_config(name: str, **changes: Any) -> ConfigDict:
    """Small settings of a model of the registry. `changes` override settings that it has."""
    return ConfigDict(_shrink(MODELS[name].config, SETTINGS | OWN.get(name, {}) | changes))


class Stories:
    """The part of `Records` that `encode_stories` reads."""

    def __init__(self, stories: list[str]):
        self.stories = stories
        names = [list(dict.fromkeys(re.findall(r"\[(.*?)\]", story))) for story in stories]
        self.names = [name for of_story in names for name in of_story]
        self.node_start = np.cumsum([0, *map(len, names)])
        self.entities = np.concatenate([np.arange(len(of_story)) for of_story in names])


def shape_for(kind: str, data: Prepared, rows: list[int], extra: int = 0) -> Shape:
    """Smallest shape that fits the rows, plus `extra` in every size but the stories."""
    stories = data.train_stories
    n_node, n_edge = np.asarray(stories.n_node)[rows], np.asarray(stories.n_edge)[rows]
    people, facts = int(n_node.max()) + extra, int(n_edge.max()) + extra
    if kind in GRAPHS:
        nodes, edges = int(n_node.sum()) + 1 + extra, int(n_edge.sum()) + extra
        shape = Shape(len(rows), nodes=nodes, edges=edges, people=people, facts=facts)
        if stories.compositions is None:
            return shape
        n_step = np.asarray(stories.compositions.size)[rows].sum(axis=0)
        return replace(shape, rounds=len(n_step), steps=int(n_step.max()) + extra)
    tokens = int(np.asarray(stories.n_token)[rows].max()) + extra
    names = int(count_names(stories)[rows].max()) + extra
    return Shape(len(rows), tokens=tokens, people=people, facts=facts, names=names)


@nnx.jit
def call(model, *inputs):
    """Output of a module, compiled."""
    return model(*inputs)


@nnx.jit
def loss_of(model, batch):
    """Training loss of each story, compiled."""
    return model.loss(batch)


def _shrink(config: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _shrink(value, values | OWN.get(name, {}))
        if isinstance(value, dict)
        else values.get(name, value)
        for name, value in config.items()
    }
