"""Laws that every model of the registry keeps. A new model is tested by being registered."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import StoryArrays, redraw_entities
from clutrr_jax.data.batching import (
    GRAPHS,
    Shape,
    TokenBatch,
    count_names,
    pack,
    plan_shapes,
    targets,
)
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.models import MODELS
from clutrr_jax.models.common import Dropout, EntityVectors, Fixed, drop, split
from clutrr_jax.models.lstm import lstm
from clutrr_jax.training.checkpoints import Checkpoints

paths = jax.tree_util.tree_leaves_with_path
GRAPH_MODELS = [name for name, spec in MODELS.items() if spec.kind in GRAPHS]

# What of its full size would take minutes, and round off too much over the words to compare.
SMALLER = {"rmc": {"head": 16, "key": 8}, "edge_transformer": {"dim": 32, "layers": 3}}


@pytest.fixture
def small(name: str, small_for) -> Prepared:
    """As the model of the test reads it."""
    return small_for(name)


def make(name: str, small, **changes) -> nnx.Module:
    spec = MODELS[name]
    changes = SMALLER.get(name, {}) | changes
    model = spec.model(ConfigDict(spec.config | changes), small.sizes, rngs=nnx.Rngs(0))
    model.eval()
    return model


def make_unlike(name: str, small, **changes) -> nnx.Module:
    """One that does not answer every story alike, as provers do that know no rules yet."""
    model, rng = make(name, small, **changes), np.random.default_rng(0)
    if "prover" in name:
        params = nnx.state(model, nnx.Param)
        nnx.update(model, jax.tree.map(lambda p: p + 0.2 * rng.normal(size=p.shape), params))
    return model


def shape_for(name: str, small, rows: list[int], extra: int = 0) -> Shape:
    """The least shape for the rows, or one with `extra` more of everything but stories."""
    stories = small.train_stories
    real = np.array([row for row in rows if row >= 0])
    if MODELS[name].kind in GRAPHS:
        n_node = np.asarray(stories.n_node)[real]
        n_edge = np.asarray(stories.n_edge)[real]
        return Shape(
            stories=len(rows),
            nodes=int(n_node.sum()) + 1 + extra,
            edges=int(n_edge.sum()) + extra,
            people=int(n_node.max()) + extra,
            facts=int(n_edge.max()) + extra,
        )
    return Shape(
        stories=len(rows),
        tokens=int(np.asarray(stories.n_token)[real].max()) + extra,
        people=int(np.asarray(stories.n_node)[real].max()) + extra,
        facts=int(np.asarray(stories.n_edge)[real].max()) + extra,
        names=int(count_names(stories)[real].max()) + extra,
    )


@nnx.jit(static_argnames="shape")
def run(model: nnx.Module, stories: StoryArrays, rows: jax.Array, shape: Shape) -> jax.Array:
    return model(pack(stories, rows, shape))


def logits(model: nnx.Module, name: str, small, rows: list[int], extra: int = 0) -> np.ndarray:
    shape = shape_for(name, small, rows, extra)
    return np.asarray(run(model, small.train_stories, jnp.array(rows), shape))


@pytest.mark.parametrize("name", MODELS)
def test_shape_and_padding_rows(name: str, small) -> None:
    out = logits(make(name, small), name, small, [0, -1, 5, -1])
    assert out.shape == (4, small.sizes.relations) and out.dtype == np.float32
    assert np.isfinite(out).all()


@pytest.mark.parametrize("name", MODELS)
def test_padding_never_changes_a_logit(name: str, small) -> None:
    model, rows = make_unlike(name, small), [3, 70, 20, 110]
    padded = logits(model, name, small, rows, extra=13)
    np.testing.assert_allclose(logits(model, name, small, rows), padded, rtol=1e-6, atol=2e-6)
    assert np.ptp(padded, axis=0).max() > 1e-3


@pytest.mark.parametrize("name", MODELS)
def test_rows_without_a_story_never_change_a_logit(name: str, small) -> None:
    model = make_unlike(name, small)
    real = logits(model, name, small, [70, 110, 3])
    between = logits(model, name, small, [-1, 70, -1, 110, 3, -1])
    np.testing.assert_allclose(between[[1, 3, 4]], real, rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_equals_its_rows_one_by_one(name: str, small) -> None:
    model, rows = make_unlike(name, small), [0, 60, 61, 119, 7]
    together = logits(model, name, small, rows)
    shape = dataclasses.replace(shape_for(name, small, rows), stories=1)
    alone = [run(model, small.train_stories, jnp.array([row]), shape)[0] for row in rows]
    np.testing.assert_allclose(together, np.stack(alone), rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize("name", [name for name in GRAPH_MODELS if not MODELS[name].ordered])
def test_order_of_nodes_and_edges_never_matters(name: str, small) -> None:
    model, rows, rng = make_unlike(name, small), [62, 100], np.random.default_rng(0)
    batch = pack(small.train_stories, jnp.array(rows), shape_for(name, small, rows, extra=3))
    nodes = np.arange(len(batch.nodes["entity"]))
    start = 0
    for count in np.asarray(batch.n_node):  # people change places within their story
        rng.shuffle(nodes[start : start + count])
        start += int(count)
    new_place = np.argsort(nodes)
    edges = np.arange(len(batch.senders))
    start = 0
    for count in np.asarray(batch.n_edge):
        rng.shuffle(edges[start : start + count])
        start += int(count)
    assert (nodes != np.arange(len(nodes))).any() and (edges != np.arange(len(edges))).any()
    people = np.array(batch.globals["people"])
    for count, row in zip(np.asarray(batch.n_node), people, strict=True):
        row[:count] = rng.permutation(row[:count])  # and in the list of the story's people
    moved = batch._replace(
        nodes=batch.nodes | {"entity": batch.nodes["entity"][nodes]},
        edges={"relation": batch.edges["relation"][edges]},
        senders=jnp.asarray(new_place)[batch.senders[edges]],
        receivers=jnp.asarray(new_place)[batch.receivers[edges]],
        globals=batch.globals
        | {
            "query": jnp.asarray(new_place)[batch.globals["query"]],
            "people": jnp.asarray(new_place)[people],
        },
    )
    call = nnx.jit(lambda model, batch: model(batch))
    np.testing.assert_allclose(call(model, batch), call(model, moved), rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize("name", [m for m in GRAPH_MODELS if "entities" in MODELS[m].config])
def test_without_entities_renaming_never_matters(name: str, small) -> None:
    model, rows = make(name, small, entities=False), [0, 80]
    shape = shape_for(name, small, rows)
    renamed = redraw_entities(small.train_stories, small.sizes.entities, jax.random.key(0))
    np.testing.assert_array_equal(
        run(model, small.train_stories, jnp.array(rows), shape),
        run(model, renamed, jnp.array(rows), shape),
    )


@pytest.mark.parametrize("name", MODELS)
def test_overfits_and_trains_all_that_it_should(name: str, small) -> None:
    """64 stories are learned by heart, with the vectors of people learned too; every parameter has
    a gradient; what is fixed stays."""
    model = make(name, small, dropout=0.0)
    graph, params, other = split(model, learn_entities=True)
    kind = "graph" if MODELS[name].kind in GRAPHS else MODELS[name].kind
    shapes, _ = plan_shapes(kind, small.train_stories, 64)
    batch = pack(small.train_stories, jnp.arange(28, 92), max(shapes, key=lambda s: s.tokens))
    target, _ = targets(batch)
    rate = 1e-2 if kind == "graph" or name.startswith("reader_prover") else 3e-3
    optimizer = optax.adam(rate)

    def loss(params):
        out = nnx.merge(graph, params, other)(batch)
        return optax.softmax_cross_entropy_with_integer_labels(out, target).mean()

    @jax.jit
    def step(params, state):
        grads = jax.grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, grads

    state = optimizer.init(params)
    touched = jax.tree.map(lambda p: jnp.zeros(p.shape, bool), params)
    right = jax.jit(lambda params: nnx.merge(graph, params, other)(batch).argmax(-1) == target)
    for number in range(1, 301):
        params, state, grads = step(params, state)
        touched = jax.tree.map(lambda t, g: t | (g != 0), touched, grads)
        if number % 15 == 0 and right(params).mean() > 0.95:
            break
    assert right(params).mean() > 0.95
    tables = {jax.tree_util.keystr(path) for path, _ in paths(nnx.state(model, EntityVectors))}
    reached = {jax.tree_util.keystr(path): bool(t.any()) for path, t in paths(touched)}
    assert [path for path, hit in reached.items() if not hit and path not in tables] == []
    assert not tables or any(reached[path] for path in tables)
    learned = {jax.tree_util.keystr(path) for path, _ in paths(split(model)[1])}
    fixed = {jax.tree_util.keystr(path) for path, _ in paths(nnx.state(model, Fixed))}
    assert learned and not learned & fixed


@pytest.mark.parametrize("name", MODELS)
def test_saves_and_restores(name: str, small, tmp_path) -> None:
    """A new model takes up all that was saved of a changed one."""
    model, other, rng = make(name, small), make(name, small), np.random.default_rng(0)
    params = nnx.state(model, nnx.Param)
    nnx.update(model, jax.tree.map(lambda p: p + rng.normal(size=p.shape), params))
    Checkpoints(tmp_path / "c").save(1, nnx.state(model))
    wanted = logits(model, name, small, [0, 70])
    assert np.abs(logits(other, name, small, [0, 70]) - wanted).max() > 1e-3
    found = Checkpoints(tmp_path / "c").restore(nnx.state(other))
    assert found is not None
    nnx.update(other, found[1])
    np.testing.assert_array_equal(logits(other, name, small, [0, 70]), wanted)


def test_lstm_gradient_by_hand_equals_autodiff() -> None:
    steps, groups, batch, hidden = 5, 2, 3, 4
    keys = jax.random.split(jax.random.key(0), 3)
    inputs = jax.random.normal(keys[0], (steps, groups, batch, 4 * hidden))
    weight = jax.random.normal(keys[1], (groups, hidden, 4 * hidden))
    mask = (jnp.arange(steps)[:, None, None] < jnp.array([5, 3, 1])) * jnp.ones((1, groups, 1))
    aim = jax.random.normal(keys[2], (steps, groups, batch, hidden))

    def plain(inputs, weight):
        """The textbook recurrence, step by step."""
        h = c = jnp.zeros((groups, batch, hidden))
        out = []
        for t in range(steps):
            gates = inputs[t] + jnp.einsum("gbh,ghk->gbk", h, weight)
            i, f, g, o = jnp.split(gates, 4, axis=-1)
            c = mask[t][..., None] * (nnx.sigmoid(f) * c + nnx.sigmoid(i) * jnp.tanh(g))
            h = nnx.sigmoid(o) * jnp.tanh(c)
            out.append(h)
        return jnp.stack(out)

    def by(recurrence):
        return lambda inputs, weight: (recurrence(inputs, weight) * aim).sum()

    ours = by(lambda inputs, weight: lstm(inputs, weight, mask))
    np.testing.assert_allclose(ours(inputs, weight), by(plain)(inputs, weight), rtol=1e-5)
    for got, wanted in zip(
        jax.grad(ours, (0, 1))(inputs, weight), jax.grad(by(plain), (0, 1))(inputs, weight),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(got, wanted, atol=1e-5)


@pytest.mark.parametrize("name", ["bilstm_mean"])
def test_reading_backwards_starts_at_the_last_word(name: str, small) -> None:
    """The state of the first token depends on the last one, however much padding follows."""
    model = make(name, small)
    batch = pack(small.train_stories, jnp.array([0]), shape_for(name, small, [0], 9))
    assert isinstance(batch, TokenBatch)
    last = int(batch.mask.sum()) - 1
    changed = batch._replace(tokens=batch.tokens.at[0, last].set(batch.tokens[0, 0]))
    layer, mask = model.reader.layers[0], batch.mask.T
    first = layer(model.reader.embed(batch.tokens.T), mask)[0]
    other = layer(model.reader.embed(changed.tokens.T), mask)[0]
    hidden = first.shape[-1] // 2
    np.testing.assert_array_equal(first[:, :hidden], other[:, :hidden])
    assert (np.asarray(first[:, hidden:]) != np.asarray(other[:, hidden:])).any()


def test_dropout_keeps_its_share_and_the_mean() -> None:
    """Also where the last dimension is no multiple of the four parts of a random number."""
    layer = Dropout(0.3, rngs=nnx.Rngs(0))
    out = np.asarray(layer(jnp.ones((2000, 33))))
    kept = out > 0
    np.testing.assert_allclose(kept.mean(axis=0), 0.7, atol=0.05)
    np.testing.assert_allclose(out[kept], 256 / 179)
    assert abs(out.mean() - 1) < 0.01
    # Every place is drawn by itself, and every time anew.
    assert np.abs(np.corrcoef(kept.T) - np.eye(33)).max() < 0.12
    assert (np.asarray(layer(jnp.ones((2000, 33)))) != out).any()
    layer.eval()
    np.testing.assert_array_equal(layer(jnp.ones((3, 5))), 1.0)


def test_dropout_drawn_at_once_is_that_of_one_call_after_the_other() -> None:
    """And leaves the stream of random numbers where these would, where a byte does for one call."""
    one_by_one, at_once = (Dropout(0.4, rngs=nnx.Rngs(3)) for _ in range(2))
    x = jnp.ones((5, 7))
    wanted = [one_by_one(x) for _ in range(4)]
    found = [drop(x, drawn) for drawn in at_once.draw(3, *x.shape)] + [at_once(x)]
    np.testing.assert_array_equal(jnp.stack(found), jnp.stack(wanted))
    assert (wanted[0] != wanted[1]).any()
    at_once.eval()
    np.testing.assert_array_equal(drop(x, at_once.draw(1, *x.shape)[0]), x)


@pytest.mark.parametrize("rate", [0.5, 0.75, 0.25, 0.125, 1.0])
def test_dropout_of_calls_that_share_bytes_is_drawn_for_each(rate: float) -> None:
    layer, x = Dropout(rate, rngs=nnx.Rngs(0)), jnp.ones((4000, 9))
    kept = np.stack([drop(x, drawn) for drawn in layer.draw(11, *x.shape)]) > 0
    np.testing.assert_allclose(kept.mean(axis=1), 1 - rate, atol=0.04)
    if rate < 1:  # every call and every place is drawn by itself
        columns = kept.transpose(1, 0, 2).reshape(len(x), -1)
        assert np.abs(np.corrcoef(columns.T) - np.eye(columns.shape[1])).max() < 0.1
