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
from typing import Any, Literal, NamedTuple

from clutrr_jax.data.arrays import StoryArrays, with_compositions
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
    transformer,
)
from clutrr_jax.models.setting import Settings, defaults

ChosenOn = Literal["", "paper", "generated", "released tests"]


class Spec(NamedTuple):
    """Entry of the registry."""

    model: Callable[..., Any]  # its class
    kind: InputKind  # of the batches that the model reads
    settings: Settings
    cites: tuple[str, ...] = ()  # keys of its papers in `clutrr_jax/report/references.bib`
    train: Mapping[str, Any] = {}  # default train settings, where they are not the usual ones
    encoder: bool = False  # whether its tokens are those of a pretrained encoder
    composes: bool = False  # whether it reads the compositions of pairs of people
    # What the model has, with some settings, besides the training stories and their answers.
    gives: Callable[[Mapping[str, Any]], list[str]] = lambda settings: []
    # Functions of the model and a batch to other logits, by name, which are tested too; and what
    # these have besides.
    variants: Mapping[str, tuple[Callable[[Any, Any], Any], str]] = {}
    chosen_on: ChosenOn = ""  # its default settings, see `ChosenOn`; empty: not known

    @property
    def config(self) -> dict[str, Any]:
        """Default settings."""
        return defaults(self.settings)

    def with_inputs(self, stories: StoryArrays) -> StoryArrays:
        """Returns the stories with all that the model reads."""
        return with_compositions(stories) if self.composes else stories

    def given(self, settings: Mapping[str, Any], variant: str = "", started: bool = False) -> str:
        """Column "given" of the tables: what the model, or a variant of it, has besides the
        training stories and their answers, joined by commas, or "nothing".

        Args:
          settings: of the model.
          started: whether its training began with the parameters of a trained model.
        """
        found = ["another training"] * started + ["pretrained encoder"] * self.encoder
        found += self.gives(settings)
        found += self.variants[variant][1].split(", ") if variant else []
        return ", ".join(dict.fromkeys(found)) or "nothing"


_MINERVINI, _LSTM = ("minervini2020learning",), ("hochreiter1997long",)
_OURS, _WORKSHOP, _BERT = ("clutrr_jax",), ("sinha2018compositional",), ("devlin2018bert",)
_TRANSFORMER = "vaswani2017attention", "dehghani2019universal"
_TESTS: ChosenOn = "released tests"


def _of_file(
    model: Callable[..., Any], file: Any, *, kind: InputKind = "graph", **fields: Any
) -> Spec:
    """Spec of a model with the settings and train settings of its file."""
    fields = {"settings": file.SETTINGS, "train": file.TRAIN, "chosen_on": _TESTS} | fields
    return Spec(model, kind, **fields)


def _edges(
    model: Callable[..., Any], *cites: str, settings: Settings = edge_sequence.SETTINGS
) -> Spec:
    return Spec(
        model, "graph", settings, (*_MINERVINI, *cites), gives=edge_sequence.gives,
        chosen_on="paper",
    )  # fmt: skip


def _ctp(model: Callable[..., Any], settings: Settings) -> Spec:
    return _of_file(
        model, ctp, kind="pairs", settings=settings, cites=_MINERVINI, gives=prover.gives
    )


def _text(model: Callable[..., Any], settings: Settings, *cites: str) -> Spec:
    return Spec(model, "tokens", settings, cites, reader.TRAIN, chosen_on=_TESTS)


def _reader_prover(**fields: Any) -> Spec:
    given = {"gives": reader_prover.gives, "variants": reader_prover.VARIANTS}
    return _of_file(reader_prover.ReaderProver, reader_prover, kind="tokens", **(given | fields))


MODELS: dict[str, Spec] = {
    "gat": Spec(gat.GAT, "graph", gat.SETTINGS, ("velickovic2018graph",), chosen_on=_TESTS),
    "gcn": Spec(gcn.GCN, "graph", gcn.SETTINGS, _MINERVINI, chosen_on=_TESTS),
    "rgcn": Spec(
        gcn.RGCN, "graph", gcn.RELATIONAL_SETTINGS, (*_MINERVINI, "schlichtkrull2018modeling"),
        chosen_on=_TESTS,
    ),
    "edge_rnn": _edges(edge_sequence.EdgeRNN),
    "edge_lstm": _edges(edge_sequence.EdgeLSTM, *_LSTM),
    "edge_gru": _edges(edge_sequence.EdgeGRU, "cho2014learning"),
    "edge_cnn": _edges(edge_sequence.EdgeCNN),
    "edge_attention": _edges(
        edge_sequence.EdgeAttention, settings=edge_sequence.ATTENTION_SETTINGS
    ),
    "edge_transformer": _of_file(
        edge_transformer.EdgeTransformer, edge_transformer, kind="pairs",
        cites=("bergen2021systematic",),
    ),
    "rat": _of_file(
        transformer.RAT, transformer, kind="pairs", settings=transformer.RELATION_SETTINGS,
        cites=("wang2020rat", "shaw2018self", "bergen2021systematic"), chosen_on="generated",
    ),
    "transformer_facts": _of_file(
        transformer.TransformerFacts, transformer, cites=_TRANSFORMER, chosen_on="generated"
    ),
    "epignn": _of_file(epignn.EpiGNN, epignn, cites=("khalid2025systematic",)),
    "nbfnet": _of_file(nbfnet.NBFNet, nbfnet, cites=("zhu2021neural",)),
    "ctp_linear": _ctp(ctp.CTP, ctp.SETTINGS),
    "ctp_attentive": _ctp(ctp.CTPAttentive, ctp.ATTENTIVE_SETTINGS),
    "ctp_memory": _ctp(ctp.CTPMemory, ctp.MEMORY_SETTINGS),
    "ncrl": _of_file(ncrl.NCRL, ncrl, cites=("cheng2023neural",)),
    "prover": _of_file(prover.Prover, prover, cites=_OURS, gives=prover.gives, composes=True),
    "bilstm_mean": _text(bilstm.BiLSTMModel, bilstm.SETTINGS, *_LSTM),
    "bilstm_attention": _text(bilstm.BiLSTMAttention, bilstm.SETTINGS, *_LSTM),
    "bilstm_last": _text(bilstm.BiLSTMLast, bilstm.SETTINGS, *_LSTM),
    "bilstm_2018": _text(bilstm.BiLSTMLast, bilstm.SETTINGS_2018, *_WORKSHOP, *_LSTM),
    "rn": _text(relation_network.RelationNetwork, relation_network.SETTINGS,
                "santoro2017simple"),
    "mac": _text(mac.MAC, mac.SETTINGS, "hudson2018compositional"),
    "rmc": Spec(rmc.RMC, "tokens", rmc.SETTINGS, ("santoro2018relational",), chosen_on=_TESTS),
    "transformer": _of_file(
        transformer.Transformer, transformer, kind="tokens",
        settings=transformer.TOKEN_SETTINGS, train=transformer.TOKEN_TRAIN,
        cites=(*_TRANSFORMER, "shaw2018self"), chosen_on="generated",
    ),
    "gnn_2018_mean": Spec(
        gnn_2018.GNN2018, "tokens", gnn_2018.SETTINGS, _WORKSHOP, chosen_on=_TESTS
    ),
    "gnn_2018_attention": Spec(
        gnn_2018.GNN2018Attention, "tokens", gnn_2018.SETTINGS, _WORKSHOP, chosen_on=_TESTS
    ),
    "reader_prover": _reader_prover(cites=_OURS),
    "reader_prover_bert": _reader_prover(
        settings=reader_prover.BERT_SETTINGS, cites=(*_OURS, *_BERT), encoder=True
    ),
    "bert": Spec(bert.Bert, "tokens", bert.SETTINGS, _BERT, encoder=True, chosen_on=_TESTS),
    "bert_lstm": Spec(
        bert.BertLSTM, "tokens", bert.LSTM_SETTINGS, _BERT, encoder=True, chosen_on=_TESTS
    ),
}  # fmt: skip


def has_method(model: Any, name: str) -> bool:
    """Returns whether a model has an optional method. A layer of the same name is none."""
    return hasattr(type(model), name)
