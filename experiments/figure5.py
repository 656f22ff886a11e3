"""Systematic generalisation: figure 5 of Sinha et al. 2019.

Train on stories of clause length k = 2, 3 (left) or 2, 3, 4 (right), test on k = 2..10. What comes
out is the curve of accuracy against k: near 1 up to the length that was trained on, then falling,
and the graph model above the text models. The picture has no numbers to compare with; beside it
stand people (table 5, appendix 1.7) and CTP (Minervini et al. 2020).

    python launch.py --config=experiments/figure5.py --workdir=runs/figure5 \\
        --config.scale=laptop --config.data=path/to/releases

`--config.data` is the folder with data_089907f8.zip and data_db9b8f04.zip; without it the stories
are generated, 5,000 per k to train on and 100 per k to test on, for each replica its own. The
laptop scale took 16 minutes on two cores, and is estimated at twice that on generated stories.
"""

from experiments.grid import claims
from experiments.grid.definition import MODEL, Grid, Training, grid_config
from experiments.grid.published import CTP, HUMANS, MODELS_2019

TESTS = range(2, 11)
RELEASES = {"2,3": "data_089907f8", "2,3,4": "data_db9b8f04"}


def training(train: str, release: str = "") -> Training:
    """Train on these k, test on all."""
    return Training(
        name="k" + train.replace(",", ""),
        release=release,
        settings={"generate.train": ",".join(f"1.{k}" for k in train.split(","))},
        reads={(train, k, MODEL): (f"1.{k}",) for k in TESTS},
    )


def get_config():
    return grid_config(
        "figure5",
        Grid(
            heads=("train k", "k", "model"),
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
