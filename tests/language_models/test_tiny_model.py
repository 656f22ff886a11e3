"""A run of lm-evaluation-harness with a model of Hugging Face, which is made on the spot."""

import json
import subprocess
from pathlib import Path

import pytest

from clutrr_jax.data.dataset import load
from clutrr_jax.language_models.export import export
from clutrr_jax.score import main
from generator.networks.command import parser, write_networks
from tests.command_line import harnesses
from tests.language_models.test_answers_file import answers_in
from tests.language_models.test_harnesses import accuracies, run_harness


@pytest.fixture
def rcc8_folder(tmp_path) -> Path:
    """16 train graphs of RCC-8 with two facts, and four tests with 8 graphs each."""
    folder = tmp_path / "rcc8"
    sizes = ["--train=1.2", "--train-rows=2", "--test=1.2,2.2,1.3,2.3", "--test-rows=1"]
    write_networks(parser().parse_args(["--algebra=rcc8", f"--out={folder}", *sizes]))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("data", ["small_folder", "rcc8_folder"])
def test_a_model_of_hugging_face(data: str, tmp_path, request) -> None:
    """`score` gives the accuracies that lm-eval prints, for free answers and multiple choice: on a
    part of the stories, with a chat template and a system prompt. lm-eval has no examples to add
    to those of the prompts."""
    folder, data_folder = tmp_path / "exported", request.getfixturevalue(data)
    export(load(data_folder), folder, "lm-eval", "zero-shot", max_tokens=4)
    writer = Path(__file__).with_name("tiny_model.py")
    model = tmp_path / "ORGANIZATION" / "MODEL"
    python = harnesses() / "bin" / "python"
    subprocess.run([python, writer, folder / "prompts.jsonl", model], check=True)
    printed = run_harness(
        "lm_eval", folder, tmp_path, "--include_path", "exports/exported", "--limit", "4",
        "--tasks", "clutrr,clutrr_mc", "--apply_chat_template", "--system_instruction",
        "You are an expert.", "--num_fewshot", "2", lm_eval_model="hf",
    )  # fmt: skip
    log = tmp_path / "logs" / "lm-eval" / "ORGANIZATION__MODEL"
    main(["--data", str(data_folder), "--predictions", f"tiny={log}",
          "--out", str(tmp_path / "scores")])  # fmt: skip
    results = json.loads((tmp_path / "scores" / "scores.json").read_text())
    groups = {"clutrr": "tiny", "clutrr_mc": "tiny (multiple choice)"}
    scored = {
        f"- {group}_{row['task']}": row["accuracy"]
        for group, name in groups.items()
        for row in results["rows"]
        if row["model"] == name
    }
    values = accuracies(printed)
    assert {name: value for name, value in values.items() if name not in groups} == scored
    assert results["data"][0]["scored_rows"] == 4 * 4
    answers = answers_in(tmp_path / "scores" / "answers.csv")
    chosen = [row for row in answers if row["model"] == "tiny (multiple choice)"]
    assert len({row["relation"] for row in chosen}) > 1
    for group, name in groups.items():
        right = [int(row["right"]) for row in answers if row["model"] == name]
        assert values[group] == pytest.approx(sum(right) / len(right), abs=1e-4)
