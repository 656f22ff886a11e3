"""Claims of the papers: the published numbers support them, and other numbers do not.

Most accuracies have no uncertainty; `test_verdicts.py` is about uncertain ones.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product

import pytest

from clutrr_jax.evaluation.claims import Evidence, Z
from clutrr_jax.evaluation.metrics import Measured
from clutrr_jax.evaluation.published import Accuracy, published_interval
from clutrr_jax.experiment import Measurements
from clutrr_jax.report.results import verdicts
from experiments import claims
from experiments.published.clutrr import TABLE_2, TABLE_3, TABLE_4, WORKSHOP_TABLE_1


def cell(mean: float, error: float | None = 0.0) -> Measured:
    low, high = published_interval(Accuracy(mean, error))
    return Measured(mean, error, low, high, 200, 10, 1.0, mean, error)


def exact(accuracy: float) -> Measured:
    """A measured accuracy without uncertainty."""
    return Measured(accuracy, 0.0, accuracy, accuracy, 200, 10, 1.0, accuracy, 0.0)


def table_of(published: dict) -> Measurements:
    return {key: cell(accuracy.mean, accuracy.error or 0) for key, accuracy in published.items()}


def exactly(published: dict) -> Measurements:
    return {key: exact(accuracy.mean) for key, accuracy in published.items()}


def widened(measured: Measured, half: float) -> Measured:
    """Returns the accuracy with an interval of this half-width."""
    accuracy = measured.accuracy
    return replace(measured, low=max(0.0, accuracy - half), high=min(1.0, accuracy + half))


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
    """No claim is refuted within the published errors, and the printed numbers support all but one:
    the published GAT is .20 lower with disconnected facts."""
    for verdict in verdicts(stated, table_of(published)).values():
        assert not verdict["not supported"] and not verdict["not measured"]
    for verdict in verdicts(stated, exactly(published)).values():
        assert not verdict["undecided"] and not verdict["not measured"]
        for statement in verdict["not supported"]:
            assert statement.endswith("the GAT does not drop with disconnected facts")
    for verdict in verdicts(stated, exactly(contrary)).values():
        assert len(verdict["not supported"]) > 2 * len(verdict["supported"])
    for verdict in verdicts(stated, {}).values():
        assert [word for word, found in verdict.items() if found] == ["not measured"]


def curve(level: float, slope: float, long: float | None = None) -> Callable[[str, int], float]:
    """Accuracy that falls by `slope` per k beyond training, by `long` after k = 2, 3, 4."""

    def accuracy(train: str, k: int) -> float:
        longest = claims.TRAINS[train]
        fall = slope if longest == 3 or long is None else long
        return level - fall * max(0, k - longest)

    return accuracy


def figure5(**models: Callable[[str, int], float]) -> Measurements:
    return {
        (train, k, model): exact(accuracy(train, k))
        for model, accuracy in models.items()
        for train in claims.TRAINS
        for k in claims.LENGTHS
    }


def judge(stated, start: str) -> Callable[[Measurements], Evidence]:
    """The only claim whose statement starts with these words."""
    (found,) = [
        of_statement
        for of_question in stated.values()
        for statement, of_statement in of_question.items()
        if statement.startswith(start)
    ]
    return found


def claim(stated, start: str) -> Callable[[Measurements], bool]:
    """Returns whether a claim holds, for accuracies that decide it."""

    def holds(table: Measurements) -> bool:
        verdict = judge(stated, start)(table).verdict
        assert verdict != "undecided"
        return verdict == "supported"

    return holds


PAPER = {"gat": curve(1.0, 0.08), "bilstm_mean": curve(0.6, 0.05)}


NEAR = {"gat": curve(0.9, 0.05), "bilstm_mean": curve(0.85, 0.05)}


@pytest.mark.parametrize(
    ("stated", "start", "true", "changes"),
    [
        (claims.FIGURE_5, "the GAT is near-perfect", PAPER, {"gat": curve(0.9, 0.08)}),
        (claims.FIGURE_5, "the best text", PAPER, {"gat": curve(0.5, 0.08)}),
        (claims.FIGURE_5, "the accuracy", PAPER, {"gat": lambda _, k: 1.0 - 0.5 * (k == 6)}),
        (claims.FIGURE_5, "the accuracy", PAPER, {"gat": curve(0.5, -0.01)}),
        (claims.FIGURE_5, "all models", PAPER, {"bilstm_mean": curve(0.6, 0.02, 0.08)}),
        (claims.FIGURE_5, "the GAT gains", PAPER, {"bilstm_mean": curve(0.6, 0.05, 0.01)}),
        (claims.FIGURE_5, "the GAT generalises", PAPER, {"gat": curve(0.55, 0.08)}),
        (claims.FIGURE_6, "with the same", NEAR, {"gat": curve(1.0, 0.04)}),
    ],
)
def test_claims_of_figures_5_and_6_hold_and_can_fail(stated, start, true, changes) -> None:
    holds = claim(stated, start)
    assert holds(figure5(**true)) and not holds(figure5(**(true | changes)))
    with pytest.raises(KeyError):
        holds({})


def test_models_over_a_pretrained_encoder_count_as_bert() -> None:
    table = {("clean", "clean", name): exact(0.5) for name in ("bilstm_mean", "reader_prover_bert")}
    assert claims.with_bert(table, is_bert=False) == ["bilstm_mean"]
    assert claims.with_bert(table, is_bert=True) == ["reader_prover_bert"]


def test_claims_of_figure_7_hold_and_can_fail() -> None:
    means = {("gat", "fixed"): 0.8, ("gat", "redrawn"): 0.81, ("gat", "learned"): 0.79,
             ("rn", "fixed"): 0.6, ("rn", "redrawn"): 0.58, ("rn", "learned"): 0.55}  # fmt: skip
    changed = means | {("rn", "learned"): 0.7, ("gat", "fixed"): 0.9}
    for of_policy, expected in ((means, "supported"), (changed, "not supported")):
        table = {
            (model, k, policy): exact(mean)
            for (model, policy), mean in of_policy.items()
            for k in claims.LENGTHS
        }
        (verdict,) = verdicts(claims.FIGURE_7, table).values()
        assert len(verdict[expected]) == 2


# Bounds: a table just inside and one just outside each.


def level(accuracy: float, **others: float) -> Callable[[str, int], float]:
    """Equal accuracies at all lengths but those that are given, as in k4=0.9."""
    return lambda train, k: others.get(f"k{k}", accuracy)


@pytest.mark.parametrize("ceiling", [1.0, 0.9])
@pytest.mark.parametrize("train", claims.TRAINS)
@pytest.mark.parametrize(("below", "expected"), [(0.049, True), (0.051, False)])
def test_near_perfect_is_within_05_of_the_ceiling(ceiling, train, below, expected) -> None:
    """At k = 3, for both training sets; the other one is at the ceiling."""
    table = figure5(gat=level(0.1, k3=ceiling))
    table[train, 3, "gat"] = exact(ceiling - below)
    table = {key: replace(measured, ceiling=ceiling) for key, measured in table.items()}
    assert claim(claims.FIGURE_5, "the GAT is near-perfect")(table) == expected


@pytest.mark.parametrize(("gat", "expected"), [(0.6, "undecided"), (0.7, "supported")])
def test_a_significant_difference_exceeds_its_error(gat: float, expected: str) -> None:
    """Against .55, all accuracies with an error of .05: that of a difference is .07."""
    table = figure5(gat=level(gat), rn=level(0.55))
    wide = {key: widened(measured, 0.05 * Z) for key, measured in table.items()}
    assert judge(claims.FIGURE_5, "the best text")(wide).verdict == expected


@pytest.mark.parametrize(("rise", "expected"), [(0.049, True), (0.051, False)])
def test_an_accuracy_that_falls_may_rise_by_05_on_the_way(rise: float, expected: bool) -> None:
    table = figure5(gat=lambda _, k: 0.9 - 0.01 * k + (rise + 0.01) * (k == 7))
    assert claim(claims.FIGURE_5, "the accuracy of all models falls")(table) == expected


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ({"2,3": 3, "2,3,4": 4}, True),
        ({"2,3": 4, "2,3,4": 4}, False),
        ({"2,3": 3, "2,3,4": 5}, False),
    ],
)
def test_the_fall_begins_at_the_longest_clauses_in_training(start, expected: bool) -> None:
    """Accuracies are .3 before `start` and fall from there."""
    table = figure5(gat=lambda train, k: 0.3 if k < start[train] else 1 - 0.05 * k)
    assert claim(claims.FIGURE_5, "the accuracy of all models falls")(table) == expected


@pytest.mark.parametrize(("k", "expected"), [(4, False), (5, True), (10, True)])
def test_gains_by_longer_training_are_over_k_5_to_10(k: int, expected: bool) -> None:
    """Training on k = 2, 3, 4 gains at one length and loses a little at all others."""
    table = figure5(gat=lambda train, at: 0.5 + (train == "2,3,4") * (0.4 if at == k else -0.01))
    assert (claims.gain(table, "gat").value > 0) == expected
    assert claim(claims.FIGURE_5, "all models generalise better")(table) == expected
    table |= figure5(bilstm_mean=level(0.5))
    assert claim(claims.FIGURE_5, "the GAT gains most")(table) == expected


@pytest.mark.parametrize(
    ("best", "expected"),
    [
        ({"2,3": 4, "2,3,4": 5}, True),
        ({"2,3": 10, "2,3,4": 10}, True),
        ({"2,3": 3, "2,3,4": 5}, False),
        ({"2,3": 4, "2,3,4": 4}, False),
    ],
)
def test_the_gat_generalises_on_lengths_above_those_in_training(best, expected: bool) -> None:
    """The GAT is far better at one length, and a little worse at all others."""
    table = figure5(
        gat=lambda train, k: 0.5 + (0.4 if k == best[train] else -0.01), bilstm_mean=level(0.5)
    )
    assert claim(claims.FIGURE_5, "the GAT generalises")(table) == expected


@pytest.mark.parametrize(("below", "expected"), [(0.099, True), (0.101, False)])
@pytest.mark.parametrize("lengths", [claims.LENGTHS, (2,), (10,)])
def test_competitive_text_models_are_at_most_10_below_the_gat(below, lengths, expected) -> None:
    """On average over the nine lengths; one of two text models is below, at some or one of them."""
    lower = 0.95 - below * 9 / len(lengths)
    table = figure5(
        gat=level(0.95), rn=level(0.95), mac=level(0.95, **{f"k{k}": lower for k in lengths})
    )
    assert claim(claims.FIGURE_6, "with the same paraphrases")(table) == expected


def figure7(model: str, **of_policy: float) -> Measurements:
    return {
        (model, k, policy): exact(mean)
        for policy, mean in of_policy.items()
        for k in claims.LENGTHS
    }


@pytest.mark.parametrize("other", ["redrawn", "learned"])
@pytest.mark.parametrize(
    ("below", "expected"), [(-0.001, False), (0.001, True), (0.099, True), (0.101, False)]
)
def test_slightly_better_is_by_at_most_10(other: str, below: float, expected: bool) -> None:
    means = {"fixed": 0.6, "redrawn": 0.55, "learned": 0.55} | {other: 0.6 - below}
    holds = claim(claims.FIGURE_7, "fixed random vectors are slightly better")
    assert holds(figure7("rn", **means)) == expected


@pytest.mark.parametrize("policy", ["fixed", "redrawn", "learned"])
@pytest.mark.parametrize(
    ("mean", "expected"), [(0.549, True), (0.551, False), (0.451, True), (0.449, False)]
)
def test_practically_no_difference_is_within_05(policy: str, mean: float, expected: bool) -> None:
    means = {"fixed": 0.5, "redrawn": 0.5, "learned": 0.5} | {policy: mean}
    holds = claim(claims.FIGURE_7, "the policy makes practically no difference")
    assert holds(figure7("gat", **means)) == expected


def noise_table(won: Iterable[tuple[str, str]], **gains: float) -> Measurements:
    """The GAT is at .5, each text model above it by its gain in the rows `won`, else below."""
    rows = list(won)
    table = {}
    for row in product(claims.NOISE, claims.NOISE):
        table[*row, "gat"] = exact(0.5)
        for model, gain in gains.items():
            table[*row, model] = exact(0.5 + (gain if row in rows else -gain))
    return table


DIAGONAL = [("supporting",) * 2, ("irrelevant",) * 2, ("disconnected",) * 2]
CLEAN = [("clean", noise) for noise in claims.NOISE]
NOISY_ROWS = list(product(claims.NOISY, claims.NOISE))


@pytest.mark.parametrize(
    ("start", "lost", "expected"),
    [
        # 7 rows; the GAT wins 4 or 3.
        ("the GAT outperforms", [*CLEAN[:2], DIAGONAL[0]], True),
        ("the GAT outperforms", [*CLEAN[1:], DIAGONAL[2]], False),
        ("the GAT outperforms", [CLEAN[0], *DIAGONAL], False),
        # 12 rows; the GAT wins 7, or 6, which is not most.
        ("trained on noise, the GAT outperforms", NOISY_ROWS[:5], True),
        ("trained on noise, the GAT outperforms", NOISY_ROWS[:6], False),
        ("trained on noise, the GAT outperforms", NOISY_ROWS[6:], False),
        # Training on clean stories is no row of table 3.
        ("trained on noise, the GAT outperforms", [*CLEAN, *NOISY_ROWS[7:]], True),
    ],
)
def test_most_settings_are_more_than_half(start: str, lost: list, expected: bool) -> None:
    assert claim(claims.TABLE_2, start)(noise_table(lost, rn=0.1)) == expected


@pytest.mark.parametrize(("below", "expected"), [(0.049, True), (0.051, False)])
def test_the_best_text_model_is_at_most_05_below_the_gat(below: float, expected: bool) -> None:
    table = noise_table([], rn=below, mac=0.3)
    assert claim(claims.TABLE_4, "without paraphrases some text models")(table) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (NOISY_ROWS[:1], False),
        (NOISY_ROWS[-1:], False),
        (NOISY_ROWS[:2], True),
        (NOISY_ROWS[-2:], True),
        ([NOISY_ROWS[0], *CLEAN], False),
    ],
)
def test_several_settings_are_two_rows_of_table_4(rows: list, expected: bool) -> None:
    table = noise_table(rows, rn=0.1)
    assert claim(claims.TABLE_4, "without paraphrases text models outperform")(table) == expected


def test_several_settings_may_be_won_by_different_text_models() -> None:
    table = noise_table([], rn=0.1, mac=0.1)
    table[*NOISY_ROWS[0], "rn"] = table[*NOISY_ROWS[5], "mac"] = exact(0.51)
    assert claim(claims.TABLE_4, "without paraphrases text models outperform")(table)


@pytest.mark.parametrize("change", [None, *claims.NOISY])
def test_consistent_improvement_is_for_all_three_kinds_of_noise(change: str | None) -> None:
    """The GAT is better with the noise of the test in training, unless changed for one kind."""
    table = noise_table([], rn=0.1) | {(*row, "gat"): exact(0.6) for row in DIAGONAL}
    if change:
        table[change, change, "gat"] = exact(0.49)
    assert claim(claims.TABLE_2, "only the GAT consistently improves")(table) == (change is None)


def test_improvement_is_a_fraction_of_the_ceiling() -> None:
    """.6 of a ceiling of .8 is more than .7 of a ceiling of 1."""
    table = noise_table([], rn=0.1)
    for row in DIAGONAL:
        table[*row, "gat"] = replace(exact(0.6), ceiling=0.8)
        table["clean", row[1], "gat"] = exact(0.7)
    assert claim(claims.TABLE_2, "only the GAT consistently improves")(table)


@pytest.mark.parametrize(("loss", "expected"), [(-0.049, True), (-0.051, False), (0.1, True)])
def test_a_text_model_that_improves_by_at_most_05_does_not_count(loss, expected: bool) -> None:
    """The text model has .50, on the noise of its training .50 - loss."""
    table = {key: exact(0.5) for key in noise_table([], rn=0.0)}
    for row in DIAGONAL:
        table |= {(*row, "gat"): exact(0.6), (*row, "rn"): exact(0.5 - loss)}
    assert claim(claims.TABLE_2, "only the GAT consistently improves")(table) == expected


@pytest.mark.parametrize(
    ("start", "is_above", "noise", "model", "bound"),
    [
        ("trained on clean stories, all text models", True, "supporting", "rn", 0.0),
        ("trained on clean stories, all text models", True, "irrelevant", "rn", 0.0),
        ("trained on clean stories, models with BERT", False, "supporting", "bert", 0.05),
        ("trained on clean stories, models with BERT", False, "irrelevant", "bert", 0.05),
        ("trained on clean stories, the GAT does poorly", False, "supporting", "gat", -0.10),
        ("trained on clean stories, the GAT does not drop", True, "disconnected", "gat", -0.05),
    ],
)
def test_noise_in_the_test_has_bounds(start, is_above, noise, model, bound) -> None:
    """Just above and just below the bound; other cells are clearly on the right side of it."""
    table = {key: exact(0.7 if is_above else 0.3) for key in noise_table([], rn=0.0, bert=0.0)}
    table |= {key: exact(0.5) for key in table if key[:2] == ("clean", "clean")}
    for step in (-0.001, 0.001):
        table["clean", noise, model] = exact(0.5 + bound + step)
        assert claim(claims.TABLE_2, start)(table) == ((step > 0) == is_above)


@pytest.mark.parametrize(("gain", "expected"), [(0.049, True), (0.051, False)])
@pytest.mark.parametrize("k", claims.LENGTHS_2018)
def test_no_graph_network_is_more_than_05_above_the_lstm(k: int, gain: float, expected) -> None:
    table = {key: exact(0.5) for key in WORKSHOP_TABLE_1}
    table[k, k, "gnn_2018_attention"] = exact(0.5 + gain)
    assert claim(claims.WORKSHOP_TABLE_1, "no graph network")(table) == expected
