"""Counts, intervals, stories with several answers, baselines and the file of predictions."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from clutrr_jax.evaluation.baselines import BASELINES, majority
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.metrics import METRICS, interval, macro_accuracy
from clutrr_jax.evaluation.predictions import Predictions, export_predictions
from clutrr_jax.evaluation.scores import Series, measure, score, score_baselines
from clutrr_jax.language_models.submissions import read_submissions
from generator.relations.kinship import NUM_RELATIONS
from tests.data.test_records import records_of


def some_predictions(records, replicas: int = 3) -> Predictions:
    rng = np.random.default_rng(0)
    shape = (replicas, len(records))
    return Predictions(
        rng.integers(NUM_RELATIONS, size=shape),
        rng.integers(NUM_RELATIONS, size=shape),
        rng.integers(10_000, size=shape) / 10_000,
    )


def interval_of(right: np.ndarray) -> tuple[float, float | None, float, float]:
    """The interval of answers [R, S] to the same stories."""
    return interval(right.mean(axis=1), right.mean(axis=0).var(), right.shape[1])


@pytest.mark.parametrize(
    ("right", "stories", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (100, 105, 0.8933, 0.9795), (105, 105, 0.9647, 1), (0, 3, 0, 0.5615)],
)
def test_interval_of_one_replica_is_wilson(
    right: int, stories: int, low: float, high: float
) -> None:
    """By hand; for all S correct it is S / (S + z^2) to 1, with z^2 = 3.8415."""
    answers = np.arange(stories) < right
    mean, stderr, *found = interval_of(answers[None])
    assert mean == right / stories and stderr is None
    assert found == pytest.approx([low, high], abs=5e-5)
    # Replicas with the same answers know no more than one of them.
    mean, stderr, *of_four = interval_of(np.tile(answers, (4, 1)))
    assert of_four == pytest.approx(found) and stderr == pytest.approx(0)


def test_interval_covers_stories_and_replicas() -> None:
    """Replicas .90 .92 .94 .96 on 200 stories: standard error .02582 / sqrt(4) = .01291, and
    t(3) / z = 3.1824 / 1.9600 = 1.6237. V = .04 / 200 + (.01291 * 1.6237)^2 = .0006394, so n is
    .93 * .07 / V = 101.81. z^2 / n = .03773, center (.93 + .01887) / 1.03773 = .91437, half
    1.9600 sqrt(.0006394 + .00962598^2) / 1.03773 = .05110."""
    mean, stderr, low, high = interval(np.array([0.90, 0.92, 0.94, 0.96]), 0.04, 200)
    assert (mean, stderr) == (pytest.approx(0.93), pytest.approx(0.01290994))
    assert (low, high) == (pytest.approx(0.86327, abs=2e-5), pytest.approx(0.96547, abs=2e-5))


def test_interval_of_replicas_with_other_errors_is_not_narrower_than_that_of_one() -> None:
    right = np.ones((4, 105))
    for replica in range(4):
        right[replica, 5 * replica : 5 * replica + 5] = 0
    assert interval_of(right)[2:] == pytest.approx(interval_of(right[:1])[2:])


# Scores are the sum of a normal variable of the story, of the replica, and of both, with these
# standard deviations (the last one is 1); answers with a positive score are right.
@pytest.mark.parametrize("of_story", [0.0, 2.0])
@pytest.mark.parametrize("of_replica", [0.0, 0.3])
def test_coverage_of_the_interval(of_story: float, of_replica: float) -> None:
    """At least .93 of the intervals hold the accuracy; .95 minus sampling error would do."""
    rng, trials, shape = np.random.default_rng(0), 300, (4, 100)
    for truth in (0.5, 0.95):
        shift = stats.norm.ppf(truth) * np.sqrt(1 + of_story**2 + of_replica**2)
        covered = 0
        for _ in range(trials):
            score_of_story = rng.normal(0, of_story, (1, shape[1]))
            score_of_replica = rng.normal(0, of_replica, (shape[0], 1))
            answers = score_of_story + score_of_replica + rng.normal(shift, 1, shape) > 0
            _, _, low, high = interval_of(answers)
            covered += low <= truth <= high
        assert covered / trials >= 0.93


def test_scores_by_hand(small) -> None:
    """The first replica is right everywhere and the second in every fourth story of a task; in the
    last epoch the first is right nowhere, and the second in every second story."""
    records = small.test
    order, target = np.arange(len(records)) % 20, records.target
    best = np.stack([target, np.where(order % 4 == 0, target, -1)])
    last = np.stack([np.full_like(target, -1), np.where(order % 2 == 0, target, -1)])
    rows = score(Series("m"), Predictions(best, last, np.ones(best.shape)), GroundTruth(records))
    assert [(r.task, r.count) for r in rows] == [("1.2", 20), ("1.3", 20), ("1.5", 20), ("2.4", 20)]
    for row in rows:
        values = row.metrics["accuracy"]
        assert (values.replicas, values.last, row.ambiguous) == ([1, 0.25], [0, 0.5], 0)
        found = measure([[row]])
        assert (found.accuracy, found.stderr) == (0.625, pytest.approx(0.375))
        assert (found.accuracy_last, found.stderr_last) == (0.25, pytest.approx(0.25))
        assert (found.count, found.replicas, found.ambiguous) == (20, 2, 0)


def test_majority_accuracy_is_the_frequency_of_the_most_frequent_label(small) -> None:
    """Its macro-averaged accuracy is 1 / the number of labels."""
    truth = GroundTruth(small.test)
    for row in score(Series("majority"), majority(small.test), truth):
        t, k = (int(x) for x in row.task.split("."))
        mine = small.test.target[(small.test.task == t) & (small.test.clause_length == k)]
        assert row.metrics["accuracy"].replicas == [np.bincount(mine).max() / len(mine)]
        assert row.metrics["macro accuracy"].replicas[0] == pytest.approx(1 / len({*mine}))


def test_macro_accuracy_by_hand() -> None:
    """Two of three stories of label 0 are right, and that of label 1: (2 / 3 + 1) / 2. Deviations
    from the accuracy .75 times the weights 2/3 and 2 are 1/6, 1/6, -1/2, 1/2, with mean 1/12."""
    target, relation = np.array([0, 0, 0, 1]), np.array([[0, 0, 5, 1]])
    values = macro_accuracy(Predictions(relation, relation, np.ones((1, 4))), target)
    assert values.mean() == pytest.approx(5 / 6)
    assert values.var() == pytest.approx(5 / 36 - 1 / 144)


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_does_not_depend_on_the_order_of_stories(metric: str, small) -> None:
    """And values of replicas are those of each alone."""
    rng, target = np.random.default_rng(1), small.test.target
    values = rng.dirichlet(np.ones(NUM_RELATIONS), (3, len(target))).astype(np.float32)
    best = values.argmax(axis=-1)
    found, order = (
        Predictions(best, best, values.max(axis=-1), values),
        rng.permutation(len(target)),
    )
    of_all = METRICS[metric](found, target)
    moved = METRICS[metric](found.select(order), target[order])
    np.testing.assert_allclose(moved, of_all[:, order], rtol=1e-6)
    for replica in range(3):
        alone = Predictions(*(array[[replica]] for array in found))
        np.testing.assert_allclose(METRICS[metric](alone, target)[0], of_all[replica], rtol=1e-6)


@pytest.mark.parametrize("right", [(0.4, 0.6, 0.8, 0.9), (0.9, 0.8, 0.6, 0.4), (0.97,) * 4])
def test_coverage_of_the_interval_of_the_macro_accuracy(right: tuple[float, ...]) -> None:
    """Labels have 5 to 100 stories; the rare ones may be the harder or the easier ones."""
    rng, trials, target = np.random.default_rng(0), 400, np.repeat(np.arange(4), [5, 20, 40, 100])
    covered = 0
    for _ in range(trials):
        relation = np.where(rng.random(len(target)) < np.array(right)[target], target, -1)[None]
        predictions = Predictions(relation, relation, np.ones(relation.shape))
        values = macro_accuracy(predictions, target)
        _, _, low, high = interval(values.mean(axis=1), values[0].var(), len(target))
        covered += low <= np.mean(right) <= high
    assert covered / trials >= 0.93


def test_the_known_ambiguity_is_counted() -> None:
    """A husband's son's grandmother is the mother or the mother-in-law."""
    change = {
        "story": "[Ann] [Bob] [Cy] [Di]",
        "query": "('Ann', 'Di')",
        "target": "mother",
        "story_edges": "[(0, 1), (1, 2), (2, 3)]",
        "edge_types": "['husband', 'son', 'grandmother']",
        "query_edge": "(0, 3)",
        "genders": "Ann:female,Bob:male,Cy:male,Di:female",
    }
    records = records_of({}, change, {"task_name": "task_1.3"})
    assert GroundTruth(records).possible_answers.tolist() == [1, 2, 1]
    rows = score_baselines(GroundTruth(records))[-2:]
    assert [(row.task, row.ambiguous) for row in rows] == [("1.2", 1), ("1.3", 0)]


CHANGES = {
    "none": lambda frame: frame,
    "index": lambda frame: frame.reset_index(),
    "order of columns": lambda frame: frame[sorted(frame)],
    "order of rows": lambda frame: frame.sample(frac=1, random_state=0),
    "floats": lambda frame: frame.astype({"replica": float}),
    "another column": lambda frame: frame.assign(right=frame.target == frame.prediction),
}


@pytest.mark.parametrize("change", CHANGES)
def test_predictions_round_trip(change: str, tmp_path) -> None:
    """Also through pandas, which reads task 1.10 as 1.1."""
    path = tmp_path / "p.csv"
    test = records_of({}, {"task_name": "task_1.10"}, {"task_name": "task_1.10"})
    before = some_predictions(test)
    export_predictions(path, before, test)
    CHANGES[change](pd.read_csv(path)).to_csv(path, encoding="utf-8-sig", lineterminator="\r\n")
    (found,) = read_submissions([path], test)
    np.testing.assert_array_equal(found.predictions.relation, before.relation)


def test_baselines_of_unambiguous_stories(small) -> None:
    """The given rules answer every story; without training rows no rules are induced."""
    found = GroundTruth(small.test, small.train).baselines
    assert list(found) == list(BASELINES)
    np.testing.assert_array_equal(found["given rules"].relation[0], small.test.target)
    without = GroundTruth(small.test).baselines
    assert tuple(without) == ("given rules", "majority label")
