"""Set prover: with the table of an algebra it is path consistency along the paths of the query."""

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models.set_prover import SetProver
from generator.relations.algebras import find_algebra
from generator.relations.path_consistency import possible_relations
from tests.models.graphs import Fact, graphs
from tests.models.small import call, small_config


def with_table(name: str) -> SetProver:
    """Model whose compositions are uniform over the heads of an algebra."""
    algebra = find_algebra(name)
    nothing = ~algebra.composition.any(axis=-1, keepdims=True)
    config = small_config("set_prover", scale=1.0, floor=1e-6)
    model = nnx.jit(lambda: SetProver(config, Sizes(20, 0, algebra), rngs=nnx.Rngs(0)))()
    model.table = nnx.Param(jnp.where(algebra.composition | nothing, 0.0, -50.0))
    return model


@pytest.mark.parametrize("name", ["rcc8", "interval"])
def test_relations_that_remain_are_those_of_path_consistency(name: str) -> None:
    """Three paths of two or three facts, and a fact that leads nowhere, between random pairs."""
    model, rng = with_table(name), np.random.default_rng(0)
    size = len(model.table[...])
    stories: list[list[Fact]] = []
    for _ in range(200):
        a, b, c, d, e, f, g, h = rng.integers(size, size=8).tolist()
        stories.append([(0, a, 1), (1, b, 5), (0, c, 2), (2, d, 5), (0, e, 3), (3, f, 4), (4, g, 5),
                        (2, h, 6)])  # fmt: skip
    logits = np.asarray(call(model, graphs(stories, [(0, 5)] * len(stories), 7)))[: len(stories)]
    facts = np.array(stories)
    query = np.tile([0, 5], (len(stories), 1))
    remain = possible_relations(facts[..., [0, 2]], facts[..., 1], query, find_algebra(name))
    remain = remain[remain.any(axis=-1)], logits[remain.any(axis=-1)]
    assert len(remain[0]) > 20
    for possible, logit in zip(*remain, strict=True):
        assert logit[possible].min() > logit[~possible].max(initial=-np.inf) + 1


def test_facts_that_are_not_stated_or_not_connected_say_nothing() -> None:
    model = with_table("rcc8")
    unstated = len(model.table[...])
    for facts in ([], [(2, 0, 1)], [(0, unstated, 1)], [(0, 3, 1), (1, unstated, 2)]):
        (logits,) = np.asarray(call(model, graphs([facts], [(0, 2)], 3)))[:1]
        np.testing.assert_allclose(logits, np.log(1 / unstated), atol=1e-4)
