"""The registry of models: a new model is one file and one line here.

A model is a Flax NNX module `Model(config, sizes, rngs=...)`, where `model(batch)` gives the
relation logits, float32 [B, relations], of a batch of its kind (see `clutrr_jax.data.batches`).
One that attends may have `attention(batch)` (see `clutrr_jax.attention`), one that extracts a graph
`read(batch)` and `answer(batch, read)` (see `clutrr_jax.extraction`), one with a loss of its own
`loss(batch)`, that of each story, float32 [B].
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from clutrr_jax.data.batching import InputKind
from clutrr_jax.models import (
    bert,
    bilstm,
    edge_sequence,
    edge_transformer,
    epignn,
    gat,
    gcn,
    gnn_2018,
    lstm_last,
    mac,
    prover,
    reader_prover,
    relation_network,
    rmc,
)


class Spec(NamedTuple):
    """A model by name: its class, the kind of batch that it reads, its default settings, whether
    it reads the facts of a graph in the order in which the story states them, and classes that take
    its parameters and are tested too, by name."""

    model: Callable[..., Any]
    kind: InputKind
    config: dict[str, Any]
    ordered: bool = False
    variants: Mapping[str, Callable[..., Any]] = {}


MODELS: dict[str, Spec] = {
    "gat": Spec(gat.GAT, "graph", gat.CONFIG),
    "gcn": Spec(gcn.GCN, "graph", gcn.CONFIG),
    "rgcn": Spec(gcn.RGCN, "graph", gcn.RELATIONAL_CONFIG),
    "edge_rnn": Spec(edge_sequence.EdgeRNN, "graph", edge_sequence.CONFIG, ordered=True),
    "edge_lstm": Spec(edge_sequence.EdgeLSTM, "graph", edge_sequence.CONFIG, ordered=True),
    "edge_gru": Spec(edge_sequence.EdgeGRU, "graph", edge_sequence.CONFIG, ordered=True),
    "edge_cnn": Spec(edge_sequence.EdgeCNN, "graph", edge_sequence.CNN_CONFIG, ordered=True),
    "edge_attention": Spec(
        edge_sequence.EdgeAttention, "graph", edge_sequence.ATTENTION_CONFIG, ordered=True
    ),
    "edge_transformer": Spec(edge_transformer.EdgeTransformer, "pairs", edge_transformer.CONFIG),
    "epignn": Spec(epignn.EpiGNN, "graph", epignn.CONFIG),
    "prover": Spec(prover.Prover, "graph", prover.CONFIG),
    "bilstm_mean": Spec(bilstm.BiLSTMModel, "tokens", bilstm.CONFIG | {"pooling": "mean"}),
    "bilstm_attention": Spec(
        bilstm.BiLSTMAttention, "tokens", bilstm.CONFIG | {"pooling": "attention"}
    ),
    "bilstm_last": Spec(lstm_last.BiLSTMLast, "tokens", lstm_last.CONFIG),
    "bilstm_2018": Spec(lstm_last.BiLSTMLast, "tokens", lstm_last.CONFIG_2018),
    "rn": Spec(relation_network.RelationNetwork, "tokens", relation_network.CONFIG),
    "mac": Spec(mac.MAC, "tokens", mac.CONFIG),
    "rmc": Spec(rmc.RMC, "tokens", rmc.CONFIG),
    "gnn_2018_mean": Spec(gnn_2018.GNN2018, "tokens", gnn_2018.CONFIG),
    "gnn_2018_attention": Spec(gnn_2018.GNN2018, "tokens", gnn_2018.ATTENTION_CONFIG),
    "reader_prover": Spec(
        reader_prover.ReaderProver, "tokens", reader_prover.CONFIG, variants=reader_prover.VARIANTS
    ),
    "reader_prover_bert": Spec(
        reader_prover.ReaderProver,
        "states",
        reader_prover.BERT_CONFIG,
        variants=reader_prover.VARIANTS,
    ),
    "bert": Spec(bert.Bert, "states", bert.CONFIG),
    "bert_lstm": Spec(bert.BertLSTM, "states", bert.LSTM_CONFIG),
}
