"""NBFNet: its formulas written out for one person at a time, and how far the query person reaches.

Shapes: N people, D = width.
"""

import jax
import numpy as np
import pytest
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models.nbfnet import NBFNet
from tests.models.graphs import Fact, graphs, made_up
from tests.models.small import call, small_config

SIZES = Sizes(20, 30, made_up(4))
UNSTATED = SIZES.edge_types - 1
WIDTH = 8
# Facts between four people, the query pair is the first and the last one.
STORIES: dict[str, list[Fact]] = {
    "chain": [(0, 1, 1), (1, 2, 2), (2, 0, 3)],
    "fact in the opposite direction": [(1, 3, 0), (1, 2, 3)],
    "cycle, repeated facts, a fact about one person": [
        (0, 1, 1), (1, 2, 3), (1, 2, 3), (1, 3, 3), (3, 0, 0), (2, 2, 2),
    ],
    "person without facts": [(0, 1, 1), (1, UNSTATED, 3)],
    "no facts": [],
}  # fmt: skip


def random_model(layers: int) -> NBFNet:
    """Model whose biases and scales are random too."""
    config = small_config("nbfnet", width=WIDTH, layers=layers)
    model = nnx.jit(lambda: NBFNet(config, SIZES, rngs=nnx.Rngs(0)))()
    rng = np.random.default_rng(0)
    params = nnx.state(model)
    nnx.update(model, jax.tree.map(lambda p: p + 0.3 * rng.normal(size=p.shape), params))
    return model


def iteration(layer, x: np.ndarray, boundary: np.ndarray, facts: list[Fact]) -> np.ndarray:
    """New states [N, D] (Zhu et al. 2021, equation 6, with the aggregation of Corso et al.
    2020)."""
    relation = np.asarray(layer.relation[...])
    inverse = [(receiver, r + SIZES.edge_types, sender) for sender, r, receiver in facts]
    received = [
        [x[sender] * relation[r] for sender, r, receiver in facts + inverse if receiver == node]
        for node in range(len(x))
    ]
    log_degree = np.log([1 + len(messages) for messages in received])
    new = []
    for node, messages in enumerate(received):
        table = np.stack([*messages, boundary[node]])
        deviation = np.maximum(table.std(axis=0), 1e-3)
        scale = log_degree[node] / log_degree.mean() if facts else 0.0
        update = [
            statistic * scaler
            for statistic in (table.mean(axis=0), table.max(axis=0), table.min(axis=0), deviation)
            for scaler in (1, scale, 1 / max(scale, 0.01))
        ]
        out = np.concatenate([x[node], *update]) @ layer.update.kernel[...] + layer.update.bias[...]
        out = (out - out.mean()) / np.sqrt(out.var() + 1e-5)
        out = out * layer.norm.scale[...] + layer.norm.bias[...]
        new.append(x[node] + np.maximum(out, 0))
    return np.stack(new)


def test_nbfnet_equals_formulas() -> None:
    model = random_model(layers=3)
    batch = graphs(list(STORIES.values()), [(0, 3)] * len(STORIES), people=4)
    found = np.asarray(call(model, batch))
    for name, facts, logits in zip(STORIES, STORIES.values(), found, strict=True):
        x = boundary = np.stack([model.start[...], *np.zeros((3, WIDTH))])
        for layer in model.layers:
            x = iteration(layer, x, boundary, facts)
        hidden = np.maximum(x[3] @ model.hidden.kernel[...] + model.hidden.bias[...], 0)
        expected = hidden @ model.out.kernel[...] + model.out.bias[...]
        np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5, err_msg=name)
    assert np.ptp(found, axis=0).max() > 0.1


@pytest.mark.parametrize("layers", [2, 3])
def test_a_chain_of_three_facts_needs_three_layers(layers: int) -> None:
    """Otherwise the relation of the first fact does not reach the second query person."""
    model = random_model(layers)
    chains = [[(0, relation, 1), (1, 2, 2), (2, 0, 3)] for relation in range(3)]
    logits = np.asarray(call(model, graphs(chains, [(0, 3)] * 3, people=4)))
    difference = np.abs(logits[1:] - logits[0]).max(axis=1)
    assert (difference > 1e-2).all() if layers == 3 else (difference == 0).all()
