"""How many relation paths there are: table 2 of Sinha et al. 2018 (appendix A.2).

Unique paths in families of three generations and three children, by the number of people on them;
each counts twice with gender, as the one that the answer is about may be male or female.

    python launch.py --config=experiments/workshop_table2.py --workdir=runs/workshop_table2
"""

from ml_collections import ConfigDict

from experiments.grid.definition import Counts
from experiments.grid.published import WORKSHOP_TABLE_2
from generator.workshop.paths import count_paths


def rows() -> list[tuple[str, float, float]]:
    found: list[tuple[str, float, float]] = []
    for people, (paths, gendered) in WORKSHOP_TABLE_2.items():
        count = count_paths(3, 3, people)
        found += [
            (f"{people} people, unique paths", count, paths),
            (f"{people} people, with gender", 2 * count, gendered),
        ]
    return found


def get_config():
    return ConfigDict({"name": "workshop_table2", "counts": Counts(rows)})
