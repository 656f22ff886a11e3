"""Free text -> relation, files of predictions, and the paired test."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, wilcoxon

from clutrr_jax.data.clauses import number_clauses
from clutrr_jax.data.dataset import Dataset, load
from clutrr_jax.data.records import Records, positional_ids, story_ids, tasks
from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.predictions import (
    Predictions,
    export_predictions,
    read_predictions,
    write_predictions,
)
from clutrr_jax.evaluation.scores import measure
from clutrr_jax.language_models.in_memory import to_submissions
from clutrr_jax.language_models.submissions import (
    UNMAPPED,
    Submission,
    read_submissions,
    score_submission,
)
from clutrr_jax.report.accuracy import format_fraction
from clutrr_jax.report.evaluation import evaluate, write
from clutrr_jax.report.paired import compare, comparison, differences, holm, paired_p
from clutrr_jax.score import main
from generator.errors import InputError
from generator.relations.kinship import RELATIONS
from tests.data.test_dataset import rows_of
from tests.data.test_records import records_of
from tests.evaluation.test_metrics import some_predictions


@pytest.mark.parametrize(
    ("value", "sign", "text"),
    [(0.874, "", ".87"), (0.996, "", "1.00"), (0.0, "", ".00"), (0.07, "+", "+.07"),
     (-0.07, "+", "-.07"), (-0.003, "+", "+.00"), (-1.0, "+", "-1.00")],
)  # fmt: skip
def test_a_fraction_is_formatted_as_in_the_papers(value, sign, text):
    assert format_fraction(value, sign) == text


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 5), st.integers(1, 9))
def test_paired_test_of_single_predictions_is_mcnemar(better, worse, equal, scale) -> None:
    signs = np.repeat([1, -1, 0], [better, worse, equal]) * scale
    mcnemar = binomtest(better, better + worse).pvalue if better + worse else 1
    assert np.isclose(paired_p(signs), mcnemar, rtol=1e-12)


def test_paired_test_by_hand() -> None:
    # 8 better, 2 worse: 2 * (1 + 10 + 45) / 1024. Differences 1, 2, 3: 2 of 8 sign flips are as
    # extreme. Differences 3, -1, -1: all 8 are.
    assert paired_p(np.repeat([1, -1], [8, 2])) == 112 / 1024
    assert paired_p(np.array([1, 2, 3])) == 2 / 8
    assert paired_p(np.array([3, -1, -1])) == 1.0
    assert paired_p(np.zeros(4, int)) == 1.0


@given(st.permutations(range(1, 9)), st.lists(st.booleans(), min_size=8, max_size=8))
def test_paired_test_of_ranks_is_wilcoxon(steps, up) -> None:
    """If the differences are 1..n, the statistic is that of Wilcoxon's exact test."""
    difference = np.where(up, steps, -np.array(steps))
    assert np.isclose(paired_p(difference), wilcoxon(difference, method="exact").pvalue)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_order_and_lies_between_p_and_bonferroni(values) -> None:
    p = np.array(values)
    corrected = holm(p)
    assert (corrected >= p).all() and (corrected <= np.minimum(p * len(p), 1)).all()
    assert (np.diff(corrected[np.argsort(p)]) >= 0).all()


@pytest.fixture(scope="module")
def data(small_folder):
    return load(small_folder)


@pytest.fixture(scope="module")
def ids(small_folder, data) -> list[str]:
    return story_ids(data.test)


def lines_of(ids, answers) -> str:
    return "".join(
        json.dumps({"id": i, "prediction": a}) + "\n" for i, a in zip(ids, answers, strict=True)
    )


def test_ids_are_those_of_the_data_files(small_folder, data, ids, tmp_path) -> None:
    """In the order of the records, from CSV and from Parquet; T.K/ROW without ids."""
    train, rows = (rows_of(small_folder, split) for split in ("train", "test"))
    of_story = {row["story"]: row["id"] for row in rows}
    assert ids == [of_story[story] for story in data.test.stories]
    pq.write_table(pa.Table.from_pylist(train + rows), tmp_path / "all.parquet")
    columns = [column for column in rows[0] if column != "task_split"]
    pq.write_table(pa.Table.from_pylist(rows).select(columns), tmp_path / "a_test.parquet")
    for name in ("all.parquet", "a_test.parquet"):
        test = load(tmp_path / name).test
        assert story_ids(test) == [of_story[story] for story in test.stories]
    columns.remove("id")
    pq.write_table(pa.Table.from_pylist(rows).select(columns), tmp_path / "b_test.parquet")
    assert story_ids(load(tmp_path / "b_test.parquet").test)[:21] == [
        *(f"1.2/{row}" for row in range(1, 21)), "1.3/1",
    ]  # fmt: skip


def test_every_file_format_gives_the_same_predictions(data, ids, tmp_path) -> None:
    """CSV and JSON Lines, with ids or T.K/ROW, in any order, and the predictions.csv of a run."""
    predictions = some_predictions(data.test, replicas=3)
    paths = [tmp_path / name for name in ("a.csv", "b.jsonl", "run/gat/predictions.csv")]
    paths[2].parent.mkdir(parents=True)
    export_predictions(paths[2], predictions, data.test)
    rows = [
        (id, RELATIONS[predictions.relation[r, s]], r) for r in range(3) for s, id in enumerate(ids)
    ]
    order = np.random.default_rng(0).permutation(len(rows)).tolist()
    with paths[0].open("w", newline="") as file:
        csv.writer(file).writerows([("id", "prediction", "replica"), *(rows[i] for i in order)])
        file.write("\n")  # an empty last line is ignored
    place_of = dict(zip(ids, positional_ids(data.test), strict=True))
    paths[1].write_text(
        "\n".join(
            json.dumps({"replica": r, "prediction": f"Answer: {a}!", "id": place_of[i]})
            for i, a, r in reversed(rows)
        )
    )
    found = read_submissions(paths, data.test)
    assert [s.name for s in found] == ["a", "b", "gat"]
    for submission in found:
        np.testing.assert_array_equal(submission.predictions.relation, predictions.relation)


def test_positions_are_no_ids_if_the_ids_of_the_data_have_their_form(data, ids, tmp_path) -> None:
    """Answers for other stories than those of the data, here another part of the same test."""
    test = data.test.select(np.arange(5, 10))
    path = tmp_path / "a.jsonl"
    path.write_text(lines_of(positional_ids(data.test)[:5], ["aunt"] * 5))
    assert len(read_submissions([path], test)[0].stories) == 5
    test = replace(test, ids=positional_ids(data.test)[5:10])
    with pytest.raises(InputError, match=r"row 1: no test story '1\.2/1', expected .*'1\.2/6'"):
        read_submissions([path], test)
    path.write_text(lines_of(test.ids, ["aunt"] * 5))
    assert read_submissions([path], test)[0].stories.tolist() == [0, 1, 2, 3, 4]


def test_a_prompt_of_the_user_is_not_compared_without_a_label(data, ids, tmp_path) -> None:
    path = tmp_path / "own.jsonl"
    for own in ({"prompt": "Who is it?"}, {"prompt": None, "target": None}):
        rows = [{"id": id, "prediction": "aunt"} | own for id in ids]
        path.write_text("\n".join(map(json.dumps, rows)))
        assert len(read_submissions([path], data.test)) == 1


def test_predictions_that_pandas_has_written(data, ids, tmp_path) -> None:
    """With an index column, and replicas as floats. A missing answer stays one."""
    frame = pd.DataFrame({"id": ids * 2, "prediction": ["aunt", ""] * len(ids)})
    frame = frame.assign(replica=np.repeat([0.0, 1.0], len(ids)))
    frame.assign(probability=[0.5, None] * len(ids)).to_csv(tmp_path / "a.csv")
    pd.read_csv(tmp_path / "a.csv").to_csv(tmp_path / "b.csv")
    frame.to_json(tmp_path / "c.jsonl", orient="records", lines=True)
    expected = np.tile([RELATIONS.index("aunt"), UNMAPPED], (2, len(ids) // 2))
    for found in read_submissions(map(str, sorted(tmp_path.iterdir())), data.test):
        np.testing.assert_array_equal(found.predictions.relation, expected)
    frame.assign(replica=0.5).to_csv(tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"a\.csv, row 1: replica '0\.5', expected an integer"):
        read_submissions([tmp_path / "a.csv"], data.test)


def test_relations_may_be_named_by_numbers(tmp_path) -> None:
    content = {
        "name": "numbers", "relations": "1 2 3", "inverse": {"1": "1", "2": "3", "3": "2"},
        "composition": {},
    }  # fmt: skip
    (tmp_path / "algebra.json").write_text(json.dumps(content))
    rows = [{"facts": [("a", "2", "b"), ("b", "1", "c")], "query": ("a", "c"), "target": target}
            for target in "123"]  # fmt: skip
    data = load({"test": rows}, algebra=str(tmp_path / "algebra.json"))
    best = data.test.target[None]
    path = tmp_path / "predictions.csv"
    export_predictions(path, Predictions(best, best, np.ones(best.shape)), data.test)
    for found in (
        read_submissions([path], data.test),
        to_submissions("m", ["1", "2", "3"], data.test),
    ):
        np.testing.assert_array_equal(found[0].predictions.relation, best)
    path.write_text(lines_of(story_ids(data.test), "000"))
    with pytest.raises(InputError, match="all are numbers as text"):
        read_submissions([path.rename(tmp_path / "ids.jsonl")], data.test)


def test_unmapped_predictions_are_counted_and_wrong(data, ids, tmp_path) -> None:
    texts = [RELATIONS[t] for t in data.test.target]
    texts[0], texts[30], texts[31] = "dunno", "a cousin", ""
    (tmp_path / "lm.jsonl").write_text(lines_of(ids, texts))
    submissions = read_submissions([tmp_path / "lm.jsonl"], data.test)
    relation = submissions[0].predictions.relation[0]
    assert np.flatnonzero(relation == UNMAPPED).tolist() == [0, 30, 31]
    found = evaluate(data, submissions).results
    points = [row for row in found["rows"] if row["model"] == "lm"]
    assert {p["task"] for p in points} == {"1.2", "1.3", "1.5", "2.4"}
    assert sum(p["unmapped"] for p in points) == 3
    for point in points:
        assert np.isclose(point["accuracy"], 1 - point["unmapped"] / 20)
        assert point["low"] <= point["accuracy"] <= point["high"] and point["ambiguous"] == 0
    assert list(dict.fromkeys(row["name"] for row in found["rows"])) == ["lm", *BASELINES]


def test_free_text_has_a_second_accuracy_without_what_sentences_state(
    data, ids, small_folder, tmp_path, capsys
) -> None:
    """Answers are a relation alone, after a marker, or in a sentence, or are not mapped."""
    forms = ["{}", "Answer: {}", '{{"answer": "{}"}}', "It is late, so she is her {}.", "Hm."]
    texts = [forms[i % 5].format(RELATIONS[t]) for i, t in enumerate(data.test.target)]
    (tmp_path / "lm.jsonl").write_text(lines_of(ids, texts))
    (tmp_path / "plain.jsonl").write_text(lines_of(ids, [RELATIONS[0].title()] * len(ids)))
    files = [str(tmp_path / "lm.jsonl"), str(tmp_path / "plain.jsonl")]
    main(["--data", str(small_folder), "--predictions", *files, "--out", str(tmp_path / "out")])
    results = json.loads((tmp_path / "out" / "scores.json").read_text())
    names = list(dict.fromkeys(row["name"] for row in results["rows"]))
    assert names == ["lm", "lm (strict)", "plain", *BASELINES]
    accuracy = {name: np.mean([row["accuracy"] for row in results["rows"] if row["model"] == name])
                for name in names}  # fmt: skip
    assert accuracy["lm"] == pytest.approx(0.8)
    assert accuracy["lm (strict)"] == pytest.approx(0.6)
    assert [pair["models"] for pair in results["compared"]] == [["lm", "plain"]]
    printed = capsys.readouterr().out
    assert re.search(r"\nclean +lm \(strict\) +\.60", printed)
    assert "lm (strict): without the 16 of 80 answers" in printed
    in_memory = evaluate(data, to_submissions("lm", texts, data.test)).results
    strict, same = (
        [row for row in found["rows"] if row["kind"] == "strict"]
        for found in (results, json.loads(json.dumps(in_memory)))
    )
    assert strict == same and {row["name"] for row in strict} == {"lm (strict)"}


def test_a_swapped_comparison_has_the_opposite_sign(data, ids, tmp_path) -> None:
    """The difference is that of the accuracies, also with different numbers of replicas."""
    for name, replicas in (("a", 2), ("b", 3)):
        (tmp_path / name).mkdir()
        predictions = some_predictions(data.test, replicas)
        best = np.where(
            predictions.relation % 3 == replicas - 2, data.test.target, predictions.relation
        )
        export_predictions(
            tmp_path / name / "predictions.csv", predictions._replace(relation=best), data.test
        )
    a, b = read_submissions([tmp_path / name / "predictions.csv" for name in "ab"], data.test)
    truth = GroundTruth(data.test)
    there, back = compare(a, b, truth)["tasks"], compare(b, a, truth)["tasks"]
    rows_a, rows_b = (score_submission(s, GroundTruth(data.test)) for s in (a, b))
    for one, other, row_a, row_b in zip(there, back, rows_a, rows_b, strict=True):
        assert np.isclose(
            one["difference"], measure([[row_a]]).accuracy - measure([[row_b]]).accuracy
        )
        assert np.isclose(one["difference"], -other["difference"])
        assert (one["better"], one["worse"]) == (other["worse"], other["better"])
        assert one["p"] == other["p"] <= one["p_holm"] == other["p_holm"]
    same = compare(a, a, truth)["tasks"]
    assert {(p["difference"], p["p"], p["p_holm"]) for p in same} == {(0.0, 1.0, 1.0)}


# Two possible answers: a husband's son's grandmother is the mother or the mother-in-law.
AMBIGUOUS = {
    "story": "[Ann] [Bob] [Cy] [Di]", "query": "('Ann', 'Di')", "target": "mother",
    "task_name": "task_1.3", "story_edges": "[(0, 1), (1, 2), (2, 3)]",
    "edge_types": "['husband', 'son', 'grandmother']", "query_edge": "(0, 3)",
    "genders": "Ann:female,Bob:male,Cy:male,Di:female",
}  # fmt: skip


def submission(name: str, target: np.ndarray, *right: list[int]) -> Submission:
    """Each replica is right at the given stories, and its other answers are not mapped."""
    best = np.full((len(right), len(target)), UNMAPPED)
    for predicted, stories in zip(best, right, strict=True):
        predicted[stories] = target[stories]
    every = np.arange(len(target))
    return Submission(name, Predictions(best, best, np.ones(best.shape)), every)


@pytest.fixture
def with_ambiguous_stories() -> Dataset:
    """20 stories of k = 2 and 10 of k = 3, four of which have two possible answers."""
    stories = [{}] * 20 + [AMBIGUOUS] * 4 + [{"task_name": "task_1.3"}] * 6
    return Dataset("by hand", None, records_of(*stories))


def test_intervals_and_stories_of_the_table(with_ambiguous_stories) -> None:
    """The stories of k = 2 are copies, those of k = 3 are two clauses: intervals by hand stand in
    tests/evaluation/test_statistics.py."""
    target = with_ambiguous_stories.records("test").target
    one = submission("one", target, [*range(15), *range(22, 30)])
    right = [[*range(n), *range(20, 20 + m)] for n, m in ((12, 5), (14, 6), (16, 7))]
    three = submission("three", target, *right)
    found = evaluate(with_ambiguous_stories, [one, three])
    lines = found.tables()[0]
    rows = {row["name"]: row for row in found.results["rows"] if row["k"] == 2}
    assert [line for line in lines[:7] if "interval" not in line[0]] == [
        ["model", "given", "k=2", "k=3"],
        ["one (1 replica)", "", ".75", ".80"],
        ["  not mapped", "", "5", "2"],
        ["three (3 replicas)", "", ".70 ±.06", ".60 ±.06"],
        ["  not mapped", "", "18", "12"],
    ]
    for line, name in ((lines[2], "one"), (lines[5], "three")):
        low, high = rows[name]["low"], rows[name]["high"]
        assert line[2] == f"{format_fraction(low)}-{format_fraction(high)}" and high - low > 0.5
    assert (lines[2][0], lines[5][0]) == ("  95 % interval (this training)", "  95 % interval")
    assert lines[-4:] == [
        ["majority label", "labels of the test", "1.00", ".60"],
        ["stories", "", "20", "10"],
        ["clauses", "", "1", "2"],
        ["several answers", "", "0", "4"],
    ]


def test_paired_tests_with_holms_correction(data) -> None:
    """p: 2 / 2^5, 2 / 2^6, 2 / 2^8 and 1; the smallest is multiplied by 4, the next by 3, ..."""
    target = data.test.target
    clauses = number_clauses(data.test)
    place = {  # a story of each clause
        task: stories[np.unique(clauses[stories], return_index=True)[1]]
        for task, stories in tasks(data.test)
    }
    wrong = {"1.2": 5, "1.3": 6, "1.5": 8, "2.4": 1}
    wrong_b = np.concatenate([place[task][:n] for task, n in wrong.items()])
    every = set(range(len(target)))
    a = submission("a", target, sorted(every - {int(place["2.4"][-1])}))
    b = submission("b", target, sorted(every - set(wrong_b.tolist())))
    results = evaluate(data, [a, b]).results
    (pair,) = results["compared"]
    assert [point["p"] for point in pair["tasks"]] == [2 / 32, 2 / 64, 2 / 256, 1]
    assert [point["p_holm"] for point in pair["tasks"]] == [4 / 32, 6 / 64, 8 / 256, 1]
    assert [line[1:] for line in comparison(pair)] == [
        ["1.2", "1.3", "1.5", "2.4"], [str(len(of_task)) for of_task in place.values()],
        ["20"] * 4, ["+.25", "+.30", "+.40", "+.00"],
        ["5", "6", "8", "1"], ["0", "0", "0", "1"], [".062", ".031", ".008", "1.000"],
        [".125", ".094", ".031", "1.000"],
    ]  # fmt: skip


def some_probabilities(test: Records, replicas: int = 2) -> Predictions:
    values = np.random.default_rng(0).dirichlet(np.ones(22), (replicas, len(test)))
    relation = values.argmax(axis=-1)
    return Predictions(relation, relation, values.max(axis=-1), values.astype(np.float32))


def test_probabilities_are_those_of_the_same_labels(data, tmp_path) -> None:
    """Stories without ids of their own have the same ids in every data set."""
    test = replace(data.test, ids=[""] * len(data.test))
    other = replace(test, target=(test.target + 1) % 22)
    path = tmp_path / "p.npz"
    for records in (test, replace(test, target=np.full(len(test), -1))):
        write_predictions(path, some_probabilities(test), records)
        read_predictions([path], test)
    write_predictions(path, some_probabilities(test), test)
    with pytest.raises(InputError, match=r"p.npz: story '1.2/1' has another label"):
        read_predictions([path], other)
    arrays = dict(np.load(path))
    np.savez(path, **arrays | {"targets": arrays["targets"][1:]})
    with pytest.raises(InputError, match="for each replica and story"):
        read_predictions([path], test)
    del arrays["targets"]  # a file of an earlier version
    np.savez(path, **arrays)
    read_predictions([path], other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p * np.nan, "expected probabilities from 0 to 1"),
        (lambda p: p[:0], "expected probabilities from 0 to 1"),
        (lambda p: p.astype(str), "expected probabilities from 0 to 1"),
        (lambda p: p - 0.01, "expected probabilities from 0 to 1"),
        (None, "a story occurs twice"),
    ],
)
def test_wrong_probabilities_are_one_line_errors(change, message: str, data, tmp_path) -> None:
    path = tmp_path / "p.npz"
    write_predictions(path, some_probabilities(data.test), data.test)
    arrays = dict(np.load(path))
    if change:
        arrays["probabilities"] = change(arrays["probabilities"])
    else:
        for name, axis in (("probabilities", 1), ("predicted", 1), ("ids", 0), ("targets", 0)):
            arrays[name] = np.concatenate([arrays[name]] * 2, axis=axis)
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=message):
        read_predictions([path], data.test)


def test_answers_of_probabilities_are_written(data, tmp_path) -> None:
    path = tmp_path / "p.npz"
    write_predictions(path, some_probabilities(data.test), data.test)
    submissions = read_submissions([path], data.test)
    write(evaluate(data, submissions), submissions, data.test, tmp_path / "out")
    lines = list(csv.DictReader((tmp_path / "out" / "answers.csv").open()))
    assert len(lines) == 2 * len(data.test) and {line["replica"] for line in lines} == {"0", "1"}
    assert all(line["text"] == line["relation"] for line in lines)


def test_an_ensemble_cannot_have_the_name_of_another_submission(data) -> None:
    found, every = some_probabilities(data.test), np.arange(len(data.test))
    ensembled = Submission("m", found, every)
    named = Submission("m (ensemble of 2)", found._replace(probabilities=None), every)
    for both in ([ensembled, named], [named, ensembled]):
        with pytest.raises(InputError, match=r"two rows named 'm \(ensemble of 2\)'"):
            evaluate(data, both)
    evaluate(data, [Submission("m", found, every), Submission("n", found, every)])


@pytest.mark.parametrize(
    "name",
    ["two\nlines", "\x1b[31mred", "  last epoch", "several answers", "stories", "given rules"],
)
def test_a_name_is_one_line_and_not_that_of_another_line(name, data) -> None:
    """Names with two spaces before them belong to the line above in tables."""
    found = Submission(name, some_predictions(data.test, 1), np.arange(len(data.test)))
    with pytest.raises(InputError, match=r"predictions: (name|two rows named) ") as error:
        evaluate(data, [found])
    assert "\n" not in str(error.value)


def test_names_and_paths_may_contain_an_equals_sign(data, ids, tmp_path) -> None:
    path = tmp_path / "lr=0.1" / "answers.jsonl"
    path.parent.mkdir()
    path.write_text(lines_of(ids, ["aunt" for _ in ids]))
    for file, name in ((f"mine={path}", "mine"), (f"a=b={path}", "a=b"), (str(path), "answers")):
        assert [s.name for s in read_submissions([file], data.test)] == [name]


def test_predictions_of_a_run_say_what_the_model_is_given(data, tmp_path) -> None:
    best = np.zeros((1, len(data.test)), int)
    files = ["prover/predictions.csv", "reader_prover/predictions_given_rules.csv", "my/own.csv"]
    for file in files:
        export_predictions(tmp_path / file, Predictions(best, best, np.ones(best.shape)), data.test)
    settings = {"prover.share_genders": True, "reader_prover.reasoner": "prover"}
    for file in files[:2]:
        model = file.partition("/")[0]
        config = json.dumps(settings | {"model": model})
        (tmp_path / file).with_name("config.json").write_text(config)
    found = read_submissions([tmp_path / file for file in files], data.test)
    shared = "predicates and genders"
    assert [s.given for s in found] == [shared, f"{shared}, words for relations, rules", ""]
    lines = {line[1]: line[2] for line in evaluate(data, found).tables()[0]}
    assert lines["prover (1 replica)"] == shared and lines["given rules"] == "rules"


@pytest.mark.parametrize(
    "config",
    ['{"model": {"name": "llama"}}', '{"model": ["prover"]}', '{"model": 3}', "[1]", "1", "{",
     '{"model": "prover", "prover": 1}', "\xe9"],
)  # fmt: skip
@pytest.mark.parametrize("name", ["predictions.csv", "own.csv"])
def test_another_config_beside_the_answers_has_no_effect(config, name, data, tmp_path) -> None:
    best = np.zeros((1, len(data.test)), int)
    export_predictions(tmp_path / name, Predictions(best, best, np.ones(best.shape)), data.test)
    (tmp_path / "config.json").write_text(config, "latin-1")
    (found,) = read_submissions([tmp_path / name], data.test)
    assert found.given in ("", "nothing")


def test_the_command(small_folder, data, ids, tmp_path, capsys) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.csv"
    first.write_text(lines_of(ids, ["Answer: " + RELATIONS[t] for t in data.test.target]))
    second.write_text("id,prediction\n" + "".join(f"{i},who knows\n" for i in ids))
    arguments = ["--data", str(small_folder), "--predictions", str(first), str(second)]
    main([*arguments, "--out", str(tmp_path / "out")])
    printed = capsys.readouterr().out
    lines = [line.split() for line in printed.splitlines()]
    assert ["clean", "first", "(1", "replica)", *["1.00"] * 3] in lines
    assert ["clean", "not", "mapped", *["20"] * 3] in lines
    for words in (*BASELINES, "stories", "first against second", "<.001"):
        assert words in printed
    written = {path.name: path for path in (tmp_path / "out").iterdir()}
    assert set(written) == {"scores.json", "scores.txt", "scores.png", "answers.csv"}
    assert written["scores.txt"].read_text() == printed
    (pair,) = json.loads(written["scores.json"].read_text())["compared"]
    assert pair["tasks"][0]["difference"] == 1
    assert written["scores.png"].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("a.jsonl", lambda lines: [], "empty file"),
        ("a.jsonl", lambda lines: [lines[0].replace('"id": "', '"id": "x'), *lines[1:]], "row 1"),
        ("a.jsonl", lambda lines: [*lines, lines[0]], "row 81: second prediction"),
        (
            "a.jsonl",
            lambda lines: [*lines, *(line.replace("{", '{"replica": 1, ') for line in lines[1:])],
            "no prediction of replica 1 for 1 of 80",
        ),
        ("a.jsonl", lambda lines: [*lines[:3], "{", *lines[4:]], "row 4: not a line of JSON"),
        ("a.jsonl", lambda lines: ["[1]", *lines], "row 1: expected a JSON object"),
        ("a.jsonl", lambda lines: ['{"di": 1}', *lines], 'row 1: "id" is missing'),
        ("a.jsonl", lambda lines: ['{"id": "1.2/1", "prediction": 4}'], '"prediction" is missing'),
        ("a.jsonl", lambda lines: [lines[0].replace("{", '{"replica": -1, ')], "replica '-1'"),
        ("a.csv", lambda lines: ["id,answer", "1,aunt"], 'expected one column "prediction"'),
        ("a.csv", lambda lines: ["id,prediction"], "no rows"),
        ("a.csv", lambda lines: ["id,prediction", "1.2/1"], "row 1: 1 cells, expected 2"),
        ("a.csv", lambda lines: ["id,prediction", '"1.2/1'], "not a CSV row"),
        ("a.txt", lambda lines: lines, "expected .csv, .jsonl"),
    ],
)
def test_a_damaged_file_is_a_one_line_error(data, ids, tmp_path, name, change, expected) -> None:
    lines = lines_of(ids, ["aunt"] * len(ids)).splitlines()
    (tmp_path / name).write_text("\n".join(change(lines)) + "\n")
    with pytest.raises(InputError, match=f"{name}.*{re.escape(expected)}"):
        read_submissions([tmp_path / name], data.test)


def test_invalid_arguments_are_one_line_errors(small_folder, ids, tmp_path: Path) -> None:
    path = tmp_path / "lm.jsonl"
    path.write_text(lines_of(ids, ["aunt"] * len(ids)))
    options, folder = ["--data", str(small_folder), "--predictions"], str(tmp_path)
    for arguments, expected in [
        ([*options, str(path), str(path)], "expected each once"),
        ([*options, str(tmp_path / "absent.csv")], "No such file"),
        ([*options], "--predictions"),
        ([*options, str(path), "--out", str(path)], "cannot be written"),
        (["--data", "nowhere", "--predictions", str(path)], "nowhere"),
        (["--data", folder, "--predictions", "x.csv", "--out", folder], "the folder of the data"),
    ]:
        with pytest.raises(InputError, match=expected):
            main(arguments)


def test_seeds_count_in_the_paired_test() -> None:
    """Without them p is that of the exact test over clauses; with replicas that differ, less is
    certain, and of two models that differ by less than their replicas nothing."""
    rng, clause = np.random.default_rng(0), [np.arange(200)] * 9

    def right(*shares: float) -> list[np.ndarray]:
        return [rng.random((len(shares), 200)) < np.array(shares)[:, None] for _ in clause]

    alone = differences(right(0.9), right(0.6), clause)
    assert all(0 < point["p"] < 1e-3 for point in alone)
    (apart,) = differences(right(0.95, 0.85)[:1], right(0.65, 0.55)[:1], clause[:1])
    assert 1e-4 < apart["p"] < 0.3
    close = differences(right(0.8, 0.4, 0.6), right(0.8, 0.6, 0.5), clause)
    assert all(point["p"] > 0.2 for point in close)
