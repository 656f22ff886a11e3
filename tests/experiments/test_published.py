"""The published numbers are complete and consistent with each other."""

from itertools import product

import pytest

from clutrr_jax.data.batching import GRAPHS
from clutrr_jax.evaluation.published import PublishedRow
from clutrr_jax.models import MODELS
from experiments.figure5 import RELEASES, references
from experiments.published.clutrr import (
    HUMANS,
    MODELS_2018,
    MODELS_2019,
    NOISE,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    WORKSHOP_TABLE_1,
)
from experiments.published.ledger import CTP, ROWS


def test_every_cell_exists_and_is_a_fraction() -> None:
    for table in (TABLE_2, TABLE_3, TABLE_4, HUMANS, WORKSHOP_TABLE_1):
        assert all(0 <= cell.mean <= 1 and 0 <= (cell.error or 0) < 0.3 for cell in table.values())
    noisy = set(product(NOISE[1:], NOISE, MODELS_2019))
    assert set(TABLE_3) == noisy == set(TABLE_4)
    pairs = {("clean", noise) for noise in NOISE} | {(noise, noise) for noise in NOISE}
    assert set(TABLE_2) == {(*pair, model) for pair in pairs for model in MODELS_2019}
    assert set(WORKSHOP_TABLE_1) == set(product(range(3, 7), range(3, 7), MODELS_2018))
    assert set(HUMANS) == set(range(2, 7))
    assert [list(row.by_k) for row in CTP] == [list(range(4, 11)), list(range(2, 11))]


def test_repeated_numbers_agree() -> None:
    """Table 2 holds the diagonal of table 3; paraphrases (tables 3 and 4) do not affect the GAT."""
    for key in set(TABLE_2) & set(TABLE_3):
        assert TABLE_2[key] == TABLE_3[key]
    for key in TABLE_3:
        assert key[2] != "gat" or TABLE_3[key] == TABLE_4[key]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}, {row.data.name}")
def test_row_says_where_it_was_measured_and_what_was_given(row: PublishedRow) -> None:
    assert row.source.short and row.source.authors and 2018 <= row.source.year <= 2026
    assert row.source.title and row.source.place and row.data.name and row.given
    assert row.reads in ("facts", "story", "facts (GAT) or story")
    found = [*row.by_k.values(), *([row.overall] if row.overall else [])]
    assert all(0 <= cell.mean <= 1 and cell.error is None for cell in found)
    assert set(row.by_k) <= set(range(2, 11))
    if row.model:
        spec = MODELS[row.model]
        reads = "facts" if spec.kind in GRAPHS else "story"
        assert (row.reads, row.given) == (reads, spec.given(spec.config))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}, {row.data.name}")
def test_comparable_rows_have_accuracies_on_released_data(row: PublishedRow) -> None:
    if not row.differs:
        assert row.data.name in RELEASES.values() and row.data.tests and (row.by_k or row.overall)
    else:
        assert not row.model


def test_only_comparable_rows_stand_beside_measured_ones() -> None:
    beside = [reference.row for reference in references()]
    assert beside == [
        row for release in RELEASES.values() for row in ROWS
        if row.by_k and row.data.name == release and not row.differs
    ]  # fmt: skip
    assert {"people, limited time", "Edge Transformer"}.isdisjoint(row.name for row in beside)
    labels = [row.label for row in ROWS if row.differs]
    assert set(labels).isdisjoint(row.label for row in beside)
