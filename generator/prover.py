"""An independent prover: which relations follow from the facts of a story.

It shares nothing with the code that builds proofs (`closure`, `clause`) but the table of rules, so
that it can check what that code made, and any published data.
"""

import numpy as np

from generator.kinship import NUM_PREDICATES, RULE_TABLE

# A set of predicates is a bit mask. Those that occur in the body of a rule have the lowest bits.
_BODY = np.unique(RULE_TABLE[:, :2])
_BIT = np.empty(NUM_PREDICATES, np.uint16)
_BIT[np.concatenate([_BODY, np.setdiff1d(np.arange(NUM_PREDICATES), _BODY)])] = np.arange(
    NUM_PREDICATES
)
_SETS = 1 << len(_BODY)


def _composition() -> np.ndarray:
    """[_SETS * _SETS]: the heads of all rules with `first` in set a and `second` in set b."""
    table = np.zeros((_SETS, _SETS), np.uint16)
    sets = np.arange(_SETS)
    for first, second, head in RULE_TABLE:
        has_first, has_second = (sets >> _BIT[first]) & 1, (sets >> _BIT[second]) & 1
        table |= (has_first[:, None] & has_second[None, :]).astype(np.uint16) << _BIT[head]
    return table.ravel()


_COMPOSE = _composition()


def derivable(
    edges: np.ndarray, predicates: np.ndarray, query: np.ndarray, people: int
) -> np.ndarray:
    """Which predicates hold between the asked people, by forward closure under the 16 rules.

    Args:
      edges: [B, E, 2] people (X, Y) of the stated facts, 0..people-1.
      predicates: [B, E] predicate from X to Y; -1: no fact.
      query: [B, 2] the asked pair.
      people: an upper bound of people in any of the stories.
    Returns:
      [B, 11] bool: the predicates that are stated or follow. Nobody is anything to himself, and no
      fact is read backwards.
    """
    b = len(edges)
    row = np.arange(b)
    known = np.zeros((b, people, people), np.uint16)
    for e in range(edges.shape[1]):
        bit = np.uint16(1) << _BIT[predicates[:, e]]
        known[row, edges[:, e, 0], edges[:, e, 1]] |= np.where(predicates[:, e] >= 0, bit, 0)
    own = np.arange(people)
    known[:, own, own] = 0
    active = row
    low = _SETS - 1
    while len(active):
        facts = known[active]
        for z in range(people):
            left = (facts[:, :, z, None] & low) * np.uint16(_SETS)
            facts |= _COMPOSE[left | (facts[:, z, None, :] & low)]
            facts[:, own, own] = 0
        grown = (facts != known[active]).any(axis=(1, 2))
        known[active] = facts
        active = active[grown]
    answer = known[row, query[:, 0], query[:, 1]]
    return ((answer[:, None] >> _BIT) & 1).astype(bool)
