"""Laws that every model of the registry satisfies. Registering a model is enough to test it."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from clutrr_jax.data.arrays import Sizes, redraw_entities
from clutrr_jax.data.batching import GRAPHS, pack, targets
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.models import MODELS, edge_transformer, mac
from clutrr_jax.models.common import EntityVectors
from clutrr_jax.models.functional import ModelDef
from clutrr_jax.training.steps import loss_fn
from generator.relations.kinship import KINSHIP, NUM_RELATIONS
from tests.models.small import shape_for, small_config

GRAPH_MODELS = [name for name, spec in MODELS.items() if spec.kind in GRAPHS]
ROWS = [3, 70, 20, 110, 0]  # of the train stories; k = 2 and 3
KEY = jax.random.key(0, impl="unsafe_rbg")  # compiles faster than the default
_pack = jax.jit(pack, static_argnames="shape")


def repeat_facts(data: Prepared) -> Prepared:
    """Returns the stories with two more facts for each: another relation of the same two people,
    and one that is not stated."""
    stories = data.train_stories
    relation = np.asarray(stories.relation)
    relations = np.stack(
        [relation, (relation + 1) % NUM_RELATIONS, np.full_like(relation, NUM_RELATIONS)]
    )
    stories = stories._replace(
        edge_start=stories.edge_start * 3,
        n_edge=stories.n_edge * 3,
        senders=jnp.repeat(stories.senders, 3),
        receivers=jnp.repeat(stories.receivers, 3),
        relation=jnp.asarray(relations.T.ravel()),
    )
    return replace(data, train_stories=stories)


@pytest.fixture
def data(name: str, small_for) -> Prepared:
    """Small data set, with repeated facts, or with frozen states if the model needs them."""
    return repeat_facts(small_for(name)) if name in GRAPH_MODELS else small_for(name)


class Small:
    """Small version of a model with initial parameters, which include the entity vectors.

    The parameters of provers are changed at random: initially a prover knows no rules and predicts
    the same for all stories.
    """

    def __init__(self, name: str, data: Prepared, **changes: Any):
        self.spec, self.config = MODELS[name], small_config(name, **changes)
        self.data = data = replace(data, train_stories=self.spec.with_inputs(data.train_stories))
        self.definition = ModelDef(self.spec, self.config, data.sizes, learn_entities=True)
        self.params, self.buffers = jax.jit(self.definition.init)(KEY)
        if "prover" in name:
            rng = np.random.default_rng(0)
            self.params = jax.tree.map(
                lambda p: p + 0.2 * rng.normal(size=p.shape).astype("f4"), self.params
            )
        self._call = jax.jit(self.logits, static_argnames="training")

    def __call__(self, batch: Any, training: bool = False, key: jax.Array = KEY) -> np.ndarray:
        """Logits of a batch. `key` seeds the dropout of training mode."""
        return np.asarray(self._call(self.params, self.buffers, batch, key, training=training))

    def logits(self, params, buffers, batch, key, training: bool) -> jax.Array:
        model = self.definition.merge(params, buffers, key)
        model.train() if training else model.eval()
        return model(batch)

    def batch(self, rows: list[int] = ROWS, extra: int = 0, fit: list[int] = ROWS) -> Any:
        """Batch of these rows. All batches with the same `extra` have the same shape."""
        shape = shape_for(self.spec.kind, self.data, fit, extra)
        return _pack(self.data.train_stories, jnp.array(rows), shape)


_models: dict[str, Small] = {}


def make(name: str, data: Prepared) -> Small:
    """Small model, which is compiled once for all laws."""
    if name not in _models:
        _models[name] = Small(name, data)
    return _models[name]


@pytest.mark.parametrize("name", MODELS)
def test_padding_never_changes_a_logit(name: str, data) -> None:
    model = make(name, data)
    padded = model(model.batch(extra=2))
    np.testing.assert_allclose(model(model.batch()), padded, rtol=2e-6, atol=2e-6)
    assert np.ptp(padded, axis=0).max() > 1e-3


@pytest.mark.parametrize("name", MODELS)
def test_logits_do_not_depend_on_the_other_rows(name: str, data) -> None:
    """A batch equals its stories one by one, among padding rows, whose logits are finite too."""
    model = make(name, data)
    together = model(model.batch())
    assert together.shape == (len(ROWS), data.sizes.relations) and together.dtype == np.float32
    for i, row in enumerate(ROWS):
        rows = [-1] * len(ROWS)
        rows[-1 - i] = row
        out = model(model.batch(rows))
        np.testing.assert_allclose(together[i], out[-1 - i], rtol=1e-6, atol=2e-6)
        assert np.isfinite(out).all()


def shuffle_within(counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Permutation that keeps every element in its graph."""
    parts = np.split(np.arange(counts.sum()), np.cumsum(counts)[:-1])
    return np.concatenate([rng.permutation(part) for part in parts])


@pytest.mark.parametrize("name", GRAPH_MODELS)
def test_order_of_people_never_matters(name: str, data) -> None:
    model, rng = make(name, data), np.random.default_rng(0)
    batch = model.batch()
    n_node = np.asarray(batch.n_node)
    nodes = shuffle_within(n_node, rng)
    assert (nodes != np.arange(len(nodes))).any()
    people = np.array(batch.globals["people"])
    for count, row in zip(n_node, people, strict=True):
        row[:count] = rng.permutation(row[:count])
    new_index = jnp.asarray(np.argsort(nodes))
    globals_ = {"query": new_index[batch.globals["query"]], "people": new_index[people]}
    if model.spec.composes:
        steps = np.array(batch.globals["steps"])
        first = (np.cumsum(n_node) - n_node)[steps[..., :1]]
        moved_to = np.asarray(new_index)[np.minimum(first + steps[..., 1:], len(nodes) - 1)]
        steps[..., 1:] = np.maximum(moved_to - first, 0)  # the rows of padding have any position
        globals_["steps"] = jnp.asarray(steps)
    moved = batch._replace(
        nodes=batch.nodes | {"entity": batch.nodes["entity"][nodes]},
        senders=new_index[batch.senders],
        receivers=new_index[batch.receivers],
        globals=batch.globals | globals_,
    )
    np.testing.assert_allclose(model(batch), model(moved), rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize("name", GRAPH_MODELS)
def test_order_of_facts_matters_to_models_that_are_given_it_alone(name: str, data) -> None:
    model = make(name, data)
    batch = model.batch()
    edges = shuffle_within(np.asarray(batch.n_edge), np.random.default_rng(0))
    moved = batch._replace(
        edges={"relation": batch.edges["relation"][edges]},
        senders=batch.senders[edges],
        receivers=batch.receivers[edges],
    )
    ordered, shuffled = model(batch), model(moved)
    if "order of facts" in model.spec.given(model.spec.config):
        assert (np.abs(ordered - shuffled).max(axis=1) > 1e-3).all()
    else:
        np.testing.assert_allclose(ordered, shuffled, rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize("name", [m for m in GRAPH_MODELS if "entities" in MODELS[m].config])
def test_renaming_people_never_matters_without_entities(name: str, small) -> None:
    model = Small(name, small, entities=False)
    renamed = redraw_entities(small.train_stories, small.sizes.entities, KEY)
    moved = replace(model.data, train_stories=renamed)
    logits = model(model.batch())
    model.data = moved
    np.testing.assert_array_equal(logits, model(model.batch()))


@pytest.mark.parametrize("name", MODELS)
def test_dropout_applies_in_training_only(name: str, data) -> None:
    """Other random numbers give other logits in training mode, and the same in evaluation mode."""
    model, keys = make(name, data), jax.random.split(KEY)
    one, other = (model(model.batch(), training=False, key=key) for key in keys)
    np.testing.assert_array_equal(one, other)
    has_dropout = any("dropout" in setting for setting in model.config)
    one, other = (model(model.batch(), training=True, key=key) for key in keys)
    assert (one != other).any() == has_dropout


@pytest.mark.parametrize("name", MODELS)
def test_overfits_and_trains_every_parameter(name: str, small_for, monkeypatch) -> None:
    """The model fits a few stories with the loss of the trainer if the entity vectors are trained
    too. Every other parameter gets a gradient, and if there are entity vectors, some of them do."""
    monkeypatch.setattr(mac, "DROPOUT", 0.0)
    monkeypatch.setattr(edge_transformer, "WIDENING", 2)  # small, as the other sizes
    off = ("dropout", "word_dropout", "rule_dropout", "rule_penalty", "relation_word_penalty")
    model = Small(name, small_for(name), **dict.fromkeys(off, 0.0))
    rows = list(range(0, 120, 10))
    batch = model.batch(rows, fit=rows)
    target, _ = targets(batch)
    optimizer = optax.adam(4e-2 if "ctp" in name else 2e-2)

    def mean_loss(params: Any) -> jax.Array:
        return loss_fn(params, model.definition, model.buffers, batch, KEY) / len(rows)

    @jax.jit
    def steps(state: Any) -> tuple[Any, jax.Array]:
        def step(state: Any, _: None) -> tuple[Any, None]:
            params, opt_state, touched = state
            grads = jax.grad(mean_loss)(params)
            updates, opt_state = optimizer.update(grads, opt_state, params)
            touched = jax.tree.map(lambda t, g: t | (g != 0).any(), touched, grads)
            return (optax.apply_updates(params, updates), opt_state, touched), None

        state, _ = jax.lax.scan(step, state, length=20)
        out = model.logits(state[0], model.buffers, batch, KEY, training=False)
        return state, (out.argmax(axis=-1) == target).mean()

    params = model.params
    state = params, optimizer.init(params), jax.tree.map(lambda p: jnp.bool(False), params)
    for _ in range(8):
        state, accuracy = steps(state)
        if accuracy > 0.9:
            break
    assert accuracy > 0.9
    touched = {jax.tree_util.keystr(p): bool(t) for p, t in jax.tree.leaves_with_path(state[2])}
    variables = jax.tree.leaves(state[2], is_leaf=lambda x: isinstance(x, nnx.Variable))
    entity = [bool(x.get_value()) for x in variables if isinstance(x, EntityVectors)]
    untouched = [path for path, hit in touched.items() if not hit]
    assert len(untouched) == entity.count(False), untouched
    assert not entity or any(entity)


@pytest.mark.parametrize("name", MODELS)
def test_buffers_are_not_trained(name: str, small_for) -> None:
    """Without learned entities, the entity vectors are not among the parameters either."""
    definition = ModelDef(MODELS[name], small_config(name), small_for(name).sizes)
    params, buffers = jax.eval_shape(definition.init, KEY)
    leaves = partial(jax.tree.leaves, is_leaf=lambda x: isinstance(x, nnx.Variable))
    assert leaves(params) and all(isinstance(x, nnx.Param) for x in leaves(params))
    assert all(isinstance(x, EntityVectors) for x in leaves(buffers))


def test_tables_of_epignn_are_sharper_in_tests_than_in_training() -> None:
    model = MODELS["epignn"].model(small_config("epignn"), Sizes(20, 30, KINSHIP), rngs=nnx.Rngs(0))
    trained = np.asarray(model.composition())
    model.eval()
    tested = np.asarray(model.composition())
    peak = trained.argmax(axis=-1)
    np.testing.assert_array_equal(peak, tested.argmax(axis=-1))
    np.testing.assert_allclose(tested.sum(axis=-1), 1, rtol=1e-5)
    higher = tested.max(axis=-1) - trained.max(axis=-1)
    assert (higher[:, 1:, 1:] > 0).all() and not higher[:, 0].any()
    model.train()
    np.testing.assert_array_equal(trained, model.composition())
