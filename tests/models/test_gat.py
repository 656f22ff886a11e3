"""Graph attention equals its formulas, and its weights are those of the edges."""

import jax.numpy as jnp
import jraph
import numpy as np
import pytest
from flax import nnx

from clutrr_jax.models.common import Messages
from clutrr_jax.models.gat import GAT, AttentionStep
from tests.models.small import small_config

NODES, TYPES, DIM = 6, 5, 6
# Duplicate edges, an edge from a node to itself, and no edges at node 4; node 5 is padding.
# Rows: sender, receiver, type.
EDGES = Messages(*jnp.array([
    (0, 1, 0), (0, 1, 0), (0, 1, 2), (2, 1, 3), (3, 2, 1), (3, 3, 1), (1, 0, 0), (5, 5, 0),
    (5, 5, 0),
]).T)  # fmt: skip


@pytest.mark.parametrize(
    ("node", "received"), [(1, [(0, 0), (0, 0), (0, 2), (2, 3)]), (3, [(3, 1)]), (4, [])]
)
def test_graph_attention_equals_formulas(node: int, received: list[tuple[int, int]]) -> None:
    """One node, for each head: e_ij = LeakyReLU(a . [W x_i, W x_j, U r_ij]), softmax over j, and
    ELU(sum_j softmax(e)_ij (W x_j + U r_ij) + b) (Velickovic et al. 2018, equations 3 to 5; Sinha
    et al. 2019, appendix 1.1)."""
    heads = 2
    step = AttentionStep(DIM, 4, heads, rngs=nnx.Rngs(0))
    step.bias[...] = jnp.linspace(-1, 1, DIM)
    rng = np.random.default_rng(0)
    x, table = rng.normal(size=(NODES, DIM)), rng.normal(size=(TYPES, 4))
    new, weight = step(jnp.asarray(x), jnp.asarray(table), EDGES)

    value, edge = x @ step.node.kernel[...], table @ step.edge.kernel[...]
    incoming = [*received, (node, TYPES - 1)]
    expected, weights = [], []
    for head in range(heads):
        features = slice(head * DIM // heads, (head + 1) * DIM // heads)
        a = np.concatenate([step.attend[:, part * heads + head] for part in range(3)])
        score = np.array([
            a @ np.concatenate([value[node, features], value[j, features], edge[r, features]])
            for j, r in incoming
        ])  # fmt: skip
        score = np.exp(np.where(score > 0, score, 0.2 * score))
        softmax = score / score.sum()
        weights.append(softmax[:-1])
        total = sum(
            w * (value[j] + edge[r])[features] for w, (j, r) in zip(softmax, incoming, strict=True)
        )
        total = total + step.bias[features]
        expected.append(np.where(total > 0, total, np.exp(total) - 1))
    np.testing.assert_allclose(new[node], np.concatenate(expected), rtol=1e-4, atol=1e-5)
    of_node = weight[EDGES.receivers == node]
    np.testing.assert_allclose(of_node, np.stack(weights, axis=1), rtol=1e-4)


def test_attention_weights_sum_over_the_edges_of_a_receiver(small) -> None:
    """With messages in both directions, those against a fact end in another node and have weights
    of their own."""
    model = GAT(small_config("gat", directions="both"), small.sizes, rngs=nnx.Rngs(0))
    model.eval()
    batch = jraph.GraphsTuple(
        nodes={"entity": jnp.array([3, 4, 5])},
        edges={"relation": jnp.array([0, 1, 1])},
        senders=jnp.array([0, 1, 1]),
        receivers=jnp.array([1, 2, 2]),
        n_node=jnp.array([3]),
        n_edge=jnp.array([3]),
        globals={},
    )
    first, second, third, *back = model._propagate(batch)[1]
    assert 0 < first < 1 and second == third and second + third < 1
    assert len(back) == 3 and back[1] == back[2] and back[0] != first
