"""Preparation of data sets for a run."""

import json
from pathlib import Path

import numpy as np
import pytest

from clutrr_jax.data.dataset import load
from clutrr_jax.data.prepare import prepare, prepare_run
from generator.errors import InputError
from generator.stories.config import Config, parse_tasks
from generator.write import write_dataset


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[Path]:
    """Two data sets in different languages."""
    found = [tmp_path_factory.mktemp("data") / name for name in ("one", "other")]
    for folder, language in zip(found, ("plain", "synthetic"), strict=True):
        tasks = parse_tasks("1.2")
        config = Config(train=tasks, test=tasks, train_rows=20, test_rows=10, language=language)
        write_dataset(config, folder)
    return found


def test_train_rows_of_several_data_sets_are_joined(folders) -> None:
    one, other = map(load, folders)
    both = prepare_run(f"{folders[0]},{folders[1]}", Path("unused"))
    assert both.train.stories == one.train.stories + other.train.stories
    assert both.test.stories == one.test.stories != other.test.stories
    np.testing.assert_array_equal(
        both.train.relations, np.concatenate([one.train.relations, other.train.relations])
    )
    # The vocabulary has the words of both.
    assert both.sizes.tokens > max(prepare(folder).sizes.tokens for folder in folders)
    assert both.name == "one, trained on one and other"


def test_generated_stories_join_a_data_set(folders) -> None:
    joined = prepare_run(f"{folders[0]},generate", folders[1])
    assert len(joined.train) == 40 and joined.test.stories == load(folders[0]).test.stories
    assert joined.name == "one, trained on one and generated stories"
    swapped = prepare_run(f"generate,{folders[0]}", folders[1])
    assert swapped.test.stories == load(folders[1]).test.stories
    assert swapped.name == "generated stories, trained on generated stories and one"


def test_graphs_that_are_there_already_are_not_added(tmp_path) -> None:
    def write(name: str, k: int, people: int) -> Path:
        row = {"facts": [("a", "son", "b"), ("b", "son", "c")], "query": ("a", "c"), "k": k}
        rows = [row | {"target": "grandson" if i else "son"} for i in range(people)]
        (tmp_path / name).mkdir()
        for split, of_split in (("train", rows[:1]), ("test", rows[1:])):
            text = "".join(json.dumps(one) + "\n" for one in of_split)
            (tmp_path / name / f"{split}.jsonl").write_text(text)
        return tmp_path / name

    first = write("first", 2, 2)
    other = tmp_path / "other_train.jsonl"
    lines = [(first / f"{split}.jsonl").read_text() for split in ("train", "test")]
    other.write_text("".join(lines) + lines[0].replace('"son", "c"', '"sister", "c"'))
    assert len(prepare(first, more=[other]).train) == 2


def test_stories_that_are_there_already_are_not_added(folders, tmp_path) -> None:
    """Neither train nor test stories: a model would be trained on the tests."""
    train, test = ((folders[0] / f"1.2_{split}.csv").read_text() for split in ("train", "test"))
    rows = (folders[1] / "1.2_train.csv").read_text().splitlines(keepends=True)[1:]
    mixed = tmp_path / "mixed_train.csv"
    as_train = [line.replace(",test\n", ",train\n") for line in test.splitlines(keepends=True)[1:]]
    mixed.write_text("".join([train, *as_train, *rows[:5]]))
    joined = prepare(folders[0], more=[mixed, folders[1]])
    one, other = map(load, folders)
    assert joined.train.stories == one.train.stories + other.train.stories
    (tmp_path / "again_train.csv").write_text(train)
    with pytest.raises(InputError, match="all 20 train stories are in the other data"):
        prepare(folders[0], more=[tmp_path / "again_train.csv"])


def test_paths_with_commas_and_empty_parts(folders, tmp_path) -> None:
    folder = tmp_path / "1.2,1.3"
    folder.symlink_to(folders[0])
    assert len(prepare_run(str(folder), Path("unused")).train) == 20
    with pytest.raises(InputError, match="no such file"):
        prepare_run(",".join(f"data_{i:08}.zip" for i in range(20)), Path("unused"))
    for data in (f"{folders[0]},", f",{folders[0]}", f"{folders[0]},{folders[0]}/"):
        with pytest.raises(InputError, match="expected different data sets, joined by commas"):
            prepare_run(data, Path("unused"))


def test_each_part_needs_train_rows_and_the_first_test_rows(folders, tmp_path) -> None:
    only_tests, only_train = tmp_path / "a_test.csv", tmp_path / "a_train.csv"
    only_tests.write_bytes((folders[0] / "1.2_test.csv").read_bytes())
    only_train.write_bytes((folders[1] / "1.2_train.csv").read_bytes())
    with pytest.raises(InputError, match=r"a_test.csv: no train rows, expected \*_train.csv"):
        prepare(folders[0], more=[only_tests])
    with pytest.raises(InputError, match=r"a_train.csv: no test rows, expected \*_test.csv"):
        prepare(only_train, more=folders)
    assert len(prepare(folders[0], more=[only_train]).train) == 40
