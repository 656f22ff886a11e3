"""Laws of the reader-prover and its reader."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from clutrr_jax.data.arrays import redraw_entities
from clutrr_jax.data.batching import Shape, TokenBatch, pack, plan_shapes
from clutrr_jax.data.vocabulary import FIRST_ENTITY
from clutrr_jax.evaluation.baselines import given_rules, predict_with_rules
from clutrr_jax.models import pair_reader, reader_prover
from generator.kinship import RELATIONS
from tests.models.small import small_config

ROWS = jnp.array([0, 70, -1, 110, 33, 64])
_read = nnx.jit(lambda model, batch: model.read(batch))
_answer = nnx.jit(lambda model, batch, graph: model.answer(batch, graph))


def make(small, **changes) -> reader_prover.ReaderProver:
    """Model with parameters changed at random, as an initial prover knows no rules."""
    config = small_config("reader_prover", **changes)
    model = reader_prover.ReaderProver(config, small.sizes, rngs=nnx.Rngs(0))
    model.eval()
    rng = np.random.default_rng(1)
    params = nnx.state(model, nnx.Param)
    nnx.update(model, jax.tree.map(lambda p: p + 0.2 * rng.normal(size=p.shape), params))
    return model


def token_batch(stories, rows) -> TokenBatch:
    """Batch of any rows, of the largest shape."""
    shapes, _ = plan_shapes("tokens", stories, len(rows))
    longest = {
        name: max(getattr(shape, name) for shape in shapes)
        for name in ("tokens", "people", "facts", "names")
    }
    return jax.jit(pack, static_argnums=2)(stories, rows, Shape(len(rows), **longest))


def gold(batch: TokenBatch, relations: int) -> jax.Array:
    """Graph of the stated facts, [B, P, P, R]."""
    first, second, relation = np.moveaxis(np.asarray(batch.facts), -1, 0)
    size = batch.people.shape[1]
    graph = np.zeros((len(first), size, size, relations), np.float32)
    for row, fact in np.argwhere((relation >= 0) & (relation < relations)):
        graph[row, first[row, fact], second[row, fact], relation[row, fact]] = 1
    return jnp.asarray(graph / np.maximum(graph.sum(-1, keepdims=True), 1))


@pytest.mark.parametrize("reasoner", ["prover", "epignn", "edge_transformer"])
def test_gold_graph_gives_the_answer_of_the_reasoner_on_the_graph_batch(small, reasoner) -> None:
    model, stories = make(small, reasoner=reasoner), small.train_stories
    batch = token_batch(stories, ROWS)
    text = _answer(model, batch, gold(batch, small.sizes.relations))
    shapes, _ = plan_shapes("graph", stories, len(ROWS))
    graph = jax.jit(model.reasoner)(pack(stories, ROWS, shapes[0]))
    real = np.asarray(ROWS) >= 0
    np.testing.assert_allclose(text[real], graph[real], atol=2e-5)
    assert np.ptp(graph[real], axis=0).max() > 1e-3


def test_gold_graph_and_given_rules_equal_the_symbolic_baseline(small) -> None:
    model = make(small, reasoner="rules")
    batch = token_batch(small.test_stories, jnp.arange(len(small.test)))
    answer = _answer(model, batch, gold(batch, small.sizes.relations)).argmax(-1)
    given = predict_with_rules(small.test, given_rules()).best[0]
    assert (np.asarray(answer) == given).mean() == 1.0
    assert (given == small.test.target).mean() > 0.95


def test_renaming_people_changes_nothing(small) -> None:
    model, stories = make(small), small.train_stories
    renamed = redraw_entities(stories, small.sizes.entities, jax.random.key(3))
    assert (np.asarray(renamed.tokens) != np.asarray(stories.tokens)).any()
    old, new = (token_batch(some, ROWS) for some in (stories, renamed))
    graph, other_graph = _read(model, old), _read(model, new)
    np.testing.assert_array_equal(graph, other_graph)
    answer = _answer(model, old, graph)
    np.testing.assert_array_equal(answer, _answer(model, new, other_graph))
    assert np.ptp(graph, axis=0).max() > 1e-3 and np.ptp(answer, axis=0).max() > 1e-3


def test_the_order_of_people_changes_nothing(small) -> None:
    model, batch = make(small), token_batch(small.train_stories, ROWS)
    order = np.random.default_rng(0).permutation(batch.people.shape[1])
    moved = batch._replace(people=batch.people[:, order])
    graph, moved_graph = _read(model, batch), _read(model, moved)
    np.testing.assert_allclose(graph[:, order][:, :, order], moved_graph, atol=1e-6)
    answers = _answer(model, batch, graph), _answer(model, moved, moved_graph)
    np.testing.assert_allclose(*answers, atol=1e-5)


def test_extracted_graph_has_probabilities_of_pairs_of_people(small) -> None:
    model, batch = make(small), token_batch(small.train_stories, ROWS)
    graph = np.asarray(_read(model, batch))
    assert (graph >= 0).all() and (graph.sum(-1) <= 1 + 1e-5).all()
    padding = np.asarray(batch.people) < 0
    assert padding.any() and not graph[padding].any()
    assert not graph.swapaxes(1, 2)[padding].any()
    assert not graph[:, np.arange(graph.shape[1]), np.arange(graph.shape[1])].any()
    assert graph[0].any()


def test_extracted_fact_about_the_query_pair_is_not_used(small) -> None:
    model, batch = make(small), token_batch(small.train_stories, ROWS)
    graph = _read(model, batch)
    rows = np.arange(len(ROWS))
    query = (np.asarray(batch.people)[:, None] == np.asarray(batch.query)[:, :, None]).argmax(-1)
    with_answer = graph.at[rows, query[:, 0], query[:, 1], 5].set(1.0)
    answer = _answer(model, batch, graph)
    np.testing.assert_array_equal(answer, _answer(model, batch, with_answer))
    other = graph.at[rows, query[:, 0]].set(0.0)
    assert (answer != _answer(model, batch, other)).any()


def test_fact_loss_of_two_facts(small) -> None:
    batch = token_batch(small.train_stories, jnp.array([0]))
    size, relations = batch.people.shape[1], 22
    facts = [(0, 1, 3), (1, 2, 7)]
    batch = batch._replace(facts=jnp.array([[*facts, (-1, -1, -1)]]))
    graph = np.zeros((1, size, size, relations), np.float32)
    graph[0, 0, 1, 3], graph[0, 1, 2, 7], graph[0, 1, 0, 5] = 0.5, 0.25, 0.9
    graph[0, 0, 2, 1] = 0.75  # wrong: no fact about this pair is stated
    eps = reader_prover.EPSILON
    empty = size * size - 4 - 1  # pairs without a stated and without an extracted fact
    expected = -np.log([0.5 + eps, 0.25 + eps, 0.25 + eps]).sum() - empty * np.log(1 + eps)
    found = reader_prover.fact_loss(batch, jnp.asarray(graph))
    np.testing.assert_allclose(found, [expected], rtol=1e-5)


def test_setting_gold_trains_the_reader_on_stated_facts(small) -> None:
    """A few steps increase the extracted probability of the stated facts."""
    model = make(small, gold=1.0)
    batch = token_batch(small.train_stories, jnp.arange(16))
    stated = gold(batch, small.sizes.relations)

    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer):
        optimizer.update(model, nnx.grad(lambda model: model.loss(batch).mean())(model))
        return (model.read(batch) * stated).sum() / stated.sum()

    first = float(step(model, optimizer))
    for _ in range(40):
        last = float(step(model, optimizer))
    assert last > first + 0.2


def test_inverses_of_relations() -> None:
    inverses = pair_reader.INVERSES
    np.testing.assert_array_equal(inverses, inverses.T)
    found = {name: {RELATIONS[r] for r in np.flatnonzero(inverses[RELATIONS.index(name)])}
             for name in ("daughter", "husband", "aunt", "brother")}  # fmt: skip
    assert found == {
        "daughter": {"father", "mother"}, "husband": {"husband", "wife"},
        "aunt": {"nephew", "niece"}, "brother": {"brother", "sister"},
    }  # fmt: skip


@pytest.mark.parametrize("order", ["first", "second"])
def test_relation_word_between_two_names_is_evidence_in_both_directions(small, order) -> None:
    """ "[A], daughter [B]": B is A's daughter, and A is B's father or mother. Initially, the word
    between two names describes the second; `relation_word_weight` decides."""
    config = small_config("reader_prover", relation_word_prior=40.0)
    model = reader_prover.ReaderProver(config, small.sizes, rngs=nnx.Rngs(0))
    model.eval()
    word = small.sizes.relation_words[RELATIONS.index("daughter")]
    if order == "first":
        weight = model.reader.relation_word_weight
        weight[...] = weight[...][:, ::-1]
    tokens = jnp.array([[FIRST_ENTITY + 3, word, FIRST_ENTITY + 5]])
    batch = token_batch(small.train_stories, jnp.arange(1))._replace(
        tokens=tokens,
        mask=tokens > 0,
        people=jnp.array([[3, 5]]),
        name_positions=jnp.array([[0, 2]]),
    )
    graph = np.asarray(_read(model, batch))[0]
    parents = graph[:, :, [RELATIONS.index("father"), RELATIONS.index("mother")]].sum(axis=-1)
    daughter = graph[:, :, RELATIONS.index("daughter")]
    a, b = (0, 1) if order == "second" else (1, 0)  # b is the daughter
    assert daughter[a, b] > 0.9 and parents[b, a] > 0.9
    assert daughter[b, a] < 0.1 and parents[a, b] < 0.1
