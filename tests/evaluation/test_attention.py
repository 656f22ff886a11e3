"""Attention weights of every model that has them, and their file."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from ml_collections import ConfigDict

from clutrr_jax.data.batching import GRAPHS, pack, plan_shapes
from clutrr_jax.evaluation.attention import FILE, attend, read_attention, write_attention
from clutrr_jax.models import MODELS
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.steps import build
from generator.errors import InputError
from tests.training.test_steps import SMALL, TRAIN

ATTENDING = [name for name, spec in MODELS.items() if hasattr(spec.model, "attention")]


def config_for(name: str) -> ConfigDict:
    """A small configuration."""
    small = SMALL["gat" if MODELS[name].kind in GRAPHS else "bilstm_mean"]
    own = MODELS[name].config
    return ConfigDict(own | {key: value for key, value in small.items() if key in own})


def make(name: str, small) -> nnx.Module:
    model = MODELS[name].model(config_for(name), small.sizes, rngs=nnx.Rngs(1))
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


def test_the_models_shown_on_the_page_have_attention() -> None:
    assert {"gat", "bilstm_attention"} <= set(ATTENDING)


@pytest.mark.parametrize("name", ATTENDING)
def test_weights_are_in_0_1_and_independent_of_the_batch(name: str, small) -> None:
    model, kind = make(name, small), MODELS[name].kind
    stories = small.test_stories
    weights = attend(model, kind, stories)
    assert (weights >= 0).all() and (weights <= 1).all()
    longest = plan_shapes(kind, stories, 1)[0][-1]
    for row in (0, 33, 79):
        mine = weights[parts(name, stories)[row]]
        assert mine.std() > 0
        same = alone(model, stories, jnp.array([row]), longest)[0, : len(mine)]
        np.testing.assert_allclose(mine, same, atol=1e-5)
        if kind == "tokens":
            assert mine.sum() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("name", ATTENDING)
def test_the_file_holds_the_weights_of_the_first_replica(name: str, small, tmp_path) -> None:
    spec, config = MODELS[name], config_for(name)
    replicas = Replicas(2)
    programs = build(spec, config, ConfigDict(TRAIN), small.sizes, small.train_stories, replicas)
    state = programs.init()
    write_attention(tmp_path, spec, config, small, state)
    found = read_attention(tmp_path, small.test)
    assert found.over == ("facts" if spec.kind in GRAPHS else "words")
    model = make(name, small)
    nnx.update(model, jax.tree.map(lambda a: a[0], state.best_params))
    nnx.update(model, jax.tree.map(lambda a: a[0], state.other))
    expected = attend(model, spec.kind, small.test_stories)
    np.testing.assert_allclose(np.concatenate(found.weights), expected, atol=1e-3)
    sizes = [part.stop - part.start for part in parts(name, small.test_stories)]
    assert [len(w) for w in found.weights] == sizes
    with pytest.raises(InputError, match="written for other stories"):
        read_attention(tmp_path, small.test.select(np.arange(79)))
    (tmp_path / FILE).write_bytes(b"PK")
    with pytest.raises(InputError, match="damaged"):
        read_attention(tmp_path, small.test)


def test_a_model_without_attention_writes_no_file(small, tmp_path) -> None:
    write_attention(tmp_path, MODELS["gcn"], None, small, None)
    assert not list(tmp_path.iterdir()) and read_attention(tmp_path, small.test) is None
