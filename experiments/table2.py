"""Robustness: tables 2 and 3 of Sinha et al. 2019 (section 4.3, Q3, and appendix 1.4).

Train on stories of k = 2, 3 with one kind of noise facts, test on all kinds; figures are of k = 2
and 3 together. Table 2 of the paper has training on clean stories and the diagonal, table 3 all
training on noise; the averages are over the rows of each.

    python launch.py --config=experiments/table2.py --workdir=runs/table2 \\
        --config.scale=laptop --config.data=path/to/releases

`--config.data` is the folder with data_7c5b0e70.zip and the other three; they test a kind of noise
that they were not trained on at k = 3 only. Without it the stories are generated, for each replica
its own. The laptop scale took 14 minutes on two cores, and is estimated at twice that on
generated stories.
"""

from experiments.grid import claims
from experiments.grid.definition import MODEL, Average, Grid, Training, grid_config
from experiments.grid.published import AVERAGES, MODELS_2019, NOISE, TABLE_2, TABLE_3, Robustness

RELEASES = ("data_7c5b0e70", "data_06b8f2a1", "data_523348e6", "data_d83ecc3e")
# The tasks of each kind of noise, which are numbered from 1 in this order.
TASKS = {noise: (f"{t}.2", f"{t}.3") for t, noise in enumerate(NOISE, start=1)}


def training(train: str, release: str = "", language: str = "paraphrase") -> Training:
    """Train on one kind of noise, test on all."""
    return Training(
        name=train,
        release=release,
        settings={
            "generate.train": ",".join(TASKS[train]),
            "generate.test": ",".join(task for tasks in TASKS.values() for task in tasks),
            "generate.language": language,
        },
        reads={(train, test, MODEL): tasks for test, tasks in TASKS.items()},
    )


def average(name: str, table: Robustness) -> dict[tuple[str, str], Average]:
    """The last row of the paper's table of this name: the mean over the others."""
    rows = dict.fromkeys((train, test) for train, test, _ in table)
    return {("average", name): Average(tuple(rows), AVERAGES[name])}


def get_config():
    return grid_config(
        "table2",
        Grid(
            heads=("train", "test", "model"),
            trainings=tuple(map(training, NOISE, RELEASES)),
            models=MODELS_2019,
            laptop={"gat": (10, 20), "bilstm_attention": (2, 6)},
            published=TABLE_2 | TABLE_3,
            averages=average("table 2", TABLE_2) | average("table 3", TABLE_3),
            claims=claims.TABLE_2,
        ),
    )
