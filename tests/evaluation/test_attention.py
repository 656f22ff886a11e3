"""Attention weights of every model that has them, and their file."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from clutrr_jax.data.batching import GRAPHS, pack, plan_shapes
from clutrr_jax.evaluation.attention import attention_weights, read_attention, write_attention
from clutrr_jax.evaluation.extraction import read_extracted, write_extracted
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.models import MODELS
from tests.models.small import small_config

ATTENDING = [name for name, spec in MODELS.items() if hasattr(spec.model, "attention")]


def make(name: str, small) -> nnx.Module:
    model = MODELS[name].model(small_config(name), small.sizes, rngs=nnx.Rngs(1))
    model.eval()
    return model


@nnx.jit(static_argnames="shape")
def alone(model: nnx.Module, stories, rows: jax.Array, shape) -> jax.Array:
    return model.attention(pack(stories, rows, shape))


def parts(name: str, stories) -> list[slice]:
    """Slice of the facts or tokens of each story."""
    graphs = MODELS[name].kind in GRAPHS
    start = np.asarray(stories.edge_start if graphs else stories.token_start)
    size = np.asarray(stories.n_edge if graphs else stories.n_token)
    return [slice(a, a + n) for a, n in zip(start, size, strict=True)]


@pytest.mark.parametrize("name", ATTENDING)
def test_weights_are_in_0_1_and_independent_of_the_batch(name: str, few) -> None:
    model, kind = make(name, few), MODELS[name].kind
    stories = few.test_stories
    weights = attention_weights(model, kind, stories)
    assert (weights >= 0).all() and (weights <= 1).all()
    longest = plan_shapes(kind, stories, 1)[0][-1]
    for row in (0, 10, 19):
        mine = weights[parts(name, stories)[row]]
        assert mine.std() > 0
        same = alone(model, stories, jnp.array([row]), longest)[0, : len(mine)]
        np.testing.assert_allclose(mine, same, atol=1e-5)
        if kind == "tokens":
            assert mine.sum() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("name", ["gat", "bilstm_attention"])
def test_weights_round_trip_through_the_file(name: str, few, tmp_path) -> None:
    kind, model = MODELS[name].kind, make(name, few)
    write_attention(tmp_path, model, kind, few.test_stories)
    found = read_attention(tmp_path, few.test)
    assert found.over == ("facts" if kind in GRAPHS else "words")
    expected = attention_weights(model, kind, few.test_stories)
    np.testing.assert_allclose(np.concatenate(found.weights), expected, atol=1e-3)
    sizes = [part.stop - part.start for part in parts(name, few.test_stories)]
    assert [len(w) for w in found.weights] == sizes


def test_a_model_without_attention_or_extraction_writes_no_file(few, tmp_path) -> None:
    """A layer named attention, as in the relational memory core, is no method."""
    model = make("rmc", few)
    assert isinstance(model.attention, nnx.Linear)
    write_attention(tmp_path, model, "tokens", few.test_stories)
    write_extracted(tmp_path, model, "tokens", few)
    assert not list(tmp_path.iterdir())
    assert read_attention(tmp_path, few.test) is None
    assert read_extracted(tmp_path, GroundTruth(few.test)) is None
