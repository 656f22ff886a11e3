"""The relations of the benchmark of 2018 (Sinha et al. 2018) and rules that hold in every family.

The paper lists its relations (section 2) and mentions rules (Algorithm 1, line 21) without listing
them. The rules below hold in every family in which children have two parents, who have no other
partners. Their conclusions follow from the stated facts, whatever the rest of the family.
"""

from functools import cache
from typing import NamedTuple

from generator.relations.kinship import PREDICATE_ID, RELATION_ID, RULES, path_heads

# The set R of section 2, without daughter-in-law.
RELATIONS_2018 = tuple(
    RELATION_ID[name]
    for name in (
        "father", "mother", "son", "daughter", "husband", "wife",
        "grandfather", "grandmother", "grandson", "granddaughter",
        "brother", "sister", "father-in-law", "mother-in-law", "son-in-law",
    )
)  # fmt: skip
# The edges of the kinship graph (appendix A, table 2), followed by their inverses.
PREDICATES_2018 = (
    "child", "SO", "grand", "in-law", "sibling", "inv-child", "inv-grand", "inv-in-law",
)  # fmt: skip
# The one rule of 2019 that does not always hold: a child's grandparent may be a parent-in-law.
_UNSOUND = {("child", "inv-grand")}
# Rules that are not in the paper of 2019; they hold because X, Z and Y are different people.
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
# (first, second) -> head, as predicate ids.
RULES_2018 = {
    (PREDICATE_ID[first], PREDICATE_ID[second]): PREDICATE_ID[head]
    for (first, second), head in (RULES | _ADDED).items()
    if {first, second, head} <= set(PREDICATES_2018) and (first, second) not in _UNSOUND
}


class Proof(NamedTuple):
    """A proof of the relation between the ends of a path."""

    head: int  # predicate of the last person relative to the first
    # (i, m, j, predicate) for positions i < m < j on the path: the predicate of j relative to i
    # follows from those of (i, m) and (m, j). The root of the proof comes first.
    steps: tuple[tuple[int, int, int, int], ...]


@cache
def prove(clause: tuple[int, ...]) -> Proof | None:
    """Returns a proof of the relation between the ends of a path of distinct people, if any.

    All proofs have the same conclusion, because the rules hold in every family.
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


def is_unambiguous(clause: tuple[int, ...]) -> bool:
    """Returns True if the facts imply an answer and the rules of 2019 derive no other answer."""
    proof = prove(clause)
    return proof is not None and path_heads(clause) <= {proof.head}
