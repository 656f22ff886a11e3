"""Laws of the prover, of the symbolic baselines and of the rules that a run has learned."""

from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import Sizes, build_arrays, with_compositions
from clutrr_jax.data.batching import pack, plan_shapes
from clutrr_jax.data.records import Records, build_records
from clutrr_jax.data.vocabulary import Vocabulary
from clutrr_jax.evaluation.baselines import induced, predict_with
from clutrr_jax.evaluation.predictions import UNMAPPED
from clutrr_jax.models import MODELS
from clutrr_jax.models.prover import Prover, gendered
from clutrr_jax.rules import describe
from generator.implied import implied
from generator.relations.algebras import find_algebra
from generator.relations.kinship import (
    COMPOSE,
    GENDER_OF,
    KINSHIP,
    NUM_PREDICATES,
    NUM_RELATIONS,
    PREDICATE_ALGEBRA,
    PREDICATE_ID,
    PREDICATE_OF,
    RELATION_ID,
    RELATION_OF,
    RULES,
)
from generator.relations.path_consistency import possible_relations
from generator.tables.rows import Row
from tests.models.graphs import Fact, graphs
from tests.models.small import call


def rows_of(chains: list[list[tuple[int, int]]], targets: list[int] | None = None) -> list[Row]:
    """One story for each chain of facts. The query pair is the ends of the chain."""
    rows = []
    for chain, target in zip(chains, targets or [0] * len(chains), strict=True):
        names = tuple(f"P{i}" for i in range(len(chain) + 1))
        ends = names[0], names[-1]
        rows.append(Row(
            algebra=KINSHIP, row_index=1, split="test", id="",
            story="[{}] [{}]".format(*ends), clean_story="",
            names=names, genders=(0, *(gender for _, gender in chain)),
            edges=tuple(pairwise(range(len(names)))),
            relations=tuple(int(RELATION_OF[fact]) for fact in chain),
            query=(0, len(chain)), query_names=ends, target=target, clause="", noise=1,
            k=len(chain),
        ))  # fmt: skip
    return rows


def records(chains: list[list[tuple[int, int]]], targets: list[int] | None = None) -> Records:
    return build_records(rows_of(chains, targets))


def derivable_relations(chains: list[list[tuple[int, int]]]) -> np.ndarray:
    """Relations that the independent prover of the generator derives, bool [S, R]."""
    return np.array([np.isin(range(NUM_RELATIONS), found) for found in implied(rows_of(chains))])


def perfect_prover(share_genders: bool) -> Prover:
    """Prover whose parameters are the 16 rules."""
    config = ConfigDict(MODELS["prover"].config | {"share_genders": share_genders})
    model = Prover(config, Sizes(20, 0, KINSHIP), rngs=nnx.Rngs(0))
    table = np.zeros(model.table.shape)
    table[..., -1] = 30
    table[tuple((PREDICATE_ALGEBRA.rules if share_genders else KINSHIP.rules).T)] = 60
    model.table = nnx.Param(jnp.asarray(table))
    return model


@nnx.jit(static_argnames="shape")
def run(model, stories, rows, shape):
    return model(pack(stories, rows, shape))


def probabilities(model: Prover, data: Records) -> np.ndarray:
    stories = with_compositions(build_arrays(data, Vocabulary((), 20), seed=0))
    shapes, _ = plan_shapes("graph", stories, len(data))
    return np.exp(run(model, stories, jnp.arange(len(data)), shapes[0]))


@pytest.mark.parametrize("share_genders", [True, False])
def test_provers_with_the_16_rules_equal_the_independent_prover(share_genders: bool) -> None:
    """On random chains, the probability is on the relations that the independent prover derives,
    and uniform if there are none. The symbolic baseline predicts one of them."""
    rng = np.random.default_rng(0)
    body = np.unique(PREDICATE_OF[KINSHIP.rules[:, :2]])
    # Random chains rarely prove anything. These start from a relation and apply rules backwards.
    chains = []
    for _ in range(60):
        chain = [int(rng.choice(PREDICATE_OF[KINSHIP.rules[:, 2]]))]
        while len(chain) < rng.integers(2, 8):
            position = int(rng.integers(len(chain)))
            bodies = np.argwhere(chain[position] == COMPOSE)
            if not len(bodies):
                break
            chain[position : position + 1] = bodies[rng.integers(len(bodies))].tolist()
        chains.append([(p, int(g)) for p, g in zip(chain, rng.integers(0, 2, 20), strict=False)])
    for _ in range(30):
        chains.append([(int(p), int(rng.integers(2))) for p in rng.choice(body, 4)])
    ambiguous = [PREDICATE_ID[name] for name in ("SO", "child", "inv-grand")]
    chains += [[(p, gender) for p in ambiguous] for gender in (0, 1)]
    data, expected = records(chains), derivable_relations(chains)
    count = expected.sum(axis=1)
    assert (count == 1).sum() > 30 and (count > 1).sum() >= 2 and (count == 0).sum() > 10
    found = probabilities(perfect_prover(share_genders), data)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-4)
    np.testing.assert_array_equal((found > 0.05)[count > 0], expected[count > 0])
    np.testing.assert_allclose(found[count == 0], 1 / NUM_RELATIONS, rtol=1e-3)
    symbolic = predict_with(KINSHIP, data)
    probability, answer = symbolic.probability[0], symbolic.relation[0]
    np.testing.assert_array_equal(probability, np.where(count, 1 / np.maximum(count, 1), 0))
    assert expected[np.arange(len(answer)), answer][count > 0].all()
    assert (answer[count == 0] == UNMAPPED).all()


def test_stated_fact_is_the_answer_for_any_parameters() -> None:
    model = Prover(ConfigDict(MODELS["prover"].config), Sizes(20, 0, KINSHIP), rngs=nnx.Rngs(0))
    model.table = nnx.Param(jax.random.normal(jax.random.key(0), model.table.shape))
    data = records([[(PREDICATE_OF[RELATION_ID["aunt"]], 1)], [(3, 0), (3, 0)]])
    found = probabilities(model, data)
    assert found[0].argmax() == RELATION_ID["aunt"] and found[0].max() > 0.999
    assert found[1].max() < 0.9


def test_rules_are_induced_from_two_step_rows() -> None:
    """Each of the 64 gendered rules has an example. One also has a minority of wrong examples."""
    rules = KINSHIP.rules
    examples = np.concatenate([rules, rules[:1], [[*rules[0][:2], RELATION_ID["aunt"]]]])
    chains = [[(PREDICATE_OF[r], GENDER_OF[r]) for r in rule[:2]] for rule in examples]
    longer = [[(PREDICATE_OF[RELATION_ID["son"]], 0)] * 3]  # supports no rule
    train = records(chains + longer, [*examples[:, 2], RELATION_ID["aunt"]])
    found = induced(train)
    assert sorted(map(tuple, found.rules)) == sorted(map(tuple, rules))
    test = records([[(PREDICATE_OF[RELATION_ID["son"]], 1)] * 2])
    assert predict_with(found, test).relation == RELATION_ID["granddaughter"]
    assert predict_with(replace(found, heads=((),) * len(found.heads)), test).probability == 0


def test_learned_rules_are_listed_after_the_16() -> None:
    learned = np.zeros((3, NUM_RELATIONS, NUM_RELATIONS, NUM_RELATIONS))
    learned[:, *KINSHIP.rules.T] = 0.9
    son, father, aunt = (RELATION_ID[name] for name in ("son", "father", "aunt"))
    learned[:, aunt, father, son] = 0.8
    learned[:, son, son, RELATION_ID["grandson"]] = 0.1
    lines = describe(learned, KINSHIP).splitlines()
    assert "  0.70    3 of 4  child, child -> grand" in lines
    assert sum(line.startswith("  0.90    4 of 4  ") for line in lines) == len(RULES) - 1
    assert lines[-1].split(maxsplit=1) == ["0.80", "aunt, father -> son"]
    assert len(lines) == 1 + len(RULES) + 3


def test_heads_of_pairs_that_have_several_are_listed_as_sets() -> None:
    algebra = find_algebra("rcc8")
    given = algebra.composition
    learned = np.stack([given / np.maximum(given.sum(axis=-1, keepdims=True), 1)] * 2)
    first, second = np.argwhere(given.sum(axis=-1) == 1)[0]
    learned[:, first, second] = 0
    lines = describe(learned, algebra).splitlines()
    pairs = given.any(axis=-1).sum()
    assert lines[-1] == f"Pairs with the heads of the algebra: {pairs - 1} of {pairs}"
    names = algebra.relations
    (head,) = np.flatnonzero(given[first, second])
    pair = f"{names[first]}, {names[second]}"
    assert f"  0.00  {pair} -> nothing; the algebra: {names[head]}" in lines
    assert sum(line.startswith("  1.00  ") and " or " in line for line in lines) > 10


def test_learned_rules_between_predicates_hold_for_all_genders() -> None:
    learned = np.zeros((2, NUM_PREDICATES, NUM_PREDICATES, NUM_PREDICATES))
    learned[:, *PREDICATE_ALGEBRA.rules.T] = 0.9
    rules = gendered(learned[0], KINSHIP)
    np.testing.assert_array_equal(np.argwhere(rules), np.unique(KINSHIP.rules, axis=0))
    np.testing.assert_array_equal(gendered(rules, KINSHIP), rules)
    learned[:, 0, 0] = 0
    un, child = (PREDICATE_ID[name] for name in ("un", "child"))
    learned[:, un, child, un] = 0.8
    lines = describe(learned, KINSHIP).splitlines()
    assert "  0.00  child, child -> grand" in lines
    assert sum(line.startswith("  0.90  ") for line in lines) == len(RULES) - 1
    assert lines[-1].split(maxsplit=1) == ["0.80", "un, child -> un"]


def test_penalty_gives_up_rules_that_no_answer_needs() -> None:
    """The rule of the only story is learned; one that is certain at first is given up."""
    son = (PREDICATE_OF[RELATION_ID["son"]], 0)
    data = records([[son, son]], [RELATION_ID["grandson"]])
    stories = with_compositions(build_arrays(data, Vocabulary((), 20), seed=0))
    shapes, _ = plan_shapes("graph", stories, 1)
    batch = pack(stories, jnp.arange(1), shapes[0])
    config = ConfigDict(MODELS["prover"].config | {"rule_penalty": 1.0, "share_genders": True})
    model = Prover(config, Sizes(20, 0, KINSHIP), rngs=nnx.Rngs(0))
    needed, useless = tuple(PREDICATE_ALGEBRA.rules[0]), (8, 8, 8)
    table = model.table[...].at[needed].set(1.2).at[useless].set(10.0)
    loss = nnx.jit(nnx.value_and_grad(lambda model: model.loss(batch).sum()))
    for _ in range(100):
        model.table = nnx.Param(table)
        table -= 0.3 * loss(model)[1]["table"][...]
    assert model.rules()[needed] > 0.95 and model.rules()[useless] < 0.3


def with_table(name: str) -> Prover:
    """Prover whose compositions are uniform over the heads of an algebra."""
    algebra = find_algebra(name)
    config = ConfigDict(MODELS["prover"].config | {"scale": 1.0, "floor": 1e-6})
    model = Prover(config, Sizes(20, 0, algebra), rngs=nnx.Rngs(0))
    nothing = ~algebra.composition.any(axis=-1, keepdims=True)
    heads = np.concatenate([algebra.composition, nothing], axis=-1)
    model.table = nnx.Param(jnp.where(heads, 0.0, -50.0))
    return model


@pytest.mark.parametrize("name", ["rcc8", "interval"])
def test_relations_that_remain_are_those_of_path_consistency(name: str) -> None:
    """Three paths of two or three facts, and a fact that leads nowhere, between random pairs."""
    model, rng = with_table(name), np.random.default_rng(0)
    size = len(model.table[...])
    stories: list[list[Fact]] = []
    for _ in range(200):
        a, b, c, d, e, f, g, h = rng.integers(size, size=8).tolist()
        stories.append([(0, a, 1), (1, b, 5), (0, c, 2), (2, d, 5), (0, e, 3), (3, f, 4), (4, g, 5),
                        (2, h, 6)])  # fmt: skip
    logits = np.asarray(call(model, graphs(stories, [(0, 5)] * len(stories), 7)))[: len(stories)]
    facts = np.array(stories)
    query = np.tile([0, 5], (len(stories), 1))
    remain = possible_relations(facts[..., [0, 2]], facts[..., 1], query, find_algebra(name))
    remain = remain[remain.any(axis=-1)], logits[remain.any(axis=-1)]
    assert len(remain[0]) > 20
    for possible, logit in zip(*remain, strict=True):
        assert logit[possible].min() > logit[~possible].max(initial=-np.inf) + 1


def test_facts_that_are_not_stated_or_not_connected_say_nothing() -> None:
    model = with_table("rcc8")
    unstated = len(model.table[...])
    for facts in ([], [(2, 0, 1)], [(0, unstated, 1)], [(0, 3, 1), (1, unstated, 2)]):
        (logits,) = np.asarray(call(model, graphs([facts], [(0, 2)], 3)))[:1]
        np.testing.assert_allclose(logits, np.log(1 / unstated), atol=1e-4)
