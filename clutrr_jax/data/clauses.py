"""Clauses of stories: their facts and query up to renaming people."""

from typing import Any

import numpy as np

from clutrr_jax.data.records import Records

# Multipliers of SplitMix64 (Steele et al. 2014).
_ADD, _FIRST, _SECOND = (
    np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def number_clauses(records: Records) -> np.ndarray:
    """Returns the number of the clause of each story, [S], from 0.

    Stories have one clause if their facts and queries are the same up to names and order. People
    are told apart by colour refinement (Weisfeiler and Leman 1968), which starts from the query: in
    rounds, the colour of a person gets those of their facts with others. A story without facts is
    told by its text and query.
    """
    sizes, people = np.diff(records.edge_start), np.diff(records.node_start)
    story = np.repeat(np.arange(len(records)), sizes)
    x, y = (records.node_start[story] + ends for ends in (records.senders, records.receivers))
    relation = records.relations.astype(np.uint64) * np.uint64(2)
    color = np.zeros(len(records.names), np.uint64)
    for role, person in enumerate(records.query.T, start=1):
        color[records.node_start[:-1] + person] += np.uint64(role)
    for _ in range(int(people.max(initial=0))):
        after = _mix(color)
        np.add.at(after, x, _mix(_mix(color[y]) + relation))
        np.add.at(after, y, _mix(_mix(color[x]) + relation + np.uint64(1)))
        color = after
    of_story = np.zeros(len(records), np.uint64)
    np.add.at(of_story, np.repeat(np.arange(len(records)), people), _mix(color))
    told: dict[tuple[Any, Any], int] = {}
    for i in np.flatnonzero(sizes == 0).tolist():
        one = records.story(i)
        of_story[i] = told.setdefault((one.text, one.query), len(told))
    return np.unique(of_story, return_inverse=True)[1]


def _mix(value: np.ndarray) -> np.ndarray:
    """Hash of 64-bit integers (SplitMix64)."""
    value = value + _ADD
    value = (value ^ (value >> np.uint64(30))) * _FIRST
    value = (value ^ (value >> np.uint64(27))) * _SECOND
    return value ^ (value >> np.uint64(31))
