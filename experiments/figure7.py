"""How people are told apart: figure 7 of Sinha et al. 2019 (appendix 1.5).

Figure 5 with the three policies for the vectors of entities: fixed random ones, random ones drawn
anew in each epoch, learned ones. What comes out is that it matters little, and not at all to the
GAT. The picture has no numbers to compare with.

    python launch.py --config=experiments/figure7.py --workdir=runs/figure7 \\
        --config.scale=laptop --config.data=path/to/releases

The paper shows two pictures and does not say for what data; here it is k = 2, 3. The laptop scale
is estimated at 20 minutes on two cores, and twice that on generated stories.
"""

from clutrr_jax.training.steps import ENTITY_POLICIES
from experiments.figure5 import RELEASES, TESTS
from experiments.grid import claims
from experiments.grid.definition import MODEL, Grid, Training, grid_config


def get_config():
    trainings = tuple(
        Training(
            name=policy,
            release=RELEASES["2,3"],
            settings={"train.entities": policy},
            reads={(MODEL, k, policy): (f"1.{k}",) for k in TESTS},
        )
        for policy in ENTITY_POLICIES
    )
    return grid_config(
        "figure7",
        Grid(
            heads=("model", "k", "entities"),
            trainings=trainings,
            models=("gat", "bilstm_mean", "bilstm_attention"),
            laptop={"gat": (10, 40), "bilstm_attention": (2, 25)},
            claims=claims.FIGURE_7,
        ),
    )
