"""Demo: a graph model, a structured baseline and a text model on generated stories.

    make demo

Trains on 2,000 stories each of k = 2, 3 and tests on 100 each of k = 2..10, in three to six minutes
on two cores. Expected result: the prover answers nearly all stories, the GAT falls from k = 5 on,
and the BiLSTM, which reads the text, is below both on short clauses. `experiments/figure5.py` is
the full comparison.
"""

from clutrr_jax.settings import default_settings


def get_config():
    config = default_settings("demo", "gat,prover,bilstm_attention")
    config.generate.train_rows = 2_000
    config.train.replicas = 2
    config.gat.train.epochs = 20
    config.prover.share_genders = True
    config.prover.train.epochs = 8
    config.bilstm_attention.train.replicas = 1
    config.bilstm_attention.train.epochs = 5
    return config
