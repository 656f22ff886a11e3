"""Any models on one data set, with any settings: one run.

    python launch.py --config=experiments/single.py --workdir=runs/gat --config.models=gat \\
        --config.data=path/to/data_089907f8.zip

Without `--config.data` the stories are generated as the paper's: k = 2, 3 with 5,000 stories each
to train on, k = 2..10 with 100 each to test on.
"""

from experiments.base import base


def get_config():
    return base("single", "gat,bilstm_mean,bilstm_attention")
