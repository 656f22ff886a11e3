"""Random families: trees of couples and their children.

A family has a root couple and `max_levels` generations. Each descendant marries with probability
`p_marry`; the spouse has no relatives of their own. Couples above the last generation have between
`min_child` and `max_child` children. The released data sets use 3 levels, 4 children and
`p_marry` 1.0.

Families have no genders. The gender of a person constrains only that of the partner, so genders are
sampled per story (`Families.gender_of`) and one family serves many stories.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np


class FamilyShape(NamedTuple):
    """Family parameters. The defaults are the values of the released data sets."""

    max_levels: int = 3
    min_child: int = 4
    max_child: int = 4
    p_marry: float = 1.0

    def max_people(self) -> int:
        """Returns the maximum number of people in a family."""
        descendants = sum(self.max_child**level for level in range(self.max_levels))
        return 2 * descendants

    def is_fixed(self) -> bool:
        """Returns True if all families of this shape are identical."""
        return self.min_child == self.max_child and self.p_marry in (0.0, 1.0)


@dataclass(frozen=True)
class Families:
    """F families of up to n people each. Person i of family f has the id f * n + i.

    Missing people have the id -1. People are ordered as in the released `node_mapping` column.
    """

    n: int
    parent: np.ndarray  # [F * n] the parent who descends from the root; -1 for root and spouses
    partner: np.ndarray  # [F * n]
    # [F * n] the descendant in each couple (for the root couple, its first person), else oneself
    head: np.ndarray
    exists: np.ndarray  # [F * n] bool

    def gender_of(self, bits: np.ndarray, people: np.ndarray) -> np.ndarray:
        """Returns the genders of `people` [B, m], given one random bit per family member [B, n].

        Partners have opposite genders.
        """
        head = self.head[people]
        return np.take_along_axis(bits, head % self.n, 1) ^ (head != people)


def sample_families(shape: FamilyShape, count: int, rng: np.random.Generator) -> Families:
    """Returns `count` random families, or a single one if all families of the shape are equal."""
    if shape.is_fixed():
        return _fixed_family(shape)
    return _build(
        shape,
        count,
        num_children=lambda: int(rng.integers(shape.min_child, shape.max_child + 1)),
        marries=lambda: rng.random() < shape.p_marry,
    )


@lru_cache(maxsize=16)
def _fixed_family(shape: FamilyShape) -> Families:
    return _build(shape, 1, lambda: shape.max_child, lambda: shape.p_marry == 1.0)


def _build(
    shape: FamilyShape, count: int, num_children: Callable[[], int], marries: Callable[[], bool]
) -> Families:
    n = shape.max_people()
    missing = np.full(count * n, -1)
    families = Families(
        n, missing.copy(), missing.copy(), missing.copy(), np.zeros(count * n, bool)
    )
    for f in range(count):
        size = f * n

        def add(parent: int, head: int | None) -> int:
            nonlocal size
            families.parent[size] = parent
            families.head[size] = size if head is None else head
            families.exists[size] = True
            size += 1
            return size - 1

        generation = [add(-1, None)]
        for depth in range(shape.max_levels):
            children: list[int] = []
            for person in generation:
                if depth > 0 and not marries():
                    continue
                spouse = add(-1, person)
                families.partner[person], families.partner[spouse] = spouse, person
                if depth < shape.max_levels - 1:
                    children += [add(person, None) for _ in range(num_children())]
            generation = children
    return families
