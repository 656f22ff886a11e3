import numpy as np

from generator.names import NAMES, names_of


def test_names_are_distinct_single_words():
    assert [len(names) for names in NAMES] == [150, 150]
    assert len({*NAMES[0], *NAMES[1]}) == 300
    assert all(name.isalpha() and name.istitle() for names in NAMES for name in names)


def test_names_of_stories():
    gender, name = np.array([[0, 1, -1], [1, 1, 0]]), np.array([[5, 5, -1], [0, 1, 2]])
    male, female = NAMES
    assert names_of(gender, name) == [[male[5], female[5]], [female[0], female[1], male[2]]]
