"""BibTeX of the benchmark and the models."""

import re
from pathlib import Path

import pytest

from clutrr_jax.models import MODELS
from clutrr_jax.report.__main__ import citations, entries, main
from generator.errors import InputError

ROOT = Path(__file__).parent.parent.parent


def test_every_model_has_a_paper_with_an_entry() -> None:
    found = entries()
    text = (ROOT / "clutrr_jax" / "report" / "references.bib").read_text()
    assert "\n".join(found.values()) + "\n" == text  # no two have one key
    for name, spec in MODELS.items():
        assert spec.cites and set(spec.cites) <= set(found), name
    for entry in found.values():
        assert entry.count("{") == entry.count("}")
        assert re.search(r"\n  author = ", entry)


def test_addresses_and_years_are_those_of_the_sources() -> None:
    """The models' docstrings and CITATION.cff; the encoder of BERT names no address."""
    files = [ROOT / "CITATION.cff", *(ROOT / "clutrr_jax" / "models").rglob("*.py")]
    sources = "\n".join(path.read_text() for path in files)
    for key, text in entries().items():
        for address in re.findall(r"arxiv.org/abs/([\d.]+)", text):
            assert address in sources or key == "devlin2018bert"
        if found := re.search(r"author = \{(?:\{\\\w\{)?(\w+).* year = \{(\d+)\}", text, re.S):
            name, year = found.groups()
            name = {"Veli": "Velickovic"}.get(name, name)
            assert re.search(rf"{name}\b[^\n]*\n?[^\n]*{year}", sources), key


def test_models_of_a_folder_are_cited(run_folder, capsys) -> None:
    main([str(run_folder), "--cite"])
    text = capsys.readouterr().out
    assert re.findall(r"^@\w+\{(\w+),$", text, re.M) == [
        "sinha2019clutrr", "sinha2018compositional", "velickovic2018graph", "hochreiter1997long",
    ]  # fmt: skip
    assert "% bilstm_mean: hochreiter1997long" in text
    main(["--cite"])
    assert len(re.findall(r"^@", capsys.readouterr().out, re.M)) == len(entries())
    assert "% my_model: no entry\n" in citations(["my_model"])


def test_a_folder_or_cite_is_needed() -> None:
    with pytest.raises(InputError, match="expected EXPERIMENT or --cite"):
        main([])
