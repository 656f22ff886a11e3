"""How the stories are worded: table 1 of Sinha et al. 2019 (section 3.3).

The statistics of this project's own paraphrases beside those of the paper's crowd.

    python launch.py --config=experiments/table1.py --workdir=runs/table1

Takes a few seconds. For other banks and data sets there is `python -m generator stats FILE...`.
"""

from ml_collections import ConfigDict

from experiments.grid.definition import Counts
from generator.paraphrases.bank import bank
from generator.paraphrases.statistics import PAPER, Statistics, statistics


def _numbers(found: Statistics) -> dict[str, float]:
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
    paper = _numbers(PAPER)
    return [(name, value, paper[name]) for name, value in _numbers(statistics(bank())).items()]


def get_config():
    return ConfigDict({"name": "table1", "counts": Counts(rows)})
