"""Verdicts on all claims of the papers: laws on how the intervals of the accuracies decide them."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from clutrr_jax.experiment import Measurements
from clutrr_jax.report.results import verdicts
from experiments import claims
from experiments.published.clutrr import WORKSHOP_TABLE_1
from tests.experiments.test_claims import exact, widened

NOISE_KEYS = [*product(claims.NOISE, claims.NOISE, ("gat", "rn", "bert_lstm"))]
FIGURE_KEYS = [*product(claims.TRAINS, claims.LENGTHS, ("gat", "rn", "bert_lstm"))]
ALL = {
    "figure 5": (claims.FIGURE_5, FIGURE_KEYS),
    "figure 6": (claims.FIGURE_6, FIGURE_KEYS),
    "figure 7": (
        claims.FIGURE_7,
        [*product(("gat", "rn"), claims.LENGTHS, ("fixed", "redrawn", "learned"))],
    ),
    "table 2": (claims.TABLE_2, NOISE_KEYS),
    "table 4": (claims.TABLE_4, NOISE_KEYS),
    "workshop": (claims.WORKSHOP_TABLE_1, list(WORKSHOP_TABLE_1)),
}
# True of accuracies that are all equal; the others need a difference.
EQUAL = (
    "the GAT is near-perfect", "with the same paraphrases", "the policy makes practically",
    "trained on clean stories, models with BERT", "trained on clean stories, the GAT does not drop",
    "without paraphrases some text models come close", "no graph network",
)  # fmt: skip


def by_statement(stated, table: Measurements) -> dict[str, str]:
    return {
        statement: word
        for of_question in verdicts(stated, table).values()
        for word, statements in of_question.items()
        for statement in statements
    }


@pytest.mark.parametrize("name", ALL)
def test_a_tie_supports_claims_with_a_margin_if_intervals_are_narrow(name: str) -> None:
    stated, keys = ALL[name]
    wide, narrow = (
        by_statement(stated, dict.fromkeys(keys, replace(widened(exact(0.5), half), ceiling=0.5)))
        for half in (0.3, 0.01)
    )
    assert set(wide.values()) == {"undecided"}
    for statement, word in narrow.items():
        assert (word == "supported") == statement.startswith(EQUAL)
        assert (word == "not supported") == ("does poorly" in statement)


@pytest.mark.parametrize("name", ALL)
def test_intervals_decide_as_the_accuracies_or_not_at_all(name: str) -> None:
    """Random accuracies, with intervals of growing width."""
    stated, keys = ALL[name]
    rng = np.random.default_rng(0)
    for _ in range(10):
        table = {key: exact(rng.uniform(0.3, 0.7)) for key in keys}
        certain = by_statement(stated, table)
        assert "undecided" not in certain.values()
        open_before: set[str] = set()
        for half in (1e-9, 0.02, 0.1, 0.3):
            found = by_statement(stated, {k: widened(table[k], half) for k in reversed(keys)})
            still_open = {s for s, word in found.items() if word == "undecided"}
            assert all(found[s] == certain[s] for s in found.keys() - still_open)
            assert open_before <= still_open and (half > 1e-6 or not still_open)
            open_before = still_open


def test_a_claim_with_a_fault_or_without_its_cells_is_not_measured() -> None:
    stated = {
        "Q": {
            "missing": lambda t: claims.above(t, (1, 1, "rn"), (1, 1, "gat")),
            "faulty": lambda t: 1 / 0,
            "no evidence": lambda t: True,
        }
    }
    found = verdicts(stated, {(1, 1, "gat"): exact(0.5)})["Q"]
    missing, faulty, no_evidence = found.pop("not measured")
    assert missing == "missing" and faulty.startswith("faulty (fault: ")
    assert no_evidence.startswith("no evidence (fault: ") and not any(found.values())
