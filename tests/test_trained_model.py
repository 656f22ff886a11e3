"""A trained model that is loaded again: it predicts what it predicted in its run."""

import shutil
from itertools import pairwise
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from flax import nnx
from safetensors.numpy import load_file

import clutrr_jax
from clutrr_jax import api
from clutrr_jax.data.records import Records, tasks
from clutrr_jax.evaluation.predictions import Predictions, ensemble, read_predictions, read_run
from clutrr_jax.predict import main
from clutrr_jax.rules import learned_rules
from clutrr_jax.rules import main as rules
from clutrr_jax.score import main as score
from clutrr_jax.trained_model import Answer
from generator.errors import InputError, run_command
from generator.relations.kinship import GENDER_OF, RELATIONS

FACTS = [("Ann", "son", "Bob"), ("Bob", "sister", "Cy")]
NAMES = ["gat", "prover", "word_sum"]
ASKED = ["--query=Ann,Cy", f"--facts={FACTS}"]
STORY = "[Ann] and her son [Bob] went out. [Bob]'s sister is [Cy]."


class WordSum(nnx.Module):
    """Sum of word vectors: a small model that reads text."""

    traces = 0

    def __init__(self, config, sizes, *, rngs):
        self.words = nnx.Embed(sizes.tokens, config.dim, rngs=rngs)
        self.out = nnx.Linear(config.dim, sizes.relations, rngs=rngs)

    def __call__(self, batch):
        WordSum.traces += 1
        return self.out((self.words(batch.tokens) * batch.mask[..., None]).sum(axis=1))


@pytest.fixture(scope="module")
def run(small_folder, tmp_path_factory):
    """A trained `Trained`; the registry is restored after the tests."""
    before = dict(api.MODELS)
    clutrr_jax.register("word_sum", WordSum, "tokens", {"dim": 8})
    folder = tmp_path_factory.mktemp("trained") / "run"
    yield clutrr_jax.train(
        NAMES, small_folder, replicas=3, epochs=2, seed=4, folder=folder,
        settings={"gat.train.selection": "dev_loss"},
    )  # fmt: skip
    api.MODELS.clear()
    api.MODELS.update(before)


@pytest.fixture(scope="module")
def test(small_folder) -> Records:
    return clutrr_jax.load(small_folder).test


def chain(people: int) -> dict:
    """A story of one long chain of sisters."""
    names = [f"P{i}" for i in range(people)]
    facts = [(a, "sister", b) for a, b in pairwise(names)]
    return {"facts": facts, "query": (names[0], names[-1])}


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_model_predicts_what_its_run_did(name: str, run, test) -> None:
    model = clutrr_jax.load_model(run.folder / name)
    assert model.name == name and model.replicas == 3
    found = model.predict(test)
    np.testing.assert_array_equal(found.relation, run.predictions[name].relation)
    np.testing.assert_array_equal(found.last, run.predictions[name].last)
    with np.load(run.folder / name / "predictions.npz") as file:
        np.testing.assert_array_equal(file["probabilities"], found.probabilities)
        assert file["ids"].tolist() == list(test.ids)
        assert file["relations"].tolist() == list(RELATIONS)
    np.testing.assert_allclose(found.probabilities.sum(axis=-1), 1, atol=1e-5)
    np.testing.assert_array_equal(found.probabilities.argmax(axis=-1), found.relation)


@pytest.mark.parametrize("name", NAMES)
def test_order_and_company_of_the_stories_change_nothing(name: str, run, test) -> None:
    model = run.model(name)
    whole, some = model.predict(test), np.random.default_rng(0).permutation(len(test))[:25]
    part = model.predict(test.select(some))
    np.testing.assert_allclose(part.probabilities, whole.probabilities[:, some], atol=1e-6)


def test_evaluate_gives_the_accuracy_of_the_run(run, small_folder) -> None:
    accuracy = run.model("gat").evaluate(small_folder).accuracy
    found = {(row["model"], row["task"]): row for row in accuracy}
    expected = [row for row in run.accuracy if row["model"] in ("gat", "majority label")]
    assert len(expected) == 8 and "induced rules" not in {row["model"] for row in accuracy}
    assert all(found[row["model"], row["task"]] == row for row in expected)


def test_what_a_model_reads(run) -> None:
    """Targets are not needed, new words are unknown, and a model without vectors of people reads
    any number of them."""
    told = [[{"story": f"[Ann] {word} [Bob].", "query": "Ann,Bob"}] for word in ("zyxed", "yxzed")]
    one, other = (run.model("word_sum").predict(data).probabilities for data in told)
    np.testing.assert_array_equal(one, other)
    assert run.model("prover").predict([chain(40)]).relation.shape == (3, 1)
    with pytest.raises(InputError, match="gat: a story of 40 people, expected at most 20"):
        run.model("gat").predict([chain(40)])


def test_parameters_are_read_back_as_they_were_saved(run, tmp_path) -> None:
    model = run.model("gat")
    model.save(tmp_path / "gat.safetensors")
    with pytest.raises(InputError, match="cannot be written"):
        model.save(tmp_path / ("x" * 300))
    found = load_file(tmp_path / "gat.safetensors")
    leaves = {
        ".".join(str(key.key) for key in path): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(model.params)
    }
    assert found.keys() == leaves.keys() and "readout.out.kernel" in found
    for name, array in found.items():
        assert len(array) == model.replicas
        np.testing.assert_array_equal(array, leaves[name])


def test_an_answer_has_all_relations_and_a_proof_by_learned_rules(run) -> None:
    model = run.model("prover")
    answer = model.answer(query=("Ann", "Cy"), facts=FACTS)
    assert set(answer.relations) == set(RELATIONS) and answer.facts is None
    assert sum(answer.relations.values()) == pytest.approx(1, abs=1e-5)
    assert list(answer.relations.values()) == sorted(answer.relations.values(), reverse=True)
    if answer.proof is not None:
        assert answer.proof[-1].endswith(f"so Cy is the {answer.relation} of Ann.")
        assert 0 < answer.proof_probability <= 1
    assert repr(answer).startswith(f"What is Cy to Ann?\n  {answer.relation} ")
    for facts in (np.array(FACTS), pd.DataFrame(FACTS)):
        assert model.answer(query=np.array(["Ann", "Cy"]), facts=facts) == answer
    stated = model.answer(query="Ann,Bob", facts=str(FACTS[:1]))
    assert stated.relation == "son" and stated.proof == []
    for query, facts, message in (
        (("Ann", "Cy"), None, "answer: expected a story or facts, and a query of two"),
        (("Ann", "Zed"), FACTS, 'no person "Zed", expected two of'),
        *((3, FACTS, "expected"), ("Ann,Cy", 3, "expected")),
        ("Ann,Cy", np.empty((0, 3)), "expected"),
    ):
        with pytest.raises(InputError, match=message):
            model.answer(query=query, facts=facts)


def test_an_answer_that_nothing_derives_has_no_relation(run) -> None:
    """No path of facts leads from Ann to Cy."""
    answer = run.model("prover").answer(query="Ann,Cy", facts=[*FACTS[:1], ("Dee", "sister", "Cy")])
    assert answer.relation is None and answer.proof is None
    text = "nothing is derived: all relations are equally probable"
    assert repr(answer) == f"What is Cy to Ann?\n  {text}"
    story, equal = answer.story, 1 / len(RELATIONS)
    female = {name: 2 * equal * GENDER_OF[i] for i, name in enumerate(RELATIONS)}
    assert Answer(story, female).relation is None  # all that is known is a gender
    aunt = {"aunt": 2 * equal} | dict.fromkeys(RELATIONS[1:], equal)
    assert Answer(story, aunt).relation == "aunt"


def test_a_text_model_answers_from_text(run) -> None:
    answer = run.model("word_sum").answer(STORY, query=("Ann", "Cy"))
    assert answer.story.text == STORY and answer.proof is None
    plain = STORY.replace("[", "").replace("]", "")
    names = ["Ann", "Bob", "Cy"]
    assert run.model("word_sum").answer(plain, query=("Ann", "Cy"), names=names) == answer


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_is_the_prediction_among_other_stories(name: str, run, test) -> None:
    """Questions are padded, which changes no probability."""
    model = run.model(name)
    mean = model.predict(test).probabilities.mean(axis=0)
    for row in range(0, len(test), 9):  # of all clause lengths
        story = test.story(row)
        found = model.answer(story.text, query=story.query, facts=story.facts).relations
        np.testing.assert_allclose([found[r] for r in RELATIONS], mean[row], atol=1e-6)


def test_questions_of_similar_length_share_a_program(run) -> None:
    model = run.model("word_sum")
    pairs = list(pairwise(["Ann", "Bob", "Cy", "Dee", "Eli", "Flo", "Gus", "Hal"]))
    traces = []
    for k in range(1, 8):
        text = " ".join(f"[{x}] has a sister, whose name is [{y}]." for x, y in pairs[:k])
        before = WordSum.traces
        model.answer(text, query=("Ann", pairs[k - 1][1]))
        traces.append(WordSum.traces - before)
    # 2 to 8 people, 10 to 70 tokens: up to 32, up to 64, up to 128.
    assert traces == [1, 0, 0, 1, 0, 0, 1]


@pytest.mark.slow
def test_a_reader_says_which_facts_it_read(small_folder, tmp_path) -> None:
    trained = clutrr_jax.train("reader_prover", small_folder, replicas=1, epochs=1, folder=tmp_path)
    model = trained.model()
    answer = model.answer(STORY, query=("Ann", "Cy"))
    assert answer.facts is not None
    for x, relation, y, probability in answer.facts:
        assert {x, y} <= {"Ann", "Bob", "Cy"} and relation in RELATIONS and probability > 0.5
        assert {x, y} != {"Ann", "Cy"}  # the query pair is not part of the graph
    np.testing.assert_array_equal(model.rules()[0], model.module().reasoner.rules())
    given = {"reader_prover.reasoner": "rules"}
    trained = clutrr_jax.train("reader_prover", small_folder, replicas=1, epochs=1, settings=given)
    assert trained.model().rules() is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: run.rename(run.parent / "other"), "no config.json, expected the folder of a"),
        (lambda run: (run / "vocabulary.json").write_text("{}"), 'vocabulary.json: damaged, .*"wo'),
        (lambda run: shutil.rmtree(run / "checkpoints"), "checkpoints: no checkpoint, expected"),
        (lambda run: (run / "config.json").write_text('{"model": "own", "seed": 0}'),
         'a run of model "own", which is not registered; expected clutrr_jax.register'),
        (lambda run: (run / "vocabulary.json").write_text('{"words": [], "entities": 9}'),
         "cannot be loaded as gat .a checkpoint without .buffers.* of shape"),
    ],
)  # fmt: skip
def test_a_damaged_or_foreign_folder_is_one_line(change, message, run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run.folder / "gat", folder)
    change(folder)
    with pytest.raises(InputError, match=message) as error:
        clutrr_jax.load_model(folder)
    assert str(folder) in str(error.value)


def test_the_command_writes_what_score_reads(run, small_folder, tmp_path, capsys) -> None:
    folder, out = str(run.folder / "gat"), tmp_path / "p.csv"
    assert run_command(main, [folder, "--data", str(small_folder), "--out", str(out)]) == 0
    assert out.read_bytes() == (run.folder / "gat" / "predictions.csv").read_bytes()
    assert run_command(main, [folder, "--query", "Ann,Cy", "--facts", str(FACTS)]) == 0
    assert "What is Cy to Ann?\n" in capsys.readouterr().out


def test_a_run_is_its_folder_or_that_of_an_experiment_with_one_run(run, tmp_path, capsys) -> None:
    """For `predict` and `rules` alike."""
    shutil.copytree(run.folder / "prover", tmp_path / "one/k23/prover")
    printed = []
    for folder in (run.folder / "prover", tmp_path / "one", tmp_path / "one/k23"):
        assert run_command(main, [str(folder), *ASKED]) == 0
        assert run_command(rules, [str(folder)]) == 0
        printed.append(capsys.readouterr().out)
    assert len(set(printed)) == 1 and "What is Cy to Ann?" in printed[0]
    learned = learned_rules(run.folder / "prover")
    np.testing.assert_array_equal(run.model("prover").module(1).rules(), learned[1])
    assert run_command(rules, [str(run.folder)]) == 0  # of three runs, one learns rules
    assert "mean of 3 replicas" in capsys.readouterr().out
    with pytest.raises(InputError, match="expected one of its runs: gat, prover, word_sum"):
        clutrr_jax.load_model(run.folder)
    with pytest.raises(InputError, match='model "None": expected one of gat, prover, word_sum'):
        run.model()
    for folder, message in (
        (tmp_path / "x", "x: no config.json, expected the folder of a finished run"),
        (run.folder / "gat", "gat learned no rules, expected prover"),
    ):
        assert run_command(rules, [str(folder)]) == 2
        assert message in capsys.readouterr().err


def test_a_file_registers_the_model_of_a_run(run, tmp_path, monkeypatch, capsys) -> None:
    """At the top, or in the function of an experiment."""
    monkeypatch.delitem(api.MODELS, "word_sum")
    folder, asked = str(run.folder / "word_sum"), ["--query=Ann,Cy", f"--story={STORY}"]
    for command, arguments in ((main, asked), (rules, [])):
        assert run_command(command, [folder, *arguments]) == 2
        error = capsys.readouterr().err
        assert 'model "word_sum", which is not registered; expected' in error
        assert "--model-file FILE" in error
    line = 'clutrr_jax.register("word_sum", WordSum, "tokens", {"dim": 8})\n'
    head = "import clutrr_jax\nfrom tests.test_trained_model import WordSum\n"
    file = tmp_path / "my_model.py"
    for text in (head + line, f"{head}def get_config():\n    {line}"):
        file.write_text(text)
        api.MODELS.pop("word_sum", None)
        assert run_command(main, [folder, *asked, f"--model-file={file}"]) == 0
        assert "What is Cy to Ann?" in capsys.readouterr().out
        assert run_command(rules, [folder, f"--model-file={file}"]) == 2
        assert "word_sum learned no rules" in capsys.readouterr().err
    for text, message in (
        (head, ": registers no model, expected a call of clutrr_jax.register"),
        (f"{head}x = 1 / 0", ", line 3: ZeroDivisionError: division by zero; expected a file that"),
    ):
        file.write_text(text)
        assert run_command(main, [folder, *asked, f"--model-file={file}"]) == 2
        assert capsys.readouterr().err.startswith(f"error: {file}{message}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "x"], "expected --data DATA --out FILE, or --query X,Y"),
        (["--data", "x", "--out", "p.txt"], "--out p.txt: expected a name that ends in .csv"),
        (["--query", "Ann", "--facts", str(FACTS)], "expected a pair of names"),
        (["--query", "Ann,Cy", "--story", STORY], "gat: reads facts, but story 1 of 1 has none"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, message, run, capsys) -> None:
    assert run_command(main, [str(run.folder / "gat"), *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and message in line


def test_a_longer_training_goes_on_as_if_it_were_one(small_folder, tmp_path) -> None:
    """Also after a run that the patience ended, and the report is that of the longer one."""

    def train(folder: str, epochs: int | None = None, **length: int) -> clutrr_jax.Trained:
        return clutrr_jax.train(
            "edge_rnn", small_folder, epochs=epochs, replicas=2, seed=1, folder=tmp_path / folder,
            settings={f"train.{name}": value for name, value in length.items()},
        )  # fmt: skip

    def check(one: clutrr_jax.Trained, other: clutrr_jax.Trained, epochs: int) -> None:
        jax.tree.map(np.testing.assert_array_equal, one.model().params, other.model().params)
        for file in ("predictions.csv", "predictions.npz"):
            files = [run.folder / "edge_rnn" / file for run in (one, other)]
            assert files[0].read_bytes() == files[1].read_bytes()
        assert len((one.folder / "edge_rnn/metrics.jsonl").read_text().splitlines()) == epochs
        assert one.results["models"]["edge_rnn"]["epochs"] == epochs

    train("a", epochs=2)
    check(train("a", epochs=4), train("b", epochs=4), 4)
    # One step is an epoch. With a patience of 1 it ends at the first epoch that is no better.
    train("c", steps=1, patience=5)
    check(train("c", steps=3, patience=5), train("d", steps=3, patience=5), 3)
    for folder, length, message in (
        ("a", {"epochs": 3}, 'was "4", now "3"; expected at least as long a training'),
        ("c", {"steps": 4, "patience": 4}, 'was "5", now "4"; expected at least as long'),
        ("a", {"steps": 2}, "has trained 4 epochs, expected at least as many, now 2"),
    ):
        with pytest.raises(InputError, match=message):
            train(folder, **length)


def test_training_that_starts_from_a_model(run, tmp_path) -> None:
    start = run.model("prover")
    other = clutrr_jax.generate(train="1.3", test="1.4", train_rows=60, test_rows=20, seed=8)
    arguments = {"models": "prover", "dataset": other, "epochs": 1, "folder": tmp_path / "tuned"}
    tuned = clutrr_jax.train(**arguments, start=start)
    model = tuned.model()
    assert model.replicas == 3 and model.vocabulary == start.vocabulary
    for found, is_started in ((tuned, True), (model.evaluate(other), True),
                              (start.evaluate(other), False)):  # fmt: skip
        given = {row["given"] for row in found.results["rows"] if row["name"] == "prover"}
        assert given == {"another training" if is_started else "nothing"}
    # A step of Adam moves each parameter by at most the learning rate.
    most = 1.01 * model.settings["train"]["learning_rate"]
    for before, after in zip(*(jax.tree.leaves(m.params) for m in (start, model)), strict=True):
        assert 0 < np.abs(before - after).max() < most
    again = clutrr_jax.train(**arguments, start=run.folder / "prover")
    assert again.folder == tuned.folder
    with pytest.raises(InputError, match='another configuration: start was "'):
        clutrr_jax.train(**arguments, start=model)


def test_a_start_that_does_not_fit_is_refused(run, small_folder, tmp_path) -> None:
    start = run.model("gat")
    for message, arguments in {
        "start: a gat, expected models='gat'": {"models": "prover"},
        "replicas 2: start has 3, expected as many": {"replicas": 2},
        r"gat: start: array .* of shape \(300, 200\), expected \(90, 200\); the settings": {
            "settings": {"gat.node": 30}
        },
    }.items():
        with pytest.raises(InputError, match=message):
            clutrr_jax.train(
                **({"models": "gat", "dataset": small_folder, "start": start} | arguments)
            )
    rows = [chain(40) | {"target": "sister"}] * 5
    with pytest.raises(InputError, match="a story of 40 people, expected at most 20"):
        clutrr_jax.train("gat", clutrr_jax.load({"train": rows, "test": rows}), start=start)


def test_an_ensemble_is_the_mean_of_the_probabilities(run, test, small_folder, capsys) -> None:
    """In its run, from its predictions, and of several files."""
    rows = {(row["model"], row["task"]): row for row in run.accuracy}
    files = [run.folder / name / "predictions.npz" for name in ("gat", "prover")]
    given = {"mine": run.predictions["gat"], "both": files}
    scored = clutrr_jax.evaluate(given, small_folder).accuracy
    rows |= {(row["model"], row["task"]): row for row in scored}
    each = [run.predictions[name].probabilities for name in ("gat", "prover")]
    for name, probabilities in (
        ("gat (ensemble of 3)", each[0]),
        ("mine (ensemble of 3)", each[0]),
        ("both (ensemble of 6)", np.concatenate(each)),
    ):
        right = probabilities.mean(axis=0).argmax(axis=-1) == test.target
        for task, stories in tasks(test):
            row = rows[name, task]
            assert row["accuracy"] == pytest.approx(right[stories].mean())
            assert (row["replicas"], row["stderr"]) == (1, None) and row["low"] < row["high"]
    table = {line[1]: line for line in run.tables()[0]}  # the first column is the noise
    assert table["gat (ensemble of 3)"][2] == table["gat (3 replicas)"][2] == "nothing"
    assert "gat (ensemble of 3)" in (run.folder / "report.html").read_text()
    arguments = ["--data", str(small_folder), "--predictions", f"both={files[0]},{files[1]}"]
    assert run_command(score, arguments) == 0
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["both", "(ensemble", "of", "6)", "nothing"] in [line[1:6] for line in printed]
    with pytest.raises(InputError, match="a file occurs twice"):
        clutrr_jax.evaluate({"both": [files[0], files[0]]}, small_folder)


def test_an_ensemble_of_one_is_the_model_and_of_equals_is_each(test) -> None:
    values = np.random.default_rng(0).dirichlet(np.ones(22), (1, len(test))).astype(np.float32)
    one = Predictions(values.argmax(axis=-1), values.argmax(axis=-1), values.max(axis=-1), values)
    assert ensemble(one) is None
    same = Predictions(*(np.repeat(part, 4, axis=0) for part in one[:4]))
    found = ensemble(same)
    np.testing.assert_array_equal(found.relation, one.relation)
    np.testing.assert_allclose(found.probabilities, values, rtol=1e-6)


def test_a_folder_of_version_0_2_0_is_read(run, test, tmp_path) -> None:
    """It has the probabilities alone, in a file of another name."""
    with np.load(run.folder / "gat" / "predictions.npz") as file:
        old = {name: file[name] for name in ("probabilities", "ids", "targets", "relations")}
    np.savez_compressed(tmp_path / "probabilities.npz", **old)
    found = read_run(tmp_path, test)
    np.testing.assert_array_equal(found.relation, run.predictions["gat"].relation)
    np.testing.assert_array_equal(found.probabilities, run.predictions["gat"].probabilities)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop("ids"), "expected the arrays probabilities, ids, relations of a run"),
        (lambda a: a.update(ids=np.array(["x"] * 80)), "no story .* expected those of this data"),
        (lambda a: a.update(relations=np.array(["x"] * 22)), "expected probabilities of 22 relat"),
        (lambda a: a.update(predicted=a["predicted"] + 22), "expected a predicted relation for"),
    ],
)
def test_foreign_probabilities_are_one_line(change, message, run, test, tmp_path) -> None:
    with np.load(run.folder / "gat" / "predictions.npz") as file:
        arrays = dict(file)
    order = np.random.default_rng(0).permutation(len(test))
    moved = arrays | {name: arrays[name][order] for name in ("ids", "targets")}
    moved |= {name: arrays[name][:, order] for name in ("probabilities", "predicted")}
    np.savez(tmp_path / "p.npz", **moved)
    found = read_predictions([tmp_path / "p.npz"], test)
    np.testing.assert_array_equal(found.probabilities, arrays["probabilities"])
    change(arrays)
    np.savez(tmp_path / "p.npz", **arrays)
    with pytest.raises(InputError, match=f"p.npz: {message}"):
        read_predictions([tmp_path / "p.npz"], test)
