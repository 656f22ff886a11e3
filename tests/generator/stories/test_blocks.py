from dataclasses import replace

import numpy as np
import pytest

from generator.errors import InputError
from generator.stories.blocks import BLOCK, block
from generator.stories.clause import clause_code
from generator.stories.clause_sets import allowed_clauses
from generator.stories.config import Config, Task, parse_tasks

FREE = Config(hold_out=())


def codes(config, split, task, blocks=1):
    return np.concatenate(
        [clause_code(block(config, split, task, i)[0].relations[0]) for i in range(blocks)]
    )


@pytest.mark.parametrize(("k", "count"), [(2, 62), (3, 304), (4, 1576)])
def test_the_list_of_clauses_is_complete(k, count):
    clauses = allowed_clauses(FREE, "train", k)
    listed = clause_code(clauses[:, :k])
    assert len(clauses) == len(np.unique(listed)) == count
    stories = block(FREE, "train", Task(1, k), 0)[0]
    places = np.searchsorted(listed, clause_code(stories.relations[0]))
    assert (listed[places] == clause_code(stories.relations[0])).all()
    assert (clauses[places, k] == stories.target).all()


def test_released_clauses_with_false_answers_are_not_listed():
    # There are 328 released clauses of 3 facts. 16 of them are like "daughter-father-mother": the
    # answer is mother-in-law in every family, but "mother" in the release. 8 are ambiguous.
    assert len(allowed_clauses(replace(FREE, ambiguous="keep"), "train", 3)) == 312 + 8


def test_equal_clauses_gives_equal_counts():
    config = replace(FREE, equal_clauses=True, train_rows=2 * BLOCK)
    for task in (Task(1, 2), Task(1, 3)):
        code = codes(config, "train", task, 2)
        for rows in (BLOCK, 2 * BLOCK):
            count = np.unique(code[:rows], return_counts=True)[1]
            assert len(count) == len(allowed_clauses(config, "train", task.k))
            assert count.max() - count.min() <= 1


@pytest.mark.parametrize(("task", "rows"), [("1.2", 62), ("1.3", 300), ("2.4", 100), ("1.7", 1500)])
def test_unique_test_clauses_do_not_repeat(task, rows):
    task = parse_tasks(task)[0]
    config = replace(FREE, unique_test_clauses=True, test_rows=rows)
    code = codes(config, "test", task, -(-rows // BLOCK))[:rows]
    assert len(code) == len(np.unique(code)) == rows
    assert len(codes(config, "train", task)) == BLOCK


def test_error_for_more_rows_than_clauses():
    config = Config(unique_test_clauses=True)
    with pytest.raises(InputError, match=r"task 1\.2: there are 62 .* expected 100 or more"):
        block(config, "test", Task(1, 2), 0)
    with pytest.raises(InputError, match=r"task 1\.3: there are \d+ .* expected 100"):
        block(config, "test", Task(1, 3), 0)
    few = replace(config, test_rows=30 * BLOCK, max_levels=2)
    with pytest.raises(InputError, match=r"task 1\.6: .* of 1024 .*; choose at most \d+ rows"):
        block(few, "test", Task(1, 6), 0)
    with pytest.raises(InputError, match=r"task 1\.20: .*; choose shorter clauses"):
        block(replace(few, test_rows=50), "test", Task(1, 20), 0)
    none = replace(config, min_child=1, max_child=1)
    with pytest.raises(InputError, match=r"task 1\.6: there are 0 clauses of 6 facts"):
        block(none, "test", Task(1, 6), 0)
