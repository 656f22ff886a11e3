"""Text models on examples that are worked out by hand, and equal to plain definitions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.data.vocabulary import FIRST_ENTITY, PAD, UNKNOWN
from clutrr_jax.models import MODELS
from clutrr_jax.models.bert import story_mean
from clutrr_jax.models.bilstm import BiLSTMModel
from clutrr_jax.models.common import EntityEmbedding
from clutrr_jax.models.gnn_2018 import (
    GNN2018,
    OWN_POSITION,
    SHARED_POSITION,
    find_gaps,
    maximum,
)
from clutrr_jax.models.lstm import LSTM, BiLSTM, TokenEmbedding
from clutrr_jax.models.mac import MAC
from clutrr_jax.models.reader import query_states
from clutrr_jax.models.reader_prover import ReaderProver, fact_loss
from clutrr_jax.models.relation_network import sentence_ends
from clutrr_jax.models.rmc import RMC
from generator.relations.kinship import KINSHIP, NUM_PREDICATES
from tests.models.small import call, loss_of, small_config
from tests.models.tokens import PEOPLE, batch_of

WORD, STEPS = FIRST_ENTITY + PEOPLE, 6  # first word
A, B, C = range(FIRST_ENTITY, FIRST_ENTITY + 3)
END, LONG = WORD + 5, 14  # token that ends a sentence, longest story
SIZES = Sizes(PEOPLE, WORD + 6, KINSHIP, sentence_ends=(END,))
TOKENS = st.lists(st.integers(1, END), min_size=1, max_size=LONG)
LOG3 = np.log(3)  # softmax of (log 3, 0) is (3/4, 1/4)


def make(name: str, **changes) -> nnx.Module:
    """Small model in evaluation mode."""
    model = MODELS[name].model(small_config(name, **changes), SIZES, rngs=nnx.Rngs(0))
    model.eval()
    return model


def set_zero(*layers: nnx.Module) -> None:
    """Sets all parameters of these layers to zero."""
    for param in jax.tree.leaves(
        [nnx.state(layer) for layer in layers], is_leaf=lambda x: isinstance(x, nnx.Variable)
    ):
        param[...] = jnp.zeros_like(param[...])


def states_of(*stories: list[float]) -> jax.Array:
    """States with one feature, [T, B, 1]."""
    return jnp.array(stories, jnp.float32).T[..., None]


STORIES = [[A, WORD, A, B], [WORD, B]]  # A has two mentions in the first, none in the second
STATES = [1, 2, 4, 8, 100, 100], [3, 9, 100, 100, 100, 100]  # the last ones are of padding


def test_a_person_has_the_mean_state_of_their_mentions() -> None:
    found = query_states(batch_of(STORIES, STEPS), states_of(*STATES))[..., 0]
    np.testing.assert_allclose(found, [[2.5, 0], [8, 9]], rtol=1e-6)


def test_mean_of_the_states_of_bert_is_that_of_its_tokens() -> None:
    found = story_mean(batch_of(STORIES, STEPS), states_of(*STATES))[:, 0]
    np.testing.assert_allclose(found, [15 / 4, 6], rtol=1e-6)


@pytest.mark.parametrize(
    ("pooling", "expected"), [("mean", [[15 / 4] * 2, [6] * 2]), ("last", [[8, 1], [9, 3]])]
)
def test_pooling_of_the_bilstm(pooling: str, expected: list[list[float]]) -> None:
    """Both directions have the same states. The last state backward is that of the first word."""
    model = make(f"bilstm_{pooling}", hidden=1)
    assert isinstance(model, BiLSTMModel)
    model._read = lambda batch: (jnp.tile(states_of(*STATES), 2), ())
    model.readout = lambda story: story
    np.testing.assert_allclose(model(batch_of(STORIES, STEPS)), expected, rtol=1e-6)


@pytest.mark.parametrize("layer", [LSTM, BiLSTM])
def test_forget_gate_of_the_lstms_has_the_bias_1(layer: type) -> None:
    """The first input puts 0.4 into the cell, the second one nothing."""
    model = layer(1, 1, rngs=nnx.Rngs(0))
    gates = jnp.array([0, 0, np.arctanh(0.8), 0])
    model.inputs.kernel[...] = jnp.tile(gates, model.bias.size // 4)[None]
    model.weight[...] = jnp.zeros_like(model.weight[...])
    found = model(jnp.array([[[1.0]], [[0.0]]]), jnp.ones((2, 1)))
    forget = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(found[:, 0, 0], np.tanh([0.4, 0.4 * forget]) / 2, rtol=1e-5)
    if layer is BiLSTM:
        np.testing.assert_allclose(found[:, 0, 1], [np.tanh(0.4) / 2, 0], atol=1e-6)


def test_embeddings_of_entities_have_expected_squared_norm_1() -> None:
    table = EntityEmbedding(2000, 16, rngs=nnx.Rngs(0)).table[...]
    assert abs(float((table**2).sum(axis=1).mean()) - 1) < 0.05
    assert abs(float((table**2).mean(axis=0).max()) - 1 / 16) < 0.02


def test_tokens_are_padding_unknown_entities_words() -> None:
    embed = TokenEmbedding(SIZES, 3, 0.0, rngs=nnx.Rngs(0))
    found = embed(jnp.array([PAD, UNKNOWN, A, C, WORD, WORD + 5]))
    people, words = embed.entity.table[...], embed.words[...]
    expected = [np.zeros(3), np.zeros(3), people[0], people[2], words[0], words[5]]
    np.testing.assert_array_equal(found, np.stack(expected))


@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_word_dropout_replaces_a_fraction_of_the_words_in_training(rate: float) -> None:
    """Names are kept, and kept words are not scaled."""
    embed = TokenEmbedding(SIZES, 3, rate, rngs=nnx.Rngs(0))
    tokens = jnp.tile(jnp.array([A, WORD, WORD + 1]), (2000, 1))
    embed.eval()
    whole = np.asarray(embed(tokens))
    assert whole.any(axis=-1).all()
    embed.train()
    found = np.asarray(embed(tokens))
    is_unknown = ~found.any(axis=-1)
    np.testing.assert_array_equal(found, np.where(is_unknown[..., None], 0, whole))
    np.testing.assert_allclose(is_unknown.mean(axis=0), [0, rate, rate], atol=0.04)


def test_control_of_mac_attends_to_the_query_people() -> None:
    """The query is the previous control (1, 0), not the question (9, 9): the people have the scores
    log 3 and 0, and the new control is 3/4 of the first and 1/4 of the second."""
    model = make("mac", hidden=1)
    assert isinstance(model, MAC)
    set_zero(model.control)
    model.control.kernel[...] = jnp.eye(4, 2)
    model.attend_question.kernel[...] = jnp.ones((2, 1))
    people = jnp.array([[[LOG3, 5.0]], [[0.0, 7.0]]])
    found = model.next_control(jnp.array([[1.0, 0.0]]), jnp.array([[9.0, 9.0]]), people)
    np.testing.assert_allclose(found, [[0.75 * LOG3, 5.5]], rtol=1e-5)


def test_memory_of_mac_is_written_from_the_retrieved_words() -> None:
    """Two iterations: half of the memory plus the mean of the words 2, 4, of which both are equally
    attended to: 3, then 3 + 3/2. Padding is not attended to."""
    model = make("mac", hidden=1, iterations=2)
    set_zero(model.write, model.memory, model.word, model.combine_memory, model.combine_word)
    model.write.kernel[...] = jnp.concatenate([jnp.eye(2), jnp.eye(2) / 2])
    model.reader = lambda tokens, mask: jnp.tile(states_of([2, 4, 9, 9, 9, 9]), 2)
    model.readout = lambda memory, *people: memory
    np.testing.assert_allclose(model(batch_of([[A, B]], STEPS)), [[4.5, 4.5]], rtol=1e-5)


def rmc_with(candidate: float) -> RMC:
    """Memory core of two slots in three dimensions, with this candidate memory whatever it attends
    to, and with gates that are their initial biases."""
    model = make("rmc", heads=1, head=3)
    assert isinstance(model, RMC)
    set_zero(model.gate_inputs, model.gate_memory, model.norms[1])
    model.norms[1].bias[...] = jnp.full(3, candidate)
    return model


@nnx.jit
def memories(model: RMC, tokens: jax.Array) -> jax.Array:
    return model.memories(tokens, tokens > 0)


def test_gates_of_the_memory_core_have_the_biases_0_and_1() -> None:
    """sigmoid(0) tanh(candidate) + sigmoid(1) memory, twice, from the identity; then padding."""
    tokens = jnp.array([[WORD], [WORD + 1], [PAD]])
    found = memories(rmc_with(np.arctanh(0.6)), tokens)[:, 0]
    forget = 1 / (1 + np.exp(-1))
    first = 0.3 + forget * np.array([1, 0, 0, 0, 1, 0])
    second = 0.3 + forget * first
    np.testing.assert_allclose(found, [first, second, second], rtol=1e-5)


def test_gates_of_the_memory_core_see_the_word_and_the_memory() -> None:
    """The input gate sees the word, which closes it for dimensions 0 and 1; the forget gate sees
    the memory, which closes it where that is 1, but not where it is 0."""
    model = rmc_with(np.arctanh(0.6))
    model.inputs.kernel[...] = jnp.zeros_like(model.inputs.kernel[...])
    model.inputs.bias[...] = jnp.array([1.0, 1.0, 0.0])
    model.gate_inputs.kernel[...] = -50 * jnp.eye(3, 6)
    model.gate_memory.kernel[...] = -50 * jnp.eye(3, 6, k=3)
    tokens = jnp.array([[WORD]])
    found = memories(model, tokens)[0, 0].reshape(2, 3)
    np.testing.assert_allclose(found, [[0, 0, 0.3], [0, 0, 0.3]], atol=1e-5)


def messages_of(aggregation: str = "mean", **changes) -> GNN2018:
    """Network whose messages are numbers that go to the cell gate; other gates are 1/2."""
    model = make(f"gnn_2018_{aggregation}", node=1, embedding=1, **changes)
    assert isinstance(model, GNN2018)
    set_zero(model.inputs)
    model.inputs.kernel[...] = model.inputs.kernel[...].at[0, 2].set(1)
    model.weight[...] = jnp.zeros((1, 4))
    return model


def test_words_between_two_people_are_messages_in_both_directions() -> None:
    """A big WORD B: the largest word is 2; the message to B adds 0.5 and that to A subtracts 1."""
    model = messages_of(rounds=1)
    model.embed = lambda tokens: jnp.array([9, 1, 2, 9, 9, 9.0])[None, :, None]
    model.direction[...] = jnp.array([[0.5], [-1.0]])
    model.readout = lambda *vectors: jnp.concatenate(vectors)[:, 0]
    story, first, second = model(batch_of([[A, WORD, WORD + 1, B, C]], STEPS))
    expected = [np.tanh(np.tanh(x) / 2) / 2 for x in (1, 2.5)]
    np.testing.assert_allclose([first, second], expected, rtol=1e-5)
    np.testing.assert_allclose(story, sum(expected) / 3, rtol=1e-5)  # C has no messages: state 0


def received(model: GNN2018) -> list[float]:
    """States of nodes 0 to 2 after messages 2 -> 0 of 5, 0 -> 2 of 1 and 1 -> 2 of 3."""
    message = jnp.array([[5.0], [1.0], [3.0]]) * jnp.eye(1, model.inputs.in_features)
    senders, receivers = jnp.array([2, 0, 1]), jnp.array([0, 2, 2])
    position = jnp.zeros((3, OWN_POSITION + SHARED_POSITION))
    return np.asarray(model.pass_messages(message, position, senders, receivers))[:, 0]


def cell(*inputs: float) -> float:
    """State of an LSTM with these inputs of its cell gate, whose other gates are 1/2."""
    value = 0.0
    for x in inputs:
        value = value / 2 + np.tanh(x) / 2
    return np.tanh(value) / 2


@pytest.mark.parametrize("rounds", [1, 2])
def test_receivers_get_the_mean_of_their_messages(rounds: int) -> None:
    found = received(messages_of(rounds=rounds))
    np.testing.assert_allclose(found, [cell(*[x] * rounds) for x in (5, 0, 2)], atol=1e-6)


def test_receivers_attend_to_the_states_of_the_senders() -> None:
    """The states of the senders 0 and 1 are equal at first, then the state of 0 is larger."""
    model = messages_of(rounds=2, aggregation="attention")
    set_zero(model.to)
    model.source.kernel[...], model.score.kernel[...] = jnp.array([[9.0]]), jnp.array([[4.0]])
    odds = np.exp(4 * np.tanh(9 * cell(5)))  # of the message from 0
    attended = (odds * 1 + 3) / (odds + 1)
    np.testing.assert_allclose(received(model), [cell(5, 5), 0, cell(2, attended)], atol=1e-5)


@pytest.mark.parametrize(("gold", "word_penalty"), [(0.0, 0.0), (2.0, 0.0), (0.0, 3.0)])
def test_loss_of_the_reader_prover(gold: float, word_penalty: float) -> None:
    """Cross-entropy of an answer without evidence, the penalty on rules, whose initial logits are 3
    for no rule and 0 for 11 predicates, and the weighted losses of the graph."""
    model = make("reader_prover", gold=gold, relation_word_penalty=word_penalty)
    assert isinstance(model, ReaderProver)
    batch = batch_of([[A, WORD, B, WORD]], STEPS)
    graph, departure = jnp.full((1, PEOPLE, PEOPLE, 22), 0.01), jnp.array([0.7])
    model.reader.extract = lambda batch: (graph, departure)
    model.answer = lambda batch, graph: jnp.zeros((1, 22))
    no_rule = 1 / (1 + NUM_PREDICATES * np.exp(-3))
    penalty = -0.05 * 1 / 22 * 21 / 22 * NUM_PREDICATES**2 * np.log(no_rule)
    expected = np.log(22) + penalty + gold * fact_loss(batch, graph) + word_penalty * 0.7
    np.testing.assert_allclose(loss_of(model, batch), expected, rtol=1e-5)


@settings(max_examples=30)
@given(TOKENS, st.integers(1, 4))
def test_sentences_end_at_marks_and_short_ones_are_joined(story, shortest) -> None:
    found = np.asarray(sentence_ends(batch_of([story], LONG).tokens, (END,), shortest))[0]
    length, expected = 0, []
    for token in story:
        length += 1
        expected.append(token == END and length >= shortest)
        length = 0 if expected[-1] else length
    np.testing.assert_array_equal(found[: len(story)], expected)
    assert not found[len(story) :].any()
    first_words = np.flatnonzero([True, *expected[:-1]])
    assert len(first_words) <= (len(story) - 1) // shortest + 1


def test_relation_network_reads_each_sentence_separately() -> None:
    """The order of the sentences does not matter."""
    model = make("rn")
    one = [FIRST_ENTITY, WORD, WORD + 1, WORD + 2, END]
    two = [FIRST_ENTITY + 1, WORD + 3, FIRST_ENTITY + 2, WORD, END]
    out = call(model, batch_of([one + two, two + one, one + one, one], LONG))
    np.testing.assert_allclose(out[0], out[1], atol=1e-6)
    assert np.abs(out[0] - out[2]).max() > 1e-4 and np.abs(out[2] - out[3]).max() > 1e-4


def gaps_of(story: list[int]) -> list[tuple[int, int, list[int]]]:
    """Gaps by definition: mentions of two people with only words, at least one, between them."""
    found = []
    for i, first in enumerate(story):
        for j in range(i + 2, len(story)):
            between, pair = story[i + 1 : j], (first - FIRST_ENTITY, story[j] - FIRST_ENTITY)
            people = all(0 <= person < PEOPLE for person in pair) and pair[0] != pair[1]
            if people and all(t == UNKNOWN or WORD <= t < END for t in between):
                found.append((*pair, list(range(i + 1, j))))
    return sorted(found, key=lambda gap: gap[2])


WORD_VECTORS = np.random.default_rng(0).normal(size=(3, LONG, 3)).astype("f4")


@jax.jit
def _pool_gaps(batch: TokenBatch) -> tuple:
    """Gaps, and the maximum of their words."""
    gaps = find_gaps(batch, SIZES)
    return gaps, maximum(jnp.asarray(WORD_VECTORS), gaps)


@settings(max_examples=30)
@given(st.lists(TOKENS, min_size=3, max_size=3))
def test_gaps_are_the_words_between_two_people_in_a_sentence(stories) -> None:
    gaps, largest = jax.tree.map(np.asarray, _pool_gaps(batch_of(stories, LONG)))
    for b, story in enumerate(stories):
        expected = gaps_of(story)
        assert int(gaps.mask[b].sum()) == len(expected)
        for e, (first, second, positions) in enumerate(expected):
            assert (int(gaps.first[b, e]), int(gaps.second[b, e])) == (first, second)
            words = WORD_VECTORS[b, positions]
            np.testing.assert_array_equal(largest[b, e], words.max(axis=0))
        assert not largest[b, len(expected) :].any()


def test_word_scores_of_mac_equal_its_equations() -> None:
    """Read unit of Hudson and Manning 2018, one word at a time."""
    model = MAC(small_config("mac", hidden=3), SIZES, rngs=nnx.Rngs(0))
    keys = jax.random.split(jax.random.key(0), 3)
    control, memory, word = (jax.random.normal(key, (5, 6)) for key in keys)
    interaction = model.memory(memory) * (word @ model.word.kernel[...].T)
    both = (
        interaction @ model.combine_memory.kernel[...].T + word @ model.combine_word.kernel[...].T
    )
    expected = (control * both) @ model.attend_words[...]
    found = (word * model.word_key(control, memory)).sum(axis=-1)
    np.testing.assert_allclose(found, expected, atol=1e-5)
