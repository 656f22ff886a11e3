"""Counts, intervals, stories with several answers, baselines and the file of predictions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from clutrr_jax.evaluation.baselines import BASELINES, majority
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.metrics import METRICS, accuracy, macro_accuracy
from clutrr_jax.evaluation.predictions import Predictions, export_predictions
from clutrr_jax.evaluation.scores import (
    Series,
    Values,
    measure,
    read_scores,
    score,
    score_baselines,
)
from clutrr_jax.language_models.submissions import read_submissions
from generator.relations.kinship import NUM_RELATIONS, RELATION_ID, UNKNOWN_GENDER
from tests.data.test_records import records_of


def some_predictions(records, replicas: int = 3) -> Predictions:
    rng = np.random.default_rng(0)
    shape = (replicas, len(records))
    return Predictions(
        rng.integers(NUM_RELATIONS, size=shape),
        rng.integers(NUM_RELATIONS, size=shape),
        rng.integers(10_000, size=shape) / 10_000,
    )


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
        alone = Predictions(*(array[[replica]] for array in found[:4]))
        np.testing.assert_allclose(METRICS[metric](alone, target)[0], of_all[replica], rtol=1e-6)


# A husband's son's grandmother is the mother or the mother-in-law.
AMBIGUOUS = {
    "story": "[Ann] [Bob] [Cy] [Di]",
    "query": "('Ann', 'Di')",
    "target": "mother",
    "story_edges": "[(0, 1), (1, 2), (2, 3)]",
    "edge_types": "['husband', 'son', 'grandmother']",
    "query_edge": "(0, 3)",
    "genders": "Ann:female,Bob:male,Cy:male,Di:female",
}


def test_the_known_ambiguity_is_counted() -> None:
    records = records_of({}, AMBIGUOUS, {"task_name": "task_1.3"})
    assert GroundTruth(records).possible_answers.tolist() == [1, 2, 1]
    rows = score_baselines(GroundTruth(records))[-2:]
    assert {row.series.given for row in rows} == {"labels of the test"}
    assert [(row.task, row.ambiguous) for row in rows] == [("1.2", 1), ("1.3", 0)]


def test_scores_of_earlier_versions_are_read() -> None:
    """They hold a best accuracy, `ceiling`, which does not say how many stories have several
    answers. Version 0.2.0 counts the right answers of each replica, which are taken to be right on
    the same stories, all of which are clauses."""
    old = {"model": "gat", "task": "1.3", "count": 4, "ceiling": 0.5, "correct": [3, 1],
           "correct_last": [2, 2], "story_variance": 0.125}  # fmt: skip
    values = Values([0.75, 0.25], [0.5, 0.5], 0.1875, 0.1875 / 4, 0.1875 / 4)
    later = {name: old[name] for name in ("task", "count", "ceiling")}
    later |= {"name": "gat", "kind": "model", "model": "gat", "given": "nothing",
              "metrics": {"accuracy": {"replicas": [0.75, 0.25], "last": [0.5, 0.5],
                                       "variance": 0.125}}}  # fmt: skip
    found = read_scores({"tests": [old, later]}, [Series("gat", "model", "gat", "nothing")])
    assert found[0] == found[1]
    assert (found[0].ambiguous, found[0].metrics["accuracy"]) == (None, values)
    assert measure([found[:1]]).ambiguous is None


def test_given_rules_have_the_expected_credit_of_a_draw() -> None:
    """One half, whichever of the two answers is the label, and none if it is another one; so the
    accuracy with a certain story is (1 + 1/2 + 1/2 + 0) / 4 and the variance of the credits 1/8."""
    labels = ["mother", "mother-in-law", "aunt"]
    test = records_of({}, *({**AMBIGUOUS, "target": label} for label in labels))
    given = GroundTruth(test).baselines["given rules"]
    assert accuracy(given, test.target).tolist() == [[1, 0.5, 0.5, 0]]
    assert given.probability.tolist() == [[1, 0.5, 0.5, 0.5]]
    assert given.relation[0, 1:].tolist() == [RELATION_ID["mother"]] * 3
    (row, *_) = score_baselines(GroundTruth(test))
    assert row.metrics["accuracy"][:3] == ([0.5], [0.5], 0.125)
    assert row.metrics["macro accuracy"].replicas == [pytest.approx(0.5)]
    found = measure([[row]])
    assert 0 <= found.low < 0.5 < found.high <= 1


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
    hidden = replace(small.test, genders=np.full_like(small.test.genders, UNKNOWN_GENDER))
    for test in (small.test, hidden):  # what the rules of kinship and the genders do not change
        unruled = replace(
            test, algebra=replace(test.algebra, heads=((),) * len(test.algebra.heads))
        )
        induced_rules = GroundTruth(unruled, small.train).baselines["induced rules"]
        np.testing.assert_array_equal(induced_rules.chances, found["induced rules"].chances)
    without = GroundTruth(small.test).baselines
    assert tuple(without) == ("given rules", "majority label")
