"""Random families: trees of couples and their children.

A family has a root couple and `max_levels` generations. Each descendant marries with probability
`p_marry`; the spouse has no relatives of their own. Couples above the last generation have between
`min_child` and `max_child` children. The released data sets use 3 levels, 4 children and
`p_marry` 1.0.

Families have no genders. The gender of a person constrains only that of the partner, so genders are
sampled per story (`Families.gender_of`) and one family serves many stories.
"""

from dataclasses import dataclass
from itertools import islice
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
    """Returns `count` random families."""
    n = shape.max_people()
    parent, partner, head = np.full((3, count * n), -1)
    for f in range(count):
        ids = iter(range(f * n, (f + 1) * n))
        generation = [next(ids)]
        head[generation] = generation
        for depth in range(shape.max_levels):
            children: list[int] = []
            for person in generation:
                if depth > 0 and rng.random() >= shape.p_marry:
                    continue
                spouse = next(ids)
                head[spouse] = person
                partner[person], partner[spouse] = spouse, person
                if depth < shape.max_levels - 1:
                    size = int(rng.integers(shape.min_child, shape.max_child + 1))
                    born = list(islice(ids, size))
                    parent[born], head[born] = person, born
                    children += born
            generation = children
    return Families(n, parent, partner, head, head >= 0)
