"""Random families: who descends from whom, and who is married to whom.

A family has a root couple and `max_levels` generations. Everybody below the root may marry (with
probability `p_marry`) a newcomer without relatives; a couple above the last generation has between
`min_child` and `max_child` children. The released data were made with 3, 4, 4 and 1.0.

Genders are not part of a family: nothing but the gender of a partner depends on another, so each
story draws its own (`genders`), and one family can serve many stories.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np


class FamilyShape(NamedTuple):
    """The parameters of families, with the values of the released data."""

    max_levels: int = 3
    min_child: int = 4
    max_child: int = 4
    p_marry: float = 1.0

    def max_people(self) -> int:
        """How many people a family may have."""
        born = sum(self.max_child**level for level in range(self.max_levels))
        return 2 * born

    def is_fixed(self) -> bool:
        """Whether all families of this shape are the same."""
        return self.min_child == self.max_child and self.p_marry in (0.0, 1.0)


@dataclass(frozen=True)
class Families:
    """F families of up to n people each. Person i of family f has the number f * n + i.

    -1 stands for nobody. The people of a family are numbered as in the released `node_mapping`.
    """

    n: int
    parent: np.ndarray  # [F * n] the one parent who descends from the root; -1: root or newcomer
    partner: np.ndarray  # [F * n]
    # [F * n] of a couple, the one born into the family (the first of the root couple), else oneself
    head: np.ndarray
    exists: np.ndarray  # [F * n] bool

    def gender_of(self, bits: np.ndarray, people: np.ndarray) -> np.ndarray:
        """Genders of `people` [B, m]: random bits [B, n] for each place, partners opposite."""
        head = self.head[people]
        return np.take_along_axis(bits, head % self.n, 1) ^ (head != people)


def sample_families(shape: FamilyShape, count: int, rng: np.random.Generator) -> Families:
    """`count` random families, or one where the shape leaves nothing to chance."""
    if shape.is_fixed():
        return _the_family(shape)
    return _build(
        shape,
        count,
        children=lambda: int(rng.integers(shape.min_child, shape.max_child + 1)),
        marries=lambda: rng.random() < shape.p_marry,
    )


@lru_cache(maxsize=16)
def _the_family(shape: FamilyShape) -> Families:
    return _build(shape, 1, lambda: shape.max_child, lambda: shape.p_marry == 1.0)


def _build(
    shape: FamilyShape, count: int, children: Callable[[], int], marries: Callable[[], bool]
) -> Families:
    n = shape.max_people()
    nobody = np.full(count * n, -1)
    families = Families(n, nobody.copy(), nobody.copy(), nobody.copy(), np.zeros(count * n, bool))
    for f in range(count):
        size = f * n

        def add(parent: int, head: int | None) -> int:
            nonlocal size
            families.parent[size] = parent
            families.head[size] = size if head is None else head
            families.exists[size] = True
            size += 1
            return size - 1

        level = [add(-1, None)]
        for depth in range(shape.max_levels):
            born: list[int] = []
            for person in level:
                if depth > 0 and not marries():
                    continue
                newcomer = add(-1, person)
                families.partner[person], families.partner[newcomer] = newcomer, person
                if depth < shape.max_levels - 1:
                    born += [add(person, None) for _ in range(children())]
            level = born
    return families
