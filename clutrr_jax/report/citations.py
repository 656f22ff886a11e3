"""BibTeX of the benchmark and of the papers of the models, from `references.bib`."""

import re
from collections.abc import Iterable
from importlib.resources import files

BENCHMARK = ("sinha2019clutrr", "sinha2018compositional")
# Model -> keys of its papers.
PAPERS = {
    "gat": ("velickovic2018graph",),
    # The encoders of Minervini et al. 2020.
    **dict.fromkeys(("gcn", "edge_rnn", "edge_cnn", "edge_attention"),
                    ("minervini2020learning",)),
    "rgcn": ("minervini2020learning", "schlichtkrull2018modeling"),
    "edge_lstm": ("minervini2020learning", "hochreiter1997long"),
    "edge_gru": ("minervini2020learning", "cho2014learning"),
    "edge_transformer": ("bergen2021systematic",),
    "epignn": ("khalid2025systematic",),
    "nbfnet": ("zhu2021neural",),
    **dict.fromkeys(("ctp_linear", "ctp_attentive", "ctp_memory"), ("minervini2020learning",)),
    "ncrl": ("cheng2023neural",),
    **dict.fromkeys(("prover", "reader_prover", "set_prover"), ("clutrr_jax",)),
    "reader_prover_bert": ("clutrr_jax", "devlin2018bert"),
    **dict.fromkeys(("bilstm_mean", "bilstm_attention", "bilstm_last"), ("hochreiter1997long",)),
    "bilstm_2018": ("sinha2018compositional", "hochreiter1997long"),
    "rn": ("santoro2017simple",),
    "mac": ("hudson2018compositional",),
    "rmc": ("santoro2018relational",),
    **dict.fromkeys(("gnn_2018_mean", "gnn_2018_attention"), ("sinha2018compositional",)),
    **dict.fromkeys(("bert", "bert_lstm"), ("devlin2018bert",)),
}  # fmt: skip


def entries() -> dict[str, str]:
    """Returns all entries by key."""
    text = (files("clutrr_jax.report") / "references.bib").read_text(encoding="utf-8")
    return {match[1]: match[0] for match in re.finditer(r"@\w+\{(\w+),\n.*?\n\}", text, re.S)}


def citations(models: Iterable[str]) -> str:
    """Returns the entries of the benchmark and of the models, and which model has which papers.

    A model of your own has no entry.
    """
    papers = {model: PAPERS.get(model, ()) for model in models}
    keys = dict.fromkeys([*BENCHMARK, *(key for of_model in papers.values() for key in of_model)])
    found = entries()
    lines = [f"% benchmark: {', '.join(BENCHMARK)}"]
    lines += [f"% {m}: {', '.join(of_model) or 'no entry'}" for m, of_model in papers.items()]
    return "\n".join([*lines, *(found[key] for key in keys)])
