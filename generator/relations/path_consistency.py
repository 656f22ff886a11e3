"""Algebraic closure (path consistency) of networks of relations.

A network has a set of possible relations for each pair of elements, an integer with bit r for
relation r. The closure intersects the set of (X, Y) with the composition of the sets of (X, Z) and
(Z, Y), for all X, Y and Z, until nothing changes. For RCC-8 and intervals, a network whose facts
are single relations has a model if and only if no set becomes empty (Renz and Nebel 1999; Vilain,
Kautz and van Beek 1990 for intervals with few disjunctions).
"""

from functools import cache

import numpy as np

from generator.relations.algebra import Algebra

_BITS = 8  # relations of a part of a set: compositions are looked up part by part
_CHUNK = 256  # networks that are closed together


def possible_relations(
    edges: np.ndarray,  # [B, E, 2] elements (X, Y) of the facts
    relations: np.ndarray,  # [B, E] relation of each fact; -1 states nothing
    query: np.ndarray,  # [B, 2] the pairs
    algebra: Algebra,
) -> np.ndarray:
    """Possible relations of one pair of elements per network, bool [B, R]; none in a contradiction.

    A pair for which one relation is left is not checked further.
    """
    stated = np.where((relations >= 0)[..., None], edges, 0)
    size = np.maximum(stated.max(axis=(1, 2), initial=0), query.max(axis=1)) + 1
    found = np.empty((len(query), len(algebra.relations)), bool)
    order = size.argsort(kind="stable")  # the time grows with the third power of the size
    for start in range(0, len(order), _CHUNK):
        part = order[start : start + _CHUNK]
        networks = edges[part], relations[part], query[part]
        found[part] = _possible(*networks, size[part[-1]], algebra)
    return found


def _possible(
    edges: np.ndarray, relations: np.ndarray, query: np.ndarray, elements: int, algebra: Algebra
) -> np.ndarray:
    place = _query_last(query, elements)
    network, fact = np.nonzero(relations >= 0)
    x, y = place[network, edges[network, fact].T]
    known = np.full((elements, elements, len(edges)), everything(algebra))
    for start, end, sets in ((x, y, np.eye(len(algebra.relations), dtype=bool)),
                             (y, x, algebra.inverse)):  # fmt: skip
        stated = integers(sets)[relations[network, fact]]
        np.bitwise_and.at(known, (start, end, network), stated)
    closed = _close(known, algebra)
    found = np.where((closed > 0).all(axis=(0, 1)), closed[-2, -1], np.uint64(0))
    return (found[:, None] >> np.arange(len(algebra.relations), dtype=np.uint64) & 1).astype(bool)


def _query_last(query: np.ndarray, elements: int) -> np.ndarray:
    """New index of each element of each network [B, P], those of the query pair the last two."""
    rank = np.zeros((len(query), elements), int)
    rank[np.arange(len(query))[:, None], query] = 1, 2
    return rank.argsort(axis=1, kind="stable").argsort(axis=1)


def everything(algebra: Algebra) -> np.uint64:
    """The set of all relations."""
    return np.uint64((1 << len(algebra.relations)) - 1)


def _close(known: np.ndarray, algebra: Algebra) -> np.ndarray:
    """The closure of networks uint64 [P, P, B], which is written over them.

    Each is closed until one relation is left for its last pair of elements.
    """
    elements, nothing_known = len(known), everything(algebra)
    inverse, composition = _table(algebra, 1), _table(algebra, 2)
    changing = np.arange(known.shape[2])

    def informative(sets: np.ndarray, z: int) -> np.ndarray:
        """Elements whose pair with z, sets [P, B], something is known about in a network."""
        found = (sets != nothing_known).any(axis=1)
        found[z] = False
        return np.flatnonzero(found)

    while len(changing):
        part = known[:, :, changing]
        before = part.copy()
        # Elements of the last pair say nothing about it: they come last, when it may be decided.
        for z in range(elements):
            if z == elements - 2:
                known[:, :, changing] = part
                kept = (part[-2, -1] & (part[-2, -1] - np.uint64(1))) > 0
                part, before, changing = part[:, :, kept], before[:, :, kept], changing[kept]
            x, y = informative(part[:, z], z), informative(part[z], z)
            via = _compose(composition, part[x, z][:, None], part[z, y])
            via[x[:, None] == y] = nothing_known
            part[np.ix_(x, y)] &= via
        part &= _look_up(inverse, part).swapaxes(0, 1)
        known[:, :, changing] = part
        changing = changing[(part != before).any(axis=(0, 1))]
    return known


def _compose(table: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Composition of sets of relations, of broadcast shapes, by the table of `_table`."""
    found = np.zeros(np.broadcast_shapes(first.shape, second.shape), np.uint64)
    for a, row in enumerate(table):
        high = _part(first, a * _BITS) << _BITS
        for b, heads in enumerate(row):
            found |= heads.take(high | _part(second, b * _BITS))
    return found


def _look_up(table: np.ndarray, sets: np.ndarray) -> np.ndarray:
    found = np.zeros(sets.shape, np.uint64)
    for i, part in enumerate(table):
        found |= part.take(_part(sets, i * _BITS))
    return found


def _part(sets: np.ndarray, first: int) -> np.ndarray:
    return (sets >> np.uint64(first)).astype(np.intp) & ((1 << _BITS) - 1)


@cache
def _table(algebra: Algebra, operands: int) -> np.ndarray:
    """The inverse of each part of a set, [parts, 256], or the composition of two parts, [parts,
    parts, 65536]."""
    sets = algebra.inverse
    if operands == 2:
        # Nothing follows from relations without heads.
        nothing = ~algebra.composition.any(axis=-1, keepdims=True)
        sets = algebra.composition | nothing
    size = len(algebra.relations)
    parts = -(-size // _BITS)
    bits = np.arange(1 << _BITS)[:, None] >> np.arange(_BITS) & 1 == 1  # [256, 8] members of a part
    padded = np.zeros((parts * _BITS,) * operands, np.uint64)
    padded[(slice(size),) * operands] = integers(sets)

    def union(table: np.ndarray) -> np.ndarray:  # over the members of a part: first axis 8 -> 256
        table = table.reshape(parts, _BITS, *table.shape[1:])
        zero = np.zeros((), np.uint64)
        found = np.zeros((parts, len(bits), *table.shape[2:]), np.uint64)
        for bit in range(_BITS):
            members = bits[:, bit].reshape(1, -1, *[1] * (table.ndim - 2))
            found |= np.where(members, table[:, bit, None], zero)
        return found

    table = union(padded)  # [parts, 256, ...]
    if operands == 1:
        return table
    table = union(np.moveaxis(table, 2, 0))  # parts and members of the second set, of the first
    return table.transpose(2, 0, 3, 1).reshape(parts, parts, -1)


def integers(sets: np.ndarray) -> np.ndarray:
    """Sets of relations as integers, bool [..., R] -> uint64 [...]."""
    bits = np.uint64(1) << np.arange(sets.shape[-1], dtype=np.uint64)
    return np.where(sets, bits, np.uint64(0)).sum(axis=-1, dtype=np.uint64)
