"""Systematic generalisation: figure 5 of Sinha et al. 2019.

Train on stories of clause length k = 2, 3 (left) or 2, 3, 4 (right), test on k = 2..10. What comes
out is the curve of accuracy against k: near 1 up to the length that was trained on, then falling,
and the graph model above the text models.

    python launch.py --config=experiments/figure5.py --workdir=runs/figure5 \\
        --config.data=path/to/data_089907f8.zip
    python launch.py --config=experiments/figure5.py --workdir=runs/figure5_right \\
        --config.data=path/to/data_db9b8f04.zip

Without `--config.data` the stories are generated: 5,000 per k to train on, 100 per k to test on.
How long it takes stands in the README, section "Results".
"""

from experiments.base import base


def get_config():
    return base("figure5", "gat,bilstm_mean,bilstm_attention")
