"""Extracted graphs: their file, precision and recall, also by wording, and proofs from them."""

import re
from dataclasses import fields, replace
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from ml_collections import ConfigDict

from clutrr_jax.data.batching import Shape, pack, plan_shapes
from clutrr_jax.data.records import Records
from clutrr_jax.data.vocabulary import SENTENCE_ENDS, sentences, spans
from clutrr_jax.evaluation.baselines import predict_with, stated_facts
from clutrr_jax.evaluation.extraction import (
    FILE,
    KNOWN,
    NEW,
    NO_SENTENCE,
    WORST,
    Extraction,
    by_wording,
    precision_recall,
    read_extracted,
    sentence_wordings,
    write_extracted,
)
from clutrr_jax.evaluation.ground_truth import FOLLOWS, RIGHT, UNJUDGED, WRONG, GroundTruth
from clutrr_jax.evaluation.proofs import prove_extracted, prove_label
from clutrr_jax.models import MODELS
from clutrr_jax.models.prover import gendered
from generator.relations.deduction import Fact, rule_heads
from generator.relations.kinship import (
    COMPOSE,
    GENDER_OF,
    INVERSE,
    KINSHIP,
    NUM_RELATIONS,
    PREDICATE_OF,
    RELATION_ID,
)
from tests.data.test_records import records_of

SPEC = MODELS["reader_prover"]
CONFIG = ConfigDict(SPEC.config | {"embedding": 8, "hidden": 8})
RULES = np.zeros((NUM_RELATIONS,) * 3, np.float32)
RULES[tuple(KINSHIP.rules.T)] = 1


def perfect(test: Records) -> Extraction:
    """The graph that a reader without errors extracts."""
    relation, probability = [], []
    for story in range(len(test)):
        facts = stated_facts(test.select(np.array([story])))[0]
        relation.append(facts.argmax(axis=-1))
        probability.append(facts.any(axis=-1).astype(np.float32))
    return Extraction(relation, probability, RULES, GroundTruth(test).verdicts)


def facts_of(test: Records, story: int) -> list[tuple[int, int, int]]:
    edges = slice(test.edge_start[story], test.edge_start[story + 1])
    columns = test.senders[edges], test.relations[edges], test.receivers[edges]
    return [tuple(map(int, fact)) for fact in zip(*columns, strict=True)]


def model(small) -> nnx.Module:
    made = SPEC.model(CONFIG, small.sizes, rngs=nnx.Rngs(0))
    table = jax.random.normal(jax.random.key(0), made.reasoner.table.shape)
    made.reasoner.table = nnx.Param(table)  # any rules
    made.eval()
    return made


def test_a_perfect_extraction_has_precision_and_recall_1(small) -> None:
    test = small.test
    rows = precision_recall(perfect(test), test)
    whole = rows[0]
    assert whole["stated"] == len(test.relations) == whole["right"]  # no story states the answer
    for row in rows:
        assert row["precision"] in (1, None) and row["recall"] in (1, None)
        assert row["wrong"] == row["missing"] == row["follow"] == 0
    lengths, relations = rows[1:5], rows[5:]
    assert {row["group"] for row in relations} == set(RELATION_ID)
    for part, name in product((lengths, relations), ("stated", "extracted", "right")):
        assert sum(row[name] for row in part) == whole[name]
    assert sum(row["stories"] for row in lengths) == whole["stories"] == len(test)


def test_each_kind_of_error_is_counted(small) -> None:
    test, found = small.test, perfect(small.test)
    before = precision_recall(found, test)[0]
    verdict, story = GroundTruth(test).verdicts, 0
    x, _, y = facts_of(test, story)[0]
    found.probability[story][x, y] = 0.5  # not above the threshold
    row = precision_recall(found, test)[0]
    assert (row["missing"], row["right"]) == (1, before["right"] - 1)
    assert row["precision"] == 1 and row["recall"] == row["right"] / row["stated"] < 1
    # The inverse of the fact follows from the stated one.
    inverse = int(np.flatnonzero(verdict[story][y, x] == FOLLOWS)[0])
    found.relation[story][y, x], found.probability[story][y, x] = inverse, 0.9
    row = precision_recall(found, test)[0]
    assert (row["follow"], row["wrong"], row["precision"]) == (1, 0, 1)
    wrong = int(np.flatnonzero(verdict[story][y, x] == WRONG)[0])
    found.relation[story][y, x] = wrong
    row = precision_recall(found, test)[0]
    assert (row["follow"], row["wrong"]) == (0, 1)
    assert row["precision"] == row["right"] / (row["right"] + 1)
    x, _, y = facts_of(test, story)[1]
    inverse = int(np.flatnonzero(verdict[story][y, x] == FOLLOWS)[0])
    found.relation[story][y, x], found.probability[story][y, x] = inverse, 0.9
    row = precision_recall(found, test)[0]
    assert row["precision"] == (row["right"] + 1) / (row["right"] + 2)
    x, y = test.query[story]
    found.probability[story][x, y] = found.probability[story][y, x] = 1
    np.fill_diagonal(found.probability[story], 1)
    assert precision_recall(found, test)[0] == row  # the query pair and the diagonal do not count


def test_facts_that_follow_are_the_closure_under_rules_and_inverses(small) -> None:
    """By brute force, for gendered relations."""
    test = small.test
    verdict = GroundTruth(test).verdicts
    for story in range(0, len(test), 9):
        people = test.genders[test.node_start[story] : test.node_start[story + 1]]
        known = set(facts_of(test, story))
        assert all(verdict[story][x, y, r] in (RIGHT, UNJUDGED) for x, r, y in known)
        before = set()
        while known != before:
            before = set(known)
            derived = {(z, INVERSE[PREDICATE_OF[r]], x) for x, r, z in before}
            for (x, r, z), (other_z, s, y) in product(before, repeat=2):
                if z == other_z and x != y:
                    derived.add((x, COMPOSE[PREDICATE_OF[r], PREDICATE_OF[s]], y))
            for x, predicate, y in derived:
                fits = (predicate == PREDICATE_OF) & (people[y] == GENDER_OF)
                known |= {(x, int(r), y) for r in np.flatnonzero(fits)}
        found = {tuple(map(int, f)) for f in np.argwhere(verdict[story] <= FOLLOWS)}
        pair = set(test.query[story].tolist())
        assert found == {(x, y, r) for x, r, y in known if {x, y} != pair}


def test_pairs_that_cannot_be_judged() -> None:
    """The query pair, pairs whose relation the data does not give, and a person with themselves."""
    change = {
        "story": "[Ann] [Bob] [Cy] [Di]",
        "query": "('Ann', 'Di')",
        "story_edges": "[(0, 1), (1, 2), (2, 3), (3, 1)]",
        "edge_types": "['husband', 'son', 'grandmother']",
        "query_edge": "(0, 3)",
        "genders": "Ann:female,Bob:male,Cy:male,Di:female",
    }
    (verdict,) = GroundTruth(records_of(change)).verdicts
    unjudged = (verdict == UNJUDGED).any(axis=-1)
    assert (unjudged == (verdict == UNJUDGED).all(axis=-1)).all()
    pairs = {(x, y) for x, y in np.argwhere(unjudged).tolist() if x != y}
    assert unjudged.diagonal().all() and pairs == {(0, 3), (3, 0), (3, 1), (1, 3)}
    found = perfect(records_of(change))
    found.probability[0][:] = 1
    assert precision_recall(found, records_of(change))[0]["extracted"] == 12 - 4


def test_the_stated_facts_and_the_given_rules_prove_the_label(small) -> None:
    """With probability 1 and in as few steps as over predicates. No other relation has a proof."""
    test, found = small.test, perfect(small.test)
    heads = rule_heads(RULES)
    for story in range(len(test)):
        x, y = map(int, test.query[story])
        graph = found.relation[story], found.probability[story], heads
        proof = prove_extracted(*graph, Fact(x, int(test.target[story]), y))
        assert proof is not None and proof.probability == 1
        assert len(proof.steps) == len(prove_label(test, story))
        for other in range(NUM_RELATIONS):
            if other != test.target[story]:
                assert prove_extracted(*graph, Fact(x, other, y)) is None


def of_all(look, made: nnx.Module, stories) -> np.ndarray:
    """`look(model, batch)` of all test stories in one batch."""
    shapes = plan_shapes("tokens", stories, 20)[0]
    most = {f.name: max(getattr(s, f.name) for s in shapes) for f in fields(shapes[0])}
    shape, rows = Shape(**most), jnp.arange(len(stories.target))
    graph, state = nnx.split(made)

    @jax.jit
    def run(state, stories):
        return look(nnx.merge(graph, state), pack(stories, rows, shape))

    return np.asarray(run(state, stories))


@pytest.fixture(scope="module")
def words_file(few, tmp_path_factory) -> tuple[Path, nnx.Module]:
    """Folder with the file of a model with random parameters, and the model."""
    rng, made = np.random.default_rng(0), model(few)
    params = nnx.state(made, nnx.Param)
    nnx.update(made, jax.tree.map(lambda p: p + 0.3 * rng.normal(size=p.shape), params))
    folder = tmp_path_factory.mktemp("words")
    write_extracted(folder, made, SPEC.kind, few)
    return folder, made


def test_the_file_holds_what_the_model_extracts(few, words_file) -> None:
    """The graph, the fact of each word and the rules."""
    folder, made = words_file

    def look(m, batch):
        fact, probability = m.word_facts(batch)
        return jnp.concatenate([fact, probability[..., None]], axis=-1)

    found = read_extracted(folder, GroundTruth(few.test))
    expected = of_all(look, made, few.test_stories)
    for story, text in enumerate(few.test.stories):
        size = len(spans(text))
        np.testing.assert_array_equal(found.word_fact[story], expected[story, :size, :3])
        of_words = found.word_probability[story]
        np.testing.assert_allclose(of_words, expected[story, :size, 3], atol=1e-3)
        assert not expected[story, size:, 3].any() and of_words.max() > 0.01
    for story, graph in enumerate(of_all(lambda m, batch: m.read(batch), made, few.test_stories)):
        size = np.diff(few.test.node_start)[story]
        pairs = graph[:size, :size]
        np.testing.assert_allclose(found.probability[story], pairs.max(axis=-1), atol=1e-3)
        named = np.take_along_axis(pairs, found.relation[story][..., None], axis=-1)[..., 0]
        np.testing.assert_allclose(named, found.probability[story], atol=1e-3)
        assert not graph[size:].any() and not graph[:, size:].any()
    np.testing.assert_allclose(
        found.rules, gendered(np.asarray(made.reasoner.rules()), KINSHIP), atol=1e-3
    )
    assert (folder / FILE).stat().st_size < 100_000


def test_tokens_of_an_encoder_are_no_words(few, words_file, tmp_path: Path) -> None:
    stories = few.test_stories._replace(pieces=few.test_stories.tokens)
    write_extracted(tmp_path, words_file[1], "tokens", replace(few, test_stories=stories))
    found = read_extracted(tmp_path, GroundTruth(few.test))
    assert found.word_fact is None and found.word_probability is None
    expected = read_extracted(words_file[0], GroundTruth(few.test)).relation
    jax.tree.map(np.testing.assert_array_equal, found.relation, expected)


def logits(made: nnx.Module, stories, variant: str = "") -> np.ndarray:
    return of_all(SPEC.variants[variant][0] if variant else SPEC.model.__call__, made, stories)


def test_variants_replace_reading_or_reasoning(few) -> None:
    """With the stated facts and the given rules: the symbolic prover. With the stated facts the
    text has no influence, with the given rules the learned rules have none."""
    stories = few.test_stories
    predicted = logits(model(few), stories, "stated facts, given rules").argmax(axis=-1)
    symbolic = predict_with(KINSHIP, few.test).relation[0]
    np.testing.assert_array_equal(predicted, symbolic)
    np.testing.assert_array_equal(predicted, few.test.target)
    by_gold = logits(model(few), stories, "stated facts")
    garbled = stories._replace(tokens=jnp.where(stories.tokens > 40, 40, stories.tokens))
    same = logits(model(few), garbled, "stated facts")
    np.testing.assert_allclose(same, by_gold, atol=1e-6)
    other = model(few)
    by_rules = logits(other, stories, "given rules")
    other.reasoner.table = nnx.Param(jnp.zeros_like(other.reasoner.table[...]))
    np.testing.assert_array_equal(logits(other, stories, "given rules"), by_rules)
    own = logits(model(few), stories)
    for different in (by_gold, by_rules, logits(model(few), garbled)):
        assert np.abs(different - own).max() > 1e-4


# By wording


def told(*texts: str) -> Records:
    """Stories about Ann, her son Bob and his sister Cy, who is the sought daughter of Ann."""
    return records_of(*({"story": text} for text in texts))


def test_names_become_letters_in_order_of_first_mention() -> None:
    assert sentence_wordings(
        "[Bob] met [Ann]'s  son.\n[Cy] told [Ann] and [Bob] that [Cy] is ill?! Dr. No [x y]"
    ) == [
        ("[A] met [B]'s son.", ["Bob", "Ann"]),
        ("[A] told [B] and [C] that [A] is ill?!", ["Cy", "Ann", "Bob"]),
        ("Dr.", []),
        ("No [A]", ["x y"]),
    ]
    assert sentence_wordings("... [Ann]") == [("...", []), ("[A]", ["Ann"])]
    assert sentence_wordings("") == []
    ((wording, _),) = sentence_wordings(" ".join(f"[{i}]" for i in range(28)))
    assert wording.endswith("[Y] [Z] [AA] [BB]")


def test_sentences_have_all_tokens_of_a_story(small) -> None:
    for story in small.test.stories:
        parts = sentences(story)
        assert [token for part in parts for token in part] == spans(story)
        assert all(story[slice(*part[-1])] in SENTENCE_ENDS for part in parts[:-1])
        assert all(story[slice(*part[0])] not in SENTENCE_ENDS for part in parts)


def test_wordings_by_hand() -> None:
    train = told("[Cy] has a son [Ann].", "Yes. [Ann] saw [Bob]'s sister [Cy].")
    test = told(
        "[Ann] has a son [Bob]. [Ann] met [Bob]. [Ann] saw [Bob]'s sister [Cy].",
        "[Ann] had a son [Bob]. [Cy] saw [Ann]'s sister [Bob].",
        "[Ann] has a son. He is [Bob]. [Cy] smiled.",
    )
    found = perfect(test)
    for probability in found.probability:
        probability[0, 1] = 0  # Ann's son Bob is not extracted
    wrong = int(np.flatnonzero(found.verdict[2][2, 1] == WRONG)[0])
    found.relation[2][2, 1], found.probability[2][2, 1] = wrong, 1
    names = "group", "in training", "stories", "stated", "right", "wrong", "precision", "recall"
    rows = by_wording(found, train, test)
    assert [tuple(row[name] for name in names) for row in rows] == [
        (KNOWN, True, 2, 3, 2, 0, 1.0, 2 / 3),
        (NEW, False, 1, 1, 0, 0, None, 0.0),
        (NO_SENTENCE, None, 1, 2, 1, 1, 0.5, 0.5),
        ("[A] has a son [B].", True, 1, 1, 0, 0, None, 0.0),
        ("[A] had a son [B].", False, 1, 1, 0, 0, None, 0.0),
    ]


def imperfect(test: Records) -> Extraction:
    """A graph with missing and additional facts."""
    rng, found = np.random.default_rng(0), perfect(test)
    for relation, probability in zip(found.relation, found.probability, strict=True):
        changed = rng.random(relation.shape) < 0.3
        relation[changed] = rng.integers(NUM_RELATIONS, size=changed.sum())
        probability[changed] = rng.random(changed.sum())
    return found


def test_every_fact_counts_in_one_of_the_first_three_rows(small) -> None:
    found = imperfect(small.test)
    whole = precision_recall(found, small.test)[0]
    rows = by_wording(found, small.train, small.test)
    for name in ("stated", "extracted", "right", "follow", "wrong", "missing"):
        assert sum(row[name] for row in rows[:3]) == whole[name] > 0
    assert 0 < len(rows[3:]) <= WORST
    missing = [row["missing"] for row in rows[3:]]
    assert missing == sorted(missing, reverse=True) and missing[-1] > 0
    for row in rows:
        assert row["missing"] == row["stated"] - row["right"]
        assert row["stories"] <= whole["stories"]


def test_the_own_wordings_of_the_stories_are_not_new(small) -> None:
    rows = by_wording(imperfect(small.test), small.test, small.test)
    assert rows[0]["stated"] > 0 == rows[1]["stated"] == rows[1]["extracted"]
    assert all(row["in training"] for row in rows[3:])


def test_renaming_people_changes_nothing(small) -> None:
    def renamed(records: Records) -> Records:
        return replace(
            records,
            stories=[re.sub(r"\[(.+?)\]", r"[\1-x]", story) for story in records.stories],
            names=[f"{name}-x" for name in records.names],
        )

    found = imperfect(small.test)
    rows = by_wording(found, small.train, small.test)
    assert rows == by_wording(found, renamed(small.train), renamed(small.test))
