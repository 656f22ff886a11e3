"""Registry of models. A new model is a new file and one entry here.

A model is a Flax NNX module `Model(config, sizes, rngs=...)`. `model(batch)` returns relation
logits, float32 [B, relations], for a batch of its input kind (see `clutrr_jax.data.batching`).
Optional methods:

- `loss(batch)`: training loss of each story, float32 [B], instead of the cross-entropy
- `attention(batch)`: attention weights (`clutrr_jax.evaluation.attention`)
- `read(batch)`, `answer(batch, graph)`, `word_facts(batch)`: extracted graph, and the words that
  state its facts (`clutrr_jax.evaluation.extraction`)
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from clutrr_jax.data.batching import InputKind
from clutrr_jax.models import (
    bert,
    bilstm,
    ctp,
    edge_sequence,
    edge_transformer,
    epignn,
    gat,
    gcn,
    gnn_2018,
    mac,
    ncrl,
    prover,
    reader_prover,
    relation_network,
    rmc,
)


class Spec(NamedTuple):
    """Entry of the registry."""

    model: Callable[..., Any]  # its class
    kind: InputKind  # of the batches that the model reads
    config: dict[str, Any]  # default settings
    ordered: bool = False  # whether the order of the facts of a graph matters to the model
    # Classes by name that take the same parameters and are tested too.
    variants: Mapping[str, Callable[..., Any]] = {}

    @property
    def train(self) -> Mapping[str, Any]:
        """Train settings that the model has by default, where they are not the usual ones."""
        return self.config.get("train", {})


MODELS: dict[str, Spec] = {
    "gat": Spec(gat.GAT, "graph", gat.CONFIG),
    "gcn": Spec(gcn.GCN, "graph", gcn.CONFIG),
    "rgcn": Spec(gcn.RGCN, "graph", gcn.RELATIONAL_CONFIG),
    "edge_rnn": Spec(edge_sequence.EdgeRNN, "graph", edge_sequence.CONFIG, ordered=True),
    "edge_lstm": Spec(edge_sequence.EdgeLSTM, "graph", edge_sequence.CONFIG, ordered=True),
    "edge_gru": Spec(edge_sequence.EdgeGRU, "graph", edge_sequence.CONFIG, ordered=True),
    "edge_cnn": Spec(edge_sequence.EdgeCNN, "graph", edge_sequence.CONFIG, ordered=True),
    "edge_attention": Spec(
        edge_sequence.EdgeAttention, "graph", edge_sequence.ATTENTION_CONFIG, ordered=True
    ),
    "edge_transformer": Spec(edge_transformer.EdgeTransformer, "pairs", edge_transformer.CONFIG),
    "epignn": Spec(epignn.EpiGNN, "graph", epignn.CONFIG),
    "ctp_linear": Spec(ctp.CTP, "pairs", ctp.CONFIG | {"reformulator": "linear"}),
    "ctp_attentive": Spec(ctp.CTP, "pairs", ctp.CONFIG | {"reformulator": "attentive"}),
    "ctp_memory": Spec(ctp.CTP, "pairs", ctp.CONFIG | {"reformulator": "memory"}),
    "ncrl": Spec(ncrl.NCRL, "graph", ncrl.CONFIG),
    "prover": Spec(prover.Prover, "graph", prover.CONFIG),
    "bilstm_mean": Spec(bilstm.BiLSTMModel, "tokens", bilstm.CONFIG),
    "bilstm_attention": Spec(bilstm.BiLSTMAttention, "tokens", bilstm.CONFIG),
    "bilstm_last": Spec(bilstm.BiLSTMLast, "tokens", bilstm.CONFIG),
    "bilstm_2018": Spec(bilstm.BiLSTMLast, "tokens", bilstm.CONFIG_2018),
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
