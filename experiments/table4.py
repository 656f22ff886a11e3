"""Robustness without paraphrases: table 4 of Sinha et al. 2019 (appendix 1.4).

As table 3, with one template sentence per fact, as in bAbI. No data were released; the stories are
generated.

    python launch.py --config=experiments/table4.py --workdir=runs/table4 --config.scale=laptop

Hardware: the laptop scale takes a little over three hours on one core.

Expected result: the text models are far better than in table 3; in the paper some are above the GAT
in some rows, here in none (docs/results.md).
"""

from clutrr_jax.experiment import Experiment, experiment_config
from experiments import claims
from experiments.published.clutrr import MODELS_2019, NOISE, TABLE_4
from experiments.table2 import average, training


def get_config():
    return experiment_config(
        "table4",
        Experiment(
            column_names=("train", "test", "model"),
            trainings=tuple(training(noise, language="synthetic") for noise in NOISE[1:]),
            models=MODELS_2019,
            laptop={"gat": 5, "bilstm_attention": 2},
            published=TABLE_4,
            averages=average("table 4", TABLE_4),
            claims=claims.TABLE_4,
        ),
    )
