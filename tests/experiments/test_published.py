"""The papers' figures are whole, and agree with each other where the same figure stands twice."""

from itertools import product

import numpy as np
import pytest

from experiments.grid.published import (
    AVERAGES,
    CTP,
    HUMANS,
    MODELS_2018,
    MODELS_2019,
    NOISE,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    WORKSHOP_TABLE_1,
    WORKSHOP_TABLE_2,
)

TABLES = {
    "table 2": TABLE_2,
    "table 3": TABLE_3,
    "table 4": TABLE_4,
    "HUMANS": HUMANS,
    "WORKSHOP_TABLE_1": WORKSHOP_TABLE_1,
    **CTP,
}


@pytest.mark.parametrize("name", TABLES)
def test_shares_are_shares(name: str) -> None:
    for share in TABLES[name].values():
        assert 0 <= share.mean <= 1
        assert (share.error is not None and 0 <= share.error < 0.3) == (name in AVERAGES)


def test_every_cell_is_there() -> None:
    noisy = set(product(NOISE[1:], NOISE, MODELS_2019))
    assert set(TABLE_3) == noisy == set(TABLE_4)
    pairs = {("clean", noise) for noise in NOISE} | {(noise, noise) for noise in NOISE}
    assert set(TABLE_2) == {(*pair, model) for pair in pairs for model in MODELS_2019}
    assert set(WORKSHOP_TABLE_1) == set(product(range(3, 7), range(3, 7), MODELS_2018))
    assert set(HUMANS) == set(range(2, 7))
    assert [list(row) for row in CTP.values()] == [list(range(4, 11)), list(range(2, 11))]


def test_what_stands_twice_is_the_same() -> None:
    """The diagonal of table 3 is in table 2; a graph model does not see how facts are worded."""
    for train, test, model in set(TABLE_2) & set(TABLE_3):
        assert TABLE_2[train, test, model] == TABLE_3[train, test, model]
    for key in TABLE_3:
        assert key[2] != "gat" or TABLE_3[key] == TABLE_4[key]


def test_averages_are_those_of_the_columns() -> None:
    """Three printed averages are not."""
    wrong = {
        (name, model)
        for name, model in product(AVERAGES, MODELS_2019)
        if abs(
            np.mean([share.mean for key, share in TABLES[name].items() if key[2] == model])
            - AVERAGES[name][model]
        )
        > 0.0051
    }
    assert wrong == {("table 2", "mac"), ("table 2", "bert"), ("table 4", "bert")}


def test_paths_with_gender_are_twice_the_paths() -> None:
    assert all(gendered == 2 * paths for paths, gendered in WORKSHOP_TABLE_2.values())
