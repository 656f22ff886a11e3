"""Exports to evaluation harnesses, and their logs read as predictions."""

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import yaml

import clutrr_jax
from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import story_ids, tasks
from clutrr_jax.language_models.export import DEFAULT_TOKENS, export
from clutrr_jax.language_models.submissions import UNMAPPED, read_submissions
from clutrr_jax.score import main
from generator.errors import InputError
from generator.relations.kinship import NUM_RELATIONS, RELATION_ID, RELATIONS
from tests.command_line import harnesses
from tests.language_models.logs import (
    inspect_log,
    write_choices,
    write_inspect,
    write_lm_eval,
    write_samples,
)
from tests.test_docs import commands
from tests.test_fuzz import TEST

HERE = Path(__file__).parent
# Log of two epochs by run_harness.py on the two stories of TEST, compressed by Zstandard.
REAL_LOG = HERE / "inspect.eval"


@pytest.fixture(scope="module")
def data(small_folder):
    return load(small_folder)


@pytest.fixture(scope="module")
def folders(data, tmp_path_factory) -> dict[str, Path]:
    """One export of each format."""
    root = tmp_path_factory.mktemp("exports")
    for format in ("jsonl", "lm-eval", "inspect"):
        export(data, root / format, format, "few-shot", 2)
    return {path.name: path for path in root.iterdir()}


@pytest.fixture(scope="module")
def rows(folders) -> list[dict]:
    lines = (folders["jsonl"] / "prompts.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_an_export_needs_nothing_of_this_project(folders) -> None:
    """And every format has the same prompts."""
    readers = {"answers", "marked_text", "statements", "named_answers", "inspect_scoring"}
    allowed = {*sys.stdlib_module_names, *readers, "datasets", "inspect_ai"}
    for format, folder in folders.items():
        for path in folder.glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    module = getattr(node, "module", None) or node.names[0].name
                    assert module.partition(".")[0] in allowed, f"{format}: {module}"
        text = "".join(path.read_text() for path in folder.iterdir())
        assert str(folder) not in text  # it can be moved
    assert len({(folder / "prompts.jsonl").read_bytes() for folder in folders.values()}) == 1


def test_the_tasks_of_lm_eval(data, folders, rows, tmp_path, monkeypatch) -> None:
    """Each group has all tasks. Together they have all stories, and judge as `score` does."""
    folder = shutil.copytree(folders["lm-eval"], tmp_path / "moved")
    every = [task for task, _ in tasks(data.test)]
    files = {path.stem: yaml.safe_load(path.read_text()) for path in folder.glob("*.yaml")}
    for group in ("clutrr", "clutrr_mc"):
        names = [f"{group}_{task}" for task in every]
        settings = files.pop(group)
        assert settings["task"] == names
        # Its accuracy is the mean over all stories, also if the tests differ in size.
        mean = {"metric": "acc", "aggregation": "mean", "weight_by_size": True}
        assert settings["aggregate_metric_list"] == [mean]
        for name, task in zip(names, every, strict=True):
            assert files.pop(name) == {"include": f"_{group}_yaml", "task": name,
                                       "dataset_kwargs": {"task": task}}  # fmt: skip
    assert not files

    datasets = types.SimpleNamespace(Dataset=types.SimpleNamespace(from_list=list))
    monkeypatch.setitem(sys.modules, "datasets", datasets)
    monkeypatch.setattr(sys, "path", sys.path[:])
    for name in ("answers", "named_answers"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    spec = importlib.util.spec_from_file_location("utils", folder / "utils.py")
    utils = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(utils)
    for name in ("answers", "named_answers"):
        monkeypatch.delitem(sys.modules, name)
    docs = [doc for task in every for doc in utils.dataset(task, version=1.0)["test"]]
    assert docs == rows
    choices = utils.choices(docs[0])
    assert [choice.strip() for choice in choices] == docs[0]["choices"]
    # Else the longer of two could not be more likely.
    assert not any(a != b and a.startswith(b) for a in choices for b in choices)
    for doc in docs:
        assert utils.process_results(doc, [f"Answer: **{doc['target'].upper()}**."]) == {"acc": 1}
        assert utils.process_results(doc, ["a cousin"]) == {"acc": 0}


def test_the_limit_of_an_answer_is_in_the_files(data, tmp_path) -> None:
    """As the only limit, and nothing stops a thought that names the story again."""
    for more, limit in (({}, DEFAULT_TOKENS), ({"max_tokens": 300}, 300)):
        for format in ("lm-eval", "inspect"):
            done = export(data, tmp_path / format, format, "few-shot", 2, **more)
            assert done == (len(data.test), tmp_path / format)
        task = (tmp_path / "inspect/clutrr.py").read_text()
        assert f"\nMAX_TOKENS = {limit}\n" in task and "max_tokens=MAX_TOKENS" in task
        settings = (tmp_path / "lm-eval/_clutrr_yaml").read_text().replace("!function ", "")
        arguments = yaml.safe_load(settings)["generation_kwargs"]
        assert arguments["max_gen_toks"] == limit and arguments["until"] == []


def test_logs_of_all_harnesses_give_the_same_predictions(data, rows, tmp_path) -> None:
    """Predictions are those of the answers; epochs and repeats are replicas."""
    rng = np.random.default_rng(0)
    wrong = [RELATIONS[(RELATION_ID[row["target"]] + 1) % NUM_RELATIONS] for row in rows]
    right = rng.random((3, len(rows))) < 0.6
    answers = [
        [f"Thus\nAnswer: {row['target'] if ok else other}" for row, ok, other in
         zip(rows, one, wrong, strict=True)] for one in right
    ]  # fmt: skip
    answers[0][0] = "a cousin"
    log = inspect_log(rows, answers)
    paths = [write_inspect(tmp_path / name, log) for name in ("a.eval", "b.json")]
    paths.append(write_lm_eval(tmp_path / "model", rows, answers))
    ids = story_ids(data.test)
    found = read_submissions(paths, data.test)
    assert [s.name for s in found] == [str(paths[0]), str(paths[1]), "model"]
    assert read_submissions(paths[:1], data.test)[0].name == "lab/model"
    order = [ids.index(row["id"]) for row in rows]
    for submission in found:
        best = submission.predictions.relation[:, order]
        assert best[0, 0] == UNMAPPED
        best[0, 0] = RELATION_ID[rows[0]["target"] if right[0, 0] else wrong[0]]
        np.testing.assert_array_equal(best == data.test.target[order], right)


def test_a_log_of_the_real_package() -> None:
    """All answers to its two stories are right, in both epochs."""
    submission = read_submissions([REAL_LOG], TEST)[0]
    assert submission.name == "mockllm/knows-k2"
    assert submission.predictions.relation.tolist() == [TEST.target.tolist()] * 2


def edit(log: dict, **changes) -> None:
    """Changes the second sample."""
    log["samples"][1] |= changes


@pytest.mark.parametrize("suffix", [".eval", ".json"])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda log: log["eval"].update(task="gsm8k"),
            'log of the task "gsm8k", expected "clutrr"',
        ),
        (lambda log: log.update(status="cancelled"), 'status "cancelled", expected a finished run'),
        (lambda log: log.update(eval={}), 'not a log of inspect .*no "task"'),
        (lambda log: log["samples"].clear(), "no predictions"),
        (lambda log: edit(log, error={"message": "rate limit"}), "ended with an error"),
        (lambda log: edit(log, target="cousin"), "has another text or label"),
        (lambda log: edit(log, input="Story: x\nQuestion: What is Al to Bo?\n"), "another text"),
        (lambda log: edit(log, input=[{"role": "user"}]), "has another text or label"),
        (lambda log: edit(log, output={}), 'no "completion"'),
        (lambda log: edit(log, epoch=2), "no prediction of replica 1 for 1 of 80"),
        (lambda log: log["samples"][0].update(id="9.9/1"), "no test story '9.9/1'"),
    ],
)
def test_a_wrong_inspect_log_is_a_one_line_error(
    data, rows, tmp_path, suffix, change, expected
) -> None:
    log = inspect_log(rows, [["aunt"] * len(rows)])
    change(log)
    refused(write_inspect(tmp_path / f"log{suffix}", log), data, expected)


def refused(path: Path, data, expected: str) -> None:
    with pytest.raises(InputError, match=f"{re.escape(str(path))}.*{expected}"):
        read_submissions([path], data.test)


def test_a_damaged_inspect_log_is_a_one_line_error(data, tmp_path) -> None:
    content = REAL_LOG.read_bytes()
    first = content.index(b"samples/c_epoch_1.json") + 200
    path = tmp_path / "log.eval"
    for damaged, expected in (
        (b"", "not a log of inspect"),
        (content[:-30], "not a log of inspect"),
        (content.replace(b"header.json", b"footer.json"), "no header.json"),
        (content[:first] + bytes(60) + content[first + 60 :], "not a log of inspect"),
        (content[:first] + content[first + 60 :], "not a log of inspect"),
    ):
        path.write_bytes(damaged)
        refused(path, data, expected)
    refused(tmp_path / "absent.eval", data, "No such file")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda lines: [*lines, lines[0]], "row 21: second prediction"),
        (lambda lines: [lines[0].replace('"query"', '"q"').replace("What is", "Who is")],
         "has another text or label"),
        (lambda lines: ['{"doc_id": 0, "doc": {"question": "1 + 1?"}, "resps": [["2"]]}'],
         "not a sample of the exported task"),
        (lambda lines: ["[]"], "row 1: expected a JSON object"),
        (lambda lines: [], "empty file"),
    ],
)  # fmt: skip
def test_a_wrong_lm_eval_log_is_a_one_line_error(data, rows, tmp_path, change, expected) -> None:
    folder = write_lm_eval(tmp_path / "model", rows, [["aunt"] * len(rows)])
    path = folder / "samples_clutrr_1.2_2026.jsonl"
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")
    refused(folder, data, expected)


TASKS = ["1.2", "1.3", "1.5", "2.4"]


@pytest.mark.parametrize(
    ("runs", "expected", "printed"),
    [
        # Answers of two runs are not mixed, also if the newest is incomplete.
        ({"2026-03": ("aunt", TASKS), "2026-11": ("uncle", TASKS)}, {"uncle": TASKS}, ["2026-03"]),
        ({"2026-03": ("aunt", TASKS), "2026-11": ("uncle", TASKS[1:])}, {"uncle": TASKS[1:]},
         ["2026-03"]),
        # Runs of different tasks belong together.
        ({"": ("aunt", TASKS[:1]), "2026": ("aunt", TASKS[1:2]), "2027": ("uncle", TASKS[2:])},
         {"aunt": TASKS[:2], "uncle": TASKS[2:]}, []),
        # A run that is older than one that is not read is not read either.
        ({"2026-01": ("aunt", TASKS[1:]), "2026-02": ("uncle", TASKS), "2026-03": ("son", ["1.2"])},
         {"son": ["1.2"]}, ["2026-02", "2026-01"]),
    ],
)  # fmt: skip
def test_the_newest_run_in_a_folder_of_lm_eval_is_read(
    data, rows, tmp_path, capsys, runs, expected, printed
) -> None:
    for date, (answer, of_run) in runs.items():
        part = [row for row in rows if row["task"] in of_run]
        for path in write_lm_eval(tmp_path / date / "log", part, [[answer] * len(part)]).iterdir():
            path.rename(tmp_path / path.name.replace("_2026", f"_{date}" if date else ""))
    (tmp_path / "samples_gsm8k.jsonl").write_text('{"doc": {}}\n')  # of another task
    (found,) = read_submissions([tmp_path], data.test)
    task_of = {story: task for task, stories in tasks(data.test) for story in stories}
    answers = zip(found.stories.tolist(), found.predictions.relation[0], strict=True)
    answer_of = {task: answer for answer, of_answer in expected.items() for task in of_answer}
    assert {(task_of[s], RELATIONS[r]) for s, r in answers} == set(answer_of.items())
    lines = [f"{tmp_path}: read the run of {max(runs)}, not of {date}" for date in printed]
    assert capsys.readouterr().err.splitlines() == lines


def test_multiple_choice(data, rows, tmp_path, capsys) -> None:
    """The likeliest choice is the answer, of several the first; repeats are replicas. The free
    answers in the same folder are a submission of their own."""
    rng = np.random.default_rng(0)
    likelihoods = np.round(rng.normal(size=(2, len(rows), NUM_RELATIONS)), 1)
    folder = write_choices(tmp_path / "model", rows, likelihoods.astype(str).tolist())
    (found,) = read_submissions([folder], data.test)
    order = np.argsort([story_ids(data.test).index(row["id"]) for row in rows])
    best = [[RELATION_ID[rows[s]["choices"][one[s].argmax()]] for s in order]
            for one in likelihoods]  # fmt: skip
    assert found.name == "model (multiple choice)"
    assert found.predictions.relation.tolist() == best
    write_lm_eval(folder, rows[:5], [["aunt"] * 5])
    for file, name in ((f"mine={folder}", "mine"), (folder, "model")):
        both = read_submissions([file], data.test)
        assert [s.name for s in both] == [name, f"{name} (multiple choice)"]
        assert [len(s.stories) for s in both] == [5, len(rows)]
        assert both[1].predictions.relation.tolist() == best
    scores = clutrr_jax.evaluate({"mine": folder}, data)
    assert {"mine", "mine (multiple choice)"} <= {row["model"] for row in scores.accuracy}
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda resps: resps.pop(), "expected the log-likelihood of each of the 22 choices"),
        (lambda resps: resps[3].append(["-1.0", "True"]), "expected the log-likelihood of each"),
        (lambda resps: resps[3][0].pop(), "expected the log-likelihood of each"),
        (lambda resps: resps[3].__setitem__(0, ["nan", "True"]), "expected the log-likelihood"),
        (lambda resps: resps[3].__setitem__(0, ["aunt", "True"]), "expected the log-likelihood"),
        (lambda resps: resps[3].__setitem__(0, "aunt"), "not a sample of the exported task"),
        (lambda resps: resps.clear(), "expected the log-likelihood"),
    ],
)
def test_a_wrong_log_of_multiple_choice_is_a_one_line_error(
    data, rows, tmp_path, change, expected
) -> None:
    resps = [[["-1.0", "False"]] for _ in range(NUM_RELATIONS)]
    change(resps)
    refused(write_samples(tmp_path / "model", "clutrr_mc", rows[:1], [resps]), data, expected)


def test_one_file_of_lm_eval_and_an_empty_folder(data, rows, tmp_path) -> None:
    folder = write_lm_eval(tmp_path / "model", rows, [["aunt"] * len(rows)])
    refused(next(folder.glob("samples_*")), data, "expected the folder")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", data, r"no samples_\*.jsonl")


# The real packages, in an environment of their own.


def run_harness(
    program: str,
    folder: Path,
    tmp_path: Path,
    *more: str,
    lm_eval_model: str = "dummy",
    data: Path | None = None,
) -> str:
    """Runs a command of docs/language_models.md offline; returns what it printed. That of inspect
    with the installed task if `data` is given."""
    python = harnesses() / "bin" / "python"
    command = next(
        words
        for words, _ in commands("docs/language_models.md")
        if words[0] == program and ("clutrr_jax/clutrr" in words) == (data is not None)
    )
    mock = {"hf": lm_eval_model, "PROVIDER/MODEL": "mockllm/model", "data=DATA": f"data={data}"}
    export = Path("exports") / folder.name
    shutil.copytree(folder, tmp_path / export, dirs_exist_ok=True)
    offline = {"HF_HOME": str(tmp_path / "hf"), "HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1"}
    command = [mock.get(word, word) for word in command]
    done = subprocess.run(
        [python, HERE / "run_harness.py", export, *command, *more],
        cwd=tmp_path, env=os.environ | offline, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def scores(small_folder: Path, predictions: Path, tmp_path: Path) -> tuple[str, int, dict]:
    """Name, replicas and accuracy per task of a log, by `score`."""
    main(["--data", str(small_folder), "--predictions", str(predictions),
          "--out", str(tmp_path / "scores")])  # fmt: skip
    results = json.loads((tmp_path / "scores" / "scores.json").read_text())
    kinds = {row["name"]: row["kind"] for row in results["rows"] if row["kind"] != "baseline"}
    name, _ = kinds
    assert kinds == {name: "model", f"{name} (strict)": "strict"}
    rows = [row for row in results["rows"] if row["name"] == name and row["count"]]
    return name, rows[0]["replicas"], {row["task"]: row["accuracy"] for row in rows}


KNOWN = {"1.2": 1.0, "1.3": 0.0, "1.5": 0.0, "2.4": 0.0}


@pytest.mark.slow
@pytest.mark.parametrize(("format", "epochs"), [("eval", 2), ("json", 1)])
def test_inspect_end_to_end(small_folder, folders, tmp_path, format: str, epochs: int) -> None:
    printed = run_harness("inspect", folders["inspect"], tmp_path, "--display", "plain",
                          "--system-message", "You are an expert.",
                          "--epochs", str(epochs), "--log-format", format)  # fmt: skip
    for line in ("accuracy      0.250", "accuracy 1.2  1.000", "accuracy 2.4  0.000"):
        assert line in printed, printed
    assert "stderr 1.2" in printed
    (log,) = (tmp_path / "logs" / "inspect").glob(f"*.{format}")
    assert scores(small_folder, log, tmp_path) == ("mockllm/model", epochs, KNOWN)


@pytest.mark.slow
def test_the_installed_task_of_inspect(small_folder, folders, tmp_path) -> None:
    """It has the prompts of the export, of each task the first ones."""
    printed = run_harness("inspect", folders["inspect"], tmp_path, "--display", "plain",
                          "-T", "shots=2", "-T", "per_task=3", data=small_folder)  # fmt: skip
    assert "accuracy      0.250" in printed and "accuracy 1.2  1.000" in printed, printed
    (log,) = (tmp_path / "logs" / "inspect").iterdir()
    assert scores(small_folder, log, tmp_path) == ("mockllm/model", 1, KNOWN)


def accuracies(printed: str) -> dict[str, float]:
    """The values in the table of lm-eval."""
    lines = [[cell.strip() for cell in line.split("|")] for line in printed.splitlines()]
    return {cells[1]: float(cells[7]) for cells in lines if len(cells) > 7 and cells[5] == "acc"}


@pytest.mark.slow
def test_lm_eval_end_to_end(small_folder, folders, tmp_path) -> None:
    """The group has the mean of all stories."""
    printed = run_harness("lm_eval", folders["lm-eval"], tmp_path)
    assert accuracies(printed) == {"clutrr": 0.25} | {
        f"- clutrr_{task}": v for task, v in KNOWN.items()
    }
    log = tmp_path / "logs" / "lm-eval" / "ORGANIZATION__MODEL"
    assert scores(small_folder, log, tmp_path) == ("ORGANIZATION__MODEL", 1, KNOWN)
