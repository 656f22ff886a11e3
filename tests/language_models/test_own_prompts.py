"""Prompts that the user has extended: an answer belongs to the story of its id."""

import json

import pytest

from clutrr_jax.data.dataset import load
from clutrr_jax.language_models.prompts import prompts, question
from clutrr_jax.language_models.submissions import read_submissions
from generator.errors import InputError
from generator.relations.kinship import RELATIONS
from tests.language_models.logs import inspect_log, write_inspect, write_lm_eval

SHOT = "Story: Eve's son Max sings.\nQuestion: What is Max to Eve?\nAnswer: son\n\n"


def messages(prompt: str) -> list[dict]:
    """As inspect_ai writes them, also with parts of other kinds."""
    return [
        {"id": "1", "content": "You are an expert. Story: none.", "role": "system"},
        {"content": [{"type": "image", "image": "x.png"}, {"type": "text", "text": prompt}],
         "role": "user"},
        {"content": "Let me think.", "role": "assistant"},
    ]  # fmt: skip


EXTENDED = {
    "few-shot": lambda prompt: SHOT + prompt,
    "system": lambda prompt: f"You are an expert in families.\n\n{prompt}",
    "after": lambda prompt: f"{prompt}Answer in one word, please.\nAnswer:",
    "asked again": lambda prompt: prompt + prompt.rstrip().splitlines()[-1] + "\n",
    "template": lambda prompt: f"<|im_start|>user\n{prompt.strip()}<|im_end|>\n<|im_start|>model\n",
    "examples between": lambda prompt: prompt.replace("\n\nStory:", f"\n\n{SHOT}Story:"),
    "messages": messages,
    "one message": lambda prompt: [{"role": "user", "content": prompt}],
}


@pytest.fixture(scope="module")
def data(small_folder):
    return load(small_folder)


@pytest.fixture(scope="module")
def rows(data) -> list[dict]:
    return list(prompts(data.test, range(len(data.test)), [], steps=False))


def files_of(rows, tmp_path):
    """The same prompts as JSON Lines, and as logs of inspect and, if they are text, of lm-eval."""
    answered = [row | {"prediction": "Answer: aunt"} for row in rows]
    lines = tmp_path / "own.jsonl"
    lines.write_text("\n".join(map(json.dumps, answered)))
    texts = [["Answer: aunt"] * len(rows)]
    yield lines
    for name in ("log.json", "log.eval"):
        yield write_inspect(tmp_path / name, inspect_log(rows, texts))
    if isinstance(rows[0]["prompt"], str):
        yield write_lm_eval(tmp_path / "model", rows, texts)


@pytest.mark.parametrize("kind", EXTENDED)
def test_an_extended_prompt_keeps_its_key(data, rows, tmp_path, kind) -> None:
    extended = [row | {"prompt": EXTENDED[kind](row["prompt"])} for row in rows]
    found = read_submissions(files_of(extended, tmp_path), data.test)
    for submission in found:
        assert submission.predictions.relation.tolist() == [[RELATIONS.index("aunt")] * len(rows)]
    assert len(found) == (3 if "message" in kind else 4)


@pytest.mark.parametrize("kind", EXTENDED)
def test_an_answer_for_another_story_is_refused(data, rows, tmp_path, kind) -> None:
    """Also if the label is the same, and if the story of the id is one of the examples."""
    first, other = next(
        (a, b) for i, a in enumerate(rows) for b in rows[i + 1 :] if a["target"] == b["target"]
    )
    prompts = (other["prompt"], f"{first['prompt']}Answer: son\n\n{other['prompt']}")
    for folder, prompt in zip((tmp_path / "one", tmp_path / "both"), prompts, strict=True):
        folder.mkdir()
        wrong = [first | {"prompt": EXTENDED[kind](prompt)}]
        for file in files_of(wrong, folder):
            with pytest.raises(InputError, match="has another text or label, expected predictions"):
                read_submissions([file], data.test)


def test_another_question_or_label_is_refused(data, rows, tmp_path) -> None:
    x, y = rows[0]["query"]
    for change in (
        {"prompt": rows[0]["prompt"].replace(f"What is {y} to {x}", f"What is {x} to {y}")},
        {"prompt": rows[0]["story"]},
        {"target": next(r for r in RELATIONS if r != rows[0]["target"])},
    ):
        path = tmp_path / "own.jsonl"
        path.write_text(json.dumps(rows[0] | {"prediction": "aunt"} | change))
        with pytest.raises(InputError, match=r"row 1: story .* has another text or label"):
            read_submissions([path], data.test)
    assert rows[0]["prompt"].endswith(question(data.test, 0) + "\n")
