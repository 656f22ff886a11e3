"""Stories that are resampled for every epoch."""

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import StoryArrays, redraw_entities, reorder_sentences
from clutrr_jax.data.batching import InputKind, chunk, pack
from clutrr_jax.data.prepare import Prepared, prepare
from clutrr_jax.data.resample import EpochSampler, Layout, bank_words
from clutrr_jax.data.streaming import ResampledStories
from clutrr_jax.data.vocabulary import FIRST_ENTITY, PAD, Vocabulary
from clutrr_jax.experiment import runs
from clutrr_jax.models import MODELS
from clutrr_jax.training.checkpoints import Checkpoints
from clutrr_jax.training.loop import Trainer
from clutrr_jax.training.replicas import Replicas
from experiments import workshop_table1
from generator.config import Config, parse_tasks
from generator.errors import InputError
from generator.paraphrases.load import load_bank
from generator.stories.clause import clause_code
from generator.stories.clause_sets import allowed_clauses
from generator.stories.hold_out import split_bank
from generator.write import write_dataset
from tests.models.small import small_config
from tests.training.small import NAMES, TRAIN, leaves

CONFIG = Config(
    train=parse_tasks("1.2,1.3,7.3,5.2"), test=parse_tasks("1.2,1.4"), train_rows=40, test_rows=5
)
KINDS: tuple[InputKind, ...] = ("graph", "pairs", "tokens")
BATCH = 32


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Prepared:
    folder = tmp_path_factory.mktemp("resampled")
    write_dataset(CONFIG, folder)
    return prepare(folder, CONFIG)


def resample(kind: InputKind, data: Prepared) -> ResampledStories:
    return ResampledStories(kind, CONFIG, data.train_stories, data.sizes.entities, BATCH)


@pytest.fixture(scope="module", params=KINDS)
def resampled(request, data) -> Iterator[tuple[InputKind, ResampledStories]]:
    with closing(resample(request.param, data)) as stories_of:
        yield request.param, stories_of


def sampler(max_tokens: list[int] | None, max_names: int = 99) -> EpochSampler:
    """Returns a sampler for `CONFIG` with more room than necessary."""
    return EpochSampler(CONFIG, 20, Layout(1000, 1000, 40_000, max_tokens, max_names))


def contents(stories: StoryArrays, count: int) -> list[tuple]:
    """Returns tokens, facts and query of the first `count` stories, independent of entity ids: the
    token of person i is -1 - i."""
    s = StoryArrays(*(None if x is None else np.asarray(x) for x in stories))
    found = []
    for row in range(count):
        node = slice(s.node_start[row], s.node_start[row] + s.n_node[row])
        edge = slice(s.edge_start[row], s.edge_start[row] + s.n_edge[row])
        token = slice(s.token_start[row], s.token_start[row] + s.n_token[row])
        person = {FIRST_ENTITY + e: -1 - i for i, e in enumerate(s.entity[node].tolist())}
        assert len(person) == s.n_node[row]
        found.append((
            tuple(person.get(t, t) for t in s.tokens[token].tolist()),
            tuple(zip(s.senders[edge].tolist(), s.receivers[edge].tolist(), strict=True)),
            tuple(s.relation[edge].tolist()), *s.query[row].tolist(), int(s.target[row]),
            len(person),
        ))  # fmt: skip
    return found


def test_epoch_0_is_in_the_files(data) -> None:
    ours = contents(sampler([250] * 160)(0), 160)
    assert sorted(ours) == sorted(contents(data.train_stories, 160))


def test_models_without_text_get_the_same_facts() -> None:
    with_text, without = (contents(sampler(x)(3), 160) for x in ([250] * 160, None))
    assert {s[0] for s in without} == {()}
    assert sorted(s[1:] for s in with_text) == sorted(s[1:] for s in without)


def test_an_epoch_does_not_depend_on_earlier_requests(data) -> None:
    with closing(resample("tokens", data)) as one, closing(resample("tokens", data)) as other:
        ours = [one(epoch) for epoch in (1, 2, 3)]
        theirs = {epoch: other(epoch) for epoch in (3, 2, 1)}
    for epoch, stories in enumerate(ours, start=1):
        for a, b in zip(stories, theirs[epoch], strict=True):
            np.testing.assert_array_equal(a, b)
    for before, after in pairwise(ours):
        assert len(set(contents(before, 160)) & set(contents(after, 160))) < 16


def test_held_out_clauses_and_paraphrases_are_never_sampled() -> None:
    split = split_bank(load_bank(CONFIG), CONFIG)
    words = ["", "?", *["[]"] * 20, *bank_words(CONFIG)]

    def sentences(text: str) -> set[str]:
        plain = re.sub(r"\{\d\}|\[\]", " Z ", text.lower())
        return {re.sub(r"\W+", " ", part).strip() for part in re.split(r"[.!?]", plain)} - {""}

    train = set().union(*(sentences(t) for t in split.train.pools.texts))
    held = set().union(*(s for s in map(sentences, split.test.pools.texts) if len(s) == 1))
    tests_only = clause_code(allowed_clauses(CONFIG, "test", 3)[:, :3])
    assert len(held) > 400 and len(tests_only) > 10
    sample, seen, clauses = sampler([250] * 160), set(), set()
    for epoch in range(1, 6):
        for story in contents(sample(epoch), 160):
            seen |= sentences(" ".join("[]" if t < 0 else words[t] for t in story[0]))
            if len(story[2]) in (3, 4):  # of k = 3; task 5.2 has 6 facts
                clauses.add(story[2][:3])
    assert len(seen) > 500 and seen <= train and not seen & held
    assert len(clauses) > 100
    assert not np.isin(clause_code(np.array(sorted(clauses))), tests_only).any()


def test_every_story_fits_into_its_batch(resampled, data) -> None:
    kind, stories_of = resampled
    assert sorted(np.concatenate(stories_of.rows).tolist()) == list(range(160))
    for epoch in (1, 7):
        stories = stories_of(epoch)
        assert len(stories.target) == 161
        expected = contents(stories, 160)
        for shape, rows in zip(stories_of.shapes, stories_of.rows, strict=True):
            # Also with the largest stories in one batch.
            by_size = rows[np.argsort(-np.asarray(stories.n_node)[rows], kind="stable")]
            for some in [*chunk(rows, BATCH), *chunk(by_size, BATCH)]:
                batch = pack(stories, some, shape)
                count = int((some >= 0).sum())
                if kind == "tokens":
                    sizes = np.asarray(batch.mask).sum(axis=1)[:count]
                    assert sizes.tolist() == [len(expected[row][0]) for row in some[:count]]
                    assert not (np.asarray(batch.tokens)[np.asarray(batch.mask)] == PAD).any()
                else:
                    sizes = np.asarray(batch.n_edge)[:count]
                    relations = np.asarray(batch.edges["relation"])[: sizes.sum()]
                    assert relations.tolist() == [
                        r for row in some[:count] for r in expected[row][2]
                    ]
                    assert np.asarray(batch.n_node)[:-1].max() <= shape.people
                    assert np.asarray(batch.n_node)[-1] >= 1


def test_padding_stays_out_of_the_stories(data) -> None:
    with closing(resample("tokens", data)) as stories_of:
        stories = jax.tree.map(jax.numpy.asarray, stories_of(1))
    ends = data.sizes.sentence_ends
    moved = reorder_sentences(stories, ends, 1.0, jax.random.key(0))
    renamed = redraw_entities(moved, data.sizes.entities, jax.random.key(1))
    before, after = contents(stories, 160), contents(renamed, 160)
    assert [sorted(s[0]) for s in before] == [sorted(s[0]) for s in after]
    assert np.mean([a[0] != b[0] for a, b in zip(before, after, strict=True)]) > 0.5
    assert [s[1:] for s in before] == [s[1:] for s in after]


@pytest.mark.parametrize("name", NAMES)
def test_resuming_equals_no_interruption(name: str, data, tmp_path) -> None:
    spec, checkpoints = MODELS[name], Checkpoints(tmp_path / "c")
    config, settings = small_config(name), ConfigDict(TRAIN)

    def train(first: int) -> tuple[list[np.ndarray], list]:
        """Returns the state after epoch 3 and the metrics of the epochs."""
        with closing(Trainer(spec, config, settings, data, Replicas(2))) as trainer:
            state, history = trainer.init(), []
            if first > 1:
                epoch, state = checkpoints.restore(state)
                assert epoch == first - 1
            for epoch in range(first, 4):
                state, metrics = trainer.epoch(state, epoch)
                history.append(list(metrics.values()))
                if first == epoch == 1:
                    checkpoints.save(1, state)
        return leaves(state), history

    whole, history = train(1)
    rest, later = train(2)
    assert np.isfinite(history).all()
    np.testing.assert_array_equal(history[1:], later)
    for a, b in zip(whole, rest, strict=True):
        np.testing.assert_array_equal(a, b)


def test_stories_that_are_too_long_are_paraphrased_again() -> None:
    free = sampler([250] * 160)
    lengths = np.sort(free(0).n_token[:-1])
    tight = sampler(np.minimum(lengths + 3, lengths[-8]).tolist())
    for epoch in (1, 2, 3):
        a, b = free(epoch), tight(epoch)
        assert (np.sort(a.n_token[:-1]) > tight.layout.max_tokens).any()
        assert (b.n_token[:-1] <= tight.layout.max_tokens).all()
        ours, theirs = (contents(x, 160) for x in (a, b))
        assert sorted(s[1:] for s in ours) == sorted(s[1:] for s in theirs)
        assert len(set(ours) & set(theirs)) > 40  # the other stories are unchanged


def test_stories_with_too_many_names_are_paraphrased_again() -> None:
    def most_names(arrays: StoryArrays) -> int:
        is_name = (arrays.tokens >= FIRST_ENTITY) & (arrays.tokens < FIRST_ENTITY + 20)
        starts = zip(arrays.token_start[:-1], arrays.n_token[:-1], strict=True)
        return max(is_name[start : start + size].sum() for start, size in starts)

    most = most_names(sampler([250] * 160)(1))
    assert most_names(sampler([250] * 160, max_names=most)(1)) == most
    assert most_names(sampler([250] * 160, max_names=most - 1)(1)) == most - 1


def test_stories_that_never_fit_are_one_line(monkeypatch) -> None:
    monkeypatch.setattr("clutrr_jax.data.resample._MAX_ATTEMPTS", 5)
    with pytest.raises(InputError, match="epoch 1: 160 stories are longer, or name"):
        sampler([3] * 160)(1)


def test_impossible_settings_are_one_line(data) -> None:
    config = replace(CONFIG, train=parse_tasks("1.25"), train_rows=160, max_levels=2)
    with (
        closing(ResampledStories("graph", config, data.train_stories, 30, BATCH)) as stories_of,
        pytest.raises(InputError, match=r"task 1\.25: found 0"),
    ):
        stories_of(1)


def test_a_figure_resamples_for_each_replica() -> None:
    from experiments import figure5

    config = figure5.get_config()
    config.data, config.scale = "generate", "smoke"
    found = runs(config)
    assert {run.config.data for run in found} == {"generate"}
    assert {run.config.gat.train.replicas for run in found} == {1}
    config = workshop_table1.get_config()
    config.data = "generate"
    with pytest.raises(InputError, match="workshop_table1 has its own generator"):
        runs(config)


def test_the_vocabulary_is_that_of_the_bank(data) -> None:
    words = bank_words(CONFIG)
    assert data.sizes.tokens == Vocabulary(words, data.sizes.entities).num_tokens
    for story in data.train.stories:
        for word in re.findall(r"[a-z]{4,}", re.sub(r"\[\w+\]", "", story)):
            assert any(word in known for known in words)
