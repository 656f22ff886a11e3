"""One layer of graph attention with edge features.

Shapes: N nodes, E edges, H node dimension, K heads, T edge types. The last edge type is that of the
edge from every node to itself.
"""

import jax
import jax.numpy as jnp
import jraph

from clutrr_jax import ops

SLOPE = 0.2  # negative slope of the leaky ReLU (Velickovic et al. 2018, section 2.1)

Edges = tuple[jax.Array, jax.Array, jax.Array]


def graph_attention(
    x: jax.Array,
    kernel: jax.Array,
    table: jax.Array,
    edge_score: jax.Array,
    bias: jax.Array,
    edges: Edges,
) -> tuple[jax.Array, jax.Array]:
    """Every node attends over its incoming edges and the edge from itself; then ELU.

    Args:
      x: [N, H] node states.
      kernel: [H, H + 2 K] projects a node to its value (H columns), to its contribution to the
        scores of its outgoing edges (K) and of its incoming edges (K).
      table: [T, H] contribution of each edge type to a message.
      edge_score: [T, K] contribution of each edge type to a score.
      bias: [H].
      edges: senders, receivers and edge types, [E] each, without the edges from a node to itself.

    Returns:
      New node states [N, H], and the attention weight of each edge [E, K], which is not
      differentiated.
    """
    function = graph_attention_fast if ops.use_fast_kernels() else graph_attention_reference
    return function(x, kernel, table, edge_score, bias, edges)


def graph_attention_reference(x, kernel, table, edge_score, bias, edges: Edges):
    """Plain version of `graph_attention`, differentiated by JAX."""
    nodes, dim, heads = len(x), table.shape[1], edge_score.shape[1]
    own, own_type = jnp.arange(nodes), jnp.full(nodes, len(table) - 1)
    senders, receivers, types = (
        jnp.concatenate(pair) for pair in zip(edges, (own, own, own_type), strict=True)
    )
    value, outgoing, incoming = jnp.split(x @ kernel, [dim, dim + heads], axis=1)
    score = jax.nn.leaky_relu(outgoing[senders] + incoming[receivers] + edge_score[types], SLOPE)
    weight = jraph.segment_softmax(score, receivers, nodes)  # [E + N, K]
    message = (value[senders] + table[types]).reshape(-1, heads, dim // heads)
    message = (message * weight[..., None]).reshape(-1, dim)
    new = jax.nn.elu(jraph.segment_sum(message, receivers, nodes) + bias)
    return new, jax.lax.stop_gradient(weight[: len(edges[0])])


@jax.custom_vjp
def graph_attention_fast(x, kernel, table, edge_score, bias, edges: Edges):
    """Version of `graph_attention` with a gradient written by hand.

    It treats the edges from a node to itself as arrays over nodes, without gathers and scatters,
    and computes sums over the few features of a head as matrix products.
    """
    return _forward(x, kernel, table, edge_score, bias, edges)[0]


def head_columns(vectors: jax.Array, heads: int) -> jax.Array:
    """Places one vector per head on the block diagonal: [H / K, n K] -> [H, n K].

    Column i then multiplies only the features of head i modulo K.
    """
    dim, columns = vectors.shape
    own = jnp.arange(columns) % heads == jnp.arange(heads)[:, None]  # [K, n K]
    return jnp.where(own[:, None], vectors, 0).reshape(heads * dim, columns)


def _spread(weight: jax.Array, dim: int) -> jax.Array:
    """Repeats the weight of each head over its features: [n, K] -> [n, H]."""
    n, heads = weight.shape
    return jnp.broadcast_to(weight[:, :, None], (n, heads, dim // heads)).reshape(n, dim)


def _concat(*columns: jax.Array) -> jax.Array:
    return jnp.concatenate(columns, axis=1)


def _elu(x: jax.Array) -> jax.Array:
    """ELU without expm1, which is slow on a CPU; its extra precision is lost in the sums anyway."""
    return jnp.where(x > 0, x, jnp.exp(jnp.where(x > 0, 0, x)) - 1)


def _forward(x, kernel, table, edge_score, bias, edges):
    senders, receivers, types = edges
    dim, heads = table.shape[1], edge_score.shape[1]
    value, outgoing, incoming = jnp.split(x @ kernel, [dim, dim + heads], axis=1)
    own_raw = incoming + outgoing + edge_score[-1]  # [N, K] scores of the edges to itself
    raw = incoming[receivers] + outgoing[senders] + edge_score[types]  # [E, K]
    own_score, score = jnp.maximum(own_raw, SLOPE * own_raw), jnp.maximum(raw, SLOPE * raw)
    largest = own_score.at[receivers].max(score)
    own_weight, weight = jnp.exp(own_score - largest), jnp.exp(score - largest[receivers])
    message = _spread(weight, dim) * (value[senders] + table[types])
    sums = _concat(_spread(own_weight, dim) * (value + table[-1]), own_weight)
    sums = sums.at[receivers].add(_concat(message, weight))  # [N, H + K]
    inverse = 1 / sums[:, dim:]
    new = _elu(sums[:, :dim] * _spread(inverse, dim) + bias)
    own_weight, weight = own_weight * inverse, weight * inverse[receivers]
    saved = (x, kernel, value, table, own_weight, weight, own_raw > 0, raw > 0, new, edges)
    return (new, weight), saved


def _backward(saved, gradients):
    x, kernel, value, table, own_weight, weight, own_positive, positive, new, edges = saved
    senders, receivers, types = edges
    heads, dim = weight.shape[1], table.shape[1]
    gradient = gradients[0] * jnp.where(new > 0, 1, new + 1)  # [N, H] before the ELU
    at_receiver = gradient[receivers]  # [E, H]

    # Gradient of the softmax: weight * (gradient of the weight - its mean at the receiver).
    per_head = head_columns(jnp.ones((dim // heads, heads)), heads)  # sums over each head
    d_weight = weight * ((at_receiver * (value[senders] + table[types])) @ per_head)
    d_own_weight = own_weight * ((gradient * (value + table[-1])) @ per_head)
    mean = d_own_weight.at[receivers].add(d_weight)
    d_score = (d_weight - weight * mean[receivers]) * jnp.where(positive, 1, SLOPE)
    d_own_score = (d_own_weight - own_weight * mean) * jnp.where(own_positive, 1, SLOPE)

    d_edge = _concat(_spread(weight, dim) * at_receiver, d_score)  # [E, H + K]
    d_own = _concat(_spread(own_weight, dim) * gradient, d_own_score)  # [N, H + K]
    d_node = _concat(d_own.at[senders].add(d_edge), d_own_score.at[receivers].add(d_score))
    d_types = jnp.zeros((len(table), dim + heads)).at[types].add(d_edge)
    d_types = d_types.at[-1].add(d_own.sum(axis=0))
    d_table, d_edge_score = jnp.split(d_types, [dim], axis=1)
    return d_node @ kernel.T, x.T @ d_node, d_table, d_edge_score, gradient.sum(axis=0), None


graph_attention_fast.defvjp(_forward, _backward)
