"""Claims of the papers about their tables and figures, as predicates over the measured table.

The first paragraph of each docstring is the claim as the report prints it; the second defines it in
numbers. The keys of a table are those of its experiment. A claim about a cell that was not measured
raises NotMeasured; "all text models" means all that were measured.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

import numpy as np

from clutrr_jax.data.batching import GRAPHS
from clutrr_jax.models import MODELS
from experiments.grid.measured import Measured, NotMeasured, Table
from experiments.published.clutrr import NOISE

Claim = Callable[[Table], bool]
BERT = ("bert", "bert_lstm")
NOISY = NOISE[1:]
TRAINS = ("2,3", "2,3,4")
LENGTHS = range(2, 11)
LONGEST_TRAINED = {train: int(train[-1]) for train in TRAINS}


def _above(a: Measured, b: Measured) -> bool:
    """Returns whether the interval of `a` lies above that of `b`."""
    return a.low > b.high


def _at_least_one(models: Iterable[str]) -> list[str]:
    found = list(models)
    if not found:
        raise NotMeasured("no such model")
    return found


def _models(table: Table, part: int = 2) -> list[str]:
    """The measured models; `part` is their position in the keys."""
    return list(dict.fromkeys(key[part] for key in table))


def _text_models(table: Table, part: int = 2) -> list[str]:
    return _at_least_one(m for m in _models(table, part) if MODELS[m].kind not in GRAPHS)


def _mean(cells: Iterable[Measured]) -> float:
    return float(np.mean([cell.mean for cell in cells]))


# Figure 5: keys (train k, k, model)


def gat_near_perfect(table: Table) -> bool:
    """the GAT is near-perfect on held-out clauses of k = 3

    Within .05 of the ceiling, for both training sets.
    """
    cells = [table[train, 3, "gat"] for train in TRAINS]
    return all(cell.mean >= cell.ceiling - 0.05 for cell in cells)


def text_models_below_gat(table: Table) -> bool:
    """the best text model is significantly below the GAT on k = 3

    The intervals do not overlap, for both training sets and every text model.
    """
    return all(
        _above(table[train, 3, "gat"], table[train, 3, model])
        for train in TRAINS
        for model in _text_models(table)
    )


def monotonic(table: Table) -> bool:
    """the accuracy of all models falls monotonically as the clauses grow

    From the longest k in training onwards: no accuracy lies above that of the previous k with
    disjoint intervals, and the last one lies below the first.
    """
    for train in TRAINS:
        for model in _at_least_one(_models(table)):
            cells = [table[train, k, model] for k in LENGTHS if k >= LONGEST_TRAINED[train]]
            if any(_above(b, a) for a, b in pairwise(cells)) or not _above(cells[0], cells[-1]):
                return False
    return True


def _gain(table: Table, model: str) -> float:
    """Gain in mean accuracy at k = 5 to 10 by training on k = 2, 3, 4 instead of 2, 3."""
    short, long = (_mean(table[train, k, model] for k in LENGTHS if k > 4) for train in TRAINS)
    return long - short


def all_gain(table: Table) -> bool:
    """all models generalise better when trained on k = 2, 3, 4 rather than 2, 3

    Mean over k = 5 to 10.
    """
    return all(_gain(table, model) > 0 for model in _at_least_one(_models(table)))


def gat_gains_most(table: Table) -> bool:
    """the GAT gains most from training on k = 2, 3, 4

    Mean over k = 5 to 10.
    """
    return all(_gain(table, "gat") > _gain(table, model) for model in _text_models(table))


def gat_generalises_better(table: Table) -> bool:
    """the GAT generalises better than every text model

    Mean over k = 4 to 10 after training on k = 2, 3, and over 5 to 10 after 2, 3, 4.
    """

    def beyond(train: str, model: str) -> float:
        longer = [k for k in LENGTHS if k > LONGEST_TRAINED[train]]
        return _mean(table[train, k, model] for k in longer)

    return all(beyond(t, "gat") > beyond(t, model) for t in TRAINS for model in _text_models(table))


FIGURE_5 = {
    "Q1, systematic generalisation": (
        gat_near_perfect, text_models_below_gat, monotonic, all_gain, gat_gains_most,
    ),
    "Q2, the benefit of structure": (gat_generalises_better,),
}  # fmt: skip


# Figure 6: keys (train k, k, model)


def text_models_competitive(table: Table) -> bool:
    """with the same paraphrases in training and tests all text models are competitive with the GAT

    Mean over k at most .10 below that of the GAT, for both training sets.
    """

    def mean(train: str, model: str) -> float:
        return _mean(table[train, k, model] for k in LENGTHS)

    return all(mean(t, m) >= mean(t, "gat") - 0.10 for t in TRAINS for m in _text_models(table))


FIGURE_6 = {"Q2, the benefit of structure": (text_models_competitive,)}


# Figure 7: keys (model, k, entities)


def _policy(table: Table, model: str, policy: str) -> float:
    return _mean(table[model, k, policy] for k in LENGTHS)


def fixed_best_for_text_models(table: Table) -> bool:
    """fixed random vectors are slightly better than other policies for the BiLSTM

    Mean over k, above that of each other policy by at most .10.
    """
    return all(
        0 <= _policy(table, model, "fixed") - _policy(table, model, other) <= 0.10
        for model in _text_models(table, part=0)
        for other in ("redrawn", "learned")
    )


def no_difference_to_gat(table: Table) -> bool:
    """the policy makes practically no difference for the GAT

    Means over k within .05 of each other.
    """
    means = [_policy(table, "gat", policy) for policy in ("fixed", "redrawn", "learned")]
    return max(means) - min(means) <= 0.05


FIGURE_7 = {"Vectors of entities": (fixed_best_for_text_models, no_difference_to_gat)}


# Tables 2, 3 and 4: keys (train, test, model)


def _gat_wins(table: Table, pairs: list[tuple[str, str]]) -> bool:
    """Returns whether the GAT beats each text model on more than half of the pairs."""
    return all(
        np.mean([table[*pair, "gat"].mean > table[*pair, model].mean for pair in pairs]) > 0.5
        for model in _text_models(table)
    )


def gat_outperforms(table: Table) -> bool:
    """the GAT outperforms the text models in most settings of table 2

    Against each of them in more than half of the rows: training on clean stories, and training on
    the noise of the test.
    """
    return _gat_wins(table, [("clean", n) for n in NOISE] + [(n, n) for n in NOISY])


def noise_helps_text_models(table: Table) -> bool:
    """trained on clean stories, all text models but BERT do better with supporting or irrelevant
    facts than without

    Each model with both kinds of facts.
    """
    return all(
        table["clean", noise, model].mean > table["clean", "clean", model].mean
        for model in _at_least_one(m for m in _text_models(table) if m not in BERT)
        for noise in ("supporting", "irrelevant")
    )


def noise_does_not_help_bert(table: Table) -> bool:
    """trained on clean stories, models with BERT do not gain from supporting or irrelevant facts"""
    return all(
        table["clean", noise, model].mean <= table["clean", "clean", model].mean
        for model in _at_least_one(m for m in _text_models(table) if m in BERT)
        for noise in ("supporting", "irrelevant")
    )


def supporting_facts_hurt_gat(table: Table) -> bool:
    """trained on clean stories, the GAT does poorly with supporting facts

    Below clean tests, with disjoint intervals.
    """
    return _above(table["clean", "clean", "gat"], table["clean", "supporting", "gat"])


def disconnected_do_not_hurt_gat(table: Table) -> bool:
    """trained on clean stories, the GAT does not drop with disconnected facts

    The intervals overlap.
    """
    return not _above(table["clean", "clean", "gat"], table["clean", "disconnected", "gat"])


def only_gat_learns_from_noise(table: Table) -> bool:
    """only the GAT consistently improves by training on the noise of the test

    The GAT improves for all three kinds of noise, and no text model does.
    """

    def improves(model: str) -> bool:
        return all(
            table[noise, noise, model].mean > table["clean", noise, model].mean for noise in NOISY
        )

    return improves("gat") and not any(improves(model) for model in _text_models(table))


def gat_outperforms_after_noise(table: Table) -> bool:
    """trained on noise, the GAT outperforms the text models in most settings of table 3

    Against each of them in more than half of the rows.
    """
    return _gat_wins(table, [(train, test) for train in NOISY for test in NOISE])


def irrelevant_teaches_gat_most(table: Table) -> bool:
    """among the kinds of noise, the GAT learns most from irrelevant facts

    Mean over the four tests, compared between the three kinds of noise in training.
    """
    means = {t: _mean(table[t, test, "gat"] for test in NOISE) for t in NOISY}
    return max(means, key=means.__getitem__) == "irrelevant"


def supporting_spoils_irrelevant(table: Table) -> bool:
    """trained on supporting facts, the GAT is worst on tests with irrelevant facts"""
    means = {test: table["supporting", test, "gat"].mean for test in NOISE}
    return min(means, key=means.__getitem__) == "irrelevant"


TABLE_2 = {
    "Q3, robust reasoning": (
        gat_outperforms, noise_helps_text_models, noise_does_not_help_bert,
        supporting_facts_hurt_gat, disconnected_do_not_hurt_gat, only_gat_learns_from_noise,
        gat_outperforms_after_noise, irrelevant_teaches_gat_most, supporting_spoils_irrelevant,
    ),
}  # fmt: skip


def text_models_close_the_gap(table: Table) -> bool:
    """without paraphrases the text models come close to the GAT

    The mean of the best of them over all rows is at most .05 below that of the GAT.
    """
    pairs = [(train, test) for train in NOISY for test in NOISE]
    gat = _mean(table[*pair, "gat"] for pair in pairs)
    return (
        max(_mean(table[*p, model] for p in pairs) for model in _text_models(table)) >= gat - 0.05
    )


def text_models_beat_gat_in_places(table: Table) -> bool:
    """without paraphrases text models outperform the GAT in several settings

    Some text model is above the GAT in at least two rows.
    """
    wins = [
        any(
            table[train, test, m].mean > table[train, test, "gat"].mean for m in _text_models(table)
        )
        for train in NOISY
        for test in NOISE
    ]
    return sum(wins) >= 2


TABLE_4 = {"Q3, robust reasoning": (text_models_close_the_gap, text_models_beat_gat_in_places)}


# Table 1 of 2018: keys (train k, k, model)

GNNS = ("gnn_2018_mean", "gnn_2018_attention")
LENGTHS_2018 = range(3, 7)


def lstm_best_where_trained(table: Table) -> bool:
    """no graph network is above the LSTM on the length that both were trained on"""
    return all(
        table[k, k, "bilstm_2018"].mean >= table[k, k, gnn].mean
        for k in LENGTHS_2018
        for gnn in GNNS
    )


def _elsewhere(table: Table, model: str, trains: Iterable[int], tests: Iterable[int]) -> float:
    return _mean(table[a, b, model] for a in trains for b in tests if a != b)


def gnn_generalises(table: Table) -> bool:
    """the graph networks generalise across lengths better than the LSTM

    Mean over all pairs of different lengths in training and test.
    """
    lstm, *gnns = (_elsewhere(table, m, LENGTHS_2018, LENGTHS_2018) for m in ("bilstm_2018", *GNNS))
    return min(gnns) > lstm


def gnn_composes(table: Table) -> bool:
    """trained on 3 or 4 facts, the graph networks are better with 5 and 6 than the LSTM

    Mean over the four pairs.
    """
    lstm, *gnns = (_elsewhere(table, m, (3, 4), (5, 6)) for m in ("bilstm_2018", *GNNS))
    return min(gnns) > lstm


WORKSHOP_TABLE_1 = {
    "Combinatorial generalisation": (lstm_best_where_trained, gnn_generalises, gnn_composes),
}


def statement(claim: Claim) -> str:
    """Returns the claim in words."""
    assert claim.__doc__
    return " ".join(claim.__doc__.split("\n\n")[0].split())


def verdicts(
    claims: Mapping[str, tuple[Claim, ...]], table: Table
) -> dict[str, dict[str, list[str]]]:
    """Returns question -> "supported", "not supported" or "not measured" -> claims in words."""
    found: dict[str, dict[str, list[str]]] = {}
    for question, of_question in claims.items():
        found[question] = {"supported": [], "not supported": [], "not measured": []}
        for claim in of_question:
            try:
                verdict = "supported" if claim(table) else "not supported"
            except NotMeasured:
                verdict = "not measured"
            found[question][verdict].append(statement(claim))
    return found
