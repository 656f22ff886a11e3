"""Published accuracies of other work on CLUTRR, one row each: the ledger.

A row says where its figures were published, on which data they were measured, what the model was
given, and what keeps them from being compared with the tables of this project. Figure 5 and its
tables show the comparable ones; docs/published.md lists all. A row has no accuracies if the source
has only a plot, if they stand in `experiments.published.clutrr`, or if its figures could not be
read.

A row belongs to a model of this project if it is the same architecture. The Transformer belongs to
none: `edge_attention` is followed by an LSTM. The fine-tuned BERT does not belong to `bert`, which
is frozen.
"""

from clutrr_jax.evaluation.published import Accuracy, DataSet, PublishedRow, Source
from experiments.published.clutrr import HUMANS

K23 = DataSet("data_089907f8", "10,094", "38 of k = 2, 105 to 190 of each further k")
K234 = DataSet("data_db9b8f04", "15,083", "38 of k = 2, 77 to 185 of each further k")
K23_TESTS = K23._replace(train="none")  # of a model that is not trained

CLUTRR_TITLE = "CLUTRR: A Diagnostic Benchmark for Inductive Reasoning from Text"
NCRL_TITLE = "Neural Compositional Rule Learning for Knowledge Graph Reasoning"
CTP_TITLE = "Learning Reasoning Strategies in End-to-End Differentiable Proving"


def _clutrr(place: str) -> Source:
    return Source("CLUTRR paper", "Sinha et al.", 2019, CLUTRR_TITLE, place)


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
EDGE_TRANSFORMER = Source(
    "Edge Transformer paper", "Bergen et al.", 2021,
    "Systematic Generalization with Edge Transformers", "k = 2, 3; data in the code",
)  # fmt: skip
TRUA = Source(
    "unrefereed report", "TRUA project", 2026, "TRUA Experiment Report",
    "unrefereed, sections 4 and 6; the last epoch where a model is trained",
)  # fmt: skip
DSR_LM = Source(
    "DSR-LM", "Zhang et al.", 2023,
    "Improved Logical Reasoning of Language Models via Differentiable Symbolic Programming",
    "data in the code",
)  # fmt: skip
SATLM = Source(
    "SatLM", "Ye et al.", 2023,
    "Satisfiability-Aided Language Models Using Declarative Prompting",
    "table 1, greedy decoding; stories in the code",
)  # fmt: skip
STAR_LANGUAGE_MODELS = Source(
    "STaR, language models", "Khalid, Nourollah and Schockaert", 2025,
    "Benchmarking Systematic Relational Reasoning with Large Language and Reasoning Models",
    "arXiv 2503.23487",
)  # fmt: skip
PROOFS = Source(
    "SGinPG", "Gontier et al.", 2020,
    "Measuring Systematic Generalization in Neural Proof Generation with Transformers",
    "data in the code",
)  # fmt: skip
RECKONING = Source(
    "RECKONING", "Chen et al.", 2023,
    "RECKONING: Reasoning through Dynamic Knowledge Encoding", "section 4.1, table 1",
)  # fmt: skip
PATHS = Source(
    "PoT", "Zhang et al.", 2024,
    "Path-of-Thoughts: Extracting and Following Paths for Robust Relational Reasoning with Large "
    "Language Models", "arXiv 2412.17963",
)  # fmt: skip
WORKSHOP = Source(
    "workshop paper", "Sinha et al.", 2018,
    "Compositional Language Understanding with Text-based Relational Reasoning", "table 1",
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
        rows.append(PublishedRow(name, NCRL, K234, "facts", given, "", _by_k(5, means), None,
                                 model))  # fmt: skip
    return rows


CTP = (
    PublishedRow(
        "CTP attentive", CTP_PAPER, K23, "facts", "nothing", "",
        _by_k(4, ".99 .99 .99 .96 .94 .89 .90"), model="ctp_attentive",
    ),
    PublishedRow(
        "CTP linear", CTP_CODE, K234, "facts", "nothing", "",
        _by_k(2, "1.00 .72 .74 .98 .96 .98 .98 .94 .89"), model="ctp_linear",
    ),
)  # fmt: skip
_FACTS = (
    *CTP,
    PublishedRow(
        "R5", NCRL_QUOTES, K23, "facts", "nothing", "", _by_k(4, ".98 .99 .98 .96 .97 .98 .97")
    ),
    PublishedRow(
        "GAT", NCRL_QUOTES, K23, "facts", "nothing", "",
        _by_k(4, ".91 .76 .54 .56 .54 .55 .45"), model="gat",
    ),
    PublishedRow(
        "Edge Transformer, code of its authors", TRUA, K23, "facts", "nothing", "",
        _by_k(2, "1.0 .9524 1.0 .9138 .8318 .7986 .6333 .5882 .5714"), model="edge_transformer",
    ),
    *_ncrl_table_3(),
    PublishedRow(
        "EpiGNN", EPIGNN, K234, "facts", "nothing", "", _by_k(5, ".99 .99 .99 .99 .96 .98"),
        model="epignn",
    ),
)  # fmt: skip
# Sizes that its config.json asks the generator for.
_EASIER = DataSet("data_9b2173cf", "15,000 asked for", "5,000 of each k asked for")
_NOTHING_HELD_OUT = "no clauses held out, no paraphrases, more train stories"
_OTHER_FACTS = tuple(
    PublishedRow(name, EDGE_TRANSFORMER, _EASIER, "facts", "nothing", _NOTHING_HELD_OUT)
    for name in ("Edge Transformer", "Relation-aware Transformer")
)

ENCODER, LANGUAGE_MODEL = "pretrained encoder", "pretrained language model"
_TEXT = (
    *(
        PublishedRow(name, TRUA, K23, "story", given, "", {}, Accuracy(mean, None))
        for name, given, mean in (
            ("fine-tuned BERT", ENCODER, 0.2542),
            ("fine-tuned RoBERTa", ENCODER, 0.2880),
            ("fine-tuned DeBERTa-v3", ENCODER, 0.3310),
            ("DeBERTa-v3 with trace supervision", f"{ENCODER}, facts of the proof as labels",
             0.6693),
        )
    ),
    PublishedRow(
        "GPT-5.2", TRUA, K23_TESTS, "story", LANGUAGE_MODEL, "",
        _by_k(2, "1.0 .5524 .8632 .7586 .8505 .7500 .5867 .5042 .5126"), Accuracy(0.6981, None),
    ),
    PublishedRow(
        "Gemini 3.1 Pro", TRUA, K23_TESTS, "story", LANGUAGE_MODEL, "",
        _by_k(2, "1.0 .5714 .9053 .8391 .8598 .8333 .7333 .7563 .7395"), Accuracy(0.8010, None),
    ),
)  # fmt: skip
_OTHER_TEXT = (
    PublishedRow(
        "DSR-LM (RoBERTa and a prover)", DSR_LM, K23, "story", f"{ENCODER}, constraints of rules",
        "the code keeps the epoch that is best on the tests",
    ),
    PublishedRow(
        "SatLM", SATLM, K23._replace(train="none", tests="a part of them"), "story",
        f"{LANGUAGE_MODEL}, rules", "a part of the test stories", {}, Accuracy(0.683, None),
    ),
    PublishedRow(
        "language and reasoning models", STAR_LANGUAGE_MODELS,
        DataSet("STaR, RCC-8 and intervals", "", ""), "facts", LANGUAGE_MODEL,
        "other relations; ours are tested on other graphs",
    ),
    PublishedRow(
        "Transformer that writes proofs", PROOFS,
        DataSet("own, k = 2, 4, 6", "", "k = 2 to 10"), "story",
        "proofs of the train stories", "other stories, trained on k = 2, 4, 6",
    ),
    PublishedRow(
        "RECKONING (GPT-2)", RECKONING, DataSet("CLUTRR-SG", "", ""), "story", LANGUAGE_MODEL,
        "other stories",
    ),
    PublishedRow(
        "Path-of-Thoughts", PATHS, DataSet("CLUTRR", "none", ""), "story", LANGUAGE_MODEL,
        "the release and the number of stories are not known",
    ),
    PublishedRow(
        "people, limited time", _clutrr("table 5 (appendix 1.7)"),
        DataSet("Clean - Generalization (table 6)", "none", "number not stated"), "story",
        "at most 30 minutes",
        "which stories, and how many, is not stated", HUMANS,
    ),
)  # fmt: skip
# Reproduced cell by cell on docs/robustness.md and docs/workshop.md, which say what differs.
_TEN_SETS = DataSet("own, ten generated sets", "10,000 each", "100 of each k")
_ONE_SET = "other stories: ours are one released set of the same kind"
REPRODUCED = (
    PublishedRow(
        "seven models, tables 2 and 3", _clutrr("tables 2 and 3"), _TEN_SETS,
        "facts (GAT) or story", "nothing; BERT: pretrained encoder", _ONE_SET,
    ),
    PublishedRow(
        "seven models, table 4", _clutrr("table 4"), _TEN_SETS, "facts (GAT) or story",
        "nothing; BERT: pretrained encoder", "other stories: ours are generated by this project",
    ),
    PublishedRow(
        "three models of 2018", WORKSHOP,
        DataSet("own, CLUTRR v0.1", "4,000 of each k", "1,000 of each k"), "story", "nothing",
        "other stories: ours are generated by this project",
    ),
)  # fmt: skip
ROWS = (*_FACTS, *_TEXT, *_OTHER_FACTS, *_OTHER_TEXT, *REPRODUCED)
