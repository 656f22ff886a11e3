"""The published numbers are complete and consistent with each other."""

from itertools import product

import numpy as np

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

TABLES = {"table 2": TABLE_2, "table 3": TABLE_3, "table 4": TABLE_4}
# Printed averages that are not the mean of their column.
WRONG_AVERAGES = {("table 2", "mac"), ("table 2", "bert"), ("table 4", "bert")}


def test_accuracies_are_fractions() -> None:
    for table in TABLES.values():
        assert all(0 <= cell.mean <= 1 and 0 <= cell.error < 0.3 for cell in table.values())
    for table in (HUMANS, WORKSHOP_TABLE_1, *CTP.values()):
        assert all(0 <= cell.mean <= 1 and cell.error is None for cell in table.values())


def test_every_cell_exists() -> None:
    noisy = set(product(NOISE[1:], NOISE, MODELS_2019))
    assert set(TABLE_3) == noisy == set(TABLE_4)
    pairs = {("clean", noise) for noise in NOISE} | {(noise, noise) for noise in NOISE}
    assert set(TABLE_2) == {(*pair, model) for pair in pairs for model in MODELS_2019}
    assert set(WORKSHOP_TABLE_1) == set(product(range(3, 7), range(3, 7), MODELS_2018))
    assert set(HUMANS) == set(range(2, 7))
    assert [list(row) for row in CTP.values()] == [list(range(4, 11)), list(range(2, 11))]


def test_repeated_numbers_agree() -> None:
    """Table 2 holds the diagonal of table 3; paraphrases (tables 3 and 4) do not affect the GAT."""
    for key in set(TABLE_2) & set(TABLE_3):
        assert TABLE_2[key] == TABLE_3[key]
    for key in TABLE_3:
        assert key[2] != "gat" or TABLE_3[key] == TABLE_4[key]


def test_averages_are_means_of_columns() -> None:
    wrong = set()
    for name, model in product(AVERAGES, MODELS_2019):
        column = [cell.mean for key, cell in TABLES[name].items() if key[2] == model]
        if abs(np.mean(column) - AVERAGES[name][model]) > 0.0051:
            wrong.add((name, model))
    assert wrong == WRONG_AVERAGES


def test_paths_with_gender_are_twice_the_paths() -> None:
    assert all(gendered == 2 * paths for paths, gendered in WORKSHOP_TABLE_2.values())
