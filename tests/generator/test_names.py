import numpy as np

from generator.names import ALL_NAMES, NAMES, bracketed, name_indices


def test_names_are_distinct_single_words():
    assert [len(names) for names in NAMES] == [150, 150]
    assert len(set(ALL_NAMES)) == 300
    assert all(name.isalpha() and name.istitle() for name in ALL_NAMES)


def test_names_of_stories():
    gender, name = np.array([[0, 1, -1], [1, 1, 0]]), np.array([[5, 5, -1], [0, 1, 2]])
    assert name_indices(gender, name) == [[5, 155], [150, 151, 2]]
    assert bracketed(gender, name)[0] == [f"[{NAMES[0][5]}]", f"[{NAMES[1][5]}]"]
