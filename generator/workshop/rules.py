"""What follows from what in the benchmark of 2018 (Sinha et al. 2018, the CLUTRR workshop paper).

The paper lists its relations (section 2) and only mentions its rules (Algorithm 1, line 21). Here
stand the rules that hold for every family in which a child has two parents, who are each other's
only partners: what they prove follows from the stated facts, whatever else the family looks like.
"""

from functools import cache
from typing import NamedTuple

from generator.kinship import COMPOSE, PREDICATE_ID, RELATION_ID, RULES

# The set R of section 2. It has no daughter-in-law.
RELATIONS_2018 = tuple(
    RELATION_ID[name]
    for name in (
        "father", "mother", "son", "daughter", "husband", "wife",
        "grandfather", "grandmother", "grandson", "granddaughter",
        "brother", "sister", "father-in-law", "mother-in-law", "son-in-law",
    )
)  # fmt: skip
# The edges of the paper's kinship graph in their direction (appendix A, table 2), then against it.
PREDICATES_2018 = (
    "child", "SO", "grand", "in-law", "sibling", "inv-child", "inv-grand", "inv-in-law",
)  # fmt: skip
# A child's grandparent is a parent or a parent-in-law: the rule of 2019 that does not always hold.
_UNSOUND = {("child", "inv-grand")}
# Rules that the paper of 2019 does without; X, Z and Y of a path are three people.
_ADDED = {
    ("child", "inv-child"): "SO",
    ("in-law", "inv-in-law"): "SO",
    ("in-law", "SO"): "child",
    ("in-law", "child"): "grand",
    ("SO", "in-law"): "in-law",
    ("SO", "inv-in-law"): "inv-child",
    ("inv-child", "SO"): "inv-child",
    ("inv-child", "inv-in-law"): "inv-grand",
    ("inv-grand", "SO"): "inv-grand",
    ("inv-in-law", "SO"): "inv-in-law",
}
# (first, second) -> head, as predicate numbers.
RULES_2018 = {
    (PREDICATE_ID[first], PREDICATE_ID[second]): PREDICATE_ID[head]
    for (first, second), head in (RULES | _ADDED).items()
    if {first, second, head} <= set(PREDICATES_2018) and (first, second) not in _UNSOUND
}


class Proof(NamedTuple):
    """What the ends of a path are to each other, and why."""

    head: int  # predicate from the first person to the last
    # (i, m, j, predicate): of person i to person j on the path by way of person m; the root first
    steps: tuple[tuple[int, int, int, int], ...]


@cache
def prove(clause: tuple[int, ...]) -> Proof | None:
    """Proves the relation of the ends of a path from its facts alone.

    Args:
      clause: the predicates along a path of different people.
    Returns:
      The proof, or None where the rules prove nothing. The first proof found is enough: as every
      rule holds in every family, no other one can end in another predicate.
    """
    if len(clause) == 1:
        return Proof(clause[0], ())
    for cut in range(1, len(clause)):
        left, right = prove(clause[:cut]), prove(clause[cut:])
        if left and right and (left.head, right.head) in RULES_2018:
            head = RULES_2018[left.head, right.head]
            shifted = tuple((i + cut, m + cut, j + cut, p) for i, m, j, p in right.steps)
            return Proof(head, ((0, cut, len(clause), head), *left.steps, *shifted))
    return None


@cache
def readings_2019(clause: tuple[int, ...]) -> frozenset[int]:
    """All predicates that the 16 rules of `kinship` prove of the ends of a path, in any order.

    They know no two people apart: of "A's son is B, B's mother is C, C's father is D" they prove
    that D is A's father, while C must be A's wife and D the father-in-law.
    """
    if len(clause) == 1:
        return frozenset(clause)
    return frozenset(
        int(COMPOSE[first, second])
        for cut in range(1, len(clause))
        for first in readings_2019(clause[:cut])
        for second in readings_2019(clause[cut:])
        if COMPOSE[first, second] >= 0
    )


def is_sure(clause: tuple[int, ...]) -> bool:
    """Whether the ends' relation follows from the facts, and the rules of 2019 prove no other."""
    proof = prove(clause)
    return proof is not None and readings_2019(clause) <= {proof.head}
