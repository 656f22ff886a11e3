"""The whole of it in a few minutes on two cores: fresh stories, a graph model beside a text model.

    make demo

Train on 5,000 fresh stories each of k = 2, 3, test on 200 each of k = 2..10. The GAT reads the
facts as a graph, the BiLSTM reads the story. One replica of the BiLSTM and few epochs, so that it
ends soon: the curve that counts is the one of `experiments/figure5.py`.
"""

from experiments.base import base


def get_config():
    config = base("demo", "gat,bilstm_attention")
    config.generate.test_rows = 200
    config.train.replicas = 3
    config.train.epochs = 80
    config.bilstm_attention.train.replicas = 1
    config.bilstm_attention.train.epochs = 8
    return config
