"""Paraphrase statistics: table 1 of Sinha et al. 2019 (section 3.3).

Compares the paraphrases of this project with the crowdsourced ones of the paper.

    python launch.py --config=experiments/table1.py --workdir=runs/table1

Takes a few seconds. For other banks and data sets, use `python -m generator stats FILE...`.
"""

from ml_collections import ConfigDict

from experiments.grid.definition import Counts
from generator.paraphrases.bank import bank
from generator.paraphrases.statistics import PAPER, Statistics, statistics


def named_counts(found: Statistics) -> dict[str, float]:
    """Returns the statistics by row name."""
    lengths = range(1, len(found.paraphrases) + 1)
    return {
        **{f"paraphrases, k = {k}": found.paraphrases[k - 1] for k in lengths},
        "paraphrases, total": sum(found.paraphrases),
        **{f"clauses, k = {k}": found.clauses[k - 1] for k in lengths},
        "unique words": found.words,
        "Jaccard overlap, unigrams": found.unigrams,
        "Jaccard overlap, bigrams": found.bigrams,
    }


def rows() -> list[tuple[str, float, float]]:
    """Returns (name, measured, published) for each row of the table."""
    measured, published = named_counts(statistics(bank())), named_counts(PAPER)
    return [(name, value, published[name]) for name, value in measured.items()]


def get_config():
    return ConfigDict({"name": "table1", "counts": Counts(rows)})
