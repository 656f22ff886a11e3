"""Laws of conditional theorem provers: hand-worked proofs, and equality with a plain prover that
proves one goal at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models import MODELS
from clutrr_jax.models.ctp import CTP, best
from generator.relations.kinship import KINSHIP, NUM_RELATIONS, RELATION_ID
from tests.models.graphs import Fact, graphs, made_up
from tests.models.small import call, loss_of, small_config

FATHER, MOTHER, SON, BROTHER, NEPHEW = (
    RELATION_ID[r] for r in ("father", "mother", "son", "brother", "nephew")
)
FAR = 20.0  # distance of embeddings that do not match


def with_rules(rules: dict[int, tuple[int, int]]) -> CTP:
    """A prover with one exact rule for some goals, by the goal's relation."""
    config = small_config(
        "ctp_linear",
        embedding=NUM_RELATIONS,
        rules=1,
        rule_dropout=0.25,
        share_genders=False,
    )
    model = CTP(config, Sizes(20, 30, KINSHIP), rngs=nnx.Rngs(0))
    model.goal[...] = FAR * jnp.eye(NUM_RELATIONS)
    kernel = np.zeros(model.reformulate.kernel.shape)
    for goal, body in rules.items():
        for i, relation in enumerate(body):
            kernel[goal, 0, i, relation] = 1
    model.reformulate.kernel[...] = jnp.asarray(kernel)
    model.eval()
    return model


scores_of = nnx.jit(lambda model, batch: model.scores(batch))


def check_proved(model: CTP, stories: list[tuple[list[Fact], int, list[int]]]) -> None:
    """Fails unless the relations of the last person of each story to person 0 have scores near 1,
    and no others."""
    facts, last, expected = zip(*stories, strict=True)
    scores = scores_of(model, graphs(facts, [(0, person) for person in last], max(last) + 1))
    assert ((scores < 1e-3) | (scores > 0.99)).all()
    assert [np.flatnonzero(row > 0.5).tolist() for row in scores] == [*expected]


def test_hand_worked_proofs() -> None:
    chain = [(0, FATHER, 1), (1, SON, 2), (2, SON, 3)]
    # Noise: another fact of the same pair, a dangling fact, another way.
    noise = [(0, MOTHER, 1), (1, MOTHER, 4), (4, SON, 3)]
    check_proved(with_rules({BROTHER: (FATHER, SON), NEPHEW: (BROTHER, SON)}), [
        (chain[:1], 1, [FATHER]),
        (chain[:2], 2, [BROTHER]),
        (chain, 3, [NEPHEW]),  # brother of 0 is 2, whose son is 3
        ([(0, BROTHER, 1), (1, SON, 2)], 2, [NEPHEW]),
        ([(0, FATHER, 1), (1, FATHER, 2)], 2, []),
        ([(1, FATHER, 0), (1, SON, 2)], 2, []),  # facts have a direction
        ([*noise, *chain], 4, []),
        ([*noise, *chain[:2], (2, SON, 4)], 4, [NEPHEW]),
    ])  # fmt: skip


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_subgoals_below_the_depth_are_proved_as_relations(depth: int) -> None:
    """Brothers of brothers are brothers, in any bracketing: a chain of six facts is proved. A
    nephew needs five rules one within the other."""
    model = with_rules({BROTHER: (BROTHER, BROTHER), NEPHEW: (BROTHER, NEPHEW)})
    model.depth = depth
    brothers = [(i, BROTHER, i + 1) for i in range(5)]
    check_proved(model, [
        ([*brothers, (5, last, 6)], 6, proved)
        for last, proved in ((BROTHER, [BROTHER]), (NEPHEW, [NEPHEW]), (SON, []))
    ])  # fmt: skip


@pytest.mark.parametrize("depth", [1, 4])
def test_depth_depends_on_the_people_of_a_story_alone(depth: int) -> None:
    """Proofs can go around a cycle of three people as often as their depth allows."""
    config = small_config("ctp_linear", depth=depth, share_genders=False)
    model = CTP(config, Sizes(20, 30, KINSHIP), rngs=nnx.Rngs(0))
    model.eval()
    cycle = [(0, FATHER, 1), (1, SON, 2), (2, BROTHER, 0), (1, MOTHER, 0)]
    alone = graphs([cycle], [(0, 2)], people=3)
    slots = jnp.pad(alone.globals["people"], ((0, 0), (0, 4)), constant_values=3)  # padding node
    padded = alone._replace(globals=alone.globals | {"people": slots})
    np.testing.assert_allclose(*(scores_of(model, x) for x in (padded, alone)), rtol=1e-6)


def test_rule_dropout_hides_rules_from_some_training_stories() -> None:
    model = with_rules({BROTHER: (FATHER, SON)})
    model.train()
    by_rule = graphs([[(0, FATHER, 1), (1, SON, 2)]] * 400, [(0, 2)] * 400, people=3)
    scores = scores_of(model, by_rule)[:, BROTHER]
    assert ((scores < 1e-3) | (scores > 0.99)).all()
    assert 0.65 < (scores > 0.5).mean() < 0.85  # four standard errors
    stated = graphs([[(0, BROTHER, 1)]] * 400, [(0, 1)] * 400, people=2)
    assert (scores_of(model, stated)[:, BROTHER] > 0.99).all()


def test_penalty_on_the_logits_of_the_attention() -> None:
    config = small_config("ctp_attentive", logit_penalty=0.5, share_genders=False)
    model = MODELS["ctp_attentive"].model(config, Sizes(20, 30, KINSHIP), rngs=nnx.Rngs(0))
    model.eval()
    batch = graphs([[(0, FATHER, 1)], [(0, SON, 1)]], [(0, 1)] * 2, people=2)
    rows = {"target": jnp.array([FATHER, MOTHER, 0]), "mask": jnp.array([1, 1, 0])}
    batch = batch._replace(globals=batch.globals | rows)
    found, model.logit_penalty = loss_of(model, batch), 0.0
    logits = np.tensordot(model.goal[...], model.reformulate.kernel[...], 1)
    penalty = 0.5 * np.mean((logits + model.reformulate.bias[...]) ** 2)
    np.testing.assert_allclose(found, loss_of(model, batch) + penalty, rtol=1e-4)


def test_genders_are_those_of_the_stated_facts() -> None:
    config = small_config("ctp_memory", share_genders=True)
    model = CTP(config, Sizes(20, 30, KINSHIP), rngs=nnx.Rngs(0))
    model.eval()
    stories = [[(0, FATHER, 1), (1, relation, 2)] for relation in (SON, RELATION_ID["daughter"])]
    male, female = np.asarray(call(model, graphs(stories, [(0, 2)] * 2, people=3)))
    names = ("brother", "nephew", "grandson")
    other = ("sister", "niece", "granddaughter")
    for man, woman in zip(names, other, strict=True):
        np.testing.assert_allclose(male[RELATION_ID[man]], female[RELATION_ID[woman]], rtol=1e-5)
        assert male[RELATION_ID[man]] > male[RELATION_ID[woman]] + 5


def plain_scores(model: CTP, facts: list[Fact], query: tuple[int, int], people: int) -> np.ndarray:
    """Scores of all goals, proved one after the other."""
    embeddings = np.asarray(model.goal[...])

    def by_rules(goal: np.ndarray, first: int, second: int, level: int) -> float:
        if level == people - 2:
            return 0.0
        rules = np.asarray(model.subgoals(jnp.asarray(goal)[None])[0])
        return max(
            min(prove(a, first, via, level + 1), prove(b, via, second, level + 1))
            for a, b in rules
            for via in range(people)
        )

    def prove(goal: np.ndarray, first: int, second: int, level: int) -> float:
        similarity = np.exp(-np.linalg.norm(goal - embeddings, axis=1))
        scores = [similarity[r] for x, r, y in facts if (x, y) == (first, second) and x != y]
        if level < model.depth:
            scores.append(by_rules(goal, first, second, level))
        else:  # the goal is proved as one of the three most similar relations
            scores += [
                min(similarity[r], by_rules(embeddings[r], first, second, level))
                for r in np.argsort(-similarity)[:3]
            ]
        return max(scores, default=0.0)

    return np.array([prove(goal, *query, 0) for goal in embeddings])


@pytest.mark.parametrize(
    ("name", "depth"), [("ctp_linear", 1), ("ctp_attentive", 2), ("ctp_memory", 1)]
)
def test_scores_equal_a_plain_prover(name: str, depth: int) -> None:
    config = small_config(name, embedding=4, rules=2, memory=5, depth=depth, share_genders=False)
    model = MODELS[name].model(config, Sizes(20, 30, made_up(5)), rngs=nnx.Rngs(1))
    model.eval()
    rng = np.random.default_rng(0)
    stories, queries, people = [], [], 4
    for _ in range(6):
        facts = [
            (*rng.integers(people, size=1), *rng.integers(5, size=1), y) for y in range(people)
        ]
        stories.append([(int(x), int(r), y) for x, r, y in facts])
        queries.append((0, people - 1))
    stories.append([])  # nothing is provable
    queries.append((0, 1))
    found = scores_of(model, graphs(stories, queries, people))
    expected = [plain_scores(model, f, q, people) for f, q in zip(stories, queries, strict=True)]
    np.testing.assert_allclose(found, np.clip(expected, 1e-6, 1 - 1e-6), rtol=1e-3)
    assert (np.max(expected, axis=1) > 0.01).sum() >= 3


@pytest.mark.parametrize(
    ("first_shape", "second_shape", "axes"),
    [((2, 3, 4, 4, 1, 5), (2, 3, 1, 4, 4, 5), (1, 3)), ((6, 3, 1, 1), (1, 3, 4, 5), (1,))],
)
def test_gradient_of_the_best_is_that_of_minimum_and_maximum(
    first_shape: tuple, second_shape: tuple, axes: tuple
) -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    first, second = (
        jax.random.uniform(key, shape)
        for key, shape in zip(keys[:2], (first_shape, second_shape), strict=True)
    )
    weights = jax.random.normal(keys[2], best(first, second, axes).shape)

    def plain(first: jax.Array, second: jax.Array, axes: tuple) -> jax.Array:
        return jnp.minimum(first, second).max(axis=axes)

    def gradients(function) -> tuple[jax.Array, jax.Array]:
        return jax.grad(lambda *x: (weights * function(*x, axes)).sum(), (0, 1))(first, second)

    for found, expected in zip(gradients(best), gradients(plain), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert (expected != 0).sum() > 10
