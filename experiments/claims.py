"""Claims of the papers about their tables and figures, as functions of the measured table.

Each claim is a statement, as the report prints it, and a function that returns the evidence on it
(`clutrr_jax.evaluation.claims`); a comment defines it in numbers where the statement leaves that
open. Claims that something does not differ, drop or rise allow a difference of `MARGIN`: without
one, no measurement could support them. The keys of a table are those of its experiment. A function
raises KeyError if a cell that it needs was not measured; "all text models" means all that were
measured.
"""

from collections.abc import Iterable
from itertools import pairwise, permutations, product
from typing import Any

from clutrr_jax.data.batching import GRAPHS
from clutrr_jax.evaluation.claims import (
    Estimate,
    Evidence,
    all_of,
    any_of,
    at_least,
    estimate,
    mean_estimate,
)
from clutrr_jax.experiment import Claims, Measurements
from clutrr_jax.models import MODELS
from experiments.published.clutrr import MODELS_2018, NOISE

NOISY = NOISE[1:]
TRAINS = {"2,3": 3, "2,3,4": 4}  # k in training -> the longest
LENGTHS, LENGTHS_2018 = range(2, 11), range(3, 7)
LONG = range(5, 11)  # longer than all clauses in training
MARGIN = 0.05  # largest difference that does not count
SLIGHT = 0.10  # largest difference that counts as slight


def mean(table: Measurements, *parts: Any) -> Estimate:
    """Mean accuracy over all combinations of the parts of a key, each one value or several."""
    choices = (part if isinstance(part, tuple | range) else (part,) for part in parts)
    return mean_estimate(
        estimate(table[panel, x, series]) for panel, x, series in product(*choices)
    )


def above(table: Measurements, a: tuple[Any, ...], b: tuple[Any, ...], by: float = 0) -> Evidence:
    """Evidence that the mean accuracy `a` exceeds `b` by more than `by`, given as for `mean`."""
    return (mean(table, *a) - mean(table, *b)).exceeds(by)


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


def falls(table: Measurements, train: str, model: str) -> Evidence:
    """Evidence on a fall of the accuracy from the longest k in training onwards: the last one is
    below the first, and none is more than .05 above that of the previous k."""
    cells = [(train, k, model) for k in LENGTHS if k >= TRAINS[train]]
    rises = (above(table, b, a, MARGIN) for a, b in pairwise(cells))
    return all_of([above(table, cells[0], cells[-1]), *(~rise for rise in rises)])


def gain(table: Measurements, model: str) -> Estimate:
    """Gain in mean accuracy at k = 5 to 10 by training on k = 2, 3, 4 instead of 2, 3."""
    return mean(table, "2,3,4", LONG, model) - mean(table, "2,3", LONG, model)


FIGURE_5: Claims = {
    "Q1, systematic generalisation": {
        "the GAT is near-perfect on held-out clauses of k = 3": lambda t: all_of(
            mean(t, train, 3, "gat").exceeds(1 - MARGIN) for train in TRAINS
        ),
        "the best text model is significantly below the GAT on k = 3": lambda t: all_of(
            above(t, (train, 3, "gat"), (train, 3, m)) for train in TRAINS for m in text_models(t)
        ),
        "the accuracy of all models falls monotonically as the clauses grow": lambda t: all_of(
            falls(t, train, m) for train in TRAINS for m in measured_models(t)
        ),
        # Mean over k = 5 to 10, for every model.
        "all models generalise better when trained on k = 2, 3, 4 rather than 2, 3": lambda t: (
            all_of(gain(t, m).exceeds(0) for m in measured_models(t))
        ),
        "the GAT gains most from training on k = 2, 3, 4": lambda t: all_of(
            (gain(t, "gat") - gain(t, m)).exceeds(0) for m in text_models(t)
        ),
    },
    "Q2, the benefit of structure": {
        # Mean over k = 4 to 10 after training on k = 2, 3, and over 5 to 10 after 2, 3, 4.
        "the GAT generalises better than every text model": lambda t: all_of(
            above(t, (train, longer, "gat"), (train, longer, m))
            for train, longest in TRAINS.items()
            for longer in [range(longest + 1, 11)]
            for m in text_models(t)
        ),
    },
}

# Figure 6: keys (train k, k, model)

FIGURE_6: Claims = {
    "Q2, the benefit of structure": {
        # Mean over k = 2 to 10 at most .10 below that of the GAT, for both training sets and every
        # text model.
        "with the same paraphrases in training and tests all text models are competitive with the "
        "GAT": lambda t: all_of(
            ~above(t, (train, LENGTHS, "gat"), (train, LENGTHS, m), SLIGHT)
            for train in TRAINS
            for m in text_models(t)
        ),
    },
}

# Figure 7: keys (model, k, entities)


def slightly_above(table: Measurements, a: tuple[Any, ...], b: tuple[Any, ...]) -> Evidence:
    """Evidence that the mean accuracy `a` is above `b`, but by at most .10."""
    return all_of([above(table, a, b), ~above(table, a, b, SLIGHT)])


FIGURE_7: Claims = {
    "Vectors of entities": {
        "fixed random vectors are slightly better than other policies for the BiLSTM": lambda t: (
            all_of(
                slightly_above(t, (m, LENGTHS, "fixed"), (m, LENGTHS, other))
                for m in text_models(t, part=0)
                for other in ("redrawn", "learned")
            )
        ),
        "the policy makes practically no difference for the GAT": lambda t: all_of(
            ~above(t, ("gat", LENGTHS, a), ("gat", LENGTHS, b), MARGIN)
            for a, b in permutations(("fixed", "redrawn", "learned"), 2)
        ),
    },
}


# Tables 2, 3 and 4: keys (train, test, model)


def gat_wins(table: Measurements, pairs: Iterable[tuple[str, str]]) -> Evidence:
    """Evidence that the GAT is above each text model on more than half of the rows."""
    rows = list(pairs)
    return all_of(
        at_least(len(rows) // 2 + 1, (above(table, (*r, "gat"), (*r, model)) for r in rows))
        for model in text_models(table)
    )


def improves(table: Measurements, model: str, by: float) -> Evidence:
    """Evidence that training on the noise of the test instead of clean stories helps by more than
    `by` for all three kinds of noise."""
    return all_of(above(table, (n, n, model), ("clean", n, model), by) for n in NOISY)


def gains(table: Measurements, models: Iterable[str], by: float) -> list[Evidence]:
    """Evidence for each model, trained on clean stories, and for supporting and for irrelevant
    facts that it is better by more than `by` with them than without."""
    return [
        above(table, ("clean", noise, model), ("clean", "clean", model), by)
        for model in models
        for noise in ("supporting", "irrelevant")
    ]


TABLE_2: Claims = {
    "Q3, robust reasoning": {
        # GAT > m in at least 4 of 7 rows, for every text model m: training on clean stories, and
        # training on the noise of the test.
        "the GAT outperforms the text models in most settings of table 2": lambda t: gat_wins(
            t, [*product(["clean"], NOISE), *zip(NOISY, NOISY, strict=True)]
        ),
        "trained on clean stories, all text models but BERT do better with supporting or "
        "irrelevant facts than without": lambda t: all_of(gains(t, with_bert(t, False), by=0)),
        "trained on clean stories, models with BERT do not gain from supporting or irrelevant "
        "facts": lambda t: all_of(~gain for gain in gains(t, with_bert(t, True), by=MARGIN)),
        "trained on clean stories, the GAT does poorly with supporting facts": lambda t: above(
            t, ("clean", "clean", "gat"), ("clean", "supporting", "gat"), SLIGHT
        ),
        "trained on clean stories, the GAT does not drop with disconnected facts": lambda t: (
            ~above(t, ("clean", "clean", "gat"), ("clean", "disconnected", "gat"), MARGIN)
        ),
        # The GAT is better for all three kinds of noise, and every text model at most .05 better
        # for one of them.
        "only the GAT consistently improves by training on the noise of the test": lambda t: all_of(
            [improves(t, "gat", 0), *(~improves(t, m, MARGIN) for m in text_models(t))]
        ),
        # GAT > m in at least 7 of 12 rows, for every text model m.
        "trained on noise, the GAT outperforms the text models in most settings of table 3": (
            lambda t: gat_wins(t, product(NOISY, NOISE))
        ),
        # Mean over the four tests, above those after training on the other kinds of noise.
        "among the kinds of noise, the GAT learns most from irrelevant facts": lambda t: all_of(
            above(t, ("irrelevant", NOISE, "gat"), (train, NOISE, "gat"))
            for train in NOISY
            if train != "irrelevant"
        ),
        "trained on supporting facts, the GAT is worst on tests with irrelevant facts": lambda t: (
            all_of(
                above(t, ("supporting", test, "gat"), ("supporting", "irrelevant", "gat"))
                for test in NOISE
                if test != "irrelevant"
            )
        ),
    },
}

TABLE_4: Claims = {
    "Q3, robust reasoning": {
        # The mean of some of them over all 12 rows is at most .05 below that of the GAT.
        "without paraphrases some text models come close to the GAT": lambda t: any_of(
            ~above(t, (NOISY, NOISE, "gat"), (NOISY, NOISE, m), MARGIN) for m in text_models(t)
        ),
        # m > GAT for some text model m in at least 2 of 12 rows.
        "without paraphrases text models outperform the GAT in several settings": lambda t: (
            at_least(
                2,
                (
                    any_of(above(t, (*row, m), (*row, "gat")) for m in text_models(t))
                    for row in product(NOISY, NOISE)
                ),
            )
        ),
    },
}


# Measurements 1 of 2018: keys (train k, k, model)


def gnns_win(table: Measurements, pairs: Iterable[tuple[int, int]]) -> Evidence:
    """Evidence that the mean over pairs of lengths is higher for each GNN than for the LSTM."""
    rows = list(pairs)
    lstm, *gnns = (mean_estimate(mean(table, *row, m) for row in rows) for m in MODELS_2018)
    return all_of((gnn - lstm).exceeds(0) for gnn in gnns)


WORKSHOP_TABLE_1: Claims = {
    "Combinatorial generalisation": {
        "no graph network is above the LSTM on the length that both were trained on": lambda t: (
            all_of(
                ~above(t, (k, k, gnn), (k, k, MODELS_2018[0]), MARGIN)
                for k in LENGTHS_2018
                for gnn in MODELS_2018[1:]
            )
        ),
        # Mean over the 12 pairs of different lengths in training and test, for both GNNs.
        "the graph networks generalise across lengths better than the LSTM": lambda t: gnns_win(
            t, permutations(LENGTHS_2018, 2)
        ),
        "trained on 3 or 4 facts, the graph networks are better with 5 and 6 than the LSTM": (
            lambda t: gnns_win(t, product((3, 4), (5, 6)))
        ),
    },
}

# Why a claim can fail here, by statement: shown next to the verdict "not supported".
REASONS = {
    "with the same paraphrases in training and tests all text models are competitive with the "
    "GAT": ("reading known paraphrases is a part of what they lack, composing the facts another"),
    "fixed random vectors are slightly better than other policies for the BiLSTM": (
        "the policies differ by less than replicas of one policy"
    ),
    "trained on clean stories, the GAT does poorly with supporting facts": (
        "it reads facts, in which a detour is a second path to the same answer"
    ),
    "only the GAT consistently improves by training on the noise of the test": (
        "stories with several answers are in the tests of the noisy releases and in none of the "
        "clean one, on which the GAT answers all"
    ),
    "without paraphrases some text models come close to the GAT": (
        "one replica of the BiLSTM, with a quarter of its steps, is below it on the mean"
    ),
    "without paraphrases text models outperform the GAT in several settings": (
        "the GAT answers nearly all stories of these tests"
    ),
}
