"""Tokens, entities and the packing of batches."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clutrr_jax.data.arrays import redraw_entities, reorder_sentences
from clutrr_jax.data.batching import (
    GRAPHS,
    Shape,
    best_lengths,
    chunk,
    count_names,
    pack,
    plan_shapes,
)
from clutrr_jax.data.records import parse
from clutrr_jax.data.vocabulary import (
    FIRST_ENTITY,
    PAD,
    UNKNOWN,
    build_vocabulary,
    draw_entities,
    encode,
)
from tests.data.test_records import ROW

KINDS = ("graph", "pairs", "tokens")


def test_tokens_by_hand() -> None:
    records = parse("file", list(ROW), [list(ROW.values())])
    vocabulary = build_vocabulary(records, entities=5)
    assert vocabulary.words == ("and", "her", "son", "met", "'s", "sister", ".")
    tokens, start = encode(records, vocabulary, np.array([4, 0, 2]))
    ann, bob, cy, word = FIRST_ENTITY + 4, FIRST_ENTITY, FIRST_ENTITY + 2, FIRST_ENTITY + 5
    assert tokens.tolist() == [
        ann, word, word + 1, word + 2, bob, word + 3, bob, word + 4, word + 5, cy, word + 6,
    ]  # fmt: skip
    assert start.tolist() == [0, 11]


def test_words_of_the_tests_alone_are_unknown() -> None:
    train = parse("file", list(ROW), [list(ROW.values())])
    other = ROW | {"story": "[Ann] hugged [Bob] and [Cy] [Zoe]"}
    test = parse("file", list(other), [list(other.values())])
    vocabulary = build_vocabulary(train, entities=5)
    tokens, _ = encode(test, vocabulary, np.array([0, 1, 2]))
    assert tokens.tolist()[1] == UNKNOWN and tokens.tolist()[-1] == UNKNOWN
    assert tokens.tolist()[3] == FIRST_ENTITY + 5  # "and" is known


def test_entities_of_a_story_are_distinct(small) -> None:
    records = small.train
    entities = draw_entities(np.diff(records.node_start), 20, seed=3)
    for s in range(len(records)):
        mine = entities[records.node_start[s] : records.node_start[s + 1]]
        assert len(set(mine)) == len(mine) and mine.max() < 20


def test_redrawing_renames_people_and_nothing_else(small) -> None:
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
        new_name = dict(
            zip(
                np.asarray(before.entity)[node_owner == s].tolist(),
                np.asarray(after.entity)[node_owner == s].tolist(),
                strict=True,
            )
        )
        assert len(set(new_name.values())) == len(new_name)
        here = is_entity & (owner == s)
        assert [new_name[t - FIRST_ENTITY] for t in tokens[here]] == (
            renamed[here] - FIRST_ENTITY
        ).tolist()


def test_entities_are_redrawn_by_the_order_of_random_numbers(small) -> None:
    """Of one for each entity of the pool, so that each order is as likely as any."""
    before, pool, key = small.train_stories, small.sizes.entities, jax.random.key(2)
    order = np.asarray(jax.random.uniform(key, (len(before.target), pool))).argsort(axis=1)
    owner = np.repeat(np.arange(len(before.target)), np.asarray(before.n_node))
    found = redraw_entities(before, pool, key).entity
    np.testing.assert_array_equal(found, order[owner, np.asarray(before.entity)])
    assert len(np.unique(found)) == pool


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_reordering_moves_whole_sentences_within_their_story(small, share) -> None:
    before, ends = small.train_stories, small.sizes.sentence_ends
    after = reorder_sentences(before, ends, share, jax.random.key(2))
    moved = 0
    for start, length in zip(before.token_start.tolist(), before.n_token.tolist(), strict=True):
        told, retold = (
            sentences(np.asarray(s.tokens)[start : start + length].tolist(), ends)
            for s in (before, after)
        )
        assert sorted(told) == sorted(retold)
        moved += told != retold
    # At random, two sentences keep their order in half of the cases.
    assert 0.2 * share <= moved / len(before.target) <= 0.9 * share


def sentences(tokens: list[int], ends: tuple[int, ...]) -> list[list[int]]:
    """Parted after each run of sentence ends."""
    found: list[list[int]] = [[]]
    for token, following in zip(tokens, [*tokens[1:], -1], strict=True):
        found[-1].append(token)
        if token in ends and following not in ends:
            found.append([])
    return [sentence for sentence in found if sentence]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=40), st.integers(1, 4))
@settings(max_examples=60)
def test_bucket_lengths_compute_the_least_padding(lengths: list[int], count: int) -> None:
    import itertools

    values = np.array(lengths)
    bounds = best_lengths(values, count)
    assert max(bounds) == values.max() and len(bounds) <= count and sorted(set(bounds)) == bounds

    def cost(bounds) -> int:
        return sum(min(b for b in bounds if b >= n) for n in lengths)

    distinct = sorted(set(lengths))
    if len(distinct) <= 8:
        others = itertools.combinations(distinct[:-1], min(count, len(distinct)) - 1)
        assert cost(bounds) == min(cost([*other, distinct[-1]]) for other in others)


@given(data=st.data())
@settings(max_examples=25)
def test_a_graph_batch_holds_its_stories(small, data) -> None:
    rows = data.draw(st.lists(st.integers(-1, 119), min_size=1, max_size=12))
    stories, records = small.train_stories, small.train
    shape = plan_shapes("graph", stories, len(rows))[0][0]
    batch = pack(stories, jnp.array(rows), shape)
    assert int(batch.n_node.sum()) == shape.nodes == len(batch.nodes["entity"])
    assert int(batch.n_edge.sum()) == shape.edges == len(batch.senders)
    ends = np.cumsum(batch.n_node)
    story = np.repeat(np.arange(len(rows) + 1), batch.n_node)
    np.testing.assert_array_equal(batch.nodes["story"], story)
    place = np.arange(shape.nodes) - (ends - batch.n_node)[story]
    np.testing.assert_array_equal(batch.nodes["place"], place)
    for graph, row in enumerate(rows):
        first, end = int(ends[graph] - batch.n_node[graph]), int(ends[graph])
        inside = (np.asarray(batch.senders) >= first) & (np.asarray(batch.senders) < end)
        assert bool(batch.globals["mask"][graph]) == (row >= 0)
        if row < 0:
            assert first == end and not inside.any()
            continue
        edges = slice(records.edge_start[row], records.edge_start[row + 1])
        np.testing.assert_array_equal(
            np.asarray(batch.senders)[inside] - first, records.senders[edges]
        )
        np.testing.assert_array_equal(
            np.asarray(batch.receivers)[inside] - first, records.receivers[edges]
        )
        np.testing.assert_array_equal(
            np.asarray(batch.edges["relation"])[inside], records.relations[edges]
        )
        np.testing.assert_array_equal(batch.globals["query"][graph] - first, records.query[row])
        people = np.full(shape.people, shape.nodes - 1)
        people[: end - first] = np.arange(first, end)
        np.testing.assert_array_equal(batch.globals["people"][graph], people)
        facts = np.full(shape.facts, shape.edges - 1)
        facts[: inside.sum()] = np.flatnonzero(inside)
        np.testing.assert_array_equal(batch.globals["facts"][graph], facts)
    padding = np.asarray(batch.senders) >= ends[-2]
    assert (np.asarray(batch.receivers)[padding] >= ends[-2]).all()
    assert not batch.globals["mask"][-1]


@given(data=st.data())
@settings(max_examples=25)
def test_a_token_batch_holds_its_stories(small, data) -> None:
    rows = data.draw(st.lists(st.integers(-1, 119), min_size=1, max_size=12))
    stories = small.train_stories
    longest = int(stories.n_token.max())
    # Unknown words, too, which are no names.
    rare = (stories.tokens >= FIRST_ENTITY + small.sizes.entities) & (stories.tokens % 7 == 0)
    stories = stories._replace(tokens=jnp.where(rare, UNKNOWN, stories.tokens))
    shape = Shape(len(rows), tokens=longest, people=9, facts=8, names=int(longest))
    batch = pack(stories, jnp.array(rows), shape)
    for b, row in enumerate(rows):
        tokens, mask = np.asarray(batch.tokens[b]), np.asarray(batch.mask[b])
        assert bool(batch.row_mask[b]) == (row >= 0)
        if row < 0:
            assert (tokens == PAD).all() and not mask.any() and not batch.mentions[b].any()
            assert (batch.people[b] == -1).all() and (batch.facts[b] == -1).all()
            assert (batch.named[b] == longest).all()
            continue
        first, people = int(stories.node_start[row]), int(stories.n_node[row])
        entities = np.asarray(stories.entity[first : first + people])
        np.testing.assert_array_equal(batch.people[b, :people], entities)
        assert (batch.people[b, people:] == -1).all()
        found = np.asarray(batch.named[b])
        named = np.flatnonzero(np.isin(tokens, entities + FIRST_ENTITY))
        np.testing.assert_array_equal(found[found < longest], named)
        assert len(named) == count_names(stories)[row]
        first, facts = int(stories.edge_start[row]), int(stories.n_edge[row])
        for x, part in enumerate((stories.senders, stories.receivers, stories.relation)):
            np.testing.assert_array_equal(batch.facts[b, :facts, x], part[first : first + facts])
        assert (batch.facts[b, facts:] == -1).all()
        start, count = int(stories.token_start[row]), int(stories.n_token[row])
        np.testing.assert_array_equal(tokens[:count], stories.tokens[start : start + count])
        assert (tokens[count:] == PAD).all() and mask.sum() == count
        for asked in range(2):
            mentions = np.asarray(batch.mentions[b, asked])
            np.testing.assert_array_equal(
                mentions, tokens == int(batch.query[b, asked]) + FIRST_ENTITY
            )
            assert mentions.any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 7, 120])
def test_every_story_fits_its_shape_once(small, kind, size: int) -> None:
    shapes, buckets = plan_shapes(kind, small.train_stories, size)
    assert sorted(np.concatenate(buckets).tolist()) == list(range(120))
    assert (len(shapes) > 1) == (kind != "graph")
    for shape, rows in zip(shapes, buckets, strict=True):
        for some in chunk(rows, size):
            batch = pack(small.train_stories, jnp.array(some), shape)
            if kind in GRAPHS:
                assert int(batch.n_node[-1]) >= 1 and int(batch.n_edge[-1]) >= 0
                assert int(batch.n_node[:-1].max()) <= shape.people
            else:
                real = some[some >= 0]
                np.testing.assert_array_equal(
                    np.asarray(batch.mask.sum(axis=1))[some >= 0],
                    np.asarray(small.train_stories.n_token)[real],
                )
