"""BibTeX of the benchmark and of the papers of the models, from `references.bib`."""

import re
from collections.abc import Iterable
from importlib.resources import files

from clutrr_jax.models import MODELS

BENCHMARK = ("sinha2019clutrr", "sinha2018compositional")


def entries() -> dict[str, str]:
    """Returns all entries by key."""
    text = (files("clutrr_jax.report") / "references.bib").read_text(encoding="utf-8")
    return {match[1]: match[0] for match in re.finditer(r"@\w+\{(\w+),\n.*?\n\}", text, re.S)}


def citations(models: Iterable[str]) -> str:
    """Returns the entries of the benchmark and of the models, and which model has which papers.

    A model of your own has no entry.
    """
    papers = {model: MODELS[model].cites if model in MODELS else () for model in models}
    keys = dict.fromkeys([*BENCHMARK, *(key for of_model in papers.values() for key in of_model)])
    found = entries()
    lines = [f"% benchmark: {', '.join(BENCHMARK)}"]
    lines += [f"% {m}: {', '.join(of_model) or 'no entry'}" for m, of_model in papers.items()]
    return "\n".join([*lines, *(found[key] for key in keys)])
