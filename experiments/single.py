"""A single run: any models on one data set, with any settings.

    python launch.py --config=experiments/single.py --workdir=runs/gat --config.models=gat \\
        --config.data=path/to/data_089907f8.zip

Without `--config.data` the stories are generated with the sizes of the paper: 5,000 train stories
each of k = 2, 3 and 100 test stories each of k = 2..10. The default models with ten replicas take
several hours on two cores.
"""

from clutrr_jax.settings import default_settings


def get_config():
    return default_settings("single", "gat,bilstm_mean,bilstm_attention")
