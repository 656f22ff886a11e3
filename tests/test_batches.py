"""Batches of `clutrr_jax.batches`, and stories as Python objects."""

import numpy as np
import pytest

import clutrr_jax
from clutrr_jax import api
from clutrr_jax.data.vocabulary import FIRST_ENTITY, words_of
from generator.relations.kinship import RELATIONS


@pytest.fixture(scope="module")
def dataset(small_folder) -> clutrr_jax.Dataset:
    return clutrr_jax.load(small_folder)


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("kind", api.KINDS)
def test_batches_hold_every_story_once(kind, seed, dataset) -> None:
    stories = dataset.test
    found, shapes = [], set()
    for batch in clutrr_jax.batches(stories, kind, 32, seed=seed):
        target, mask = map(np.asarray, clutrr_jax.targets(batch))
        found.append(target[mask])
        shapes.add(len(batch.edges["relation"]) if kind != "tokens" else batch.tokens.shape[1])
    order = slice(None) if seed is None else np.argsort(np.concatenate(found))
    expected = stories.target if seed is None else np.sort(stories.target)
    assert np.concatenate(found)[order].tolist() == expected.tolist()
    assert len(shapes) == 1 or seed is not None


def test_a_seed_decides_the_order(dataset) -> None:
    def targets(seed):
        batches = clutrr_jax.batches(dataset.train, "graph", 16, seed=seed)
        return np.concatenate([clutrr_jax.targets(batch)[0] for batch in batches]).tolist()

    assert targets(1) == targets(1) != targets(2)


def test_tokens_are_those_of_the_vocabulary_of_the_train_stories(dataset) -> None:
    words = dataset.vocabulary
    batch = next(clutrr_jax.batches(dataset.test, "tokens", 1, vocabulary=words))
    ids = np.asarray(batch.tokens[0])[np.asarray(batch.mask[0])]
    first = FIRST_ENTITY + words.entities
    decoded = [words.words[i - first] for i in ids if i >= first]
    text = words_of([dataset.test.stories[0]])
    assert list(dict.fromkeys(decoded)) == [word for word in text if word in words.words]


def test_a_story_in_words(dataset) -> None:
    for index in (0, 30, 79):
        story = dataset.test.story(index)
        assert all(f"[{person}]" in story.text for person in story.people)
        assert story.target == RELATIONS[dataset.test.target[index]]
        assert len(story.facts) >= story.k
        # The facts lead from X to Y of the query.
        reached = {story.query[0]}
        for _ in story.facts:
            reached |= {y for x, _, y in story.facts if x in reached}
            reached |= {x for x, _, y in story.facts if y in reached}
        assert story.query[1] in reached
    assert dataset.test.story(-1) == dataset.test.story(len(dataset.test) - 1)
