"""Answers about other relations than kinship: names after a marker or alone, no sentences."""

import json

import pytest

import clutrr_jax
from clutrr_jax.language_models.export import prompt_rows
from clutrr_jax.language_models.named_answers import to_name
from clutrr_jax.language_models.submissions import read_submissions
from generator.relations.algebras import NAMES, definitions, find_algebra

RCC8, INTERVAL = (find_algebra(name).relations for name in ("rcc8", "interval"))
ROW = {"facts": [("0", "TPP", "1"), ("1", "DC", "5")], "query": ("0", "5"), "target": "DC",
       "k": 2}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DC", "DC"), ("**DC**", "DC"), (" dc.\n", "DC"), ("Answer: DC", "DC"),
        ("x0 is part of x1.\n\n**Answer:** `DC`.", "DC"), ("So \\boxed{\\text{DC}}.", "DC"),
        ("<answer>DC</answer>", "DC"), ('{"why": "PO", "answer": "DC"}', "DC"), ("#### DC", "DC"),
        ("The answer is DC.", "DC"), ("Final Answer: x0 DC x5", "DC"), ("Answer: 0 DC 5", "DC"),
        ("Answer: DC (they are apart)", "DC"), ("Answer: DC, because x1 DC x5", "DC"),
        ("Answer:\nDC", "DC"), ("DC\n\nx0 TPP x1 and x1 DC x5.", "DC"),
        ("EC\nAnswer: DC\nEC", "DC"), ("Answer: EC. No.\nAnswer: DC", "DC"),
        ("Answer: DC\nThis answer is consistent.", "DC"), ("Answer: DC<|im_end|>", "DC"),
        ("<think>Answer: EC</think>\nDC", "DC"), ("<THINK>EC</THINK>DC", "DC"),
        ("Answer: DC\n\nFacts:\nx0 EC x1\nQuestion: What is x0 to x1?\nAnswer: EC", "DC"),
        # Markers around markers, and with an empty line.
        ("Answer: \\boxed{DC}", "DC"), ("**Answer:** \\boxed{DC}", "DC"), ("**Answer:**\nDC", "DC"),
        ("Final Answer: The final answer is $\\boxed{DC}$. I hope it is correct.", "DC"),
        ("Answer: $\\boxed{\\text{DC}}$", "DC"), ("**Final Answer:**\n\nDC", "DC"),
        ("#### Answer: DC", "DC"), ("#### Answer\nDC", "DC"), ("## Final answer\n\n**DC**", "DC"),
        ("Answer:\n```\nDC\n```", "DC"), ("Answer:\n```text\nDC\n```", "DC"),
        ('{"answer": "DC", "confidence": 0.9}', "DC"), ('{"final_answer": "DC"}', "DC"),
        ('```json\n{\n "answer": "DC"\n}\n```', "DC"), ('{"relation": "DC"}', "DC"),
        ('<answer>\n{"answer": "DC"}\n</answer>', "DC"), ("<answer>Answer: DC</answer>", "DC"),
        ("<answer>DC", "DC"), ("<answer>\nDC\n</answer>", "DC"),
        ("Relation: EC\nSo\nAnswer: DC", "DC"),
        ("Answer: DC\n\n#### Explanation\nThey are apart.", "DC"), ("Relation: DC", "DC"),
        # Sentences after a marker.
        ("Answer: DC, they are apart", "DC"), ("Answer: DC!", "DC"), ("Answer: DC; apart.", "DC"),
        ("Answer: It is DC.", "DC"), ("So it's **DC**.", "DC"), ("Answer: It is not DC.", None),
        ("Answer: The relation is DC.", "DC"), ("Answer: x0 DC x5 (they are apart)", "DC"),
        ("Answer: the relation between x0 and x5 is DC", "DC"), ("Answer: x0 is DC to x5.", "DC"),
        ("Answer: the relation between x5 and x0 is DC", None),
        ("Answer: DC, since x0 TPP x1 and x1 DC x5", "DC"),
        ("Answer: DC. TPP and DC give it.", None), ("Answer: DC\nOr, in words, apart.", "DC"),
        # One of several, uncertain, conditional or taken back.
        ("Answer: DC (or EC)", None), ("Answer: DC - or EC", None), ("Answer: DC. Or EC.", None),
        ("Answer: DC as well as EC", None), ("Answer: DC. Wait, actually EC.", None),
        ("Answer: DC (no, EC)", None), ("The answer is DC - no wait, EC", None),
        ("The answer: DC, as EC, PO are all possible", None), ("Answer: DC (not certain)", None),
        ("Answer: DC (if x1 is EC x2) else EC", None), ("Answer: DC, if x1 is apart", None),
        ('{"answer": ["DC", "EC"]}', None), ("\\boxed{DC, EC}", None), ("Answer: DC (EC)", None),
        ("Answer: DC\nWait, no: EC.", None), ("Answer: DC\nOr EC.", None), ("Answer: DC?", None),
        # No sentences, no lists, no other pairs.
        ("x0 and x5 are DC.", None), ("So x0 DC x5, since x1 DC x5.", None),
        ("Answer: DC or EC", None), ("Answer: DC/EC", None), ("Answer: DC, EC", None),
        ("Answer: unknown", None), ("Answer: DC\nAnswer: unknown", None), ("DC\nEC", None),
        ("Answer: x1 DC x5", None), ("Answer: x5 DC x0", None), ("Answer: TP", None),
        ("<think>DC", None), ("", None), ("The answer is one of: DC, EC", None),
    ],
)  # fmt: skip
def test_regions(text: str, expected: str | None) -> None:
    assert to_name(text, RCC8, ("0", "5")) == expected


@pytest.mark.parametrize("frame", ["{}", "Answer: {}", "Answer: {}.", "Answer: **{}**", "`{}`",
                                   "**Answer:** {}", '{{"answer": {}}}', '{{"answer": "{}"}}',
                                   "The answer is {}.", "Answer:\n{}", "\\boxed{{{}}}",
                                   "- {}"])  # fmt: skip
@pytest.mark.parametrize(
    "relations", [("-1", "0", "1", "+1"), ("r", "r-", "-r", "r+"), ("a_b", "b")]
)
def test_signs_belong_to_names(frame: str, relations: tuple[str, ...]) -> None:
    for name in relations:
        assert to_name(frame.format(name), relations) == name


@pytest.mark.parametrize("name", INTERVAL)
@pytest.mark.parametrize(
    "frame", ["{}", "Answer: {}", "\\boxed{{{}}}", "<answer>{}</answer>", "`{}`", "Answer: ${}$.",
              "Hm.\n\n**{}**", "<think>m</think>\n{}", "Answer: a {} b"]
)  # fmt: skip
def test_intervals(name: str, frame: str) -> None:
    assert to_name(frame.format(name), INTERVAL, ("a", "b")) == name
    escaped = name.replace("<", "&lt;").replace(">", "&gt;")
    assert to_name(f"Answer: {escaped}", INTERVAL) == name


@pytest.mark.parametrize(
    "part", ["<answer>", "\\boxed{", "<think>", "\n", "Facts:\n", "a_", "_", "(", '"answer": "',
             "answer is ", "Answer: a__", "DC ", "<|", "Question: "]
)  # fmt: skip
def test_the_answer_after_a_long_text(part: str) -> None:
    """200 kB, which take minutes if a pattern needs quadratic time."""
    text = part * (200_000 // len(part))
    assert to_name(f"{text}\n\nAnswer: DC", RCC8) == (None if part == "<think>" else "DC")
    to_name(text, RCC8)
    to_name(f"Answer: DC{text}", RCC8)


def test_case_counts_where_two_names_differ_by_it() -> None:
    assert [to_name(text, ("d", "D"), ()) for text in ("d", "D")] == ["d", "D"]
    assert to_name("PO", ("po", "Po"), ()) is None


@pytest.mark.parametrize("style", ["zero-shot", "few-shot"])
def test_an_answer_may_repeat_its_prompt(style: str) -> None:
    train = [ROW | {"facts": [("0", "NTPP", str(i)), (str(i), "DC", "5")]} for i in (2, 3, 4, 6)]
    (row,) = prompt_rows(clutrr_jax.load({"train": train, "test": [ROW]}), style)
    for answer, expected in (("Answer: EC", "EC"), ("I do not know.", None)):
        assert to_name(row["prompt"] + answer, RCC8, row["query"]) == expected


def test_from_prompts_to_scores_and_rewards(tmp_path) -> None:
    """There is one row of scores: without sentences all answers are strict."""
    rows = [ROW | {"id": str(i)} for i in range(4)]
    data = clutrr_jax.load({"train": [ROW | {"facts": ROW["facts"][::-1]}], "test": rows})
    texts = ["Answer: DC", "Hm.\n**dc**", "Answer: EC", "x0 and x5 are DC."]
    found = prompt_rows(data, "zero-shot")
    lines = [json.dumps(row | {"prediction": text}) + "\n"
             for row, text in zip(found, texts, strict=True)]  # fmt: skip
    (tmp_path / "answers.jsonl").write_text("".join(lines))
    (one,) = read_submissions([tmp_path / "answers.jsonl"], data.test)
    assert one.predictions.relation.tolist() == [[0, 0, 1, -1]] and one.strict is None
    columns = {key: [row[key] for row in found] for key in found[0] if key != "proof"}
    assert clutrr_jax.reward(texts, **columns) == [1, 1, 0, 0]
    scores = clutrr_jax.evaluate(tmp_path / "answers.jsonl", data).accuracy
    assert {row["model"] for row in scores} >= {"answers", "given rules"}
    assert [row["accuracy"] for row in scores if row["model"] == "answers"] == [0.5]


def test_every_relation_of_the_package_is_defined() -> None:
    for name in NAMES[1:]:
        algebra = find_algebra(name)
        assert tuple(definitions(algebra)) == algebra.relations
        assert "definitions" not in algebra.to_json()  # the files of data stay as they are
