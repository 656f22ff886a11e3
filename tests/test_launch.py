"""The whole of it through launch.py, as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from clutrr_jax.command import folder_lock

ROOT = Path(__file__).parent.parent
TINY = [
    "--config.train.replicas=2",
    "--config.train.epochs=2",
    "--config.gat.node=20",
    "--config.bilstm_mean.hidden=8",
    "--config.bilstm_mean.embedding=8",
    "--config.models=gat,bilstm_mean",
    "--config.tensorboard=True",
]


def launch(*arguments: str, config: str = "experiments/single.py") -> subprocess.CompletedProcess:
    command = [sys.executable, "launch.py", f"--config={config}", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def finished(small_folder, tmp_path_factory) -> tuple[Path, str]:
    workdir = tmp_path_factory.mktemp("run")
    done = launch(*TINY, f"--config.data={small_folder}", f"--workdir={workdir}")
    assert done.returncode == 0, done.stderr
    return workdir, done.stdout


def test_a_run_leaves_its_report(finished) -> None:
    workdir, printed = finished
    results = json.loads((workdir / "results.json").read_text())
    rows = {(row["model"], row["task"]): row for row in results["rows"]}
    assert set(rows) == {
        (model, task)
        for model in ("gat", "bilstm_mean", "given rules", "induced rules", "majority label")
        for task in ("1.2", "1.3", "2.4", "1.5")
    }
    row = rows["gat", "1.5"]
    assert (row["k"], row["count"], row["replicas"], row["ceiling"]) == (5, 20, 2, 1.0)
    assert 0 <= row["low"] <= row["accuracy"] <= row["high"] <= 1
    assert results["config"]["train"]["epochs"] == 2 and results["versions"]["jax"]
    assert (workdir / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert (workdir / "report.html").read_text().count('"over":"facts"') == 1
    for text in (printed, (workdir / "results.md").read_text()):
        assert "bilstm_mean (2 replicas)" in text and "ceiling" in text and "majority" in text
    lines = (workdir / "gat" / "predictions.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 80
    assert list((workdir / "gat" / "tensorboard").glob("events.*"))
    assert len((workdir / "gat" / "metrics.jsonl").read_text().splitlines()) == 2


def test_all_that_a_run_compiles_is_kept(small_folder, tmp_path, monkeypatch) -> None:
    """However soon it was compiled: the epochs, and what draws the first parameters."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data = [f"--config.data={small_folder}", "--config.models=gat", "--config.train.epochs=1"]
    done = launch(f"--workdir={tmp_path / 'run'}", *data, "--config.train.replicas=1")
    assert done.returncode == 0, done.stderr
    kept = {path.name.partition("-")[0] for path in (tmp_path / "clutrr_jax").iterdir()}
    assert kept >= {"jit_draw", "jit_everywhere"}


def test_the_same_command_again_changes_nothing(finished, small_folder) -> None:
    workdir, _ = finished
    files = ("results.json", "results.md", "gat/predictions.csv", "gat/metrics.jsonl")
    before = [(workdir / name).read_bytes() for name in files]
    (workdir / "results.json").unlink()
    again = launch(*TINY, f"--config.data={small_folder}", f"--workdir={workdir}")
    assert again.returncode == 0, again.stderr
    assert [(workdir / name).read_bytes() for name in files] == before


# At the end of the first epoch, before its checkpoint: what happens to the process.
STOPS = {
    "killed": ("signal.SIGKILL", -9, ["--config.train.checkpoint_minutes=0.0"]),
    "pre-empted": ("signal.SIGTERM", 75, []),
}


@pytest.mark.parametrize("stop", STOPS)
def test_a_stopped_run_goes_on_to_the_same_numbers(finished, small_folder, tmp_path, stop) -> None:
    """What is left is trained, and nothing differs."""
    workdir, _ = finished
    how, code, often = STOPS[stop]
    arguments = [*TINY, "--config.models=gat", *often]
    arguments += [f"--config.data={small_folder}", f"--workdir={tmp_path}"]
    program = (
        "import os, runpy, signal, sys, clutrr_jax.training.loop as run\n"
        "real, count = run._epoch_line, []\n"
        "def line(*arguments):\n"
        f"    if len(count) == {len(often)}: os.kill(os.getpid(), {how})\n"
        "    count.append(1)\n"
        "    return real(*arguments)\n"
        "run._epoch_line = line\n"
        "sys.argv[0] = 'launch.py'\n"
        "runpy.run_path('launch.py', run_name='__main__')\n"
    )
    command = [sys.executable, "-c", program, "--config=experiments/single.py", *arguments]
    stopped = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert stopped.returncode == code, stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert not (tmp_path / "gat" / "model.json").exists()
    assert [p.name for p in (tmp_path / "gat" / "checkpoints").iterdir()] == ["1"]
    done = launch(*arguments)
    assert done.returncode == 0, done.stderr
    ours, whole = (
        [json.loads(line) for line in (d / "gat" / "metrics.jsonl").read_text().splitlines()]
        for d in (tmp_path, workdir)
    )
    for a, b in zip(ours, whole, strict=True):
        assert (a["epoch"], a["loss"], a["dev_accuracy"]) == (
            b["epoch"], b["loss"], b["dev_accuracy"],
        )  # fmt: skip
    assert (tmp_path / "gat" / "predictions.csv").read_bytes() == (
        workdir / "gat" / "predictions.csv"
    ).read_bytes()


def test_a_second_run_in_the_same_folder_is_refused(small_folder, tmp_path) -> None:
    with folder_lock(tmp_path):
        done = launch(*TINY, f"--config.data={small_folder}", f"--workdir={tmp_path}")
    assert done.returncode == 2
    assert "another run is using it" in done.stderr and "Traceback" not in done.stderr
    with folder_lock(tmp_path):
        pass


def test_a_full_disk_is_one_line_and_nothing_is_lost(finished, small_folder, tmp_path) -> None:
    """No file may grow beyond 8 kB, the nearest to a full disk that needs no rights."""
    workdir, _ = finished
    arguments = [*TINY, "--config.models=gat"]
    arguments += [f"--config.data={small_folder}", f"--workdir={tmp_path}"]
    command = [sys.executable, "launch.py", "--config=experiments/single.py", *arguments]
    limited = ["bash", "-c", 'ulimit -f 8; exec "$@"', "bash", *command]
    full = subprocess.run(limited, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert full.returncode == 2 and "Traceback" not in full.stderr, full.stderr
    assert "cannot be written" in full.stderr.splitlines()[-1]
    done = launch(*arguments)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "gat" / "predictions.csv").read_bytes() == (
        workdir / "gat" / "predictions.csv"
    ).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--config.models=gta"], 'no model "gta"'),
        (["--config.bogus=1"], 'command line: no setting "config.bogus"; see --help'),
        (["--config.gat.bogus=1"], 'command line: no setting "config.gat.bogus"; see --help'),
        (["--config.models.x=1"], 'command line: no setting "config.models.x"; see --help'),
        (["--config.train.epochs.x=1"], 'no setting "config.train.epochs.x"'),
        (["--config.train.epochs=many"], "epochs"),
        (["--config.data=nowhere.zip"], "nowhere.zip"),
        (["--config.data=tests"], "no data in it"),
        (
            ["--config.gat.node=16", "--config.generate.train_rows=20"],
            "gat: node 16: expected a multiple of heads 10",
        ),
        (["--config.data=generate", "--config.models=gat,bert"], "states of a frozen BERT"),
        (["--config.data=generate", "--config.generate.dev_rows=9"], "dev_rows is 9, expected 0"),
        (["--nonsense"], "nonsense"),
        (["--config.gat.entities", "False"], '"False": expected --NAME=VALUE'),
        (["train.epochs=3"], '"train.epochs=3": expected --NAME=VALUE'),
        (["--slurm.partition=gpu"], "--slurm.partition: expected --launcher=slurm beside it"),
        (["--host_count=2"], "--host_count: expected --hosts=HOST:PORT beside it"),
        (
            ["--config.generate.test_rows=5", "--config.data=nowhere.zip"],
            "--config.generate.test_rows: expected no --config.data=FILE beside it",
        ),
        (["--config.train.dev_fraction=20"], "train.dev_fraction 20.0: expected a share"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], expected: str, tmp_path: Path) -> None:
    done = launch(*arguments, f"--workdir={tmp_path}")
    assert done.returncode == 2
    assert expected in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ": no such file, expected an experiment"),
        ("import no_such_module", ", line 1: ModuleNotFoundError: No module named"),
        ("\ndef get_config()\n    return 1", ", line 2: SyntaxError: expected ':'"),
        ("x = 1", ", line 1: KeyError: 'get_config'; expected an experiment with get_config()"),
        ("def get_config():\n    return [].x", ", line 2: AttributeError: 'list' object has no"),
    ],
)
def test_an_experiment_that_cannot_be_run_is_one_line(text, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    if text is not None:
        file.write_text(text)
    command = [sys.executable, "launch.py", f"--config={file}", f"--workdir={tmp_path / 'run'}"]
    done = subprocess.run(
        [*command, "--config.gat.node=10"], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 2 and done.stderr.startswith(f"error: {file}{expected}")
    assert len(done.stderr.splitlines()) == 1 and not (tmp_path / "run").exists()


def test_a_missing_experiment_is_one_line(tmp_path: Path) -> None:
    done = launch(f"--workdir={tmp_path}", config="experiments/nowhere.py")
    assert done.returncode == 2 and "nowhere.py" in done.stderr and "Traceback" not in done.stderr


def test_replicas_that_diverge_are_told_of(small_folder, tmp_path) -> None:
    rate, batch = "--config.gat.train.learning_rate=1e30", "--config.train.batch=20"
    done = launch(
        *TINY, "--config.models=gat", rate, batch,
        f"--config.data={small_folder}", f"--workdir={tmp_path}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "in epoch 1 the loss of replica 1 was no number" in done.stderr
    assert "Replica 1 of gat stopped in epoch 1" in (tmp_path / "results.md").read_text()
    lines = (tmp_path / "gat" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["loss"] for line in lines] == [[None, None]] * 2


def test_new_stories_in_every_epoch(tmp_path) -> None:
    done = launch(
        *TINY, "--config.models=gat", "--config.data=generate", "--config.generate.train=1.2",
        "--config.generate.test=1.2,1.3", "--config.generate.train_rows=60",
        "--config.generate.test_rows=10", f"--workdir={tmp_path}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "gat" / "metrics.jsonl").read_text().splitlines()
    for line in map(json.loads, lines):
        assert 0 < line["waited"] < line["seconds"]
    assert len(lines) == 2
    assert "60 train and 20 test stories" in (tmp_path / "results.md").read_text()
    assert "those to train on new in each epoch" in (tmp_path / "results.md").read_text()
    (tmp_path / "report.html").unlink()
    command = [sys.executable, "-m", "clutrr_jax.report", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").exists()


def test_another_configuration_in_the_same_folder_is_refused(finished, small_folder) -> None:
    workdir, _ = finished
    before = (workdir / "results.json").read_bytes()
    done = launch(*TINY, f"--config.data={small_folder}", f"--workdir={workdir}", "--config.seed=1")
    assert done.returncode == 2
    assert 'another configuration: seed was "0", now "1"' in done.stderr
    assert (workdir / "results.json").read_bytes() == before


def test_help_names_the_models() -> None:
    command = [sys.executable, "launch.py", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0
    assert "bilstm_attention" in done.stdout and "--config.train.replicas" in done.stdout
