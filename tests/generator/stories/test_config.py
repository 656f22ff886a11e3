import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.errors import InputError
from generator.stories.config import Config, Task, parse_hold_out, parse_rows, parse_tasks

CONFIGS = st.builds(
    Config,
    train=st.sampled_from([(), (Task(1, 2), Task(7, 10))]),
    hold_out=st.sampled_from([(), ("clauses",), ("clauses", "paraphrases")]),
    test_rows=st.sampled_from([0, 100, tuple(range(9))]),
    seed=st.integers(0, 2**63 - 1),
    p_marry=st.floats(0, 1),
    equal_clauses=st.booleans(),
)


@given(CONFIGS)
def test_settings_survive_json(config):
    assert Config.from_json(config.to_json()) == config
    as_text = {name: str(value).lower() for name, value in config.to_json().items()}
    assert Config.from_json(as_text) == config


def test_parsing_of_tasks_rows_and_hold_outs():
    assert parse_tasks("1.2, task_7.10") == (Task(1, 2), Task(7, 10))
    assert str(Task(7, 10)) == "7.10"
    assert parse_tasks("") == parse_hold_out("none") == ()
    assert parse_hold_out("paraphrases,clauses") == ("clauses", "paraphrases")
    assert parse_rows("5000") == 5000 and parse_rows("5, 6") == (5, 6)


def test_rows_of_each_task():
    config = Config(test=parse_tasks("1.2,1.3"), test_rows=(7, 8), dev_rows=3)
    assert [config.rows("test", task) for task in config.test] == [7, 8]
    assert {config.rows("train", task) for task in config.train} == {5000}
    assert config.rows("dev", config.train[0]) == 3 and config.tasks("dev") == config.train


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"train": "1.x"}, "T.K"),
        ({"trian": "1.2"}, 'unknown setting "trian"'),
        ({"seed": "many"}, '"seed": "many", expected an integer'),
        ({"equal_clauses": "no"}, '"no", expected True or False'),
        ({"test": "3.2", "irrelevant_length": 150}, "stories of up to 153 people"),
        ({"seed": 2**63}, "0 to 9223372036854775807"),
        ({"max_levels": 9, "max_child": 9}, "families of"),
        ({"max_child": 10**9}, "families of"),
        ({"p_marry": float("nan")}, "0 to 1"),
        ({"train_rows": "9" * 5000}, "expected an integer"),
        ({"ambiguous": "maybe"}, "drop, keep"),
        ({"bank": "b.json", "language": "plain"}, 'bank "b.json": expected without a bank, or the'),
    ],
)
def test_bad_settings(values, message):
    with pytest.raises(InputError, match=message):
        Config.from_json(values)
