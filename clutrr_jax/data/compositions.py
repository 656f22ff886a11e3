"""Which pairs of people a prover composes, and through whom, in which order."""

from typing import Any, NamedTuple

import numpy as np

_CHUNK = 512  # stories that are listed together


class Compositions(NamedTuple):
    """Steps `(X, Z), (Z, Y) -> (X, Y)` of S stories in at most D rounds, M in total.

    The steps of round d of story s are the `size[s, d]` ones from `start[s, d]` on.
    """

    start: Any  # [S, D]
    size: Any  # [S, D]
    steps: Any  # [M, 3] positions of X, Z and Y within the story


def list_compositions(
    n_node: np.ndarray,  # [S]
    n_edge: np.ndarray,  # [S]
    senders: np.ndarray,  # [E] positions within the story
    receivers: np.ndarray,  # [E]
) -> Compositions:
    """Lists all X, Z and Y such that facts lead from X to Z and from Z to Y.

    A pair (X, Y) is composed once, in the round after those of all pairs on the paths between them:
    round 0 if the longest path has two facts. Pairs between which facts lead in a circle are
    composed in each of the min(people, facts) - 1 rounds.
    """
    edge_start = np.cumsum(n_edge) - n_edge
    owner = np.repeat(np.arange(len(n_node)), n_edge)
    place = np.empty(len(n_node), int)
    parts = [(np.empty(0, int), np.empty(0, int), np.empty((0, 3), np.int32))]
    for size in np.unique(n_node):
        rows = np.flatnonzero(n_node == size)
        for chunk in np.split(rows, range(_CHUNK, len(rows), _CHUNK)):
            place[chunk] = np.arange(len(chunk))
            edges = _ranges(edge_start[chunk], n_edge[chunk])
            is_fact = np.zeros((len(chunk), size, size), bool)
            is_fact[place[owner[edges]], senders[edges], receivers[edges]] = True
            story, round_, steps = _of_equal_size(is_fact, n_edge[chunk])
            parts.append((chunk[story], round_, steps))
    story, round_, steps = map(np.concatenate, zip(*parts, strict=True))
    rounds = max(round_.max(initial=0) + 1, 1)
    order = np.argsort(story * rounds + round_, kind="stable")
    count = np.bincount(story * rounds + round_, minlength=len(n_node) * rounds)
    shape = len(n_node), rounds
    start = (np.cumsum(count) - count).reshape(shape)
    return Compositions(start.astype(np.int32), count.reshape(shape).astype(np.int32), steps[order])


def _ranges(start: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The integers from start[i] to start[i] + size[i] - 1 of all i."""
    return np.arange(size.sum()) + np.repeat(start - (np.cumsum(size) - size), size)


def _of_equal_size(
    is_fact: np.ndarray, n_edge: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Story, round and (X, Z, Y) of each step, of stories with facts [G, P, P]."""
    people = is_fact.shape[1]
    is_fact &= ~np.eye(people, dtype=bool)
    one = is_fact.astype(np.float32)
    walk, longest = one, is_fact.astype(int)
    for length in range(2, people + 1):
        walk = np.minimum(walk @ one, 1)
        longest = np.where(walk > 0, length, longest)
    # Pairs between which a walk passes a person twice
    reach = np.minimum((longest > 0) + np.eye(people, dtype=np.float32), 1)
    in_circle = np.diagonal(longest, axis1=1, axis2=2) > 0
    circles = (reach * in_circle[:, None]) @ reach > 0
    longest *= ~np.eye(people, dtype=bool)
    between = (longest > 0)[..., None] & (longest > 0)[:, None]  # [G, X, Z, Y]
    between &= ~np.eye(people, dtype=bool)[:, None]
    story, x, z, y = np.nonzero(between)
    repeats = np.where(circles[story, x, y], np.minimum(people, n_edge[story]) - 1, 1)
    first = np.where(circles[story, x, y], 0, longest[story, x, y] - 2)
    steps = np.stack([x, z, y], axis=1).astype(np.int32)
    return np.repeat(story, repeats), _ranges(first, repeats), np.repeat(steps, repeats, axis=0)
