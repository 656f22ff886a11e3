"""Systematic generalisation: figure 5 of Sinha et al. 2019.

Trains on stories of clause length k = 2, 3 (left) or 2, 3, 4 (right), tests on k = 2..10.

    python launch.py --config=experiments/figure5.py --workdir=runs/figure5 \\
        --config.scale=laptop --config.data=path/to/releases

`--config.data` is the folder with data_089907f8.zip and data_db9b8f04.zip. Without it the stories
are generated for each replica: 5,000 train and 100 test stories per k.

Hardware: the laptop scale on released data takes three hours on one core, 20 minutes of them
for the GAT.

Expected result: accuracy near 1 up to the longest k in training, then falling; the GAT is above the
text models. The paper prints only a plot. For comparison the report shows the comparable rows of
`experiments/published/ledger.py`: in the plot CTP; in the table and, if switched on, in the charts
of `report.html` all of them.
"""

from clutrr_jax.evaluation.published import Reference
from clutrr_jax.experiment import MODEL, Experiment, Training, experiment_config
from experiments import claims
from experiments.published.clutrr import MODELS_2019
from experiments.published.ledger import CTP, ROWS

TESTS = range(2, 11)
RELEASES = {"2,3": "data_089907f8", "2,3,4": "data_db9b8f04"}  # by k in training


def training(train: str, release: str = "") -> Training:
    """Returns the training on the given k, with tests on all k."""
    return Training(
        name="k" + train.replace(",", ""),
        release=release,
        settings={"generate.train": ",".join(f"1.{k}" for k in train.split(","))},
        tests_by_cell={(train, k, MODEL): (f"1.{k}",) for k in TESTS},
    )


def references() -> tuple[Reference, ...]:
    """Returns the comparable published rows that have accuracies by k, for each training."""
    return tuple(
        Reference(train, row, shown=row in CTP)
        for train, release in RELEASES.items()
        for row in ROWS
        if row.by_k and row.data.name == release and not row.differs
    )


def get_config():
    return experiment_config(
        "figure5",
        Experiment(
            column_names=("train k", "k", "model"),
            trainings=tuple(training(*item) for item in RELEASES.items()),
            models=MODELS_2019,
            laptop={"gat": 10, "bilstm_attention": 2, "bilstm_mean": 2},
            references=references(),
            claims=claims.FIGURE_5,
        ),
    )
