import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.stories.family import FamilyShape, sample_families

SHAPES = st.builds(
    FamilyShape,
    st.integers(2, 4),
    st.integers(1, 2),
    st.integers(2, 3),
    st.sampled_from([0.0, 0.4, 1.0]),
)


def test_default_family_matches_the_released_one():
    family = sample_families(FamilyShape(), 1, np.random.default_rng(0))
    assert family.exists.sum() == family.n == 42
    assert family.partner[:4].tolist() == [1, 0, 6, 11]
    assert np.flatnonzero(family.parent == 2).tolist() == [7, 8, 9, 10]


@settings(max_examples=30)
@given(SHAPES, st.integers(0, 99))
def test_families_are_trees_of_couples(shape, seed):
    rng = np.random.default_rng(seed)
    families = sample_families(shape, 3, rng)
    people = np.flatnonzero(families.exists)
    partner, parent = families.partner, families.parent
    married = people[partner[people] >= 0]
    assert (partner[partner[married]] == married).all()
    assert (families.head[married] == families.head[partner[married]]).all()
    children = np.bincount(parent[people[parent[people] >= 0]], minlength=len(partner))
    assert children.max() <= shape.max_child
    assert (children[(children > 0)] >= shape.min_child).all()
    assert (partner[np.flatnonzero(children)] >= 0).all()
    family = people // families.n
    has_parent = parent[people] >= 0
    assert (parent[people][has_parent] // families.n == family[has_parent]).all()

    # Partners have opposite genders.
    bits = rng.integers(0, 2, (5, families.n), np.int8)
    for f in np.unique(family):
        members = people[family == f]
        gender = families.gender_of(bits, np.tile(members, (5, 1)))
        index = {person: i for i, person in enumerate(members)}
        for person in members:
            if partner[person] >= 0:
                assert (gender[:, index[person]] != gender[:, index[partner[person]]]).all()
