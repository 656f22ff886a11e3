"""Transformers: attention worked out pair by pair, loops, positions and relations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.vocabulary import FIRST_ENTITY
from clutrr_jax.models import MODELS
from clutrr_jax.models.transformer import FARTHEST, RAT, Attention, Encoder, Transformer, distances
from generator.relations.kinship import KINSHIP
from tests.models.graphs import graphs, made_up
from tests.models.small import call, small_config
from tests.models.tokens import PEOPLE, batch_of

B, T, D, K, L = 2, 4, 6, 2, 3
WORD = FIRST_ENTITY + PEOPLE
TEXT_SIZES = Sizes(PEOPLE, WORD + 6, KINSHIP)


def config_of(name: str = "rat", **changes):
    return small_config(name, **({"dim": D, "heads": K} | changes))


def draw(*shape: int, seed: int = 0) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape)


def test_attention_is_that_of_shaw_et_al() -> None:
    """Equations 3 and 4, computed for each pair of tokens."""
    model = Attention(config_of(), L, rngs=nnx.Rngs(0))
    model.out.kernel[...] = jnp.eye(D)
    x, relation = draw(B, T, D), nnx.softmax(draw(B, T, T, L, seed=1))
    mask = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], bool)
    size = D // K
    query, key, value = np.split(np.asarray(model.project(x)), 3, axis=-1)
    of_key, of_value = np.einsum("btsl,clkd->cbtskd", relation, model.table[...])
    expected = np.zeros((B, T, D))
    for b, t, k in np.ndindex(B, T, K):
        part = slice(k * size, (k + 1) * size)
        others = np.flatnonzero(mask[b])
        keys = [key[b, s, part] + of_key[b, t, s, k] for s in others]
        values = [value[b, s, part] + of_value[b, t, s, k] for s in others]
        weight = np.exp(np.array(keys) @ query[b, t, part] / size**0.5)
        expected[b, t, part] = weight / weight.sum() @ np.array(values)
    found = model(x, jnp.asarray(mask), relation)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("test_loops", "expected"), [(0, 2), (1, 1), (3, 3)])
def test_loops_share_their_layers_and_can_be_more_in_tests(test_loops: int, expected: int) -> None:
    config = config_of(loops=2, test_loops=test_loops, layers=2, dropout=0.0)
    model = Encoder(config, rngs=nnx.Rngs(0))
    x, mask = draw(B, T, D), jnp.ones((B, T), bool)

    def loops(count: int) -> jax.Array:
        state = x
        for _ in range(count):
            for layer in model.layers:
                state = layer(state, mask, None)
        return model.norm(state)

    np.testing.assert_allclose(model(x, mask), loops(2), rtol=1e-5, atol=1e-6)
    model.eval()
    np.testing.assert_allclose(model(x, mask), loops(expected), rtol=1e-5, atol=1e-6)


def test_distances_are_clipped_and_have_a_sign() -> None:
    found = np.asarray(distances(FARTHEST + 3).argmax(axis=-1)) - FARTHEST
    assert found[2, 2] == 0 and found[2, 5] == 3 and found[5, 2] == -3
    assert found[0, FARTHEST + 2] == FARTHEST and found[FARTHEST + 2, 0] == -FARTHEST


@pytest.mark.parametrize("positions", ["none", "relative"])
def test_order_of_words_matters_through_positions_alone(positions: str) -> None:
    config = config_of("transformer", positions=positions)
    model = Transformer(config, TEXT_SIZES, rngs=nnx.Rngs(0))
    model.eval()
    ordered = [FIRST_ENTITY, WORD, WORD + 1, FIRST_ENTITY + 1, WORD + 2]
    batch = batch_of([ordered, [ordered[i] for i in (3, 1, 4, 0, 2)]], len(ordered))
    first, second = call(model, batch)
    assert np.allclose(first, second, rtol=1e-5, atol=1e-5) == (positions == "none")


def test_relations_of_people_are_facts_in_both_directions() -> None:
    """Two facts about a pair, one about another pair, and a person whom no fact names."""
    model = RAT(config_of(), Sizes(20, 0, made_up(3)), rngs=nnx.Rngs(0))
    batch = graphs([[(0, 1, 1), (0, 2, 1), (1, 0, 2)]], [(0, 2)], people=4)
    found = np.asarray(model.relations(batch))[0]  # of 4 edge types, as many reversed, and oneself
    expected = np.zeros((4, 4, 9))
    expected[range(4), range(4), 8] = 1
    expected[0, 1, [1, 2]] = expected[1, 0, [5, 6]] = 0.5
    expected[1, 2, 0] = expected[2, 1, 4] = 1
    np.testing.assert_array_equal(found, expected)


def test_rat_tells_the_query_people_apart() -> None:
    model = MODELS["rat"].model(config_of(), Sizes(20, 0, KINSHIP), rngs=nnx.Rngs(0))
    model.eval()
    facts = [(0, 1, 1), (1, 2, 2)]
    forward, backward = call(model, graphs([facts, facts], [(0, 2), (2, 0)], people=3))
    assert np.abs(forward - backward).max() > 1e-3
