"""The reward of completions, in the signature of TRL."""

import pytest

from clutrr_jax import InputError, reward

ROW = {"target": "aunt", "query": ["Ann", "Cy"], "names": ["Ann", "Bob", "Cy"]}


def columns(count: int) -> dict:
    return {name: [value] * count for name, value in ROW.items()}


def test_it_is_that_of_the_relation_of_each_completion() -> None:
    texts = ["Answer: aunt", "<think>Answer: aunt</think>\nuncle", "", "Answer: Cy is Bob's aunt.",
             "aunt", "Cy is Ann's aunt."]  # fmt: skip
    called = {"prompts": ["p"] * 6, "completion_ids": [[1]] * 6, "trainer_state": None}
    assert reward(completions=texts, **called, **columns(6)) == [1, 0, 0, 0, 1, 0]
    assert reward(texts, strict=False, **columns(6)) == [1, 0, 0, 0, 1, 1]
    assert reward([], [], [], []) == []


def test_the_last_message_of_a_chat_counts() -> None:
    parts = [{"type": "text", "text": "Answer: aunt"}]
    chats = [
        [{"role": "assistant", "content": "Answer: aunt"}],
        [{"role": "assistant", "content": "Answer: aunt"}, {"role": "tool", "content": "none"},
         {"role": "assistant", "content": "Answer: uncle"}],
        [{"role": "assistant", "content": parts}],
        [{"role": "assistant", "content": None}],
        [],
        None,
    ]  # fmt: skip
    assert reward(chats, **columns(6)) == [1, 0, 1, 0, 0, 0]


def test_columns_of_another_length_are_refused() -> None:
    with pytest.raises(InputError, match='2 completions and 1 in the column "target"'):
        reward(["aunt", "aunt"], **columns(1))


def test_columns_of_other_data_are_refused() -> None:
    """No completion could ever be right."""
    region = {"target": ["DC"], "query": [("0", "5")], "names": [("0", "5")]}
    for expected, changes in {
        'target "None": expected one of': {"target": [None]},
        'target "Aunt": expected one of': {"target": ["Aunt"]},
        'target "0": expected one of': {"target": [0]},
        'target "DC": expected one of': region,
        "expected their column algebra": region | {"choices": [("DC", "EC")]},
        'algebra "regions": expected one of': region | {"algebra": ["regions"]},
        'a text in the column "algebra"': region | {"algebra": "r"},
        "completion nan, expected a text": {"completions": [float("nan")]},
        "completion {'content': 'aunt'}, expected": {"completions": [{"content": "aunt"}]},
    }.items():
        with pytest.raises(InputError, match=expected):
            reward(**{"completions": ["Answer: DC"]} | columns(1) | changes)
    assert reward(["Answer: DC"], **region, algebra=["rcc8"]) == [1.0]
