"""The six released data sets, if the environment variable CLUTRR_RELEASES names their folder."""

from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import tasks
from clutrr_jax.evaluation.ground_truth import GroundTruth

# Number of rows of the train file and of each test.
SIZES = {
    "data_06b8f2a1": (10154, {"1.3": 101, "2.2": 38, "2.3": 107, "3.3": 101, "4.3": 100}),
    "data_089907f8": (10094, {"1.2": 38, "1.3": 105, "1.4": 190, "1.5": 174, "1.6": 107,
                              "1.7": 144, "1.8": 150, "1.9": 119, "1.10": 119}),
    "data_523348e6": (10099, {"1.3": 100, "2.3": 100, "3.2": 38, "3.3": 105, "4.3": 101}),
    "data_7c5b0e70": (10124, {"1.2": 38, "1.3": 108, "2.3": 101, "3.3": 100, "4.3": 100}),
    "data_d83ecc3e": (10100, {"1.3": 100, "2.3": 100, "3.3": 101, "4.2": 38, "4.3": 106}),
    "data_db9b8f04": (15083, {"1.2": 38, "1.3": 107, "1.4": 77, "1.5": 185, "1.6": 105,
                              "1.7": 155, "1.8": 135, "1.9": 124, "1.10": 122}),
}  # fmt: skip


def test_all_rows_are_read(releases) -> None:
    for path in releases:
        data = load(path)
        sizes = len(data.train), {task: len(rows) for task, rows in tasks(data.test)}
        assert sizes == SIZES[data.name]


def test_stories_with_several_answers_are_found(releases) -> None:
    """Rows with two implied relations."""

    def ambiguous(name: str, task: str) -> int:
        test = load(next(p for p in releases if name in p.name)).test
        return int((GroundTruth(test).possible_answers == 2)[dict(tasks(test))[task]].sum())

    assert ambiguous("089907f8", "1.3") in (14, 15)
    assert ambiguous("db9b8f04", "1.4") == 12
    for task in ("1.2", "1.3"):
        assert ambiguous("7c5b0e70", task) == 0
