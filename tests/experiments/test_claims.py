"""Claims of the papers: the published numbers support them, and other numbers do not."""

from collections.abc import Callable

import pytest

from experiments.grid import claims
from experiments.grid.measured import Measured, Table, published_interval
from experiments.published.clutrr import TABLE_2, TABLE_3, TABLE_4, WORKSHOP_TABLE_1, Accuracy


def cell(mean: float, error: float | None = 0.0) -> Measured:
    low, high = published_interval(Accuracy(mean, error))
    return Measured(mean, error, low, high, 200, 10, 1.0)


def table_of(published: dict) -> Table:
    return {key: cell(accuracy.mean, accuracy.error or 0) for key, accuracy in published.items()}


def opposite(published: dict) -> dict:
    return {key: Accuracy(1 - share.mean, share.error) for key, share in published.items()}


@pytest.mark.parametrize(
    ("published", "contrary", "stated"),
    [
        (TABLE_2 | TABLE_3, opposite(TABLE_2 | TABLE_3), claims.TABLE_2),
        (TABLE_4, TABLE_3, claims.TABLE_4),
        (WORKSHOP_TABLE_1, opposite(WORKSHOP_TABLE_1), claims.WORKSHOP_TABLE_1),
    ],
)
def test_published_numbers_support_the_claims(published: dict, contrary: dict, stated) -> None:
    for verdict in claims.verdicts(stated, table_of(published)).values():
        assert not verdict["not supported"] and not verdict["not measured"]
    for verdict in claims.verdicts(stated, table_of(contrary)).values():
        assert len(verdict["not supported"]) > 2 * len(verdict["supported"])
    for verdict in claims.verdicts(stated, {}).values():
        assert not verdict["supported"] and not verdict["not supported"]


def curve(level: float, slope: float, long: float | None = None) -> Callable[[str, int], float]:
    """Accuracy that falls by `slope` per k beyond training, by `long` after k = 2, 3, 4."""

    def accuracy(train: str, k: int) -> float:
        longest = claims.TRAINS[train]
        fall = slope if longest == 3 or long is None else long
        return level - fall * max(0, k - longest)

    return accuracy


def figure5(**models: Callable[[str, int], float]) -> Table:
    return {
        (train, k, model): cell(accuracy(train, k))
        for model, accuracy in models.items()
        for train in claims.TRAINS
        for k in claims.LENGTHS
    }


PAPER = {"gat": curve(1.0, 0.08), "bilstm_mean": curve(0.6, 0.05)}


NEAR = {"gat": curve(0.9, 0.05), "bilstm_mean": curve(0.85, 0.05)}


@pytest.mark.parametrize(
    ("stated", "start", "true", "changes"),
    [
        (claims.FIGURE_5, "the GAT is near-perfect", PAPER, {"gat": curve(0.9, 0.08)}),
        (claims.FIGURE_5, "the best text", PAPER, {"bilstm_mean": curve(1.0, 0.08)}),
        (claims.FIGURE_5, "the accuracy", PAPER, {"gat": lambda _, k: 1.0 - 0.5 * (k == 6)}),
        (claims.FIGURE_5, "the accuracy", PAPER, {"gat": curve(1.0, 0.0)}),
        (claims.FIGURE_5, "all models", PAPER, {"bilstm_mean": curve(0.6, 0.02, 0.08)}),
        (claims.FIGURE_5, "the GAT gains", PAPER, {"bilstm_mean": curve(0.6, 0.05, 0.01)}),
        (claims.FIGURE_5, "the GAT generalises", PAPER, {"gat": curve(0.55, 0.08)}),
        (claims.FIGURE_6, "with the same", NEAR, {"gat": curve(1.0, 0.04)}),
    ],
)
def test_claims_of_figures_5_and_6_hold_and_can_fail(stated, start, true, changes) -> None:
    (holds,) = [
        holds
        for of_question in stated.values()
        for statement, holds in of_question.items()
        if statement.startswith(start)
    ]
    assert holds(figure5(**true)) and not holds(figure5(**(true | changes)))
    with pytest.raises(KeyError):
        holds({})


def test_models_over_a_pretrained_encoder_count_as_bert() -> None:
    table = {("clean", "clean", name): cell(0.5) for name in ("bilstm_mean", "reader_prover_bert")}
    assert claims.with_bert(table, is_bert=False) == ["bilstm_mean"]
    assert claims.with_bert(table, is_bert=True) == ["reader_prover_bert"]


def test_claims_of_figure_7_hold_and_can_fail() -> None:
    means = {("gat", "fixed"): 0.8, ("gat", "redrawn"): 0.81, ("gat", "learned"): 0.79,
             ("rn", "fixed"): 0.6, ("rn", "redrawn"): 0.58, ("rn", "learned"): 0.55}  # fmt: skip
    changed = means | {("rn", "learned"): 0.7, ("gat", "fixed"): 0.9}
    for of_policy, expected in ((means, "supported"), (changed, "not supported")):
        table = {
            (model, k, policy): cell(mean)
            for (model, policy), mean in of_policy.items()
            for k in claims.LENGTHS
        }
        (verdict,) = claims.verdicts(claims.FIGURE_7, table).values()
        assert len(verdict[expected]) == 2
