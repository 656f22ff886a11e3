"""A layer of graph attention and its gradient against the formulas, differentiated by JAX."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np
from flax import nnx
from hypothesis import given
from hypothesis import strategies as st
from ml_collections import ConfigDict

from clutrr_jax.models.common import Drawn
from clutrr_jax.models.gat import CONFIG, GAT, AttentionStep
from clutrr_jax.ops.graph_attention import attend, elu

NODES = 5
TYPES = 5  # the last of them that of the edge from a node to itself


def by_the_formulas(step: AttentionStep, x, drawn, edge_table, edges):
    """Sinha et al. 2019, appendix 1.1, over one list of edges: new values [N, H], and the weight of
    each edge [N + F, K], those from a node to itself first."""
    x = jnp.where(drawn.numbers << drawn.shift < drawn.kept, x * 256 / drawn.kept, 0)
    nodes = jnp.arange(len(x))
    senders, receivers, types = (
        jnp.concatenate(pair)
        for pair in zip((nodes, nodes, jnp.full_like(nodes, TYPES - 1)), edges, strict=True)
    )
    wx, we = step.node(x), step.edge(edge_table)
    parts = [wx[receivers], wx[senders], we[types]]
    # [E, K, 3 H / K] . [3 H / K, K]
    each_head = [part.reshape(len(types), step.heads, -1) for part in parts]
    a = jnp.concatenate(jnp.split(step.attend[...], 3, axis=1))
    score = nnx.leaky_relu((jnp.concatenate(each_head, axis=2) * a.T).sum(axis=2), 0.2)
    weight = jraph.segment_softmax(score, receivers, len(x))
    message = (each_head[1] + each_head[2]) * weight[..., None]
    new = jraph.segment_sum(message, receivers, len(x)).reshape(x.shape) + step.bias[...]
    return nnx.elu(new), weight


def functions(heads: int):
    """Of parameters, nodes, table of edges and edges: values, weights, and the gradient of the
    values' product with given numbers; by the formulas, and by hand."""
    structure, params = nnx.split(AttentionStep(6, 4, heads, rngs=nnx.Rngs(0)))

    def plain(params, x, table, drawn, edges):
        return by_the_formulas(nnx.merge(structure, params), x, drawn, table, edges)

    def by_hand(params, x, table, drawn, edges):
        return attend(x, drawn, *nnx.merge(structure, params).weights(table), edges)

    def all_of(function):
        def product(params, x, table, drawn, edges, wanted):
            values, weights = function(params, x, table, drawn, edges)
            return (values * wanted).sum(), (values, weights)

        return jax.jit(jax.grad(product, (0, 1, 2), has_aux=True))

    return params, all_of(plain), all_of(by_hand)


FUNCTIONS = {heads: functions(heads) for heads in (1, 3)}


@given(
    ends=st.lists(st.tuples(node := st.integers(0, NODES - 1), node), min_size=9, max_size=9),
    types=st.lists(st.integers(0, TYPES - 2), min_size=9, max_size=9),
    heads=st.sampled_from(list(FUNCTIONS)),
    size=st.sampled_from([0.3, 30.0]),
    kept=st.sampled_from([128, 179, 255]),
)
def test_it_is_what_the_formulas_say_and_so_is_its_gradient(ends, types, heads, size, kept) -> None:
    """Several edges between the same two nodes and none among them; scores so far apart, too, that
    only the largest counts."""
    params, plain, by_hand = FUNCTIONS[heads]
    rng = np.random.default_rng(ends[0][0])
    params = jax.tree.map(lambda p: p + rng.normal(size=p.shape).astype(np.float32), params)
    x, wanted, table = (
        jnp.asarray(scale * rng.normal(size=shape), jnp.float32)
        for scale, shape in ((size, (NODES, 6)), (1, (NODES, 6)), (size, (TYPES, 4)))
    )
    edges = (*jnp.array(ends, jnp.int32).T, jnp.array(types, jnp.int32))
    numbers = jnp.asarray(rng.integers(256, size=x.shape), jnp.uint8)
    drawn = Drawn(numbers, 2 if kept == 128 else 0, kept)
    right, (expected, all_weights) = plain(params, x, table, drawn, edges, wanted)
    found, (values, weights) = by_hand(params, x, table, drawn, edges, wanted)
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-4 * size)
    np.testing.assert_allclose(weights, all_weights[NODES:], rtol=1e-3, atol=1e-5)
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(right), strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-3, atol=2e-4 * size**2)


def test_elu_is_that_of_flax_and_so_is_its_gradient() -> None:
    x = jnp.concatenate([jnp.linspace(-120, 120, 1000), jnp.array([0.0, 1e-6, -1e-6])])
    np.testing.assert_allclose(elu(x), nnx.elu(x), atol=1e-7)
    slopes = jax.grad(lambda x: elu(x).sum())(x)
    np.testing.assert_allclose(slopes, jax.grad(lambda x: nnx.elu(x).sum())(x), atol=1e-6)


def test_a_weight_is_shared_by_the_edges_that_end_in_a_node(small) -> None:
    """Whatever runs against a fact ends elsewhere: the two directions have weights of their own."""
    config = ConfigDict(CONFIG | {"node": 20, "directions": "both"})
    model = GAT(config, small.sizes, rngs=nnx.Rngs(0))
    senders, receivers = jnp.array([0, 1, 1]), jnp.array([1, 2, 2])
    batch = jraph.GraphsTuple(
        nodes={"entity": jnp.array([3, 4, 5])},
        edges={"relation": jnp.array([0, 1, 1])},
        senders=senders,
        receivers=receivers,
        n_node=jnp.array([3]),
        n_edge=jnp.array([3]),
        globals={},
    )
    first, second, third, *back = model._people(batch)[1]
    assert 0 < first < 1 and second == third and second + third < 1
    assert len(back) == 3 and back[1] == back[2] and back[0] != first
