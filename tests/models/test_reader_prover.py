"""Laws of the reader-prover and its reader."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from clutrr_jax.data.arrays import redraw_entities, with_compositions
from clutrr_jax.data.batching import Shape, TokenBatch, pack, plan_shapes
from clutrr_jax.data.dataset import load
from clutrr_jax.data.prepare import prepare
from clutrr_jax.data.vocabulary import FIRST_ENTITY, build_vocabulary
from clutrr_jax.evaluation.baselines import predict_with
from clutrr_jax.models import reader_prover
from clutrr_jax.models.check import check_model
from clutrr_jax.models.fact_reader import NEAR, SILENT
from clutrr_jax.settings import default_settings
from generator.errors import InputError
from generator.relations.kinship import INVERSE, KINSHIP, PREDICATE_ID, PREDICATE_OF, RELATIONS
from tests.models.small import small_config

ROWS = jnp.array([0, 70, -1, 110, 33, 64])
_read = nnx.jit(lambda model, batch: model.read(batch))
_word_facts = nnx.jit(lambda model, batch: model.word_facts(batch))
_answer = nnx.jit(lambda model, batch, graph: model.answer(batch, graph))
_pairs = nnx.jit(lambda reader, *arguments: reader._pairs(*arguments))


def untrained(small, **changes) -> reader_prover.ReaderProver:
    """Model with its initial parameters."""
    config = small_config("reader_prover", **changes)
    model = reader_prover.ReaderProver(config, small.sizes, rngs=nnx.Rngs(0))
    model.eval()
    return model


def make(small, **changes) -> reader_prover.ReaderProver:
    """Model with parameters changed at random, as an initial prover knows no rules."""
    model, rng = untrained(small, **changes), np.random.default_rng(1)
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


def gold(model: reader_prover.ReaderProver, batch: TokenBatch) -> jax.Array:
    """Graph of the stated facts, [B, P, P, R]."""
    return reader_prover.stated_graph(batch, model.reader.relations)


def test_stories_of_other_relations_are_refused() -> None:
    """Before the training: the reader knows words for kinship only."""
    row = {
        "story": "[a] is inside [b]. [b] is apart from [c].",
        "facts": [("a", "NTPP", "b"), ("b", "DC", "c")],
        "query": ("a", "c"),
        "target": "DC",
    }
    data = prepare(load({"train": [row] * 4, "test": [row]}))
    config = default_settings("tests", "reader_prover")
    with pytest.raises(InputError, match=r"^reader_prover: reads words for relations of kinship"):
        check_model("reader_prover", config, data)


def test_gold_graph_gives_the_answer_of_the_prover_on_the_graph_batch(small) -> None:
    model, stories = make(small), small.train_stories
    batch = token_batch(stories, ROWS)
    text = _answer(model, batch, gold(model, batch))
    stories = with_compositions(stories)
    shapes, _ = plan_shapes("graph", stories, len(ROWS))
    graph = jax.jit(model.reasoner)(pack(stories, ROWS, shapes[0]))
    real = np.asarray(ROWS) >= 0
    np.testing.assert_allclose(text[real], graph[real], atol=2e-5)
    assert np.ptp(graph[real], axis=0).max() > 1e-3


def test_gold_graph_and_given_rules_equal_the_symbolic_baseline(small) -> None:
    model = make(small, reasoner="rules")
    batch = token_batch(small.test_stories, jnp.arange(len(small.test)))
    answer = _answer(model, batch, gold(model, batch)).argmax(-1)
    given = predict_with(KINSHIP, small.test).relation[0]
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
    facts, renamed_facts = _word_facts(model, old), _word_facts(model, new)
    jax.tree.map(np.testing.assert_array_equal, facts, renamed_facts)
    assert np.ptp(facts[0], axis=(0, 1)).min() > 1


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
    assert size > 3
    # The data set does not say which relation the story states between 2 and 3.
    facts = [(0, 1, 3), (1, 2, 7), (2, 3, relations)]
    batch = batch._replace(facts=jnp.array([[*facts, (-1, -1, -1)]]))
    graph = np.zeros((1, size, size, relations), np.float32)
    graph[0, 2, 3, 9], graph[0, 3, 2, 9] = 0.6, 0.4
    graph[0, 0, 1, 3], graph[0, 1, 2, 7], graph[0, 1, 0, 5] = 0.5, 0.25, 0.9
    graph[0, 0, 2, 1] = 0.75  # wrong: no fact about this pair is stated
    eps = reader_prover.EPSILON
    empty = size * size - 6 - 1  # pairs without a stated and without an extracted fact
    expected = -np.log([0.5 + eps, 0.25 + eps, 0.25 + eps]).sum() - empty * np.log(1 + eps)
    found = reader_prover.fact_loss(batch, jnp.asarray(graph))
    np.testing.assert_allclose(found, [expected], rtol=1e-5)


def of_tokens(small, *tokens: int) -> TokenBatch:
    """Batch of one story of these tokens. Negative tokens -1, -2 are the names of its people."""
    entities = {-1: 3, -2: 5, -3: 1}
    people = sorted({token for token in tokens if token < 0}, reverse=True)
    ids = jnp.array([[FIRST_ENTITY + entities[t] if t < 0 else t for t in tokens]])
    positions = [i for i, token in enumerate(tokens) if token < 0]
    return token_batch(small.train_stories, jnp.arange(1))._replace(
        tokens=ids,
        mask=ids > 0,
        people=jnp.array([[entities[person] for person in people]]),
        name_positions=jnp.array([positions]),
    )


def word(small, relation: str) -> int:
    return build_vocabulary(small.train, small.sizes.entities).token_ids()[relation]


def test_a_relation_word_initially_states_its_relation_in_either_direction(small) -> None:
    """[A] daughter [B]: one of them is the daughter of the other; without roles, both are as
    probable. The parent's gender is unknown."""
    batch = of_tokens(small, -1, word(small, "daughter"), -2)
    graph = np.asarray(_read(untrained(small, relation_word_prior=40.0), batch))[0]
    daughter, son, father, mother = (
        graph[:, :, RELATIONS.index(name)] for name in ("daughter", "son", "father", "mother")
    )
    np.testing.assert_allclose(daughter + son + father + mother, 1 - np.eye(2), atol=0.02)
    np.testing.assert_allclose(daughter, daughter.T, atol=1e-4)
    assert not np.isclose(daughter[0, 1], 0, atol=0.2)


def test_departure_from_the_predicates_of_relation_words(small) -> None:
    """[A] daughter [B] brother [A], where the predicate "sibling" has three times the probability
    of "child" at "daughter": log 4 for "daughter", nothing for "brother" and all other words."""
    model = untrained(small, relation_word_prior=40.0)
    words = word(small, "daughter"), word(small, "brother")
    extract = nnx.jit(lambda model, batch: model.reader.extract(batch))
    batch = of_tokens(small, -1, words[0], -2, words[1], -1)
    graph, departure = extract(model, batch)
    np.testing.assert_array_equal(graph, _read(model, batch))
    np.testing.assert_allclose(departure, [0], atol=1e-4)
    bias = model.reader.meaning.bias
    bias[...] = bias[...].at[1 + PREDICATE_ID["sibling"]].set(40 + np.log(3))
    np.testing.assert_allclose(extract(model, batch)[1], [np.log(4)], rtol=1e-4)
    silent = of_tokens(small, -1, FIRST_ENTITY + small.sizes.entities, -2)
    assert extract(model, silent)[1] == 0


def test_possessives_and_of_show_the_holder(small) -> None:
    """[A] 's daughter [B], [A] has a daughter [B], and [B], daughter of [A]: B is the daughter."""
    model = untrained(small, relation_word_prior=40.0, syntax_prior=20.0)
    tokens = build_vocabulary(small.train, small.sizes.entities).token_ids()
    daughter = word(small, "daughter")
    for text in (
        (-1, tokens["'s"], daughter, -2),
        (-1, tokens["has"], tokens["a"], daughter, -2),
        (-2, daughter, tokens["of"], -1),
    ):
        graph = np.asarray(_read(model, of_tokens(small, *text)))[0]
        assert graph[0, 1, RELATIONS.index("daughter")] > 0.9
        assert graph[1, 0, RELATIONS.index("daughter")] < 0.1


@pytest.mark.parametrize("relation", ["uncle", "husband"])
def test_the_fact_of_a_word_is_that_of_the_graph(small, relation) -> None:
    """[A] uncle [B], where the name after a word is its bearer and only the relation word states a
    fact, with logit 0.7: B is an uncle of A, and A is as probably a nephew as a niece of B."""
    model = untrained(small, relation_word_prior=40.0)
    place, bias = model.reader.place, model.reader.meaning.bias
    place[...] = jnp.zeros_like(place[...]).at[1, NEAR:].set(40.0)
    bias[...] = bias[...].at[0].set(0.7 - 40.0 - SILENT)
    batch = of_tokens(small, -1, word(small, relation), -2)
    (fact,), (probability,) = map(np.asarray, _word_facts(model, batch))
    stated = RELATIONS.index(relation)
    assert fact[1].tolist() == [0, stated, 1]
    expected = [0, 1 / (1 + np.exp(-0.7)), 0]
    np.testing.assert_allclose(probability, expected, atol=1e-5)
    graph = np.asarray(_read(model, batch))[0]
    np.testing.assert_allclose(graph[0, 1, stated], expected[1], atol=1e-5)
    np.testing.assert_allclose(graph[0, 1].sum(), expected[1], atol=1e-5)
    inverse = INVERSE[PREDICATE_OF[stated]] == PREDICATE_OF
    np.testing.assert_allclose(graph[1, 0], inverse * expected[1] / 2, atol=1e-4)


def test_each_word_states_at_most_one_fact(small) -> None:
    """Several mentions of a person add up; no person is related to themselves."""
    model = make(small, relation_word_prior=40.0)
    batch = of_tokens(small, -1, word(small, "aunt"), -2, -1, -3)
    words = jax.random.normal(jax.random.key(0), (1, 5, 16 + 8))
    names = jax.random.normal(jax.random.key(1), (1, 4, 16))
    is_person = jax.nn.one_hot(jnp.array([[0, 1, 0, 2]]), 3)
    pairs = np.asarray(_pairs(model.reader, batch, words, names, is_person))[0]
    np.testing.assert_allclose(pairs.sum(axis=(1, 2)), 1, rtol=1e-5)
    assert not pairs[:, range(3), range(3)].any() and (pairs >= 0).all()


def test_people_far_from_a_word_are_not_considered(small) -> None:
    """Longer stories have more names; only the nearest ones compete for a word."""
    model = make(small, relation_word_prior=40.0)
    near = of_tokens(small, *[-1, -2] * NEAR, word(small, "aunt"), *[-1, -2] * NEAR)
    far = of_tokens(small, -3, *[-1, -2] * NEAR, word(small, "aunt"), *[-1, -2] * NEAR, -3)
    reader = model.reader

    def pairs(batch: TokenBatch, first: int) -> np.ndarray:
        count, size = batch.name_positions.shape[1], batch.people.shape[1]
        steps = batch.tokens.shape[1]
        words = jnp.ones((1, steps, 16 + 8))
        names = jnp.broadcast_to(jnp.arange(count)[None, :, None] - first, (1, count, 16)) / 9
        index = (batch.tokens[:, batch.name_positions[0]] - FIRST_ENTITY)[..., None]
        is_person = (index == batch.people[:, None]).astype(float)
        found = _pairs(reader, batch, words, names, is_person)
        assert found.shape == (1, steps, size, size)
        return np.asarray(found)[0, first + 2 * NEAR]  # of the relation word

    one, other = pairs(near, 0), pairs(far, 1)
    np.testing.assert_allclose(one, other[:2, :2], rtol=1e-4)
    assert not other[2].any() and not other[:, 2].any()


def test_words_without_two_people_state_nothing(small) -> None:
    model = make(small, relation_word_prior=40.0)
    graph = _read(model, of_tokens(small, -1, word(small, "aunt"), -1))
    assert not np.asarray(graph).any()
