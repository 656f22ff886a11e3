"""The kinship algebra of CLUTRR as data: predicates, gendered relations, inverses and rules.

A fact `(X, r, Y)` reads "Y is the r of X". A *predicate* is gender-neutral (`child`). A *relation*
is a predicate together with the gender of Y (`son`). All other modules derive their predicates,
relations and rules from the tables in this file.

Source: Sinha et al. 2019 (EMNLP), appendix 1.2.
"""

from functools import cache

import numpy as np

from generator.relations.algebra import Algebra, View

MALE, FEMALE = 0, 1
GENDERS = ("male", "female")
UNKNOWN_GENDER = 2  # of a person in data that state none
GENDER_NAMES = (*GENDERS, "unknown")

# predicate: (relation if Y is male, relation if Y is female, inverse predicate, generations from X
# down to Y)
_PREDICATES = {
    "child": ("son", "daughter", "inv-child", 1),
    "inv-child": ("father", "mother", "child", -1),
    "SO": ("husband", "wife", "SO", 0),
    "sibling": ("brother", "sister", "sibling", 0),
    "grand": ("grandson", "granddaughter", "inv-grand", 2),
    "inv-grand": ("grandfather", "grandmother", "grand", -2),
    "in-law": ("son-in-law", "daughter-in-law", "inv-in-law", 1),
    "inv-in-law": ("father-in-law", "mother-in-law", "in-law", -1),
    "un": ("nephew", "niece", "inv-un", 1),
    "inv-un": ("uncle", "aunt", "un", -1),
    "sibling-in-law": ("brother-in-law", "sister-in-law", "sibling-in-law", 0),
}
PREDICATES = tuple(_PREDICATES)
NUM_PREDICATES = len(PREDICATES)
PREDICATE_ID = {name: i for i, name in enumerate(PREDICATES)}
INVERSE = np.array([PREDICATE_ID[row[2]] for row in _PREDICATES.values()])

# (first, second) -> head: (X, first, Z) and (Z, second, Y) imply (X, head, Y).
RULES = {
    ("child", "child"): "grand",
    ("SO", "grand"): "grand",
    ("grand", "sibling"): "grand",
    ("inv-child", "inv-child"): "inv-grand",
    ("sibling", "inv-grand"): "inv-grand",
    ("child", "sibling"): "child",
    ("SO", "child"): "child",
    ("sibling", "inv-child"): "inv-child",
    ("child", "inv-grand"): "inv-child",
    ("child", "inv-un"): "sibling",
    ("inv-child", "child"): "sibling",
    ("sibling", "sibling"): "sibling",
    ("child", "SO"): "in-law",
    ("SO", "inv-child"): "inv-in-law",
    ("sibling", "child"): "un",
    ("inv-child", "sibling"): "inv-un",
}
# Composition of two predicates, [11, 11]; -1 if no rule applies.
COMPOSE = np.array([
    [PREDICATE_ID.get(RULES.get((first, second), ""), -1) for second in PREDICATES]
    for first in PREDICATES
])  # fmt: skip


@cache
def path_heads(clause: tuple[int, ...]) -> frozenset[int]:
    """Returns all predicates that the rules derive for the ends of a path, in any order of steps.

    The rules do not distinguish people: for "A's son is B, B's mother is C, C's father is D" they
    derive that D is A's father, although C may be A's wife.
    """
    if len(clause) == 1:
        return frozenset(clause)
    return frozenset(
        int(COMPOSE[first, second])
        for cut in range(1, len(clause))
        for first in path_heads(clause[:cut])
        for second in path_heads(clause[cut:])
        if COMPOSE[first, second] >= 0
    )


# The ids 0..20 match the Hugging Face data set `CLUTRR/v1`, which lacks brother-in-law.
RELATIONS = (
    "aunt", "son-in-law", "grandfather", "brother", "sister", "father", "mother", "grandmother",
    "uncle", "daughter-in-law", "grandson", "granddaughter", "father-in-law", "mother-in-law",
    "nephew", "son", "daughter", "niece", "husband", "wife", "sister-in-law", "brother-in-law",
)  # fmt: skip
NUM_RELATIONS = len(RELATIONS)
RELATION_ID = {name: i for i, name in enumerate(RELATIONS)}

# Relation id by predicate and gender, [11, 2], and the inverse maps, [22] each.
RELATION_OF = np.array([[RELATION_ID[n] for n in row[:2]] for row in _PREDICATES.values()])
PREDICATE_OF, GENDER_OF = np.empty((2, NUM_RELATIONS), int)
PREDICATE_OF[RELATION_OF] = np.arange(NUM_PREDICATES)[:, None]
GENDER_OF[RELATION_OF] = MALE, FEMALE


def inverse_relation(relation: int, gender: int) -> int:
    """Returns the relation of X to Y, where Y is the `relation` of X and X has this gender."""
    return int(RELATION_OF[INVERSE[PREDICATE_OF[relation]], gender])


# The 16 rules between predicates
PREDICATE_ALGEBRA = Algebra(
    name="predicates",
    relations=PREDICATES,
    inverses=tuple((int(p),) for p in INVERSE),
    heads=tuple((int(p),) if p >= 0 else () for p in COMPOSE.ravel()),
)
# [11, 11, 11] 1 for each rule `first, second -> head`.
IS_RULE = PREDICATE_ALGEBRA.composition.astype(np.float32)


def _kinship() -> Algebra:
    both = RELATION_OF.tolist()  # relations of a predicate
    heads = COMPOSE[PREDICATE_OF[:, None], PREDICATE_OF]
    # The second fact states the gender of Y, that of Z does not matter.
    heads = np.where(heads >= 0, RELATION_OF[heads, GENDER_OF], -1)
    return Algebra(
        name="kinship",
        relations=RELATIONS,
        inverses=tuple(tuple(sorted(both[INVERSE[p]])) for p in PREDICATE_OF),
        heads=tuple((int(r),) if r >= 0 else () for r in heads.ravel()),
        view=View(
            PREDICATE_ALGEBRA,
            tuple(PREDICATE_OF.tolist()),
            tuple(GENDER_OF.tolist()),
            tuple(row[3] for row in _PREDICATES.values()),
        ),
    )


KINSHIP = _kinship()
