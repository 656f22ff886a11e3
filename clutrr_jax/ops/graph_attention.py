"""One layer of graph attention and its gradient, both by hand.

What autodiff makes of the attention takes a CPU 1.4 times as long: it gathers and scatters for the
edge from each node to itself as for a fact, and sums over a head's few numbers one by one. A layer,
and its gradient, is a part of the program that is compiled once for all layers.

Shapes: N nodes, F edges, H = width of a node, K heads, T types of edge, the last of them that of
the edge from every node to itself.
"""

from typing import Any

import jax
import jax.numpy as jnp

from clutrr_jax.models.common import Drawn, drop, exp
from clutrr_jax.ops.compiling import outlined

SLOPE = 0.2  # of the leaky ReLU, where it leaks (Velickovic et al. 2018, section 2.1)


@jax.custom_vjp
def attend(
    x: jax.Array,
    drawn: Drawn | None,
    kernel: jax.Array,
    table: jax.Array,
    edge_score: jax.Array,
    bias: jax.Array,
    edges: tuple[jax.Array, jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array]:
    """Dropout; then every node attends over the edges that end in it, the one from itself included;
    then ELU.

    Args:
      x: nodes, [N, H].
      drawn: which of their numbers are kept; None: all.
      kernel: [H, H + 2 K]; of a node's product with it the first H are its values, then comes what
        each head adds to the score of the edges that start in the node, and of those ending in it.
      table: what an edge of each type adds to its message, [T, H].
      edge_score: what an edge of each type adds to its score, [T, K].
      bias: [H].
      edges: senders, receivers and types, [F] each, without those from a node to itself.
    Returns:
      The nodes' new values, [N, H], and the weight of each edge, [F, K], which is not
      differentiated.
    """
    return _values(x, drawn, kernel, table, edge_score, bias, edges)


def head_columns(vectors: jax.Array, heads: int) -> jax.Array:
    """Vectors for each head, [H / K, n K] -> [H, n K]: the product of the values of a node with
    column i is that of the part of head i modulo K with vector i."""
    dim, columns = vectors.shape
    own = jnp.arange(columns) % heads == jnp.arange(heads)[:, None]  # [K, n K]
    return jnp.where(own[:, None], vectors, 0).reshape(heads * dim, columns)


def elu(x: jax.Array) -> jax.Array:
    """`nnx.elu` without expm1, which takes a CPU three times as long; what it is more exact in is
    lost in the sums that follow."""
    return jnp.where(x > 0, x, jnp.exp(jnp.where(x > 0, 0, x)) - 1)


def _spread(weight: jax.Array, dim: int) -> jax.Array:
    """Each head's weight at every number of its part, [n, K] -> [n, H]."""
    n, heads = weight.shape
    return jnp.broadcast_to(weight[:, :, None], (n, heads, dim // heads)).reshape(n, dim)


def _beside(*columns: jax.Array) -> jax.Array:
    return jnp.concatenate(columns, axis=1)


def _layer(x, drawn, kernel, table, edge_score, bias, edges) -> tuple[Any, Any]:
    senders, receivers, types = edges
    dim, heads = table.shape[1], edge_score.shape[1]
    x = drop(x, drawn)
    node = x @ kernel
    value = node[:, :dim]
    start, to = node[:, dim : dim + heads], node[:, dim + heads :]
    own = to + start + edge_score[-1]  # [N, K] of the edge from the node to itself
    fact = to[receivers] + start[senders] + edge_score[types]  # [F, K]

    own_score, score = jnp.maximum(own, SLOPE * own), jnp.maximum(fact, SLOPE * fact)
    most = own_score.at[receivers].max(score)
    scores = jnp.concatenate([own_score - most, score - most[receivers]])
    own_weight, weight = jnp.split(exp(scores), [len(x)])
    message = _spread(weight, dim) * (value[senders] + table[types])
    sums = _beside(_spread(own_weight, dim) * (value + table[-1]), own_weight)
    sums = sums.at[receivers].add(_beside(message, weight))  # [N, H + K]
    inverse = 1 / sums[:, dim:]
    new = elu(sums[:, :dim] * _spread(inverse, dim) + bias)
    own_weight, weight = own_weight * inverse, weight * inverse[receivers]
    saved = (x, drawn, kernel, value, table, own_weight, weight, own > 0, fact > 0, new, edges)
    return (new, weight), saved


_forward = outlined(_layer)


@outlined
def _values(*args):
    return _layer(*args)[0]  # what is saved for the gradient is not computed


@outlined
def _backward(saved, gradients):
    x, drawn, kernel, value, table, own_weight, weight, own_positive, positive, new, edges = saved
    senders, receivers, types = edges
    heads, dim = weight.shape[1], table.shape[1]
    gradient = gradients[0] * jnp.where(new > 0, 1, new + 1)  # [N, H] before the ELU
    at_end = gradient[receivers]  # [F, H]

    # Of the softmax: weight * (its gradient - the mean of those at the node).
    per_head = head_columns(jnp.ones((dim // heads, heads)), heads)  # sums as a product
    share = weight * ((at_end * (value[senders] + table[types])) @ per_head)
    own_share = own_weight * ((gradient * (value + table[-1])) @ per_head)
    mean = own_share.at[receivers].add(share)
    score = (share - weight * mean[receivers]) * jnp.where(positive, 1, SLOPE)
    own_score = (own_share - own_weight * mean) * jnp.where(own_positive, 1, SLOPE)

    fact = _beside(_spread(weight, dim) * at_end, score)  # [F, H + K]
    own = _beside(_spread(own_weight, dim) * gradient, own_score)  # [N, H + K]
    node = _beside(own.at[senders].add(fact), own_score.at[receivers].add(score))
    of_types = jnp.zeros((len(table), dim + heads)).at[types].add(fact)
    of_types = of_types.at[-1].add(own.sum(axis=0))
    return (
        drop(node @ kernel.T, drawn),
        None,
        x.T @ node,
        of_types[:, :dim],
        of_types[:, dim:],
        gradient.sum(axis=0),
        None,
    )


attend.defvjp(_forward, _backward)
