"""Robustness without paraphrases: table 4 of Sinha et al. 2019 (appendix 1.4).

Table 3 with one plain sentence for each fact, as in bAbI. What comes out is that the text models do
far better, and beat the GAT in places. No data were released: the stories are generated.

    python launch.py --config=experiments/table4.py --workdir=runs/table4 --config.scale=laptop

The laptop scale is estimated at 30 minutes on two cores.
"""

from experiments.grid import claims
from experiments.grid.definition import Grid, grid_config
from experiments.grid.published import MODELS_2019, NOISE, TABLE_4
from experiments.table2 import average, training


def get_config():
    return grid_config(
        "table4",
        Grid(
            heads=("train", "test", "model"),
            trainings=tuple(training(noise, language="synthetic") for noise in NOISE[1:]),
            models=MODELS_2019,
            laptop={"gat": (5, 40), "bilstm_attention": (2, 15)},
            published=TABLE_4,
            averages=average("table 4", TABLE_4),
            claims=claims.TABLE_4,
        ),
    )
