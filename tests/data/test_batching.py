"""Laws of tokens, entities and batches."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clutrr_jax.data.arrays import build_arrays, redraw_entities, reorder_sentences
from clutrr_jax.data.batching import (
    GRAPHS,
    Shape,
    bucket_bounds,
    chunk,
    count_names,
    pack,
    pad_question,
    plan_shapes,
    question_shape,
)
from clutrr_jax.data.records import concatenate
from clutrr_jax.data.vocabulary import (
    FIRST_ENTITY,
    PAD,
    UNKNOWN,
    build_vocabulary,
    draw_entities,
    encode,
    story_random,
)
from tests.data.test_records import records_of

KINDS = ("graph", "pairs", "tokens")
# Rows of a batch; a few sizes only, as each is compiled.
ROWS = st.sampled_from([1, 5, 12]).flatmap(
    lambda size: st.lists(st.integers(-1, 119), min_size=size, max_size=size)
)
packed = jax.jit(pack, static_argnames="shape")


def test_tokens_of_a_story() -> None:
    records = records_of({})
    vocabulary = build_vocabulary(records, entities=5)
    assert vocabulary.words == ("and", "her", "son", "met", "'s", "sister", ".")
    tokens, start = encode(records, vocabulary, np.array([4, 0, 2]))
    ann, bob, cy, word = FIRST_ENTITY + 4, FIRST_ENTITY, FIRST_ENTITY + 2, FIRST_ENTITY + 5
    assert tokens.tolist() == [
        ann, word, word + 1, word + 2, bob, word + 3, bob, word + 4, word + 5, cy, word + 6,
    ]  # fmt: skip
    assert start.tolist() == [0, 11]


def test_words_that_only_the_tests_have_are_unknown() -> None:
    test = records_of({"story": "[Ann] hugged [Bob] and [Cy] [Zoe]"})
    vocabulary = build_vocabulary(records_of({}), entities=5)
    tokens, _ = encode(test, vocabulary, np.array([0, 1, 2]))
    assert tokens.tolist()[1] == UNKNOWN and tokens.tolist()[-1] == UNKNOWN
    assert tokens.tolist()[3] == FIRST_ENTITY + 5  # "and" is known


def test_entities_of_a_story_are_distinct(small) -> None:
    records = small.train
    entities = draw_entities(np.diff(records.node_start), story_random(records, 20, 3))
    for s in range(len(records)):
        mine = entities[records.node_start[s] : records.node_start[s + 1]]
        assert len(set(mine)) == len(mine) and mine.max() < 20


def test_entities_depend_on_the_story_alone(small) -> None:
    records, some = small.test, np.array([31, 4, 60])
    draw = partial(story_random, count=20, seed=1)
    np.testing.assert_array_equal(draw(records.select(some)), draw(records)[some])
    assert (draw(records) != story_random(records, 20, 2)).all()
    # Uniform: the smallest of 20 numbers is at each place about as often.
    stories = concatenate([small.train, small.test])
    first = np.bincount(story_random(stories, 4, 0).argmin(axis=1), minlength=4)
    assert first.min() > len(stories) / 4 - 4 * (len(stories) * 3 / 16) ** 0.5


def test_redraw_entities_renames_people_and_nothing_else(small) -> None:
    before = small.train_stories
    after = redraw_entities(before, small.sizes.entities, jax.random.key(1))
    assert (np.asarray(before.entity) != np.asarray(after.entity)).mean() > 0.5
    pool = small.sizes.entities
    tokens, renamed = np.asarray(before.tokens), np.asarray(after.tokens)
    is_entity = (tokens >= FIRST_ENTITY) & (tokens < FIRST_ENTITY + pool)
    np.testing.assert_array_equal(tokens[~is_entity], renamed[~is_entity])
    owner = np.repeat(np.arange(len(before.target)), np.asarray(before.n_token))
    node_owner = np.repeat(np.arange(len(before.target)), np.asarray(before.n_node))
    for s in range(len(before.target)):
        old, new = (np.asarray(stories.entity)[node_owner == s] for stories in (before, after))
        new_name = dict(zip(old.tolist(), new.tolist(), strict=True))
        assert len(set(new_name.values())) == len(new_name)
        here = is_entity & (owner == s)
        expected = [new_name[t - FIRST_ENTITY] for t in tokens[here]]
        assert expected == (renamed[here] - FIRST_ENTITY).tolist()


def test_redrawn_entities_are_the_argsort_of_random_numbers(small) -> None:
    """Hence all permutations of the pool are equally likely."""
    before, pool, key = small.train_stories, small.sizes.entities, jax.random.key(2)
    order = np.asarray(jax.random.uniform(key, (len(before.target), pool))).argsort(axis=1)
    owner = np.repeat(np.arange(len(before.target)), np.asarray(before.n_node))
    found = redraw_entities(before, pool, key).entity
    np.testing.assert_array_equal(found, order[owner, np.asarray(before.entity)])
    assert len(np.unique(found)) == pool


@pytest.mark.parametrize("fraction", [0.0, 0.5, 1.0])
def test_reordering_moves_whole_sentences_within_their_story(small, fraction: float) -> None:
    before, ends = small.train_stories, small.sizes.sentence_ends
    after = reorder_sentences(before, ends, fraction, jax.random.key(2))
    moved = 0
    for start, length in zip(before.token_start.tolist(), before.n_token.tolist(), strict=True):
        old, new = (
            sentences(np.asarray(s.tokens)[start : start + length].tolist(), ends)
            for s in (before, after)
        )
        assert sorted(old) == sorted(new)
        moved += old != new
    # Two sentences in random order keep their order in half of the cases.
    assert 0.2 * fraction <= moved / len(before.target) <= 0.9 * fraction


def sentences(tokens: list[int], ends: tuple[int, ...]) -> list[list[int]]:
    """Splits tokens after each run of sentence ends."""
    found: list[list[int]] = [[]]
    for token, following in zip(tokens, [*tokens[1:], -1], strict=True):
        found[-1].append(token)
        if token in ends and following not in ends:
            found.append([])
    return [sentence for sentence in found if sentence]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=40), st.integers(1, 4))
@settings(max_examples=60)
def test_bucket_bounds_have_the_least_padding(lengths: list[int], count: int) -> None:
    values = np.array(lengths)
    bounds = bucket_bounds(values, count)
    assert max(bounds) == values.max() and len(bounds) <= count and sorted(set(bounds)) == bounds

    def cost(bounds) -> int:
        return sum(min(b for b in bounds if b >= n) for n in lengths)

    distinct = sorted(set(lengths))
    if len(distinct) <= 8:
        others = itertools.combinations(distinct[:-1], min(count, len(distinct)) - 1)
        assert cost(bounds) == min(cost([*other, distinct[-1]]) for other in others)


@given(rows=ROWS)
@settings(max_examples=15)
def test_graph_batch_contains_its_stories(small, rows: list[int]) -> None:
    stories, records = small.train_stories, small.train
    shape = plan_shapes("graph", stories, len(rows))[0][0]
    batch = packed(stories, jnp.array(rows), shape)
    assert int(batch.n_node.sum()) == shape.nodes == len(batch.nodes["entity"])
    assert int(batch.n_edge.sum()) == shape.edges == len(batch.senders)
    ends = np.cumsum(batch.n_node)
    story = np.repeat(np.arange(len(rows) + 1), batch.n_node)
    np.testing.assert_array_equal(batch.nodes["story"], story)
    position = np.arange(shape.nodes) - (ends - batch.n_node)[story]
    np.testing.assert_array_equal(batch.nodes["position"], position)
    for graph, row in enumerate(rows):
        first, end = int(ends[graph] - batch.n_node[graph]), int(ends[graph])
        inside = (np.asarray(batch.senders) >= first) & (np.asarray(batch.senders) < end)
        assert bool(batch.globals["mask"][graph]) == (row >= 0)
        if row < 0:
            assert first == end and not inside.any()
            continue
        edges = slice(records.edge_start[row], records.edge_start[row + 1])
        for found, expected in (
            (batch.senders - first, records.senders),
            (batch.receivers - first, records.receivers),
            (batch.edges["relation"], records.relations),
        ):
            np.testing.assert_array_equal(np.asarray(found)[inside], expected[edges])
        np.testing.assert_array_equal(batch.globals["query"][graph] - first, records.query[row])
        people = np.full(shape.people, shape.nodes - 1)
        people[: end - first] = np.arange(first, end)
        np.testing.assert_array_equal(batch.globals["people"][graph], people)
        facts = np.full(shape.facts, shape.edges - 1)
        facts[: inside.sum()] = np.flatnonzero(inside)
        np.testing.assert_array_equal(batch.globals["facts"][graph], facts)
        assert batch.globals["people_mask"][graph].sum() == end - first
        assert batch.globals["facts_mask"][graph].sum() == inside.sum()
    for name in ("people_mask", "facts_mask"):
        mask = np.asarray(batch.globals[name])
        assert not mask[-1].any() and not (mask[:, 1:] & ~mask[:, :-1]).any()  # a prefix
    padding = np.asarray(batch.senders) >= ends[-2]
    assert (np.asarray(batch.receivers)[padding] >= ends[-2]).all()
    assert not batch.globals["mask"][-1]


@given(rows=ROWS)
@settings(max_examples=15)
def test_token_batch_contains_its_stories(small, rows: list[int]) -> None:
    stories = small.train_stories
    longest = int(stories.n_token.max())
    # Some words are replaced by the unknown word, which is not a name.
    rare = (stories.tokens >= FIRST_ENTITY + small.sizes.entities) & (stories.tokens % 7 == 0)
    stories = stories._replace(tokens=jnp.where(rare, UNKNOWN, stories.tokens))
    shape = Shape(len(rows), tokens=longest, people=9, facts=8, names=int(longest))
    batch = packed(stories, jnp.array(rows), shape)
    for b, row in enumerate(rows):
        tokens, mask = np.asarray(batch.tokens[b]), np.asarray(batch.mask[b])
        assert bool(batch.row_mask[b]) == (row >= 0)
        if row < 0:
            assert (tokens == PAD).all() and not mask.any() and not batch.mentions[b].any()
            assert (batch.people[b] == -1).all() and (batch.facts[b] == -1).all()
            assert (batch.name_positions[b] == longest).all()
            continue
        first, people = int(stories.node_start[row]), int(stories.n_node[row])
        entities = np.asarray(stories.entity[first : first + people])
        np.testing.assert_array_equal(batch.people[b, :people], entities)
        assert (batch.people[b, people:] == -1).all()
        found = np.asarray(batch.name_positions[b])
        names = np.flatnonzero(np.isin(tokens, entities + FIRST_ENTITY))
        np.testing.assert_array_equal(found[found < longest], names)
        assert len(names) == count_names(stories)[row]
        first, facts = int(stories.edge_start[row]), int(stories.n_edge[row])
        for x, part in enumerate((stories.senders, stories.receivers, stories.relation)):
            np.testing.assert_array_equal(batch.facts[b, :facts, x], part[first : first + facts])
        assert (batch.facts[b, facts:] == -1).all()
        start, count = int(stories.token_start[row]), int(stories.n_token[row])
        np.testing.assert_array_equal(tokens[:count], stories.tokens[start : start + count])
        assert (tokens[count:] == PAD).all() and mask.sum() == count
        for person, mentions in zip(batch.query[b], batch.mentions[b], strict=True):
            np.testing.assert_array_equal(mentions, tokens == int(person) + FIRST_ENTITY)
            assert mentions.any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [7, 120])
def test_every_story_fits_its_shape(small, kind, size: int) -> None:
    shapes, buckets = plan_shapes(kind, small.train_stories, size)
    assert sorted(np.concatenate(buckets).tolist()) == list(range(120))
    assert (len(shapes) > 1) == (kind != "graph")
    for shape, rows in zip(shapes, buckets, strict=True):
        for some in chunk(rows, size):
            batch = packed(small.train_stories, jnp.array(some), shape)
            if kind in GRAPHS:
                assert int(batch.n_node[-1]) >= 1 and int(batch.n_edge[-1]) >= 0
                assert int(batch.n_node[:-1].max()) <= shape.people
            else:
                real = some[some >= 0]
                np.testing.assert_array_equal(
                    np.asarray(batch.mask.sum(axis=1))[some >= 0],
                    np.asarray(small.train_stories.n_token)[real],
                )


@pytest.mark.parametrize("kind", KINDS)
def test_a_padded_question_is_the_same_story(kind: str, small) -> None:
    """Its batch has the people, facts and tokens of the batch of the exact size, and padding."""
    shapes = set()
    for row in range(0, len(small.test), 5):
        alone = small.test.select(np.array([row]))
        stories = build_arrays(alone, small.vocabulary, 0)
        (exact,), _ = plan_shapes(kind, stories, 1)
        shape = question_shape(kind, stories)
        shapes.add(shape)
        padded = pad_question(stories)
        assert question_shape(kind, padded) == shape
        assert len(padded.entity) == shape.people and len(padded.relation) == shape.facts
        for name, size in vars(exact).items():
            assert size <= getattr(shape, name) <= 4 * max(size, 12) or not size, name
        story = np.zeros(1, np.int32)
        one, other = packed(stories, story, exact), packed(padded, story, shape)
        if kind in GRAPHS:
            for field in ("people_mask", "facts_mask"):
                assert one.globals[field].sum() == other.globals[field].sum()
            facts = int(stories.n_edge[0])
            for field in (
                lambda g: g.senders,
                lambda g: g.receivers,
                lambda g: g.edges["relation"],
            ):
                np.testing.assert_array_equal(field(one)[:facts], field(other)[:facts])
            people = int(stories.n_node[0])
            entity = [batch.nodes["entity"][:people] for batch in (one, other)]
        else:
            words = int(stories.n_token[0])
            np.testing.assert_array_equal(one.tokens[:, :words], other.tokens[:, :words])
            assert one.mask.sum() == other.mask.sum() == words
            entity = [batch.people[batch.people >= 0] for batch in (one, other)]
            names = [b.name_positions[b.name_positions < words] for b in (one, other)]
            np.testing.assert_array_equal(*names)
        np.testing.assert_array_equal(*entity)
    assert 1 < len(shapes) <= 3
    assert pad_question(small.test_stories) is small.test_stories
