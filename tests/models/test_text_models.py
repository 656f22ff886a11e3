"""Laws of the text models: sentences, gaps between mentions, padding, equations of the papers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.data.vocabulary import FIRST_ENTITY
from clutrr_jax.models import MODELS
from clutrr_jax.models.bilstm import BiLSTMModel
from clutrr_jax.models.gnn_2018 import find_gaps, maximum
from clutrr_jax.models.mac import MAC
from clutrr_jax.models.relation_network import sentence_ends
from tests.models.small import call, small_config
from tests.models.tokens import PEOPLE, batch_of

END, WORDS = FIRST_ENTITY + PEOPLE, 6  # ids: people, then a sentence end, then words
SIZES = Sizes(entities=PEOPLE, tokens=END + WORDS, sentence_ends=(END,))
WORD, STEPS = END + 1, 14
STORIES = st.lists(st.integers(1, END + WORDS - 1), min_size=1, max_size=STEPS)


def make(name: str, **changes) -> nnx.Module:
    """Small model in evaluation mode."""
    model = MODELS[name].model(small_config(name, **changes), SIZES, rngs=nnx.Rngs(0))
    model.eval()
    return model


@settings(max_examples=30)
@given(STORIES, st.integers(1, 4))
def test_sentences_end_at_marks_and_short_ones_are_joined(story, shortest) -> None:
    found = np.asarray(sentence_ends(batch_of([story], STEPS).tokens, (END,), shortest))[0]
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
    out = call(model, batch_of([one + two, two + one, one + one, one], STEPS))
    np.testing.assert_allclose(out[0], out[1], atol=1e-6)
    assert np.abs(out[0] - out[2]).max() > 1e-4 and np.abs(out[2] - out[3]).max() > 1e-4


@pytest.mark.parametrize("name", ["bilstm_last", "rmc"])
def test_last_word_matters_and_padding_does_not(name: str) -> None:
    model, story = make(name), [FIRST_ENTITY, WORD, FIRST_ENTITY + 1, WORD + 1]
    stories = [story, [*story[:-1], WORD + 2]]
    out = call(model, batch_of(stories, STEPS))
    assert np.abs(out[0] - out[1]).max() > 1e-4
    np.testing.assert_allclose(out, call(model, batch_of(stories, 5)), atol=1e-6)


def test_backward_lstm_starts_at_the_last_word() -> None:
    """The backward state of the first token depends on the last one, the forward state does not."""
    model = make("bilstm_mean")
    assert isinstance(model, BiLSTMModel)
    story = [FIRST_ENTITY, WORD, FIRST_ENTITY + 1]
    batch = batch_of([[*story, WORD + 1], [*story, WORD + 2]], STEPS)
    layer = model.reader.layers[0]
    forward, backward = jnp.split(
        layer(model.reader.embed(batch.tokens.T), batch.mask.T)[0], 2, axis=-1
    )
    np.testing.assert_array_equal(forward[0], forward[1])
    assert (backward[0] != backward[1]).any()


def gaps_of(story: list[int]) -> list[tuple[int, int, list[int]]]:
    """Gaps by definition: mentions of two people with only words, at least one, between them."""
    found = []
    for i, first in enumerate(story):
        for j in range(i + 2, len(story)):
            between, pair = story[i + 1 : j], (first - FIRST_ENTITY, story[j] - FIRST_ENTITY)
            people = all(0 <= person < PEOPLE for person in pair) and pair[0] != pair[1]
            if people and all(t == 1 or t >= WORD for t in between):
                found.append((*pair, list(range(i + 1, j))))
    return sorted(found, key=lambda gap: gap[2])


WORD_VECTORS = np.random.default_rng(0).normal(size=(3, 14, 3)).astype("f4")


@jax.jit
def _pool_gaps(batch: TokenBatch) -> tuple:
    """Gaps, and the maximum of their words."""
    gaps = find_gaps(batch, SIZES)
    return gaps, maximum(jnp.asarray(WORD_VECTORS), gaps)


@settings(max_examples=30)
@given(st.lists(STORIES, min_size=3, max_size=3))
def test_gaps_are_the_words_between_two_people_in_a_sentence(stories) -> None:
    gaps, largest = jax.tree.map(np.asarray, _pool_gaps(batch_of(stories, STEPS)))
    for b, story in enumerate(stories):
        expected = gaps_of(story)
        assert int(gaps.mask[b].sum()) == len(expected)
        for e, (first, second, positions) in enumerate(expected):
            assert (int(gaps.first[b, e]), int(gaps.second[b, e])) == (first, second)
            words = WORD_VECTORS[b, positions]
            np.testing.assert_array_equal(largest[b, e], words.max(axis=0))
        assert not largest[b, len(expected) :].any()


@pytest.mark.parametrize("aggregation", ["mean", "attention"])
def test_gnn_2018_sees_the_words_between_two_people(aggregation: str) -> None:
    """The words and the order of the people matter, words after the last mention do not."""
    model = make(f"gnn_2018_{aggregation}")
    a, b = FIRST_ENTITY, FIRST_ENTITY + 1
    out = call(
        model, batch_of([[a, WORD, b], [a, WORD + 1, b], [b, WORD, a], [a, WORD, b, WORD]], STEPS)
    )
    assert np.abs(out[0] - out[1]).max() > 1e-5 and np.abs(out[0] - out[2]).max() > 1e-5
    np.testing.assert_allclose(out[0], out[3], atol=1e-6)


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
