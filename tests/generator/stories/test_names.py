from generator.stories.names import NAMES


def test_names_are_distinct_single_words():
    assert [len(names) for names in NAMES] == [150, 150]
    assert len({*NAMES[0], *NAMES[1]}) == 300
    assert all(name.isalpha() and name.istitle() for names in NAMES for name in names)
