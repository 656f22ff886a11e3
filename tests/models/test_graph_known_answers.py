"""Graph models on examples that are worked out by hand."""

from typing import Any

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import pytest
from flax import nnx
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models import MODELS, prover, reader_prover
from clutrr_jax.models.common import Messages, messages, pool_people
from clutrr_jax.models.ctp import CTP
from clutrr_jax.models.edge_sequence import EdgeSequence, gru
from clutrr_jax.models.edge_transformer import EdgeTransformer, triangular_attention
from clutrr_jax.models.epignn import EpiGNN, _segment_combine
from clutrr_jax.models.gat import GAT, AttentionStep
from clutrr_jax.models.gcn import GCNLayer, RGCNLayer
from clutrr_jax.models.ncrl import NCRL
from generator.relations.kinship import KINSHIP, NUM_PREDICATES, NUM_RELATIONS, RELATION_ID
from tests.models.graphs import Fact, graphs, made_up
from tests.models.small import call, loss_of, small_config

SIZES = Sizes(20, 30, KINSHIP)
FATHER, MOTHER, SON, GRANDSON = (RELATION_ID[r] for r in ("father", "mother", "son", "grandson"))
LOG3 = np.log(3)  # the sigmoid of log 3 is 3/4, that of -log 3 is 1/4
SCALE = 2.0  # of the prover


def one_story(facts: list[Fact], people: int = 2, **values: Any) -> jraph.GraphsTuple:
    """Batch of one story. `values` are the target, the entities of the people, and the query pair,
    by default person 0 and the last one."""
    batch = graphs([facts], [values.get("query", (0, people - 1))], people)
    new = {
        "target": jnp.array([values.get("target", 0), 0]),
        "mask": jnp.array([True, False]),
        "facts": jnp.stack([jnp.arange(len(facts)), jnp.full(len(facts), len(facts))]),
    }
    entity = jnp.array([*values.get("entity", range(people)), 0])
    return batch._replace(nodes=batch.nodes | {"entity": entity}, globals=batch.globals | new)


def layer_of(kind: type, **config: int) -> Any:
    """Graph convolution whose node states are numbers."""
    return kind(ConfigDict({"node": 1} | config), types=2, rngs=nnx.Rngs(0))


def test_gcn_divides_by_the_degrees_of_both_ends() -> None:
    """Facts 0 -> 1, 0 -> 2, 1 -> 2 and a message of each node to itself: 3, 2, 1 messages are sent
    and 1, 2, 3 received."""
    layer = layer_of(GCNLayer, edge=1)
    layer.node.kernel[...], layer.node.bias[...] = jnp.array([[2.0]]), jnp.array([0.5])
    layer.edge.kernel[...], layer.table[...] = jnp.array([[1.0]]), jnp.array([[10.0], [20.0]])
    m = Messages(*jnp.array([(0, 1, 0), (0, 2, 1), (1, 2, 0)]).T)
    found = layer(jnp.array([[1.0], [3.0], [5.0]]), m, layer.weights(m, 3))[:, 0]
    expected = [
        2 / 3**0.5 + 0.5,
        (2 + 10) / 6**0.5 + 6 / 2 + 0.5,
        (2 + 20) / 3 + (6 + 10) / 6**0.5 + 10 / 3**0.5 + 0.5,
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_rgcn_sums_the_means_of_the_relations_and_the_node_itself() -> None:
    """Node 2 receives relation 0 (matrix 1) from nodes 0 and 1, relation 1 (matrix 2 * 1 + 3 * 100)
    from node 0. Node 0 receives nothing."""
    layer = layer_of(RGCNLayer)
    layer.own.kernel[...], layer.own.bias[...] = jnp.array([[7.0]]), jnp.array([0.5])
    layer.bases.kernel = nnx.Param(jnp.array([[1.0, 100.0]]))
    layer.coefficients = nnx.Param(jnp.array([[1.0, 0.0], [2.0, 3.0]]))
    m = Messages(*jnp.array([(0, 2, 0), (1, 2, 0), (0, 2, 1), (2, 1, 1)]).T)
    found = layer(jnp.array([[1.0], [3.0], [5.0]]), m, layer.weights(m, 3))[:, 0]
    expected = [7.5, 302 * 5 + 21.5, (1 + 3) / 2 + 302 * 1 + 35.5]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("directions", "expected"),
    [
        ("forward", [(0, 1, 4), (2, 1, 0)]),
        ("backward", [(1, 0, 9), (1, 2, 5)]),
        ("both", [(0, 1, 4), (2, 1, 0), (1, 0, 9), (1, 2, 5)]),
    ],
)
def test_messages_along_and_against_two_facts(directions: str, expected: list[Fact]) -> None:
    """Sender, receiver and type; there are 5 edge types."""
    batch = one_story([(0, 4, 1), (2, 0, 1)], people=3)
    facts = jax.tree.map(lambda x: x[:2], batch._replace(nodes=None, globals=None))
    found = np.stack(messages(facts, 5, directions), axis=1)
    np.testing.assert_array_equal(found, expected)


def test_pooled_people_are_the_mean_and_the_query_pair() -> None:
    """Two stories of three people with states 0, 1, 2 and 3, 4, 5; the padding node has 6."""
    batch = graphs([[], []], [(2, 0), (0, 1)], people=3)
    story, first, second = pool_people(jnp.arange(7.0)[:, None], batch)
    for found, expected in ((story, [1, 4]), (first, [2, 3]), (second, [0, 4])):
        np.testing.assert_allclose(found[:, 0], expected, rtol=1e-6)


# Gate inputs of two steps, recurrent weights and the two states. First state of the GRU: 1/4 of
# 0.8; its second is 3/4 of 0.2 and 1/4 of 0.4, where 1/4 of the previous state counts in the 0.4.
T = np.arctanh
STATES = {
    "edge_rnn": ([[T(0.5)], [T(0.4) - 1]], [2], [0.5, 0.4]),
    "edge_gru": (
        [[0, LOG3, T(0.8)], [-LOG3 - 2, LOG3 + 1, T(0.4) - 0.25]], [10, -5, 5], [0.2, 0.25]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STATES)
def test_two_steps_of_a_recurrent_model_in_both_directions(name: str) -> None:
    """The backward direction reads the same two steps from the end; a third step is padding."""
    model = MODELS[name].model(small_config(name, hidden=1), SIZES, rngs=nnx.Rngs(0))
    inputs, weight, states = STATES[name]
    first, second = np.array(inputs)
    padding = np.full(2 * len(first), 9)
    gates = np.stack([np.append(first, second), np.append(second, first), padding])[:, None]
    model.layer.weight[...] = jnp.tile(jnp.array(weight, jnp.float32), (2, 1, 1))
    for length in (1, 2):
        mask = jnp.arange(3)[:, None] < length
        found = model.layer(jnp.asarray(gates, jnp.float32), mask)
        np.testing.assert_allclose(found[0, 0], states[length - 1], rtol=1e-5)
    np.testing.assert_allclose(found[0, 1], states[1], rtol=1e-5)


def test_gru_applies_the_reset_gate_after_the_matrix_product() -> None:
    """State (0.2, 0) times a matrix of 5 at (0, 1), then times the reset gates (1/4, 3/4)."""
    inputs = np.zeros((2, 1, 1, 6))
    inputs[0, 0, 0, 2:] = 0, 0, T(0.4), 0  # half of 0.4
    inputs[1, 0, 0] = -LOG3, LOG3, -40, -40, 0, T(0.4) - 0.75
    weight = np.zeros((1, 2, 6))
    weight[0, 0, 5] = 5
    found = gru(*(jnp.asarray(x, jnp.float32) for x in (inputs, weight)), jnp.ones((2, 1, 1)))
    np.testing.assert_allclose(found[:, 0, 0], [[0.2, 0], [0, 0.4]], atol=1e-6)


def test_symbols_of_two_facts_are_sender_relation_receiver() -> None:
    model = EdgeSequence(small_config("edge_rnn"), SIZES, 6, rngs=nnx.Rngs(0))
    model.encode = lambda symbols, mask, table: (symbols.T, mask.T, table)
    model.dropout = model.readout = lambda *inputs: inputs
    batch = one_story([(0, 3, 1), (1, 8, 2)], people=3, entity=(5, 2, 7))
    (((symbols, mask, table),), first, second) = model(batch)
    assert symbols.tolist() == [[5, 20 + 3, 2, 2, 20 + 8, 7]] and mask.all()
    for found, expected in (
        (table[23], model.relation[3]), (table[5], model.entity.table[5]),
        (first[0], model.entity.table[5]), (second[0], model.entity.table[7]),
    ):  # fmt: skip
        np.testing.assert_array_equal(found, expected)


def exact_epignn() -> EpiGNN:
    """Relation r has the value r + 1 of 0 to 4. Values 1, 2 compose to 3, and 2, 1 to 4; all other
    pairs compose to 1."""
    sizes = Sizes(20, 30, made_up(4))
    model = EpiGNN(small_config("epignn"), sizes, rngs=nnx.Rngs(0))
    model.relation = nnx.Param(20 * jnp.eye(5)[1:, None])
    result = np.zeros((4, 4), int) + 1
    result[0, 1], result[1, 0] = 3, 4
    model.table = nnx.Param(20 * jnp.eye(5)[result][None])
    return model


def test_epignn_composes_in_the_order_of_the_chain() -> None:
    """The composition of relations 0, 1 is relation 2, that of 1, 0 is relation 3."""
    known: list[tuple[list[Fact], int]] = [
        ([(0, 1, 2)], 1),
        ([(0, 0, 1), (1, 1, 2)], 2),
        ([(0, 1, 1), (1, 0, 2)], 3),
        ([(0, 0, 1), (1, 1, 2), (2, 0, 3)], 2),  # person 3 does not lead to person 2
    ]
    unknown: list[list[Fact]] = [[(1, 0, 0), (1, 1, 2)], [(0, 0, 1)]]  # facts have a direction
    stories = [*(facts for facts, _ in known), *unknown]
    found = np.asarray(call(exact_epignn(), graphs(stories, [(0, 2)] * len(stories), people=4)))
    for logits, (_, answer) in zip(found, known, strict=False):
        assert logits[answer] > -1e-3 and np.delete(logits, answer).max() < -10
    assert np.ptp(found[len(known) :], axis=1).max() < 1e-3


def test_epignn_combines_states_by_their_normalized_minimum() -> None:
    states = jnp.array([[0.6, 0.4, 0.0], [0.2, 0.5, 0.3], [0.0, 0.0, 1.0], [0.1, 0.1, 0.8]])
    mask, segment = jnp.array([True, True, False, True]), jnp.array([0, 0, 0, 1])
    found = _segment_combine(states[:, None], mask, segment, 3)[:, 0]
    expected = [[1 / 3, 2 / 3, 0], [0.1, 0.1, 0.8], [1 / 3] * 3]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("target", "right"), [(0, (1 / 2, 2 / 3, 3 / 4)), (2, (1 / 2, 2 / 3, 1 / 4))]
)
def test_loss_of_ctp_is_the_mean_binary_cross_entropy(target: int, right) -> None:
    """The stated relation 3 has the distances log 2, log 3, log 4 from the others, whose scores are
    1/2, 1/3, 1/4. `right` are the probabilities to be right about each of them."""
    config = small_config("ctp_linear", embedding=1, share_genders=False)
    model = CTP(config, Sizes(20, 30, made_up(4)), rngs=nnx.Rngs(0))
    model.goal[...] = jnp.log(jnp.array([[2], [1 / 3], [4], [1]]))
    found = loss_of(model, one_story([(0, 3, 1)], target=target))
    stated = 1 - np.exp(-1e-3)  # the smallest distance of the kernel is 0.001
    np.testing.assert_allclose(found, [-np.log([*right, stated]).mean()], rtol=1e-3)


def test_loss_of_ctp_is_that_of_the_predicate_of_the_answer() -> None:
    """A stated father proves the goal if the answer is a father or a mother."""
    config = small_config("ctp_linear", embedding=NUM_PREDICATES, share_genders=True)
    model = CTP(config, SIZES, rngs=nnx.Rngs(0))
    model.goal[...] = 20 * jnp.eye(NUM_PREDICATES)
    losses = [
        float(loss_of(model, one_story([(0, FATHER, 1)], target=target))[0])
        for target in (FATHER, MOTHER, SON)
    ]
    assert 0 < losses[0] == losses[1] < 1e-3 and losses[2] > 1


@pytest.mark.parametrize(("target", "expected"), [(1, np.log(3)), (2, np.log(6))])
def test_loss_of_ncrl_is_a_cross_entropy_with_unknown(target: int, expected: float) -> None:
    """The scores of the fact's relation and of "unknown" are log 2, those of the others are 0."""
    model = NCRL(small_config("ncrl", embedding=4), Sizes(20, 30, made_up(3)), rngs=nnx.Rngs(0))
    model.relation[...] = np.log(2) ** 0.5 * jnp.eye(6, 4)
    model.query.kernel[...], model.query.bias[...] = 2 * jnp.eye(4), jnp.zeros(4)
    model.key.kernel[...] = jnp.eye(4)
    found = loss_of(model, one_story([(0, 1, 1)], target=target))
    np.testing.assert_allclose(found, [expected], rtol=1e-5)


def prover_of(no_rule: float, **config: float) -> prover.Prover:
    """Prover over predicates in which no rule follows from any pair with this probability."""
    config = ConfigDict(MODELS["prover"].config | {"scale": SCALE, "share_genders": True} | config)
    model = prover.Prover(config, SIZES, rngs=nnx.Rngs(0))
    logit = np.log(NUM_PREDICATES * no_rule / (1 - no_rule)) if no_rule < 1 else 100.0
    model.table[...] = jnp.zeros(model.table.shape).at[..., -1].set(logit / SCALE)
    return model


@pytest.mark.parametrize(
    ("no_rule", "answer", "expected"),
    [
        (1.0, 0.5, np.log(2)),
        (0.5, 0.5, np.log(2) + 3 * 0.25 * 121 * np.log(2)),
        (0.5, 0.9, -np.log(0.9) + 3 * 0.09 * 121 * np.log(2)),
        (0.5, 1.0, 0),
    ],
)
def test_penalty_on_rules(no_rule: float, answer: float, expected: float) -> None:
    """Weight 3, times the variance of a correct answer, for each of 121 pairs of predicates; none
    of a table without rules, or if the answer is certain."""
    logits = jnp.log(jnp.array([[answer, 1 - answer]]))
    found = prover_of(no_rule, rule_penalty=3.0).penalized(logits, jnp.array([0]))
    np.testing.assert_allclose(found, [expected], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("floor", [0.0, 0.1])
@pytest.mark.parametrize("rules", [False, True])
def test_floor_is_spread_evenly_over_the_relations(rules: bool, floor: float) -> None:
    """A stated father, or the son of a son by the given rules, has the rest of the probability."""
    config = ConfigDict(MODELS["prover"].config | {"floor": floor})
    given = reader_prover.GivenRules(config, SIZES, rngs=nnx.Rngs(0))
    model = given if rules else prover_of(1.0, floor=floor)
    facts, answer = ([(0, SON, 1), (1, SON, 2)], GRANDSON) if rules else ([(0, FATHER, 1)], FATHER)
    (found,) = np.exp(model(one_story(facts, people=len(facts) + 1)))
    expected = np.full(NUM_RELATIONS, floor / NUM_RELATIONS)
    expected[answer] += 1 - floor
    np.testing.assert_allclose(found, expected, atol=1e-5)


NODES, TYPES, DIM = 6, 5, 6
# Duplicate edges, an edge from a node to itself, and no edges at node 4; node 5 is padding.
# Rows: sender, receiver, type.
EDGES = Messages(*jnp.array([
    (0, 1, 0), (0, 1, 0), (0, 1, 2), (2, 1, 3), (3, 2, 1), (3, 3, 1), (1, 0, 0), (5, 5, 0),
    (5, 5, 0),
]).T)  # fmt: skip


@pytest.mark.parametrize(
    ("node", "received"), [(1, [(0, 0), (0, 0), (0, 2), (2, 3)]), (3, [(3, 1)]), (4, [])]
)
def test_graph_attention_equals_formulas(node: int, received: list[tuple[int, int]]) -> None:
    """One node, for each head: e_ij = LeakyReLU(a . [W x_i, W x_j, U r_ij]), softmax over j, and
    ELU(sum_j softmax(e)_ij (W x_j + U r_ij) + b) (Velickovic et al. 2018, equations 3 to 5; Sinha
    et al. 2019, appendix 1.1)."""
    heads = 2
    step = AttentionStep(DIM, 4, heads, rngs=nnx.Rngs(0))
    step.bias[...] = jnp.linspace(-1, 1, DIM)
    rng = np.random.default_rng(0)
    x, table = rng.normal(size=(NODES, DIM)), rng.normal(size=(TYPES, 4))
    new, weight = step(jnp.asarray(x), jnp.asarray(table), EDGES)

    value, edge = x @ step.node.kernel[...], table @ step.edge.kernel[...]
    incoming = [*received, (node, TYPES - 1)]
    expected, weights = [], []
    for head in range(heads):
        features = slice(head * DIM // heads, (head + 1) * DIM // heads)
        a = np.concatenate([step.attend[:, part * heads + head] for part in range(3)])
        score = np.array([
            a @ np.concatenate([value[node, features], value[j, features], edge[r, features]])
            for j, r in incoming
        ])  # fmt: skip
        score = np.exp(np.where(score > 0, score, 0.2 * score))
        softmax = score / score.sum()
        weights.append(softmax[:-1])
        total = sum(
            w * (value[j] + edge[r])[features] for w, (j, r) in zip(softmax, incoming, strict=True)
        )
        total = total + step.bias[features]
        expected.append(np.where(total > 0, total, np.exp(total) - 1))
    np.testing.assert_allclose(new[node], np.concatenate(expected), rtol=1e-4, atol=1e-5)
    of_node = weight[EDGES.receivers == node]
    np.testing.assert_allclose(of_node, np.stack(weights, axis=1), rtol=1e-4)


def test_attention_weights_sum_over_the_edges_of_a_receiver() -> None:
    """With messages in both directions, those against a fact end in another node and have weights
    of their own."""
    model = GAT(small_config("gat", directions="both"), SIZES, rngs=nnx.Rngs(0))
    model.eval()
    batch = one_story([(0, 0, 1), (1, 1, 2), (1, 1, 2)], people=3)
    batch = jax.tree.map(lambda x: x[:3], batch._replace(globals=None))
    first, second, third, *back = model._propagate(batch)[1]
    assert 0 < first < 1 and second == third and second + third < 1
    assert len(back) == 3 and back[1] == back[2] and back[0] != first


def test_triangular_attention_equals_formulas() -> None:
    """Bergen et al. 2021, equation 2, for one pair of each story and head."""
    sizes, heads, dim = (4, 3), 2, 3  # people of each story, dimension of a head
    is_person = jnp.arange(4) < jnp.array(sizes)[:, None]
    left, right = (
        jax.random.normal(key, (2, 4, 4, 2 * heads * dim))
        for key in jax.random.split(jax.random.key(0))
    )
    found = triangular_attention(left, right, is_person, heads)
    x, y = 1, 2
    for story, people in enumerate(sizes):
        for head in range(heads):
            features = slice(head * dim, (head + 1) * dim)
            (key_xz, value_xz), (key_zy, value_zy) = (
                [part[:people, features] for part in np.split(np.asarray(side), 2, axis=-1)]
                for side in (left[story, x], right[story, :, y])
            )
            weight = np.exp((key_xz * key_zy).sum(axis=-1) / dim**0.5)
            expected = (weight / weight.sum()) @ (value_xz * value_zy)
            np.testing.assert_allclose(found[story, x, y, features], expected, atol=1e-5)


def test_facts_about_the_same_pair() -> None:
    """Known facts are averaged, one that is not stated counts only if it is the only one."""
    model = EdgeTransformer(small_config("edge_transformer"), SIZES, rngs=nnx.Rngs(0))
    facts = [
        (0, 4, 1),
        (0, NUM_RELATIONS, 1),
        (0, 7, 1),
        (0, 4, 1),
        (1, NUM_RELATIONS, 0),
        (2, 5, 1),
    ]
    table, states = np.asarray(model.table[...]), model.states(graphs([facts], [(0, 2)], 3))[0]
    no_fact = table[NUM_RELATIONS + 1]
    expected = [
        [no_fact, (2 * table[4] + table[7]) / 3, no_fact],
        [table[NUM_RELATIONS], no_fact, no_fact],
        [no_fact, table[5], no_fact],
    ]
    np.testing.assert_allclose(states, expected, rtol=1e-6, atol=1e-7)
