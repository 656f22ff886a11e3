"""Laws of NCRL: its chains of relations, one reduction worked out by hand, training on chains."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models.ncrl import NCRL, relation_chains, replace, select
from generator.relations.kinship import KINSHIP, NUM_RELATIONS, RELATION_ID
from tests.models.graphs import graphs, made_up
from tests.models.small import call, small_config

SIZES = Sizes(20, 30, KINSHIP)
PADDING = 2 * NUM_RELATIONS
FATHER, MOTHER, SON, SISTER = (RELATION_ID[r] for r in ("father", "mother", "son", "sister"))
CHAINS = {
    "one fact": ([(0, SON, 4)], [SON]),
    "chain, facts in any order": ([(1, SON, 4), (0, FATHER, 1)], [FATHER, SON]),
    "fact in the opposite direction": (
        [(1, FATHER, 0), (1, SON, 4)],
        [FATHER + NUM_RELATIONS, SON],
    ),
    "noise: a dangling fact and a longer chain": (
        [(0, MOTHER, 1), (1, SISTER, 2), (0, FATHER, 3), (3, SON, 4), (2, SON, 4)],
        [FATHER, SON],
    ),
    "two shortest chains": (
        [(0, SON, 1), (1, MOTHER, 4), (0, SON, 2), (2, FATHER, 4), (0, SISTER, 3), (3, FATHER, 4)],
        min([SON, FATHER], [SISTER, FATHER]),
    ),
    "cycle": ([(0, SON, 1), (1, FATHER, 0), (1, SISTER, 2), (2, SISTER, 4)], [SON, SISTER, SISTER]),
    "as long as possible": (
        [(0, SON, 3), (3, SISTER, 1), (1, MOTHER, 2), (2, SON, 4)],
        [SON, SISTER, MOTHER, SON],
    ),
    "not connected": ([(0, SON, 1), (2, MOTHER, 4)], []),
    "relation not stated": ([(0, SON, 1), (1, NUM_RELATIONS, 4)], []),
    "no facts": ([], []),
}


def test_chains_of_hand_worked_stories() -> None:
    stories, expected = zip(*CHAINS.values(), strict=True)
    batch = graphs(list(stories), [(0, 4)] * len(stories), people=5)
    types, length = relation_chains(batch, NUM_RELATIONS)
    found = {name: row[row < PADDING].tolist() for name, row in zip(CHAINS, types, strict=True)}
    assert found == dict(zip(CHAINS, expected, strict=True))
    assert types.shape == (len(CHAINS), 4)
    assert length.tolist() == [len(chain) for chain in expected]


def test_unconnected_query_has_equal_logits_and_no_gradient() -> None:
    batch = graphs([[(0, SON, 1)], [(0, SON, 2)]], [(0, 2), (0, 2)], people=3)
    model = NCRL(small_config("ncrl"), SIZES, rngs=nnx.Rngs(0))
    logits = call(model, batch)
    assert (logits[0] == logits[0, 0]).all() and np.ptp(logits[1]) > 1e-3
    grads = nnx.jit(nnx.grad(lambda model: model(batch)[0].sum()))(model)
    assert all((g == 0).all() for g in jax.tree.leaves(grads))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x) / np.exp(x).sum()


@pytest.mark.parametrize("selected", [0, 1])
def test_chain_of_three_equals_formulas(selected: int) -> None:
    """One window of a chain of three is composed, and then the last window is scored."""
    model = NCRL(small_config("ncrl", embedding=2), Sizes(20, 30, made_up(3)), rngs=nnx.Rngs(0))
    rng = np.random.default_rng(selected)
    for param in jax.tree.leaves(nnx.state(model), is_leaf=lambda x: isinstance(x, nnx.Variable)):
        param[...] = jnp.asarray(rng.normal(size=param.shape), jnp.float32)
    table, weight, score, kernel, bias, query, query_bias, key = (
        np.asarray(param[...])
        for param in (
            model.relation, model.weight, model.window_score.kernel, model.inputs.kernel,
            model.inputs.bias, model.query.kernel, model.query.bias, model.key.kernel,
        )
    )  # fmt: skip

    def encode(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        hidden = cell = np.zeros(2)
        for x in (first, second):
            gates = kernel.T @ x + bias + hidden @ weight
            i, f, g, o = gates.reshape(4, 2)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
            hidden = sigmoid(o) * np.tanh(cell)
        return hidden

    def attend(window: np.ndarray) -> np.ndarray:
        keys = np.stack([*table[:3], window]) @ key
        return keys @ (query.T @ window + query_bias) / 2**0.5

    a, b, c = table[[1, 5, 0]]  # 5 is the inverse of relation 2
    windows = [encode(a, b), encode(b, c)]
    # The sign of the scores decides which window is composed.
    sign = 1 if (np.stack(windows) @ score)[:, 0].argmax() == selected else -1
    model.window_score.kernel[...] = jnp.asarray(sign * score)
    composed = softmax(attend(windows[selected])) @ np.stack([*table[:3], windows[selected]])
    last = encode(composed, c) if selected == 0 else encode(a, composed)
    # Padding is ignored, and a chain of one relation is scored directly.
    types, length = jnp.array([[1, 5, 0, 6, 6], [4, 6, 6, 6, 6]]), jnp.array([3, 1])
    found = nnx.jit(NCRL.scores)(model, types, length)
    np.testing.assert_allclose(found, np.stack([attend(last), attend(table[4])]), rtol=1e-4)


def test_select_is_one_hot_with_the_gradient_of_the_softmax() -> None:
    score, value = jnp.array([0.2, 1.0, -3.0]), jnp.array([5.0, 2.0, 1.0])
    np.testing.assert_array_equal(select(score), [0.0, 1.0, 0.0])
    grad, expected = (
        jax.grad(lambda x, f=f: (f(x) * value).sum())(score) for f in (select, nnx.softmax)
    )
    np.testing.assert_allclose(grad, expected, rtol=1e-6)


def test_replace_is_linear_in_the_windows() -> None:
    chain = jnp.arange(1.0, 5.0)[None, :, None]  # 1 2 3 4
    composed = jnp.array([10.0, 20.0, 30.0])[None, :, None]
    each = [replace(chain, composed, jnp.eye(3)[None, i])[0, :, 0] for i in range(3)]
    np.testing.assert_array_equal(each, [[10, 3, 4], [1, 20, 4], [1, 2, 30]])
    weight = jnp.array([0.5, 0.2, 0.3])
    expected = weight @ jnp.stack(each)
    np.testing.assert_allclose(replace(chain, composed, weight[None])[0, :, 0], expected, rtol=1e-6)
