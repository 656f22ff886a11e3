"""Prompts: their proofs are sound, their answers are among those listed, and score takes them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from clutrr_jax.data.files import load
from clutrr_jax.data.ids import story_ids
from clutrr_jax.data.records import UNSTATED, concatenate, parse
from clutrr_jax.prompts import STYLES, Fact, examples, main, prove, question, sentences
from clutrr_jax.submission import read_submissions
from generator.errors import InputError
from generator.kinship import PREDICATE_OF, PREDICATES, RELATIONS, RULES
from tests.test_records import ROW

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def data(small_folder):
    return load(small_folder)


def write(folder: Path, out: Path, style: str, *more: str) -> list[dict]:
    main(["--data", str(folder), "--style", style, "--out", str(out), *more])
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_proofs_are_sound_and_end_in_the_label(data) -> None:
    """Each step is one of the 16 rules and rests on stated facts or earlier steps; the last is the
    label. Every generated story has a proof."""
    records = concatenate([data.train, data.test])
    for story in range(len(records)):
        proof = prove(records, story)
        assert proof is not None
        edges = range(records.edge_start[story], records.edge_start[story + 1])
        known = {
            Fact(records.senders[e], PREDICATE_OF[records.relations[e]], records.receivers[e])
            for e in edges
            if records.relations[e] != UNSTATED
        }
        for step in proof:
            assert {step.first, step.second} <= known and step.head not in known
            body = PREDICATES[step.first.predicate], PREDICATES[step.second.predicate]
            assert RULES[body] == PREDICATES[step.head.predicate]
            assert (step.first.x, step.first.y, step.second.y) == (
                step.head.x, step.second.x, step.head.y,
            )  # fmt: skip
            known.add(step.head)
        x, y = records.query[story]
        assert Fact(x, PREDICATE_OF[records.target[story]], y) in known
        said = sentences(records, story, proof)
        assert said.endswith(
            f"so {records.names[records.node_start[story] + y]} is the "
            f"{RELATIONS[records.target[story]]} of {records.names[records.node_start[story] + x]}."
        )


def test_a_label_that_does_not_follow_has_no_proof(data) -> None:
    other = data.train.select(np.arange(5))
    wrong = (other.target + 2) % len(RELATIONS)
    for story in range(5):
        other.target[story] = wrong[story]
        if PREDICATE_OF[wrong[story]] != PREDICATE_OF[data.train.target[story]]:
            assert prove(other, story) is None


def test_nobody_is_his_own_sibling() -> None:
    """Bob's mother's son is Bob, so his daughter is not his niece."""
    row = ROW | {
        "story": "[Ann] [Bob] [Cy]",
        "query": "('Bob', 'Cy')",
        "story_edges": "[(1, 0), (0, 1), (1, 2)]",
        "edge_types": "['mother', 'son', 'daughter']",
        "query_edge": "(1, 2)",
    }
    rows = [list((row | {"target": target}).values()) for target in ("daughter", "niece")]
    records = parse("file", list(row), rows)
    assert prove(records, 0) == [] and prove(records, 1) is None
    assert sentences(records, 0, []) == "The story says what Cy is to Bob."


@pytest.mark.parametrize("style", STYLES)
def test_prompts_ask_for_every_story(small_folder, data, tmp_path, style: str) -> None:
    rows = write(small_folder, tmp_path / "p.jsonl", style)
    ids = story_ids(small_folder, data.test)
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
    """It repeats the prompt's own words about other relations, and ends with the answer."""
    rows = write(small_folder, tmp_path / "p.jsonl", "chain-of-thought", "--shots", "2")
    said = tmp_path / "said.jsonl"
    with said.open("w") as file:
        for row in rows:
            thoughts = "\n".join(row["prompt"].splitlines()[1:])
            row["prediction"] = (
                f"{thoughts}\nSo she is that.\n\n**Answer:** {row['target'].title()}."
            )
            file.write(json.dumps(row) + "\n")
    ids = story_ids(small_folder, data.test)
    submission = read_submissions([said], ids, data.test)[0]
    assert (submission.predictions.best == data.test.target).all()


def test_the_same_seed_takes_the_same_examples_in_every_style(data) -> None:
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
        (["--style", "few-shot", "--shots", "500"], "only 120 train rows"),
        (["--style", "few-shot", "--seed", "-1"], "--seed -1"),
        (["--style", "riddle"], "riddle"),
        ([], "--style"),
        (["--style", "zero-shot", "--data", "nowhere.zip"], "nowhere.zip"),
    ],
)
def test_a_mistake_is_one_line(small_folder, tmp_path, arguments, expected: str) -> None:
    out = tmp_path / "p.jsonl"
    with pytest.raises(InputError, match=expected) as error:
        main(["--data", str(small_folder), "--out", str(out), *arguments])
    assert "\n" not in str(error.value) and not list(tmp_path.iterdir())


def test_a_mistake_ends_with_exit_code_2(small_folder, tmp_path) -> None:
    """Through the shell, and nothing is left where the file cannot stand."""
    (tmp_path / "taken").mkdir()
    for module, more in (
        ("prompts", ["--style", "zero-shot", "--out", str(tmp_path / "taken")]),
        ("score", ["--predictions", str(tmp_path / "absent.csv")]),
    ):
        command = [sys.executable, "-m", f"clutrr_jax.{module}", "--data", str(small_folder), *more]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
        assert done.returncode == 2 and done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
