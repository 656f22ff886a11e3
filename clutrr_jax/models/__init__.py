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
    nbfnet,
    ncrl,
    prover,
    reader,
    reader_prover,
    relation_network,
    rmc,
    set_prover,
)
from clutrr_jax.models.setting import Settings, defaults


class Spec(NamedTuple):
    """Entry of the registry."""

    model: Callable[..., Any]  # its class
    kind: InputKind  # of the batches that the model reads
    settings: Settings
    train: Mapping[str, Any] = {}  # default train settings, where they are not the usual ones
    entity_vectors: bool = True  # whether the model has vectors of people, see `train.entities`
    # Functions of the model and a batch to other logits, by name, which are tested too.
    variants: Mapping[str, Callable[[Any, Any], Any]] = {}

    @property
    def config(self) -> dict[str, Any]:
        """Default settings."""
        return defaults(self.settings)

    def has_effect(self, name: str) -> bool:
        """Returns whether a train setting has an effect on the model."""
        if name == "entities":
            return self.entity_vectors
        return name != "shuffle_sentences" or self.kind == "tokens"


def _ctp(model: Callable[..., Any], settings: Settings) -> Spec:
    return Spec(model, "pairs", settings, ctp.TRAIN, entity_vectors=False)


def _reader_prover(kind: InputKind, settings: Settings) -> Spec:
    return Spec(
        reader_prover.ReaderProver,
        kind,
        settings,
        reader_prover.TRAIN,
        entity_vectors=False,
        variants=reader_prover.VARIANTS,
    )


MODELS: dict[str, Spec] = {
    "gat": Spec(gat.GAT, "graph", gat.SETTINGS),
    "gcn": Spec(gcn.GCN, "graph", gcn.SETTINGS),
    "rgcn": Spec(gcn.RGCN, "graph", gcn.RELATIONAL_SETTINGS),
    "edge_rnn": Spec(edge_sequence.EdgeRNN, "graph", edge_sequence.SETTINGS),
    "edge_lstm": Spec(edge_sequence.EdgeLSTM, "graph", edge_sequence.SETTINGS),
    "edge_gru": Spec(edge_sequence.EdgeGRU, "graph", edge_sequence.SETTINGS),
    "edge_cnn": Spec(edge_sequence.EdgeCNN, "graph", edge_sequence.SETTINGS),
    "edge_attention": Spec(edge_sequence.EdgeAttention, "graph", edge_sequence.ATTENTION_SETTINGS),
    "edge_transformer": Spec(
        edge_transformer.EdgeTransformer,
        "pairs",
        edge_transformer.SETTINGS,
        edge_transformer.TRAIN,
        entity_vectors=False,
    ),
    "epignn": Spec(epignn.EpiGNN, "graph", epignn.SETTINGS, epignn.TRAIN, entity_vectors=False),
    "nbfnet": Spec(nbfnet.NBFNet, "graph", nbfnet.SETTINGS, nbfnet.TRAIN, entity_vectors=False),
    "ctp_linear": _ctp(ctp.CTP, ctp.SETTINGS),
    "ctp_attentive": _ctp(ctp.CTPAttentive, ctp.ATTENTIVE_SETTINGS),
    "ctp_memory": _ctp(ctp.CTPMemory, ctp.MEMORY_SETTINGS),
    "ncrl": Spec(ncrl.NCRL, "graph", ncrl.SETTINGS, ncrl.TRAIN, entity_vectors=False),
    "prover": Spec(prover.Prover, "graph", prover.SETTINGS, prover.TRAIN, entity_vectors=False),
    "set_prover": Spec(
        set_prover.SetProver, "graph", set_prover.SETTINGS, set_prover.TRAIN, entity_vectors=False
    ),
    "bilstm_mean": Spec(bilstm.BiLSTMModel, "tokens", bilstm.SETTINGS, reader.TRAIN),
    "bilstm_attention": Spec(bilstm.BiLSTMAttention, "tokens", bilstm.SETTINGS, reader.TRAIN),
    "bilstm_last": Spec(bilstm.BiLSTMLast, "tokens", bilstm.SETTINGS, reader.TRAIN),
    "bilstm_2018": Spec(bilstm.BiLSTMLast, "tokens", bilstm.SETTINGS_2018, reader.TRAIN),
    "rn": Spec(relation_network.RelationNetwork, "tokens", relation_network.SETTINGS, reader.TRAIN),
    "mac": Spec(mac.MAC, "tokens", mac.SETTINGS, reader.TRAIN),
    "rmc": Spec(rmc.RMC, "tokens", rmc.SETTINGS),
    "gnn_2018_mean": Spec(gnn_2018.GNN2018, "tokens", gnn_2018.SETTINGS),
    "gnn_2018_attention": Spec(gnn_2018.GNN2018Attention, "tokens", gnn_2018.SETTINGS),
    "reader_prover": _reader_prover("tokens", reader_prover.SETTINGS),
    "reader_prover_bert": _reader_prover("states", reader_prover.BERT_SETTINGS),
    "bert": Spec(bert.Bert, "states", bert.SETTINGS, entity_vectors=False),
    "bert_lstm": Spec(bert.BertLSTM, "states", bert.LSTM_SETTINGS),
}


def has_method(model: Any, name: str) -> bool:
    """Returns whether a model has an optional method. A layer of the same name is none."""
    return hasattr(type(model), name)
