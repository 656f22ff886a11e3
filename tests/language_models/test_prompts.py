"""Prompts: one per story, with the listed relations, and accepted by clutrr_jax.score."""

import json
import re
from pathlib import Path

import pytest

from clutrr_jax import command, prompts, score
from clutrr_jax.data.dataset import load
from clutrr_jax.data.story_ids import story_ids
from clutrr_jax.language_models.prompts import examples, question
from clutrr_jax.language_models.submissions import read_submissions
from clutrr_jax.prompts import STYLES, main
from generator.errors import InputError
from generator.kinship import RELATIONS


@pytest.fixture(scope="module")
def data(small_folder):
    return load(small_folder)


def write(folder: Path, out: Path, style: str, *more: str) -> list[dict]:
    main(["--data", str(folder), "--style", style, "--out", str(out), *more])
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.mark.parametrize("style", STYLES)
def test_there_is_a_prompt_for_every_story(small_folder, data, tmp_path, style: str) -> None:
    rows = write(small_folder, tmp_path / "p.jsonl", style)
    ids = story_ids(data.test)
    assert sorted(row["id"] for row in rows) == sorted(ids)
    shots = 0 if style == "zero-shot" else 4
    for row in rows:
        story = ids.index(row["id"])
        assert list(row) == ["id", "task", "k", "prompt", "target"]
        assert row["task"] == f"{data.test.task[story]}.{row['k']}"
        assert row["k"] == data.test.clause_length[story]
        assert row["target"] == RELATIONS[data.test.target[story]]
        prompt = row["prompt"]
        assert all(re.search(rf"\b{name}[,.]", prompt) for name in RELATIONS)
        assert prompt.endswith(question(data.test, story) + "\n")
        assert "[" not in prompt and "]" not in prompt
        assert prompt.count("Question:") == shots + 1
        assert len(re.findall(r"^Answer: [a-z-]+$", prompt, re.M)) == shots
        assert ("step by step" in prompt) == (style == "chain-of-thought")


def test_a_perfect_model_scores_one(small_folder, data, tmp_path) -> None:
    """Its output repeats the prompt, with other relations in it, and ends with the answer."""
    rows = write(small_folder, tmp_path / "p.jsonl", "chain-of-thought", "--shots", "2")
    output = tmp_path / "output.jsonl"
    with output.open("w") as file:
        for row in rows:
            thoughts = "\n".join(row["prompt"].splitlines()[1:])
            row["prediction"] = (
                f"{thoughts}\nSo she is that.\n\n**Answer:** {row['target'].title()}."
            )
            file.write(json.dumps(row) + "\n")
    ids = story_ids(data.test)
    submission = read_submissions([output], ids, data.test)[0]
    assert (submission.predictions.best == data.test.target).all()


def test_the_seed_selects_the_same_examples_in_every_style(data) -> None:
    few, again, steps = (examples(data.train, 5, 3, s) for s in (False, False, True))
    assert few == again and len(set(few)) == 5
    assert few != examples(data.train, 5, 4, False)
    for plain, thought in zip(few, steps, strict=True):
        head, answer = plain.rsplit("\n", 1)
        assert thought.startswith(head) and thought.endswith(answer)
        assert ", so " in thought.removeprefix(head)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--style", "zero-shot", "--shots", "1"], "--shots 1"),
        (["--style", "few-shot", "--shots", "0"], "--shots 0"),
        (["--style", "few-shot", "--shots", "500"], "at most 120"),
        (["--style", "few-shot", "--seed", "-1"], "--seed -1"),
        (["--style", "riddle"], "riddle"),
        ([], "--style"),
        (["--style", "zero-shot", "--data", "nowhere.zip"], "nowhere.zip"),
    ],
)
def test_an_invalid_argument_is_a_one_line_error(
    small_folder, tmp_path, arguments, expected: str
) -> None:
    out = tmp_path / "p.jsonl"
    with pytest.raises(InputError, match=expected) as error:
        main(["--data", str(small_folder), "--out", str(out), *arguments])
    assert "\n" not in str(error.value) and not list(tmp_path.iterdir())


def test_an_error_is_one_line_and_exit_code_2(small_folder, tmp_path, monkeypatch, capsys) -> None:
    """And the output is unchanged."""
    (tmp_path / "taken").mkdir()
    for module, more in (
        (prompts, ["--style", "zero-shot", "--out", str(tmp_path / "taken")]),
        (score, ["--predictions", str(tmp_path / "absent.csv")]),
    ):
        monkeypatch.setattr("sys.argv", [module.__name__, "--data", str(small_folder), *more])
        with pytest.raises(SystemExit, match=r"^2$"):
            command.run(module.main)
        error = capsys.readouterr().err
        assert error.startswith("error: ") and error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
