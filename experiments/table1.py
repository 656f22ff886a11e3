"""Paraphrase statistics: table 1 of Sinha et al. 2019 (section 3.3).

Compares the paraphrases of this project with the crowdsourced ones of the paper.

    python launch.py --config=experiments/table1.py --workdir=runs/table1

Takes a few seconds. For other banks and data sets, use `python -m generator stats FILE...`.
"""

from ml_collections import ConfigDict

from generator.paraphrases.bank import bank
from generator.paraphrases.statistics import PAPER, statistics


def rows() -> list[tuple[str, float, float]]:
    """Returns (name, measured, published) for each row of the table."""
    return [(name, value, PAPER[name]) for name, value in statistics(bank()).items()]


def get_config():
    return ConfigDict({"name": "table1", "counts": rows})
