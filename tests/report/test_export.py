"""The results of an experiment as LaTeX and CSV."""

import csv
import json
import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

from clutrr_jax.experiment import Training
from clutrr_jax.report.export import (
    best_rows,
    csv_rows,
    escape_latex,
    latex_paired,
    latex_table,
)
from clutrr_jax.report.paired import paired_table
from clutrr_jax.report.results import REPORT_FILES
from clutrr_jax.runs import check_folder
from generator.errors import InputError
from tests.report.rows import score_of
from tests.report.test_tables import results, row  # noqa: F401

SPECIAL = r"*a_b & 50% #1 $x$ {y} ~ ^ \ <z> | ` --"


def test_rows_of_the_csv_are_the_replicas_of_the_table(run_folder) -> None:
    with (run_folder / "results.csv").open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if not line["against"]]
    table = json.loads((run_folder / "results.json").read_text())["rows"]
    assert {cell["model"] for cell in table} == {line["model"] for line in lines}
    for cell in table:
        own = [line for line in lines if line["model"] == cell["model"]
               and (line["task"], line["noise"], line["k"])
               == (cell["task"], cell["noise"], str(cell["k"]))]  # fmt: skip
        assert [line["replica"] for line in own] == [str(i) for i in range(cell["replicas"])]
        assert {int(line["stories"]) for line in own} == {cell["count"]}
        found = [int(line["correct"]) / int(line["stories"]) for line in own]
        assert found == pytest.approx(cell["accuracies"])
        assert [float(line["accuracy"]) for line in own] == pytest.approx(found, abs=1e-6)
        assert sum(found) / len(found) == pytest.approx(cell["accuracy"])
    assert len(lines) == sum(cell["replicas"] for cell in table)


def test_paired_tests_have_lines_and_a_table(run_folder) -> None:
    """In results.csv, and in results.tex after the table of accuracies."""
    (pair,) = json.loads((run_folder / "results.json").read_text())["compared"]
    with (run_folder / "results.csv").open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["against"]]
    assert [line["task"] for line in lines] == [test["task"] for test in pair["tasks"]]
    for line, test in zip(lines, pair["tasks"], strict=True):
        assert [line["model"], line["against"]] == pair["models"] == ["gat", "bilstm_mean"]
        assert (line["replica"], line["correct"], line["accuracy"]) == ("", "", "")
        assert (line["noise"], line["k"]) in {("clean", "2"), ("clean", "3"), ("clean", "5"),
                                             ("supporting", "4")}  # fmt: skip
        assert int(line["stories"]) == test["count"]
        for name in ("difference", "p", "p_holm"):
            assert float(line[name]) == pytest.approx(test[name], rel=1e-5)
    text = (run_folder / "results.tex").read_text()
    first, *_, second = text.split("\n\n")
    assert "bilstm\\_mean (1 replica)" in first
    (row,) = re.findall(r"^gat & bilstm\\_mean & .*$", second, re.MULTILINE)
    assert row.count("&") == 1 + len(lines) and "model & against & 1.2 & 1.3 & 1.5 & 2.4" in second


COMPARED = [
    {"models": ["a_b", "c"], "tasks": [
        {"task": "1.2", "difference": 0.125, "p_holm": 0.0312},
        {"task": "1.0", "difference": -0.25, "p_holm": 0.0004},
    ]},
    {"models": ["a_b", "d"], "tasks": [{"task": "1.0", "difference": 0.0, "p_holm": 1.0}]},
    {"models": ["c", "d"], "tasks": []},
]  # fmt: skip


def test_paired_tests_are_those_of_all_models_or_of_one_from_its_side() -> None:
    """Pairs without a common story have no row."""
    every = [
        ["model", "against", "k=2", "no k"],
        ["a_b", "c", "+.12 (.031)", "-.25 (<.001)"],
        ["a_b", "d", "", "+.00 (1.000)"],
    ]
    assert paired_table(COMPARED) == paired_table(COMPARED, "a_b") == every
    assert paired_table(COMPARED, "c")[1:] == [["c", "a_b", "-.12 (.031)", "+.25 (<.001)"]]
    assert paired_table(COMPARED, "d")[1:] == [["d", "a_b", "+.00 (1.000)"]]
    assert r"a\_b & c & +.12 (.031) & -.25 (\textless{}.001) \\" in latex_paired(every).splitlines()
    assert not paired_table(COMPARED[2:])[1:]


def test_runs_of_a_grid_have_their_training_and_seed() -> None:
    score = score_of("gat", "1.2", 10, [9, 8])
    lines = csv_rows({"compared": []}, [("k23/1", Training(), [score])])
    assert [line[:8] for line in lines[1:]] == [
        ["k23", "1", "gat", "0", "clean", "2", "1.2", "9"],
        ["k23", "1", "gat", "1", "clean", "2", "1.2", "8"],
    ]  # fmt: skip


@pytest.fixture
def with_special_names(results) -> dict:  # noqa: F811
    """A model whose name has every special character, and two noise types."""
    for line in results["rows"]:
        line["model"] = {"mac": SPECIAL}.get(line["model"], line["model"])
    return results


def test_the_table_is_balanced_latex(with_special_names) -> None:
    lines = latex_table(with_special_names).splitlines()
    assert lines[0].startswith("% test on stories") and "booktabs" in lines[1]
    begin, end = lines[2], lines[-1]
    columns = re.fullmatch(r"\\begin\{tabular\}\{(l+r+)\}", begin)[1]
    assert columns == "llrr" and end == r"\end{tabular}"
    rules = [line for line in lines if line.endswith("rule")]
    assert rules == [r"\toprule", *[r"\midrule"] * 3, r"\bottomrule"]
    body = [line for line in lines[3:-1] if line not in rules]
    assert len(body) == 11
    for line in body:
        assert line.endswith(r" \\")
        plain = re.sub(r"\\(?:[&%$#_{}`]|[a-z]+)", "", line.removesuffix(r" \\"))  # commands
        plain = plain.replace("$$", "")  # around a symbol
        assert plain.count("&") == len(columns) - 1 and not re.search(r"[%$#_~^<>\\]", plain)
        assert plain.count("{") == plain.count("}")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_the_table_compiles(with_special_names, tmp_path) -> None:
    document = r"\documentclass{article}\usepackage{booktabs}\begin{document}%s\end{document}"
    (tmp_path / "a.tex").write_text(document % f"\n{latex_table(with_special_names)}")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "a.tex"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0


def test_special_characters_are_escaped() -> None:
    assert escape_latex(SPECIAL) == (
        r"{}*a\_b \& 50\% \#1 \$x\$ \{y\} \textasciitilde{} \textasciicircum{} "
        r"\textbackslash{} \textless{}z\textgreater{} \textbar{} \`{} -{}-"
    )
    assert escape_latex("  last\nepoch") == r"\quad last epoch"
    assert escape_latex("[a]*''") == "{}[a]*'{}'"  # after \\\\, "[" or "*" begins its argument


def test_letters_that_pdflatex_lacks_are_named() -> None:
    def needs(name: str) -> str:
        return latex_paired([["model", "against", "k=2"], [name, "b", "+.00 (1.000)"]])

    assert "LuaLaTeX" in needs("\u901a") and "\u901a & b" in needs("\u901a")
    assert "LuaLaTeX" not in needs("modèle ±")


def test_the_best_models_are_bold(results) -> None:  # noqa: F811
    """Baselines do not count; equal printed accuracies are equally good."""
    results["rows"] += [row("rn", 2, (0.901, 0.01), (0.9, 0.01))]
    found = [(line["model"], line["k"]) for line in best_rows(results)]
    assert found == [("gat", 2), ("rn", 2), ("gat", 3)]
    text = latex_table(results)
    assert (
        r"gat (3 replicas) & nothing & \textbf{.90} {\scriptsize .10--1.00} & \textbf{.70}" in text
    )
    assert text.count(r"\textbf") == 3
    results["rows"] += [row("part", k, (0.99, None), (0.99, None)) | {"count": 2} for k in (2, 3)]
    assert [(line["model"], line["k"]) for line in best_rows(results)] == found  # not of a part
    results["rows"] = [line for line in results["rows"] if line["model"] == "gat"]
    assert not best_rows(results)  # of one model


def test_figures_are_vector_graphics_with_embedded_fonts(run_folder) -> None:
    pdf = (run_folder / "curve.pdf").read_bytes()
    assert pdf.startswith(b"%PDF") and b"/Type3" not in pdf
    assert ElementTree.parse(run_folder / "curve.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize("name", REPORT_FILES[1:])
def test_no_file_of_another_origin_is_replaced(name, tmp_path) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=f"{name}: not of an experiment"):
        check_folder(tmp_path, "test")
