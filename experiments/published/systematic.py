"""Published accuracies of other work on the released data sets of figure 5.

Graph models read the stated facts, text models the story. A row belongs to a model of this project
if it is the same architecture. The Transformer belongs to none: `edge_attention` is followed by an
LSTM. The fine-tuned BERT does not belong to `bert`, which is frozen.
"""

from clutrr_jax.evaluation.published import Accuracy, PublishedRow, Source
from experiments.published.clutrr import HUMANS

K23, K234 = "data_089907f8", "data_db9b8f04"  # trained on k = 2, 3 and on k = 2, 3, 4

NCRL_TITLE = "Neural Compositional Rule Learning for Knowledge Graph Reasoning"
CTP_TITLE = "Learning Reasoning Strategies in End-to-End Differentiable Proving"
CLUTRR = Source(
    "CLUTRR paper", "Sinha et al.", 2019,
    "CLUTRR: A Diagnostic Benchmark for Inductive Reasoning from Text", "table 5 (appendix 1.7)",
)  # fmt: skip
CTP_PAPER = Source("CTP paper", "Minervini et al.", 2020, CTP_TITLE, "row CTP_A (k = 2, 3)")
CTP_CODE = Source(
    "CTP code", "Minervini et al.", 2020, CTP_TITLE, "README of the code (k = 2, 3, 4)"
)
NCRL = Source("NCRL", "Cheng et al.", 2023, NCRL_TITLE, "table 3 (k = 2, 3, 4)")
NCRL_QUOTES = Source(
    "NCRL", "Cheng et al.", 2023, NCRL_TITLE, "quoting Lu et al. 2022 (R5) (k = 2, 3)"
)
EPIGNN = Source(
    "EpiGNN paper", "Khalid and Schockaert", 2025,
    "Systematic Relational Reasoning With Epistemic Graph Neural Networks", "k = 2, 3, 4",
)  # fmt: skip
LOG = Source(
    "2026 log", "unrefereed log of a laboratory", 2026, "",
    "epochs chosen on the test stories, for orientation only",
)  # fmt: skip
DSR_LM = Source(
    "DSR-LM", "Zhang et al.", 2023,
    "Improved Logical Reasoning of Language Models via Differentiable Symbolic Programming",
    "approximate",
)  # fmt: skip
SATLM = Source(
    "SatLM", "Ye et al.", 2023,
    "Satisfiability-Aided Language Models Using Declarative Prompting",
)  # fmt: skip


def _by_k(first: int, means: str) -> dict[int, Accuracy]:
    """Accuracies of consecutive k from a printed row."""
    return {k: Accuracy(float(mean), None) for k, mean in enumerate(means.split(), start=first)}


# Name, model of this project ("-": none), k = 5..10.
_NCRL_TABLE_3 = """
R5              -             .99 .99 .99 1.0 .99 .98
NCRL            ncrl          1.0 .99 .98 .98 .98 .97
CTP linear      ctp_linear    .99 .98 .97 .98 .97 .95
CTP attentive   ctp_attentive .99 .99 .97 .95 .93 .91
CTP memory      ctp_memory    .98 .97 .95 .94 .93 .90
RLogic          -             .99 .98 .97 .97 .94 .94
GNTP            -             .68 .63 .62 .59 .57 .52
Transformer     -             .88 .83 .76 .72 .74 .70
GAT             gat           .99 .85 .80 .71 .70 .68
GCN             gcn           .94 .79 .61 .53 .53 .41
LSTM            edge_lstm     .98 .95 .89 .84 .77 .78
GRU             edge_gru      .95 .94 .87 .81 .74 .75
RNN             edge_rnn      .93 .87 .79 .73 .65 .64
"""


def _ncrl_table_3() -> list[PublishedRow]:
    rows = []
    for line in _NCRL_TABLE_3.strip().splitlines():
        name, (model, means) = line[:16].rstrip(), line[16:].split(maxsplit=1)
        model = model.strip("-")
        given = "order of facts" if model.startswith("edge_") else "nothing"
        rows.append(PublishedRow(name, NCRL, K234, _by_k(5, means), model=model, given=given))
    return rows


ENCODER, LANGUAGE_MODEL = "pretrained encoder", "pretrained language model"
PEOPLE = PublishedRow("people, limited time", CLUTRR, by_k=HUMANS, given="")
CTP = (
    PublishedRow(
        "CTP attentive", CTP_PAPER, K23, _by_k(4, ".99 .99 .99 .96 .94 .89 .90"),
        model="ctp_attentive",
    ),
    PublishedRow(
        "CTP linear", CTP_CODE, K234, _by_k(2, "1.00 .72 .74 .98 .96 .98 .98 .94 .89"),
        model="ctp_linear",
    ),
)  # fmt: skip
GRAPH_ROWS = (
    *CTP,
    PublishedRow("R5", NCRL_QUOTES, K23, _by_k(4, ".98 .99 .98 .96 .97 .98 .97")),
    PublishedRow("GAT", NCRL_QUOTES, K23, _by_k(4, ".91 .76 .54 .56 .54 .55 .45"), model="gat"),
    *_ncrl_table_3(),
    PublishedRow("EpiGNN", EPIGNN, K234, _by_k(5, ".99 .99 .99 .99 .96 .98"), model="epignn"),
)
TEXT_ROWS = (
    PublishedRow("fine-tuned BERT", LOG, K23, overall=Accuracy(0.287, None), given=ENCODER),
    PublishedRow("fine-tuned RoBERTa", LOG, K23, overall=Accuracy(0.325, None), given=ENCODER),
    PublishedRow("fine-tuned DeBERTa-v3", LOG, K23, overall=Accuracy(0.361, None), given=ENCODER),
    PublishedRow(
        "DeBERTa-v3 with trace supervision", LOG, K23, overall=Accuracy(0.679, None),
        given=f"{ENCODER}, facts as labels",
    ),
    PublishedRow(
        "GPT-5.2 (text)", LOG, K23, _by_k(10, ".513"), Accuracy(0.698, None),
        given=LANGUAGE_MODEL,
    ),
    PublishedRow(
        "Gemini 3.1 Pro (text)", LOG, K23,
        _by_k(2, "1.0 .571 .905 .839 .860 .833 .733 .756 .740"), Accuracy(0.801, None),
        given=LANGUAGE_MODEL,
    ),
    PublishedRow(
        "DSR-LM (RoBERTa and a prover)", DSR_LM, overall=Accuracy(0.61, None), given=ENCODER
    ),
    PublishedRow(
        "SatLM (with a language model)", SATLM, overall=Accuracy(0.801, None),
        given=f"{LANGUAGE_MODEL}, rules",
    ),
)  # fmt: skip
