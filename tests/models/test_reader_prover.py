"""Laws of the model that reads a graph off the text and reasons over it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import redraw_entities
from clutrr_jax.data.batching import TokenBatch, pack, plan_shapes
from clutrr_jax.data.vocabulary import FIRST_ENTITY
from clutrr_jax.evaluation.baselines import given_rules, predict_with_rules
from clutrr_jax.models import MODELS, pair_reader, reader_prover
from generator.kinship import RELATIONS

ROWS = jnp.array([0, 70, -1, 110, 33, 64])
TINY = {"edge_transformer": {"dim": 16, "layers": 3}}


def make(small, **changes) -> reader_prover.ReaderProver:
    """Its parameters changed, so that not all stories are alike to it."""
    config = ConfigDict(MODELS["reader_prover"].config | changes)
    for name, values in TINY.items():
        config[name].update(values)
    model = reader_prover.ReaderProver(config, small.sizes, rngs=nnx.Rngs(0))
    model.eval()
    rng = np.random.default_rng(1)
    params = nnx.state(model, nnx.Param)
    nnx.update(model, jax.tree.map(lambda p: p + 0.2 * rng.normal(size=p.shape), params))
    return model


def token_batch(stories, rows) -> TokenBatch:
    """Any of the rows in one batch, of the longest shape."""
    shapes, _ = plan_shapes("tokens", stories, len(rows))
    longest = {
        name: max(getattr(shape, name) for shape in shapes)
        for name in ("tokens", "people", "facts", "names")
    }
    return pack(stories, rows, shapes[0].__class__(len(rows), **longest))


def gold(batch: TokenBatch, relations: int) -> jax.Array:
    """What a perfect reader reads, [B, P, P, R]."""
    first, second, kind = np.moveaxis(np.asarray(batch.facts), -1, 0)
    size = batch.people.shape[1]
    graph = np.zeros((len(first), size, size, relations), np.float32)
    for row, fact in np.argwhere((kind >= 0) & (kind < relations)):
        graph[row, first[row, fact], second[row, fact], kind[row, fact]] = 1
    return jnp.asarray(graph / np.maximum(graph.sum(-1, keepdims=True), 1))


@pytest.mark.parametrize("reasoner", ["prover", "epignn", "edge_transformer"])
def test_with_a_perfect_reader_it_equals_the_reasoner_on_the_graph(small, reasoner) -> None:
    model, stories = make(small, reasoner=reasoner), small.train_stories
    batch = token_batch(stories, ROWS)
    text = jax.jit(model.answer)(batch, gold(batch, small.sizes.relations))
    shapes, _ = plan_shapes("graph", stories, len(ROWS))
    graph = jax.jit(model.reasoner)(pack(stories, ROWS, shapes[0]))
    real = np.asarray(ROWS) >= 0
    np.testing.assert_allclose(text[real], graph[real], atol=2e-5)
    assert np.ptp(graph[real], axis=0).max() > 1e-3


def test_with_a_perfect_reader_and_the_rules_it_answers_as_they_do(small) -> None:
    model = make(small, reasoner="rules")
    batch = token_batch(small.test_stories, jnp.arange(len(small.test)))
    answer = jax.jit(model.answer)(batch, gold(batch, small.sizes.relations)).argmax(-1)
    given = predict_with_rules(small.test, given_rules()).best[0]
    assert (np.asarray(answer) == given).mean() == 1.0
    assert (given == small.test.target).mean() > 0.95


def test_renaming_people_changes_nothing(small) -> None:
    model, stories = make(small), small.train_stories
    renamed = redraw_entities(stories, small.sizes.entities, jax.random.key(3))
    assert (np.asarray(renamed.tokens) != np.asarray(stories.tokens)).any()
    read = nnx.jit(lambda model, batch: (model.read(batch), model(batch)))
    for one, other in zip(
        read(model, token_batch(stories, ROWS)),
        read(model, token_batch(renamed, ROWS)),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
        assert np.ptp(one, axis=0).max() > 1e-3


def test_the_order_in_which_people_are_listed_changes_nothing(small) -> None:
    model, batch = make(small), token_batch(small.train_stories, ROWS)
    order = np.random.default_rng(0).permutation(batch.people.shape[1])
    moved = batch._replace(people=batch.people[:, order])
    read = nnx.jit(lambda model, batch: model.read(batch))
    np.testing.assert_allclose(
        read(model, batch)[:, order][:, :, order], read(model, moved), atol=1e-6
    )
    answer = nnx.jit(lambda model, batch: model(batch))
    np.testing.assert_allclose(answer(model, batch), answer(model, moved), atol=1e-5)


def test_what_is_read_are_chances_of_people_who_are_named(small) -> None:
    model, batch = make(small), token_batch(small.train_stories, ROWS)
    read = np.asarray(model.read(batch))
    assert (read >= 0).all() and (read.sum(-1) <= 1 + 1e-5).all()
    nobody = np.asarray(batch.people) < 0
    assert nobody.any() and not read[nobody].any() and not read.swapaxes(1, 2)[nobody].any()
    assert not read[:, np.arange(read.shape[1]), np.arange(read.shape[1])].any()
    assert read[0].any()


def test_a_guess_of_the_answer_itself_is_not_used(small) -> None:
    model, batch = make(small), token_batch(small.train_stories, ROWS)
    read = model.read(batch)
    rows = np.arange(len(ROWS))
    asked = (np.asarray(batch.people)[:, None] == np.asarray(batch.query)[:, :, None]).argmax(-1)
    guessed = read.at[rows, asked[:, 0], asked[:, 1], 5].set(1.0)
    np.testing.assert_array_equal(model.answer(batch, read), model.answer(batch, guessed))
    other = read.at[rows, asked[:, 0]].set(0.0)
    assert (model.answer(batch, read) != model.answer(batch, other)).any()


def test_the_loss_of_what_is_stated_by_hand(small) -> None:
    batch = token_batch(small.train_stories, jnp.array([0]))
    size, relations = batch.people.shape[1], 22
    facts = [(0, 1, 3), (1, 2, 7)]
    batch = batch._replace(facts=jnp.array([[*facts, (-1, -1, -1)]]))
    read = np.zeros((1, size, size, relations), np.float32)
    read[0, 0, 1, 3], read[0, 1, 2, 7], read[0, 1, 0, 5] = 0.5, 0.25, 0.9
    read[0, 0, 2, 1] = 0.75  # nothing is said of them
    least = reader_prover.LEAST
    silent = size * size - 4 - 1  # pairs of which nothing is stated and nothing is read
    wanted = -np.log([0.5 + least, 0.25 + least, 0.25 + least]).sum() - silent * np.log(1 + least)
    found = reader_prover.stated_loss(batch, jnp.asarray(read))
    np.testing.assert_allclose(found, [wanted], rtol=1e-5)


def test_gold_facts_are_learned_where_they_are_asked_for(small) -> None:
    """A few steps on the loss of what is stated bring the stated facts up."""
    model = make(small, gold=1.0, dropout=0.0, unknown=0.0)
    batch = token_batch(small.train_stories, jnp.arange(24))
    wanted = gold(batch, small.sizes.relations)

    @nnx.jit
    def step(model):
        grads = nnx.grad(lambda model: model.loss(batch).mean())(model)
        params = nnx.state(model, nnx.Param)
        nnx.update(model, jax.tree.map(lambda p, g: p - 0.02 * g, params, grads))
        return (model.read(batch) * wanted).sum() / wanted.sum()

    first = float(step(model))
    for _ in range(40):
        last = float(step(model))
    assert last > first + 0.2


def test_what_speaks_for_a_relation_speaks_for_its_inverses() -> None:
    of = pair_reader.INVERSES
    np.testing.assert_array_equal(of, of.T)  # the way back of the way back
    found = {name: {RELATIONS[r] for r in np.flatnonzero(of[RELATIONS.index(name)])}
             for name in ("daughter", "husband", "aunt", "brother")}  # fmt: skip
    assert found == {
        "daughter": {"father", "mother"}, "husband": {"husband", "wife"},
        "aunt": {"nephew", "niece"}, "brother": {"brother", "sister"},
    }  # fmt: skip


@pytest.mark.parametrize("order", ["first", "second"])
def test_a_word_near_two_names_speaks_both_ways(small, order) -> None:
    """ "[A], daughter [B]": B is A's daughter, and A is B's father or mother. The word between two
    names is about the second, unless what is learned says otherwise (`name_weight`)."""
    spec = MODELS["reader_prover"]
    model = spec.model(ConfigDict(spec.config | {"names": 40.0}), small.sizes, rngs=nnx.Rngs(0))
    model.eval()
    word = small.sizes.relation_words[RELATIONS.index("daughter")]
    if order == "first":
        model.reader.name_weight[...] = model.reader.name_weight[...][:, ::-1]
    tokens = jnp.array([[FIRST_ENTITY + 3, word, FIRST_ENTITY + 5]])
    batch = token_batch(small.train_stories, jnp.arange(1))._replace(
        tokens=tokens, mask=tokens > 0, people=jnp.array([[3, 5]]), named=jnp.array([[0, 2]])
    )
    read = np.asarray(model.read(batch))[0]
    parents = read[:, :, [RELATIONS.index("father"), RELATIONS.index("mother")]].sum(axis=-1)
    daughter = read[:, :, RELATIONS.index("daughter")]
    a, b = (0, 1) if order == "second" else (1, 0)  # b is the daughter
    assert daughter[a, b] > 0.9 and parents[b, a] > 0.9
    assert daughter[b, a] < 0.1 and parents[a, b] < 0.1
