"""Entity embeddings: figure 7 of Sinha et al. 2019 (appendix 1.5).

As figure 5 for k = 2, 3, with three policies for the vectors of entities: fixed random vectors,
random vectors resampled in each epoch, and learned vectors.

    python launch.py --config=experiments/figure7.py --workdir=runs/figure7 \\
        --config.scale=laptop --config.data=path/to/releases

Hardware: the laptop scale takes about two and a half hours on one core.

Expected result: for the GAT at most two points between policies (docs/results.md). The paper prints
only two plots and does not say which data they show.
"""

from clutrr_jax.experiment import MODEL, Experiment, Training, experiment_config
from clutrr_jax.settings import ENTITY_POLICIES
from experiments import claims
from experiments.figure5 import RELEASES, TESTS


def training(policy: str) -> Training:
    """Returns the training with the given policy, with tests on all k."""
    return Training(
        name=policy,
        release=RELEASES["2,3"],
        settings={"train.entities": policy},
        tests_by_cell={(MODEL, k, policy): (f"1.{k}",) for k in TESTS},
    )


def get_config():
    return experiment_config(
        "figure7",
        Experiment(
            column_names=("model", "k", "entities"),
            trainings=tuple(map(training, ENTITY_POLICIES)),
            models=("gat", "bilstm_mean", "bilstm_attention"),
            laptop={"gat": 10, "bilstm_attention": 2},
            claims=claims.FIGURE_7,
        ),
    )
