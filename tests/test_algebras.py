"""A made-up algebra of four relations, from its definition to a trained model, by the commands."""

import csv
import doctest
import json
import re
import shutil
from itertools import product
from pathlib import Path

import pytest

import clutrr_jax
from clutrr_jax import predict, rules, score
from clutrr_jax.language_models import __main__ as language_models
from generator import __main__ as generator
from generator.errors import InputError, run_command
from tests.command_line import Done, error_of, launch

FILE = Path(__file__).parent.parent / "docs" / "algebras.md"
PAGE = FILE.read_text()
INVERSE = {"same": "same", "inside": "holds", "holds": "inside", "apart": "apart"}


def relation(x: tuple, y: tuple) -> str:
    """The relation of two folders, each given by its path from the root of the disk."""
    if x == y:
        return "same"
    if x[: len(y)] == y:
        return "inside"
    return "holds" if y[: len(x)] == x else "apart"


def definition() -> dict:
    """The algebra of all folders of a disk with three levels."""
    paths = [path for depth in range(4) for path in product(range(3), repeat=depth)]
    held: dict[tuple[str, str], set[str]] = {}
    for x, y, z in product(paths, repeat=3):
        held.setdefault((relation(x, z), relation(z, y)), set()).add(relation(x, y))
    heads = {pair: " ".join(r for r in INVERSE if r in found) for pair, found in held.items()}
    everything = " ".join(INVERSE)
    return {
        "name": "folders",
        "relations": everything,
        "inverse": INVERSE,
        "composition": {
            a: {b: heads[a, b] for b in INVERSE if heads[a, b] != everything} for a in INVERSE
        },
    }


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    """Holds folders.json, data/ with graphs of this algebra, and run/ with models of them."""
    folder = tmp_path_factory.mktemp("algebras")
    (folder / "folders.json").write_text(json.dumps(definition()))
    generator.main(
        ["--algebra", str(folder / "folders.json"), "--train=1.2,2.2", "--test=1.3,2.2",
         "--train-rows=100", "--test-rows=10", f"--out={folder / 'data'}"]
    )  # fmt: skip
    done = launch(
        f"--workdir={folder / 'run'}", f"--config.data={folder / 'data'}",
        "--config.models=prover", "--config.train.replicas=2",
        "--config.prover.train.epochs=15",
    )  # fmt: skip
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def command(capsys):
    """Function that runs another command than launch.py."""

    def run(main, *arguments: object) -> Done:
        code = run_command(main, [*map(str, arguments)])
        return Done(code, *capsys.readouterr())

    return run


def test_the_page_has_the_algebra_of_folders() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert json.loads(block) == definition()


def test_examples_of_the_page(work: Path, monkeypatch) -> None:
    monkeypatch.chdir(work)
    failed, count = doctest.testfile(str(FILE), module_relative=False)
    assert failed == 0 < count


def test_a_run_is_of_this_algebra(work: Path) -> None:
    results = json.loads((work / "run" / "results.json").read_text())
    cells = {(row["paths"], row["k"], row["model"]): row for row in results["rows"]}
    for b, k in ((1, 3), (2, 2)):
        for model in ("prover", "given rules"):
            assert cells[f"b = {b}", k, model]["accuracy"] == 1
        assert cells[f"b = {b}", k, "majority label"]["accuracy"] == 0.25
        assert cells[f"b = {b}", k, "majority label"]["ambiguous"] == 0
    for name in ("results.json", "results.md", "results.csv", "results.tex"):
        text = (work / "run" / name).read_text()
        assert "paths" in text and "noise" not in text
    page = (work / "run" / "report.html").read_text()
    assert '"columns":["paths","k","model"]' in page
    assert '"relations":["same","inside","holds","apart"]' in page
    assert '"b1.3"' in page and '"b2.2"' in page and "grandmother" not in page
    assert json.loads((work / "run" / "prover" / "algebra.json").read_text()) == definition()


def test_a_model_answers_about_folders(work: Path, command) -> None:
    model = clutrr_jax.load_model(work / "run" / "prover")
    assert model.algebra.relations == tuple(INVERSE)
    facts = [("a", "inside", "b"), ("b", "apart", "c")]
    answer = model.answer(query=("a", "c"), facts=facts)
    assert answer.relation == "apart" and set(answer.relations) == set(INVERSE)
    assert repr(answer).startswith("What is a to c?\n  apart ")
    printed = command(predict.main, model_folder(work), "--query=a,c", f"--facts={facts}")
    assert printed.code == 0 and "  apart " in printed.out.splitlines()[1]
    data = clutrr_jax.load(work / "data")
    assert (model.predict(data).relation == data.test.target).all()
    assert {row["task"] for row in model.evaluate(data).accuracy} == {"b1.3", "b2.2"}


def test_predictions_of_a_file_are_scored(work: Path, tmp_path, command) -> None:
    out, data = tmp_path / "p.csv", work / "data"
    assert command(predict.main, model_folder(work), "--data", data, "--out", out).code == 0
    done = command(score.main, "--data", data, "--predictions", f"mine={out}")
    rows = [line.split() for line in done.out.splitlines() if " mine (2 replicas)" in line]
    assert done.out.startswith("paths ")
    assert [row[:3] for row in rows] == [["b", "=", "1"], ["b", "=", "2"]]
    assert all(row.count("1.00") == 1 for row in rows)


def test_learned_rules_are_those_of_folders(work: Path, command) -> None:
    printed = command(rules.main, work / "run").out
    assert "inside, apart -> apart" in printed and "grand" not in printed
    assert "if X first Z and Z second Y, then X head Y:" in printed


def test_rows_without_known_rules(tmp_path: Path, monkeypatch) -> None:
    """The columns that the generator of NoRA writes, and the code of the page that reads them."""
    header = ["", "story_edges", "edge_types", "query_edge", "query_relation", "query_label"]
    lines = [
        [0, [(0, 0), (1, 0), (1, 2)], ["is_male", "son_of", "parent_of"], (0, 2), "a", ("a", "b")],
        [1, [(0, 0), (0, 1), (1, 2)], ["is_male", "lives_with", "lives_with"], (0, 2),
         "lives_with", ("lives_with",)],
        [2, [(0, 1)], ["son_of"], (0, 0), "is_male", ("is_male",)],
    ]  # fmt: skip
    for split in ("train", "test"):
        with (tmp_path / f"nora_{split}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header, *lines * 10])
    monkeypatch.chdir(tmp_path)
    found: dict = {}
    (code,) = re.findall(r"```python\n(import ast.*?)```", PAGE, re.DOTALL)
    exec(code, found)  # noqa: S102
    test = found["dataset"].test
    assert len(test) == len(found["dataset"].train) == 10
    facts = (("0", "is_male", "is_male"), ("0", "lives_with", "1"), ("1", "lives_with", "2"))
    assert test.story(0).facts == facts and test.story(0).target == "lives_with"
    trained = clutrr_jax.train("epignn", found["dataset"], replicas=1, epochs=1)
    assert {row["task"] for row in trained.accuracy} == {"b0.0"}


def model_folder(work: Path) -> Path:
    return work / "run" / "prover"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (["--config.models=bilstm_mean"], "reads text, but story 1 of 800 has none"),
        (["--config.models=prover", "--config.prover.share_genders=True"],
         "prover: share_genders: expected False, folders has no predicates"),
        (["--config.models=ctp_linear", "--config.ctp_linear.share_genders=True"],
         "ctp_linear: share_genders: expected False, folders has no predicates"),
    ],
)  # fmt: skip
def test_what_kinship_alone_has_is_refused(settings, expected, work: Path, tmp_path) -> None:
    done = launch(f"--workdir={tmp_path}", f"--config.data={work / 'data'}", *settings)
    assert expected in error_of(done)


def test_data_of_two_algebras_are_refused(work: Path, small_folder, tmp_path) -> None:
    shutil.copy(small_folder / "1.2,5.3_train.csv", tmp_path)
    shutil.copy(work / "data" / "test_folders_k_3_b_1.csv", tmp_path)
    text = (tmp_path / "test_folders_k_3_b_1.csv").read_text()
    words = {"same": "EQ", "inside": "NTPP", "holds": "NTPPI", "apart": "DC"}
    text = re.sub("|".join(words), lambda found: words[found[0]], text)
    (tmp_path / "test_folders_k_3_b_1.csv").write_text(text)
    error = error_of(launch(f"--workdir={tmp_path / 'run'}", f"--config.data={tmp_path}"))
    assert 'test_folders_k_3_b_1.csv, row 1, column "edge_labels": unknown relation' in error
    both = f"{work / 'data'},{small_folder}"
    error = error_of(launch(f"--workdir={tmp_path / 'run'}", f"--config.data={both}"))
    assert "relations of folders and kinship in one data set, expected one algebra" in error


def test_a_model_refuses_other_data(work: Path, small_folder, tmp_path, command) -> None:
    model = model_folder(work)
    ask = (model, "--query=a,c", "--facts=[('a', 'inside', 'b'), ('b', 'near', 'c')]")
    known = "expected one of same, inside, holds, apart"
    assert f'unknown relation "near", {known}' in error_of(command(predict.main, *ask))
    out = ("--out", tmp_path / "x.csv")
    error = error_of(command(predict.main, model, "--data", small_folder, *out))
    assert "_train.csv, row 1" in error and known in error
    with pytest.raises(InputError, match="predicts relations of folders, expected stories with"):
        clutrr_jax.load_model(model).predict(clutrr_jax.load(small_folder))


def test_a_damaged_algebra_is_refused(work: Path, tmp_path) -> None:
    data = shutil.copytree(work / "data", tmp_path / "data")
    text = (data / "algebra.json").read_text()
    for damaged, expected in (
        (text[:100], "algebra.json: damaged, not the expected JSON"),
        (text.replace("holds", "on", 1), 'inverse: unknown relation "holds"'),
        (text.replace('"inverse"', '"backward"'), 'no "inverse", expected name, relations'),
    ):
        (data / "algebra.json").write_text(damaged)
        done = launch(
            f"--workdir={tmp_path / 'run'}", f"--config.data={data}", "--config.models=gat"
        )
        assert expected in error_of(done)


def test_graphs_have_prompts(work: Path, tmp_path, command) -> None:
    """`score` shows answers to a part of the tests next to the given rules."""
    out = tmp_path / "prompts"
    done = command(
        language_models.main, "export", "--format=jsonl", "--style=few-shot", "--per-task=3",
        "--data", work / "data", "--out", out,
    )  # fmt: skip
    files = {path.name for path in out.iterdir()}
    assert done.code == 0 and files == {"algebra.json", "prompts.jsonl"}
    rows = [json.loads(line) for line in (out / "prompts.jsonl").read_text().splitlines()]
    assert {row["task"] for row in rows} == {"b1.3", "b2.2"}
    answers = [row | {"prediction": f"So:\n\\boxed{{{row['target']}}}"} for row in rows]
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in answers))
    done = command(score.main, "--data", work / "data", "--predictions", file)
    for name in ("answers (1 replica)", "given rules"):
        lines = [line for line in done.out.splitlines() if f" {name} " in line]
        assert sum(line.count("1.00") for line in lines) == 2, done.out
