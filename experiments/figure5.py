"""Systematic generalisation: figure 5 of Sinha et al. 2019.

Trains on stories of clause length k = 2, 3 (left) or 2, 3, 4 (right), tests on k = 2..10.

    python launch.py --config=experiments/figure5.py --workdir=runs/figure5 \\
        --config.scale=laptop --config.data=path/to/releases

`--config.data` is the folder with data_089907f8.zip and data_db9b8f04.zip. Without it the stories
are generated for each replica: 5,000 train and 100 test stories per k.

Hardware: the laptop scale takes 16 minutes on two cores, and about twice that on generated stories.

Expected result: accuracy near 1 up to the longest k in training, then falling; the GAT is above the
text models. The paper prints only a plot. For comparison the report shows people
(table 5, appendix 1.7) and CTP (Minervini et al. 2020).
"""

from experiments.grid import claims
from experiments.grid.definition import MODEL, Grid, Training, grid_config
from experiments.grid.published import CTP, HUMANS, MODELS_2019

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


def get_config():
    return grid_config(
        "figure5",
        Grid(
            column_names=("train k", "k", "model"),
            trainings=tuple(training(*item) for item in RELEASES.items()),
            models=MODELS_2019,
            laptop={"gat": (10, 20), "bilstm_attention": (2, 6), "bilstm_mean": (2, 6)},
            references={
                **{(train, "people, limited time"): HUMANS for train in RELEASES},
                **{(train, "CTP"): CTP[release] for train, release in RELEASES.items()},
            },
            claims=claims.FIGURE_5,
        ),
    )
