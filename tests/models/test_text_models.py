"""What the text models see of a story: its sentences, who stands beside whom, its last words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.data.vocabulary import FIRST_ENTITY
from clutrr_jax.models import MODELS
from clutrr_jax.models.gnn_2018 import AttentionPooling, find_gaps, maximum
from clutrr_jax.models.mac import MAC
from clutrr_jax.models.relation_network import sentence_ends

PEOPLE, END, WORDS = 4, FIRST_ENTITY + 4, 6  # people, then the end of a sentence, then words
SIZES = Sizes(entities=PEOPLE, tokens=END + WORDS, sentence_ends=(END,))
WORD = END + 1
STORIES = st.lists(st.integers(1, END + WORDS - 1), min_size=1, max_size=14)
TINY = {"embedding": 8, "hidden": 4, "readout": 5, "node": 6, "head": 4, "key": 3, "heads": 2}


def batch_of(stories: list[list[int]], steps: int = 14) -> TokenBatch:
    """A batch of stories in which the people 0 and 1 are asked."""
    tokens = np.zeros((len(stories), steps), np.int32)
    for row, story in enumerate(stories):
        tokens[row, : len(story)] = story
    tokens = jnp.array(tokens)
    query = jnp.tile(jnp.arange(2), (len(stories), 1))
    return TokenBatch(
        tokens=tokens,
        mask=tokens > 0,
        query=query,
        mentions=tokens[:, None] == query[:, :, None] + FIRST_ENTITY,
        target=jnp.zeros(len(stories), jnp.int32),
        row_mask=jnp.ones(len(stories), bool),
        people=jnp.tile(jnp.arange(PEOPLE), (len(stories), 1)),
        named=jnp.full((len(stories), 0), steps),
        facts=jnp.full((len(stories), 0, 3), -1),
    )


def tiny(name: str, **changes) -> nnx.Module:
    spec = MODELS[name]
    own = {key: value for key, value in TINY.items() if key in spec.config}
    model = spec.model(ConfigDict(spec.config | own | changes), SIZES, rngs=nnx.Rngs(0))
    model.eval()
    return model


@settings(max_examples=30)
@given(STORIES, st.integers(1, 4))
def test_sentences_end_at_marks_and_short_ones_join_the_next(story, shortest) -> None:
    found = np.asarray(sentence_ends(batch_of([story]).tokens, (END,), shortest))[0]
    length, wanted = 0, []
    for token in story:
        length += 1
        wanted.append(token == END and length >= shortest)
        length = 0 if wanted[-1] else length
    np.testing.assert_array_equal(found[: len(story)], wanted)
    assert not found[len(story) :].any()
    first_words = np.flatnonzero([True, *wanted[:-1]])
    assert len(first_words) <= (len(story) - 1) // shortest + 1


def test_a_relation_network_reads_each_sentence_by_itself() -> None:
    """Sentences in another order are the same story, and its pairs are not in an order."""
    model = tiny("rn")
    one = [FIRST_ENTITY, WORD, WORD + 1, WORD + 2, END]
    two = [FIRST_ENTITY + 1, WORD + 3, FIRST_ENTITY + 2, WORD, END]
    out = model(batch_of([one + two, two + one, one + one, one]))
    np.testing.assert_allclose(out[0], out[1], atol=1e-6)
    assert np.abs(out[0] - out[2]).max() > 1e-4 and np.abs(out[2] - out[3]).max() > 1e-4


@pytest.mark.parametrize("name", ["bilstm_last", "rmc"])
def test_the_last_word_counts_and_the_padding_does_not(name: str) -> None:
    model, story = tiny(name), [FIRST_ENTITY, WORD, FIRST_ENTITY + 1, WORD + 1]
    out = model(batch_of([story, [*story[:-1], WORD + 2]]))
    assert np.abs(out[0] - out[1]).max() > 1e-4
    np.testing.assert_allclose(out, model(batch_of([story, [*story[:-1], WORD + 2]], 5)), atol=1e-6)


def gaps_of(story: list[int]) -> list[tuple[int, int, list[int]]]:
    """By definition: mentions of two people with words, and nothing but words, between them."""
    found = []
    for i, first in enumerate(story):
        for j in range(i + 2, len(story)):
            between, pair = story[i + 1 : j], (first - FIRST_ENTITY, story[j] - FIRST_ENTITY)
            people = all(0 <= person < PEOPLE for person in pair) and pair[0] != pair[1]
            if people and all(t == 1 or t >= WORD for t in between):
                found.append((*pair, list(range(i + 1, j))))
    return sorted(found, key=lambda gap: gap[2])


@settings(max_examples=30)
@given(st.lists(STORIES, min_size=3, max_size=3))
def test_gaps_hold_the_words_between_two_people_of_a_sentence(stories) -> None:
    batch = batch_of(stories)
    gaps = find_gaps(batch, SIZES)
    x = jax.random.normal(jax.random.key(0), (*batch.tokens.shape, 3))
    pool = AttentionPooling(3, rngs=nnx.Rngs(0))
    greatest, mean = np.asarray(maximum(x, gaps)), np.asarray(pool(x, gaps))
    score = np.asarray(pool.score(jnp.tanh(pool.hidden(x))))[..., 0]
    for b, story in enumerate(stories):
        wanted = gaps_of(story)
        assert int(gaps.mask[b].sum()) == len(wanted)
        for e, (first, second, places) in enumerate(wanted):
            assert (int(gaps.first[b, e]), int(gaps.second[b, e])) == (first, second)
            words = np.asarray(x[b, places])
            np.testing.assert_array_equal(greatest[b, e], words.max(axis=0))
            weight = np.exp(score[b, places])
            np.testing.assert_allclose(mean[b, e], weight @ words / weight.sum(), atol=1e-5)
        assert not greatest[b, len(wanted) :].any() and not mean[b, len(wanted) :].any()


@pytest.mark.parametrize("aggregation", ["mean", "attention"])
@pytest.mark.parametrize("pooling", ["max", "attention"])
def test_the_graph_of_2018_sees_what_stands_between(aggregation: str, pooling: str) -> None:
    """Which word, and who of the two comes first; not the words of the sentence's end."""
    model = tiny("gnn_2018_mean", aggregation=aggregation, pooling=pooling)
    a, b = FIRST_ENTITY, FIRST_ENTITY + 1
    out = model(batch_of([[a, WORD, b], [a, WORD + 1, b], [b, WORD, a], [a, WORD, b, WORD]]))
    assert np.abs(out[0] - out[1]).max() > 1e-5 and np.abs(out[0] - out[2]).max() > 1e-5
    np.testing.assert_allclose(out[0], out[3], atol=1e-6)


def test_the_words_score_in_mac_as_in_its_paper() -> None:
    """The three steps of Hudson and Manning's read unit, one word at a time."""
    config = ConfigDict(MODELS["mac"].config | {"hidden": 3})
    model = MAC(config, SIZES, rngs=nnx.Rngs(0))
    keys = jax.random.split(jax.random.key(0), 3)
    control, memory, word = (jax.random.normal(key, (5, 6)) for key in keys)
    interaction = model.memory(memory) * (word @ model.word.kernel[...].T)
    both = (
        interaction @ model.combine_memory.kernel[...].T + word @ model.combine_word.kernel[...].T
    )
    wanted = (control * both) @ model.attend_words[...]
    got = (word * model.read(control, memory)).sum(axis=-1)
    np.testing.assert_allclose(got, wanted, atol=1e-5)
