"""launch.py on one data set, as a user runs it."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from clutrr_jax import experiment, run
from clutrr_jax.cli import folder_lock
from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.launch import parse
from clutrr_jax.rules import main as learned_rules
from clutrr_jax.settings import default_settings
from clutrr_jax.slurm import launcher
from tests.command_line import ROOT, error_of, launch, start

PROVER = (
    "--config.models=prover", "--config.prover.rounds=1", "--config.prover.train.epochs=2",
    "--config.train.replicas=2",
)  # fmt: skip
GAT = (
    "--config.models=gat", "--config.gat.node=4", "--config.gat.heads=2", "--config.gat.rounds=1",
    "--config.gat.steps=1", "--config.gat.readout=4", "--config.train.epochs=2",
)  # fmt: skip
BOTH = (*PROVER, *GAT, "--config.models=gat,prover", "--config.log=tensorboard")


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def data(small_folder) -> str:
    return f"--config.data={small_folder}"


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory) -> tuple[Path, str]:
    """A finished run of two models: its folder and standard output."""
    workdir = tmp_path_factory.mktemp("run")
    done = launch(*BOTH, data, f"--workdir={workdir}")
    assert done.code == 0, done.err
    return workdir, done.out


def test_run_writes_report(finished) -> None:
    workdir, printed = finished
    results = json.loads((workdir / "results.json").read_text())
    rows = {(r["model"], r["task"]): r for r in results["rows"]}
    assert set(rows) == {
        (model, task)
        for model in ("gat", "prover", "gat (ensemble of 2)", "prover (ensemble of 2)", *BASELINES)
        for task in ("1.2", "1.3", "2.4", "1.5")
    }
    row = rows["gat", "1.5"]
    assert (row["k"], row["count"], row["replicas"], row["ambiguous"]) == (5, 20, 2, 0)
    assert 0 <= row["low"] <= row["accuracy"] <= row["high"] <= 1
    assert results["models"]["gat"]["settings"]["train"]["epochs"] == 2
    assert results["versions"]["jax"]
    assert (workdir / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert (workdir / "report.html").read_text().count("attention") > 0
    for text in (printed, (workdir / "results.md").read_text()):
        assert "prover (2 replicas)" in text and "majority" in text
    assert len((workdir / "gat" / "predictions.csv").read_text().splitlines()) == 1 + 2 * 80
    assert list((workdir / "gat" / "tensorboard").glob("events.*"))
    assert len(read_lines(workdir / "gat" / "metrics.jsonl")) == 2


def test_the_rules_of_a_finished_prover_are_printed(finished, capsys) -> None:
    learned_rules([str(finished[0])])
    assert "mean of 2 replicas" in capsys.readouterr().out


def test_same_command_changes_nothing(finished, data) -> None:
    workdir, _ = finished
    files = ("results.json", "results.md", "gat/predictions.csv", "gat/metrics.jsonl")
    before = [(workdir / name).read_bytes() for name in files]
    (workdir / "results.json").unlink()
    minutes = "--config.train.checkpoint_minutes=9"  # does not change a run
    assert launch(*BOTH, f"{data}/", minutes, f"--workdir={workdir}").code == 0
    assert [(workdir / name).read_bytes() for name in files] == before


def test_other_configuration_is_refused(finished, data) -> None:
    workdir, _ = finished
    before = (workdir / "results.json").read_bytes()
    done = launch(*BOTH, data, f"--workdir={workdir}", "--config.seed=1")
    assert done.code == 2 and 'another configuration: seed was "0", now "1"' in done.err
    assert (workdir / "results.json").read_bytes() == before


def test_stories_of_a_failed_start_are_replaced(tmp_path) -> None:
    wrong = ("--config.models=gat", "--config.gat.heads=7", f"--workdir={tmp_path}")
    for rows in (10, 12):
        done = launch(*wrong, f"--config.generate.train_rows={rows}", "--config.generate.test=1.2")
        assert "expected a multiple of heads 7" in error_of(done)
        assert len((tmp_path / "data/1.2,1.3_train.csv").read_text().splitlines()) == 1 + 2 * rows


def test_files_that_a_run_would_replace_are_kept(tmp_path) -> None:
    for name in ("data/mine.csv", "gat/predictions.csv", "results.md"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
        error = error_of(launch(f"--workdir={tmp_path}", "--config.models=gat"))
        assert error.startswith(f"error: {file}: not of ")
        assert file.read_text() == "mine"
        file.unlink()


def test_folders_of_something_else_are_refused(finished, tmp_path) -> None:
    models = "--config.models=gat"
    other = tmp_path / "other"
    (other / "gat").mkdir(parents=True)
    (other / "gat" / "config.json").write_text('{"model_type": "bert"}')
    error = error_of(launch(f"--workdir={other}", models))
    assert "config.json: belongs to a run with another configuration" in error
    scales = launch(f"--workdir={finished[0]}", "--config.only=none", config="figure5")
    assert "holds the report of single, expected another folder" in error_of(scales)
    counts = launch(f"--workdir={finished[0]}", config="table1")
    assert "holds the report of single, expected another folder" in error_of(counts)


def test_locked_folder_is_refused(data, tmp_path) -> None:
    with folder_lock(tmp_path / "prover"):
        done = launch(*PROVER, data, f"--workdir={tmp_path}")
    assert str(tmp_path) in error_of(done)


def test_models_of_one_folder_have_the_same_stories(small_folder, tmp_path) -> None:
    """A model is added after the data set, which has the same path, has lost a train story."""
    stories, workdir = shutil.copytree(small_folder, tmp_path / "data"), tmp_path / "run"
    arguments = (f"--config.data={stories}", f"--workdir={workdir}")
    assert launch(*PROVER, *arguments).code == 0
    before = (workdir / "data.json").read_bytes()
    (train,) = stories.glob("*_train.csv")
    train.write_text("".join(train.read_text().splitlines(keepends=True)[:-1]))
    for settings in (GAT, (*PROVER, *GAT, "--config.models=gat,prover")):
        error = error_of(launch(*settings, *arguments))
        assert "config.json: belongs to a run on other stories" in error
        assert (workdir / "data.json").read_bytes() == before


def test_a_run_is_not_resumed_after_a_correction_of_k(small_folder, tmp_path) -> None:
    """The arrays of the stories are the same, but not the columns of the table."""
    stories = shutil.copytree(small_folder, tmp_path / "data")
    arguments = (*PROVER, f"--config.data={stories}", f"--workdir={tmp_path / 'run'}")
    assert launch(*arguments).code == 0
    test = stories / "1.5_test.csv"
    test.write_text(test.read_text().replace("task_1.5", "task_1.4", 1))
    assert "not the data set of this run" in error_of(launch(*arguments))


def test_a_run_of_another_process_is_skipped(finished, data, tmp_path) -> None:
    workdir = shutil.copytree(finished[0], tmp_path / "copy")
    (workdir / "prover" / "model.json").unlink()
    with folder_lock(workdir / "prover"):
        done = launch(*BOTH, data, f"--workdir={workdir}")
    assert done.code == 0 and "Skipped: " in done.out
    assert "gat: trained before" in done.out and "| prover " not in done.out
    states = json.loads((workdir / "results.json").read_text())["runs"]
    assert [run["state"] for run in states] == ["finished", "not run"]


@pytest.mark.slow
def test_preempted_run_resumes_to_the_same_numbers(data, tmp_path) -> None:
    """SIGTERM saves a checkpoint after the current epoch; the resumed run equals an uninterrupted
    one."""
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    many = [*PROVER, data, "--config.prover.train.epochs=30"]
    # With as many devices as this process uses.
    environment = os.environ | {"SLURM_CPUS_ON_NODE": "2"}
    process = start(*many, f"--workdir={stopped}", env=environment)
    metrics = stopped / "prover" / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and metrics.read_text()):
        time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    printed, _ = process.communicate(timeout=100)
    assert process.returncode == 75 and "Traceback" not in printed, printed
    (checkpoint,) = (stopped / "prover" / "checkpoints").iterdir()
    assert checkpoint.name == str(len(read_lines(metrics))) and int(checkpoint.name) < 30
    assert not (stopped / "prover" / "model.json").exists()
    for workdir in (stopped, whole):
        assert launch(*many, f"--workdir={workdir}").code == 0
    ours, theirs = (read_lines(folder / "prover" / "metrics.jsonl") for folder in (stopped, whole))
    for name in ("epoch", "loss", "dev_accuracy"):
        assert [line[name] for line in ours] == [line[name] for line in theirs]
    predictions = [folder / "prover" / "predictions.csv" for folder in (stopped, whole)]
    assert predictions[0].read_bytes() == predictions[1].read_bytes()


def test_full_disk_is_one_line_and_loses_nothing(finished, data, tmp_path) -> None:
    """With a limit of 8 kB per file, which is like a full disk."""
    workdir, _ = finished
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        full = launch(*PROVER, data, f"--workdir={tmp_path}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert full.code == 2 and "Traceback" not in full.err, full.err
    assert "cannot be written" in full.err.splitlines()[-1]
    assert launch(*PROVER, data, f"--workdir={tmp_path}").code == 0
    ours, theirs = (folder / "prover" / "predictions.csv" for folder in (tmp_path, workdir))
    assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--config.models=gta", 'no model "gta"'),
        ("--config.bogus=1", 'command line: no setting "config.bogus"; expected one of config.d'),
        ("--config.gat.bogus=1", 'no setting "config.gat.bogus"; expected one of config.gat.'),
        ("--config.train.epochs=many", "\"config.train.epochs\": 'many', expected int"),
        ("--config.data=docs", "docs: no data"),
        ("--config.data=generate", 'data "generate": stories are generated once'),
        ("--nonsense", '"--nonsense": expected --config.NAME=VALUE'),
        ("train.epochs=3", '"train.epochs=3": expected --config.NAME=VALUE'),
        ("--slurm.partition=gpu", "expected --launcher=slurm"),
        ("--slurm.bogus=1 --launcher=slurm", 'no setting "slurm.bogus"'),
        ("--launcher=moon", "--launcher: invalid choice: 'moon'"),
        ("--launcher=slurm --hosts=auto", "--hosts=auto: expected no --launcher=slurm"),
        ("--hosts=auto --host_count=2", "--host_count, --host_number: expected --hosts=HOST:PORT"),
        ("--hosts= --host_count=2 --host_number=1", "--hosts: empty, expected HOST:PORT or auto"),
        ("--host_count=2", "--host_count, --host_number: expected --hosts=HOST:PORT"),
        ("--config.train.dev_fraction=20", "train.dev_fraction 20.0: expected"),
    ],
)
def test_wrong_command_is_one_line(arguments: str, expected: str, tmp_path: Path) -> None:
    done = launch(*arguments.split(), f"--workdir={tmp_path}")
    assert done.code == 2 and done.err.count("\n") == 1 and expected in done.err


def test_what_is_given_for_all_models_ranks_before_their_defaults() -> None:
    given = ["--config.models=gat,ncrl,bilstm_attention", "--config.train.learning_rate=1e-4",
             "--config.train.batch=50", "--config.train.steps=400",
             "--config.ncrl.train.batch=20"]  # fmt: skip
    _, config, _ = parse(["", "--config=experiments/demo.py", "--workdir=runs", *given])
    used = {
        run.model: (train.learning_rate, train.batch, train.steps, train.patience, train.epochs)
        for run in experiment.runs(config)
        for train in [run.config.train]
    }
    # experiments/demo.py sets epochs of the GAT and BiLSTM, which rank before steps for all models.
    assert used == {
        "gat": (1e-4, 50, 400, 1000, 20),
        "ncrl": (1e-4, 20, 400, 1000, None),
        "bilstm_attention": (1e-4, 50, 400, 3000, 5),
    }


def test_no_model_is_trained_if_another_has_wrong_settings(data, tmp_path) -> None:
    for model, wrong, expected in (
        ("bert", (f"--config.bert.folder={tmp_path / 'nowhere'}",), "bert: "),
        ("gat", ("--config.gat.heads=7",), "expected a multiple of heads 7"),
    ):
        models = f"--config.models=prover,{model}"
        done = launch(*PROVER, models, *wrong, data, f"--workdir={tmp_path / 'run'}")
        assert done.code == 2 and done.err.count("\n") == 1 and expected in done.err
        assert not (tmp_path / "run" / "prover").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ": no such file, expected an experiment with get_config()"),
        ("import no_such_module", ", line 1: ModuleNotFoundError: No module named"),
        ("\ndef get_config()\n    return 1", ", line 2: SyntaxError: expected ':'"),
        ("def get_config():\n    return [].x", ", line 2: AttributeError: 'list' object has no"),
        ("def get_config():\n    return 1", ": TypeError: get_config() returned 1"),
    ],
)
def test_wrong_experiment_is_one_line(text, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    if text is not None:
        file.write_text(text)
    done = launch(f"--workdir={tmp_path / 'run'}", "--config.gat.node=10", config=str(file))
    assert error_of(done).startswith(f"error: {file}{expected}")
    assert not (tmp_path / "run").exists()


def test_ctrl_c_is_one_line(tmp_path, monkeypatch) -> None:
    def interrupt(*_) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("clutrr_jax.launch.run_experiment", interrupt)
    done = launch(f"--workdir={tmp_path}")
    assert (done.code, done.err) == (130, "interrupted; the same command resumes\n")


def test_diverged_replicas_are_reported(data, tmp_path) -> None:
    diverging = ("--config.gat.train.learning_rate=1e30", "--config.train.batch=20")
    done = launch(*GAT, *diverging, "--config.train.replicas=2", data, f"--workdir={tmp_path}")
    assert done.code == 0 and "replica 1" in done.err
    assert "Replica 1 of gat diverged" in done.out
    assert "Replica 1 of gat diverged" in (tmp_path / "results.md").read_text()
    losses = [line["loss"] for line in read_lines(tmp_path / "gat" / "metrics.jsonl")]
    assert losses == [[None, None]]  # of two epochs: nothing is left to train


@pytest.mark.parametrize("command", [["launch.py"], ["-m", "clutrr_jax", "train"]])
def test_help_lists_models_and_flags(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *command, "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0 and not done.stderr
    assert f"\n  python {' '.join(command)} --workdir=" in done.stdout
    assert "COMMAND" not in done.stdout and "bilstm_attention" in done.stdout
    assert "--config.train.replicas" in done.stdout and "cpus_per_task" in done.stdout


def test_a_job_repeats_the_command_in_any_folder(tmp_path, monkeypatch) -> None:
    """Without launch.py, which an installed package does not have."""
    commands = []

    def run(config, workdir, settings, command):
        commands.append(command)
        return {}, {}

    monkeypatch.setattr(launcher, "run_on_cluster", run)
    monkeypatch.setattr("clutrr_jax.launch.print_results", lambda *_: 0)
    options = [f"--workdir={tmp_path}", "--launcher=slurm", "--config.models=prover"]
    assert launch(*options, config=None).code == 0
    done = subprocess.run(
        [*commands[0], "--help"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0 and "\nModel prover:\n" in done.stdout


@pytest.mark.parametrize(("config", "models"), [(None, "gat,prover"), ("figure5", "prover")])
def test_help_lists_the_settings_of_the_chosen_models(config: str | None, models: str) -> None:
    done = launch("--help", f"--config.models={models}", "--config.train.batch=7", config=config)
    lines = done.out.splitlines()
    assert done.code == 0 and not done.err and "--config.ncrl." not in done.out
    assert "  --config.prover.share_genders=False  True: rules" in re.sub(" {2,}", "  ", done.out)
    assert [line for line in lines if "train.batch=7 " in line and "(at least 1)" in line]
    assert ("--config.scale=laptop" in done.out) == (config == "figure5")


@pytest.mark.parametrize(
    ("reasoner", "english", "noted"),
    [("prover", False, True), ("prover", True, False), ("rules", False, False)],
)
def test_reader_of_another_language_needs_the_rules(
    reasoner, english, noted, small, tmp_path, monkeypatch, capsys
) -> None:
    trained = []
    monkeypatch.setattr(run, "run_model", lambda name, *_: trained.append(name))
    config = default_settings("other language", "reader_prover,gat")
    config.reader_prover.reasoner = reasoner
    words = small.sizes.relation_words if english else ()
    data = replace(small, sizes=replace(small.sizes, relation_words=words))
    for one in experiment.runs(config):
        run._train_and_test(one, tmp_path / one.name, data, GroundTruth(data.test), None)
    assert trained == ["reader_prover", "gat"]
    assert ("--config.reader_prover.reasoner=rules" in capsys.readouterr().out) == noted
