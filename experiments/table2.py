"""Robustness: tables 2 and 3 of Sinha et al. 2019 (section 4.3, Q3, and appendix 1.4).

Trains on stories of k = 2, 3 with one kind of noise facts and tests on all kinds; accuracies are
over k = 2 and 3 together. Table 2 of the paper holds training on clean stories and the diagonal,
table 3 all training on noise. The averages are over the rows of each table.

    python launch.py --config=experiments/table2.py --workdir=runs/table2 \\
        --config.scale=laptop --config.data=path/to/releases

`--config.data` is the folder with data_7c5b0e70.zip and the other three data sets below; with
noise that they do not train on they test k = 3 only. Without it the stories are generated
for each replica.

Hardware: the laptop scale takes about three hours on one core, and about twice that on generated
stories (estimate from docs/robustness.md).

Expected result: the report compares each cell with the paper and judges the claims in
`experiments/claims.py`.
"""

from clutrr_jax.experiment import MODEL, Average, Experiment, Training, experiment_config
from experiments import claims
from experiments.published.clutrr import AVERAGES, MODELS_2019, NOISE, TABLE_2, TABLE_3, Robustness

# The data set of each kind of noise, in the order of NOISE.
RELEASES = ("data_7c5b0e70", "data_06b8f2a1", "data_523348e6", "data_d83ecc3e")
# The tasks of each kind of noise. Task 1 is clean, 2 supporting, and so on.
TASKS = {noise: (f"{t}.2", f"{t}.3") for t, noise in enumerate(NOISE, start=1)}


def training(train: str, release: str = "", language: str = "paraphrase") -> Training:
    """Returns the training on one kind of noise, with tests on all kinds."""
    return Training(
        name=train,
        release=release,
        settings={
            "generate.train": ",".join(TASKS[train]),
            "generate.test": ",".join(task for tasks in TASKS.values() for task in tasks),
            "generate.language": language,
        },
        tests_by_cell={(train, test, MODEL): tasks for test, tasks in TASKS.items()},
    )


def average(name: str, table: Robustness) -> dict[tuple[str, str], Average]:
    """Returns the last row of a table of the paper: the mean over its other rows."""
    cells = dict.fromkeys((train, test) for train, test, _ in table)
    return {("average", name): Average(tuple(cells), AVERAGES[name])}


def get_config():
    return experiment_config(
        "table2",
        Experiment(
            column_names=("train", "test", "model"),
            trainings=tuple(map(training, NOISE, RELEASES)),
            models=MODELS_2019,
            laptop={"gat": 10, "bilstm_attention": 2},
            published=TABLE_2 | TABLE_3,
            averages=average("table 2", TABLE_2) | average("table 3", TABLE_3),
            claims=claims.TABLE_2,
        ),
    )
