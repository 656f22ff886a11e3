"""Differences between a model of this project and the published one of the same name.

All models of this project are trained with Adam, average their parameters over the steps, stop once
the dev loss no longer improves, and are tested at the last epoch. The papers name another rule for
choosing the epoch, or none.
"""

_SEQUENCE = "padding is ignored, and the readout has two layers"
_CTP = (
    "six rules for a goal instead of three, proofs of any depth instead of 4, a penalty on logits, "
    "Adam instead of Adagrad"
)
OF_MODEL = {
    "gat": "messages along the facts only, ten heads instead of three, dropout .5 instead of .6",
    "gcn": "messages along the facts only; the settings of the published one are not known",
    "edge_lstm": _SEQUENCE,
    "edge_gru": _SEQUENCE,
    "edge_rnn": _SEQUENCE,
    "epignn": "all people between the query pair instead of those on one shortest path, "
    "cross-entropy instead of a margin, a wider range of initial values, logits x 1.2 in tests",
    "ncrl": "embeddings of 128; the published code has no settings for CLUTRR",
    "ctp_linear": _CTP,
    "ctp_attentive": _CTP,
    "ctp_memory": _CTP,
}
