"""Leaderboard of the benchmark clutrr-v1: models of the registry, trained on its data set gen23.

    python launch.py --config=experiments/leaderboard.py --workdir=runs/leaderboard
    python -m clutrr_jax.report runs/leaderboard --add "my model=answers.jsonl"

The second command adds predictions of any other model. The stories are those that
`python -m generator --benchmark v1` writes: 10,000 train stories of k = 2, 3, and 1,000 test
stories of each k = 2..10. Each model has three replicas. The default models finish within two hours
on two cores; `--config.models=A,B`, with a `--workdir` of its own, trains others.
"""

from ml_collections import ConfigDict

from clutrr_jax.settings import default_settings, generate_settings
from generator.benchmark.release import CONFIGS

MODELS = (
    "prover,reader_prover,epignn,ncrl,ctp_attentive,gat,gcn,edge_gru,edge_lstm,edge_rnn,"
    "transformer_facts,rat"
)


def get_config():
    config = default_settings("leaderboard", MODELS)
    config.generate = ConfigDict(generate_settings(CONFIGS["gen23"]))
    config.train.replicas = 3
    return config
