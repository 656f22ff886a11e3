"""Number of relation paths: table 2 of Sinha et al. 2018 (appendix A.2).

Counts the unique paths in families of three generations and three children, by the number of
people on the path. With gender, each path counts twice: once for a male and once for a female last
person.

    python launch.py --config=experiments/workshop_table2.py --workdir=runs/workshop_table2

Takes a few seconds. Expected result: the published numbers.
"""

from ml_collections import ConfigDict

from experiments.published.clutrr import WORKSHOP_TABLE_2
from generator.workshop.paths import count_paths


def rows() -> list[tuple[str, float, float]]:
    """Returns (name, measured, published) for each row of the table."""
    found: list[tuple[str, float, float]] = []
    for people, (paths, gendered) in WORKSHOP_TABLE_2.items():
        count = count_paths(3, 3, people)
        found += [
            (f"{people} people, unique paths", count, paths),
            (f"{people} people, with gender", 2 * count, gendered),
        ]
    return found


def get_config():
    return ConfigDict({"name": "workshop_table2", "counts": rows})
