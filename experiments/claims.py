"""Claims of the papers about their tables and figures, as predicates over the measured table.

Each claim is a statement, as the report prints it, and a function of the table; a comment defines
it in numbers where the statement leaves that open. The keys of a table are those of its experiment.
A function raises KeyError if a cell that it needs was not measured; "all text models" means all
that were measured.
"""

from collections.abc import Iterable
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np

from clutrr_jax.data.batching import GRAPHS
from clutrr_jax.evaluation.metrics import Measured
from clutrr_jax.experiment import Claims, Measurements
from clutrr_jax.models import MODELS
from experiments.published.clutrr import MODELS_2018, NOISE

NOISY = NOISE[1:]
TRAINS = {"2,3": 3, "2,3,4": 4}  # k in training -> the longest
LENGTHS, LENGTHS_2018 = range(2, 11), range(3, 7)
LONG = range(5, 11)  # longer than all clauses in training


def mean(table: Measurements, *parts: Any) -> float:
    """Mean accuracy over all combinations of the parts of a key, each one value or several."""
    choices = (part if isinstance(part, tuple | range) else (part,) for part in parts)
    return float(
        np.mean([table[panel, x, series].accuracy for panel, x, series in product(*choices)])
    )


def above(a: Measured, b: Measured) -> bool:
    """Returns whether the interval of `a` lies above that of `b`."""
    return a.low > b.high


def measured_models(table: Measurements, part: int = 2) -> list[str]:
    """Returns the measured models, at least one; `part` is their position in the keys."""
    return _at_least_one(dict.fromkeys(key[part] for key in table))


def text_models(table: Measurements, part: int = 2) -> list[str]:
    """Returns the measured text models, at least one."""
    models = measured_models(table, part)
    return _at_least_one(m for m in models if MODELS[m].kind not in GRAPHS)


def with_bert(table: Measurements, is_bert: bool) -> list[str]:
    """Returns the measured text models with or without BERT, at least one."""
    return _at_least_one(m for m in text_models(table) if ("bert" in m) == is_bert)


def _at_least_one(models: Iterable[str]) -> list[str]:
    found = list(models)
    if not found:
        raise KeyError("no such model was measured")
    return found


# Figure 5: keys (train k, k, model)


def falls(table: Measurements, train: str, model: str) -> bool:
    """From the longest k in training onwards: no accuracy lies above that of the previous k with
    disjoint intervals, and the last one lies below the first."""
    cells = [table[train, k, model] for k in LENGTHS if k >= TRAINS[train]]
    return above(cells[0], cells[-1]) and not any(above(b, a) for a, b in pairwise(cells))


def gain(table: Measurements, model: str) -> float:
    """Gain in mean accuracy at k = 5 to 10 by training on k = 2, 3, 4 instead of 2, 3."""
    return mean(table, "2,3,4", LONG, model) - mean(table, "2,3", LONG, model)


FIGURE_5: Claims = {
    "Q1, systematic generalisation": {
        # Within .05 of the ceiling, for both training sets.
        "the GAT is near-perfect on held-out clauses of k = 3": lambda t: all(
            t[train, 3, "gat"].accuracy >= t[train, 3, "gat"].ceiling - 0.05 for train in TRAINS
        ),
        # The intervals do not overlap, for both training sets and every text model.
        "the best text model is significantly below the GAT on k = 3": lambda t: all(
            above(t[train, 3, "gat"], t[train, 3, m]) for train in TRAINS for m in text_models(t)
        ),
        "the accuracy of all models falls monotonically as the clauses grow": lambda t: all(
            falls(t, train, m) for train in TRAINS for m in measured_models(t)
        ),
        "all models generalise better when trained on k = 2, 3, 4 rather than 2, 3": lambda t: all(
            gain(t, m) > 0 for m in measured_models(t)
        ),
        "the GAT gains most from training on k = 2, 3, 4": lambda t: all(
            gain(t, "gat") > gain(t, m) for m in text_models(t)
        ),
    },
    "Q2, the benefit of structure": {
        # Mean over k = 4 to 10 after training on k = 2, 3, and over 5 to 10 after 2, 3, 4.
        "the GAT generalises better than every text model": lambda t: all(
            mean(t, train, range(longest + 1, 11), "gat")
            > mean(t, train, range(longest + 1, 11), m)
            for train, longest in TRAINS.items()
            for m in text_models(t)
        ),
    },
}

# Figure 6: keys (train k, k, model)

FIGURE_6: Claims = {
    "Q2, the benefit of structure": {
        # Mean over k at most .10 below that of the GAT, for both training sets.
        "with the same paraphrases in training and tests all text models are competitive with the "
        "GAT": lambda t: all(
            mean(t, train, LENGTHS, m) >= mean(t, train, LENGTHS, "gat") - 0.10
            for train in TRAINS
            for m in text_models(t)
        ),
    },
}

# Figure 7: keys (model, k, entities)

FIGURE_7: Claims = {
    "Vectors of entities": {
        # Mean over k, above that of each other policy by at most .10.
        "fixed random vectors are slightly better than other policies for the BiLSTM": lambda t: (
            all(
                0 <= mean(t, m, LENGTHS, "fixed") - mean(t, m, LENGTHS, other) <= 0.10
                for m in text_models(t, part=0)
                for other in ("redrawn", "learned")
            )
        ),
        # Means over k within .05 of each other.
        "the policy makes practically no difference for the GAT": lambda t: bool(
            np.ptp([mean(t, "gat", LENGTHS, p) for p in ("fixed", "redrawn", "learned")]) <= 0.05
        ),
    },
}


# Tables 2, 3 and 4: keys (train, test, model)


def gat_wins(table: Measurements, pairs: Iterable[tuple[str, str]]) -> bool:
    """Returns whether the GAT beats each text model on more than half of the rows."""
    rows = list(pairs)
    return all(
        np.mean([table[*row, "gat"].accuracy > table[*row, model].accuracy for row in rows]) > 0.5
        for model in text_models(table)
    )


def improves(table: Measurements, model: str) -> bool:
    """Returns whether training on the noise of the test helps for all three kinds of noise.

    Accuracies are compared as fractions of the ceilings of their tests, which differ.
    """

    def fraction(train: str, test: str) -> float:
        cell = table[train, test, model]
        return cell.accuracy / cell.ceiling

    return all(fraction(n, n) > fraction("clean", n) for n in NOISY)


def gains(table: Measurements, models: Iterable[str]) -> list[bool]:
    """Returns for each model, trained on clean stories, and for supporting and for irrelevant facts
    whether it is better with them than without."""
    return [
        table["clean", noise, model].accuracy > table["clean", "clean", model].accuracy
        for model in models
        for noise in ("supporting", "irrelevant")
    ]


TABLE_2: Claims = {
    "Q3, robust reasoning": {
        # Training on clean stories, and training on the noise of the test.
        "the GAT outperforms the text models in most settings of table 2": lambda t: gat_wins(
            t, [*product(["clean"], NOISE), *zip(NOISY, NOISY, strict=True)]
        ),
        "trained on clean stories, all text models but BERT do better with supporting or "
        "irrelevant facts than without": lambda t: all(gains(t, with_bert(t, False))),
        "trained on clean stories, models with BERT do not gain from supporting or irrelevant "
        "facts": lambda t: not any(gains(t, with_bert(t, True))),
        # Below clean tests, with disjoint intervals.
        "trained on clean stories, the GAT does poorly with supporting facts": lambda t: above(
            t["clean", "clean", "gat"], t["clean", "supporting", "gat"]
        ),
        # The intervals overlap.
        "trained on clean stories, the GAT does not drop with disconnected facts": lambda t: (
            not above(t["clean", "clean", "gat"], t["clean", "disconnected", "gat"])
        ),
        # The GAT improves for all three kinds of noise, and no text model does.
        "only the GAT consistently improves by training on the noise of the test": lambda t: (
            improves(t, "gat") and not any(improves(t, m) for m in text_models(t))
        ),
        "trained on noise, the GAT outperforms the text models in most settings of table 3": (
            lambda t: gat_wins(t, product(NOISY, NOISE))
        ),
        # Mean over the four tests, compared between the three kinds of noise in training.
        "among the kinds of noise, the GAT learns most from irrelevant facts": lambda t: (
            max(NOISY, key=lambda train: mean(t, train, NOISE, "gat")) == "irrelevant"
        ),
        "trained on supporting facts, the GAT is worst on tests with irrelevant facts": lambda t: (
            min(NOISE, key=lambda test: t["supporting", test, "gat"].accuracy) == "irrelevant"
        ),
    },
}

TABLE_4: Claims = {
    "Q3, robust reasoning": {
        # The mean of the best of them over all rows is at most .05 below that of the GAT.
        "without paraphrases the text models come close to the GAT": lambda t: (
            max(mean(t, NOISY, NOISE, m) for m in text_models(t))
            >= mean(t, NOISY, NOISE, "gat") - 0.05
        ),
        # Some text model is above the GAT in at least two rows.
        "without paraphrases text models outperform the GAT in several settings": lambda t: (
            sum(
                any(t[*row, m].accuracy > t[*row, "gat"].accuracy for m in text_models(t))
                for row in product(NOISY, NOISE)
            )
            >= 2
        ),
    },
}


# Measurements 1 of 2018: keys (train k, k, model)


def gnns_win(table: Measurements, pairs: Iterable[tuple[int, int]]) -> bool:
    """Returns whether the mean over pairs of lengths is higher for each GNN than for the LSTM."""
    rows = list(pairs)
    lstm, *gnns = (np.mean([table[*row, m].accuracy for row in rows]) for m in MODELS_2018)
    return bool(min(gnns) > lstm)


WORKSHOP_TABLE_1: Claims = {
    "Combinatorial generalisation": {
        "no graph network is above the LSTM on the length that both were trained on": lambda t: all(
            t[k, k, "bilstm_2018"].accuracy >= t[k, k, m].accuracy
            for k in LENGTHS_2018
            for m in MODELS_2018
        ),
        # All pairs of different lengths in training and test.
        "the graph networks generalise across lengths better than the LSTM": lambda t: gnns_win(
            t, permutations(LENGTHS_2018, 2)
        ),
        "trained on 3 or 4 facts, the graph networks are better with 5 and 6 than the LSTM": (
            lambda t: gnns_win(t, product((3, 4), (5, 6)))
        ),
    },
}
