"""Predictions for a part of the test stories."""

import json
from pathlib import Path

import numpy as np
import pytest

import clutrr_jax
from clutrr_jax.data.clauses import number_clauses
from clutrr_jax.data.dataset import Dataset, load
from clutrr_jax.data.records import story_ids, tasks
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.predictions import Predictions
from clutrr_jax.evaluation.scores import measure, score_baselines
from clutrr_jax.language_models.submissions import Submission, read_submissions
from clutrr_jax.report.evaluation import evaluate
from clutrr_jax.report.paired import compare
from clutrr_jax.score import main
from generator.errors import InputError
from generator.relations.kinship import RELATIONS
from tests.data.test_records import records_of
from tests.report.test_scoring import AMBIGUOUS


@pytest.fixture(scope="module")
def data(small_folder) -> Dataset:
    return load(small_folder)


@pytest.fixture
def write(data, tmp_path):
    """Writes the answers of a model to some stories: right ones, but "aunt" to those in `wrong`."""
    ids = story_ids(data.test)

    def to_file(name: str, stories, wrong=(), replicas=1) -> Path:
        lines = [
            {"id": ids[s], "replica": replica,
             "prediction": "who knows" if s in wrong else RELATIONS[data.test.target[s]]}
            for replica in range(replicas) for s in stories
        ]  # fmt: skip
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)))
        return path

    return to_file


def accuracies(results: dict, name: str) -> dict[str, tuple[float, int]]:
    return {row["task"]: (row["accuracy"], row["count"]) for row in results["rows"]
            if row["model"] == name and row["accuracy"] is not None}  # fmt: skip


def test_a_part_is_scored_on_its_stories(data, write) -> None:
    """As a data set with these stories only; the baselines have the stories that any file has."""
    place = dict(tasks(data.test))
    of_a = [*place["1.2"][:4], *place["1.3"][5:15]]
    of_b = [*place["1.2"][2:8], *place["2.4"]]
    files = [write("a", of_a, wrong=of_a[:3], replicas=2), write("b", of_b[::-1], wrong=of_b[-1:])]
    evaluation = evaluate(data, read_submissions(files, data.test))
    results = evaluation.results
    assert accuracies(results, "a") == {"1.2": (0.25, 4), "1.3": (1, 10)}
    assert accuracies(results, "b") == {"1.2": (1, 6), "2.4": (0.95, 20)}
    union = data.test.select(np.array(sorted({*of_a, *of_b})))
    truth = GroundTruth(union, data.train)
    for row in score_baselines(truth):
        one = measure([[row]])
        assert accuracies(results, row.series.name)[row.task] == (one.accuracy, one.count)
    data = results["data"][0]
    assert (data["test_rows"], data["scored_rows"]) == (80, 38)
    assert repr(evaluation).count("38 of 80 test stories have a prediction (a 14, b 26)") == 1
    rows = [[cell.strip() for cell in line] for line in evaluation.tables()[0]]
    assert [row for row in rows if row[1] == "stories"] == [
        ["clean", "stories", "", "4", "10", ""],
        ["clean", "stories", "", "6", "", ""],
        ["clean", "stories", "", "8", "10", ""],
        ["supporting", "stories", "", "", "", "20"],
    ]


def test_stories_with_several_answers_are_those_of_a_part() -> None:
    """Four of ten stories have two possible answers."""
    test = records_of(*[AMBIGUOUS] * 4, *[{"task_name": "task_1.3"}] * 6)
    data = Dataset("by hand", None, test)
    both = [Submission(name, predictions(test, stories), np.array(stories))
            for name, stories in (("hard", [0, 1]), ("mixed", [0, 3, 4, 9]))]  # fmt: skip
    evaluation = evaluate(data, both)
    results = evaluation.results
    ambiguous = {row["model"]: row["ambiguous"] for row in results["rows"]}
    assert ambiguous == {"hard": 2, "mixed": 2, "given rules": 3, "majority label": 3}
    lines = {line[0].strip(): line[-1] for line in evaluation.tables()[0]}
    assert lines["several answers"] == "3" and lines["stories"] == "5"


def predictions(test, stories) -> Predictions:
    best = test.target[None, stories]
    return Predictions(best, best, np.ones(best.shape))


def test_two_parts_are_compared_on_the_stories_of_both(data, write) -> None:
    """As two files with these stories only, whatever the replicas."""
    place = dict(tasks(data.test))
    of_a, of_b = [*place["1.2"][:12], *place["1.3"]], [*place["1.2"][4:], *place["2.4"]]
    both = place["1.2"][4:12]
    a, b, common_a, common_b = read_submissions(
        [write("a", of_a, wrong=both[:6]), write("b", of_b, wrong=of_b[-30:], replicas=3),
         write("c", both, wrong=both[:6]), write("d", both, wrong=of_b[-30:], replicas=3)],
        data.test,
    )  # fmt: skip
    truth = GroundTruth(data.test)
    pair = compare(a, b, truth)
    assert pair["tasks"] == compare(common_a, common_b, truth)["tasks"]
    (point,) = pair["tasks"]
    assert (point["task"], point["count"]) == ("1.2", 8)
    assert point["difference"] == -4 / 8  # 30 wrong: all but 1.2/5 ... 1.2/10
    assert point["clauses"] == len(set(number_clauses(data.test)[both])) < 8


def test_parts_without_a_common_story_are_not_compared(data, write, small_folder, capsys) -> None:
    files = [str(write("a", range(5))), str(write("b", range(5, 20)))]
    main(["--data", str(small_folder), "--predictions", *files])
    printed = capsys.readouterr().out
    assert "a and b have no story in common" in printed and "against" not in printed
    assert "20 of 80 test stories" in printed
    main(["--data", str(small_folder), "--predictions", str(write("all", range(80)))])
    assert "have a prediction" not in capsys.readouterr().out


def test_evaluate_reads_a_part(data, write) -> None:
    path = write("part", range(3))
    for given in (path, {"part": str(path)}, [path]):
        rows = [r for r in clutrr_jax.evaluate(given, data).accuracy if r["model"] == "part"]
        assert sum(row["count"] for row in rows) == 3
    scores = clutrr_jax.evaluate({"part": path, "list": ["aunt"] * 80}, data)
    assert sum(r["count"] for r in scores.accuracy if r["model"] == "given rules") == 80
    scores.plot()
    (note,) = [line for line in repr(scores).splitlines() if "have a prediction" in line]
    assert note.startswith("80 of 80 test stories have a prediction (part 3, list 80)")
    assert f"<p>{note}</p>" in scores._repr_html_()


def test_missing_is_wrong_and_no_line_is_not_asked(data, tmp_path) -> None:
    ids = story_ids(data.test)
    missing = ['"prediction": ""', '"prediction": null', '"prediction": NaN', '"prediction": " "']
    lines = [f'{{"id": "{id}", {answer}}}' for id, answer in zip(ids, missing, strict=False)]
    lines.append(json.dumps({"id": ids[10], "prediction": RELATIONS[data.test.target[10]]}))
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "b.csv").write_text(f"id,prediction\n{ids[0]},\n{ids[1]},\n")
    found = evaluate(data, read_submissions([tmp_path / "a.jsonl", tmp_path / "b.csv"], data.test))
    for name, stories, unmapped in (("a", 5, 4), ("b", 2, 2)):
        rows = [row for row in found.results["rows"] if row["name"] == name and row["count"]]
        assert sum(row["count"] for row in rows) == stories
        assert sum(row["unmapped"] for row in rows) == unmapped
    rows = [row for row in found.results["rows"] if row["model"] == "a" and row["count"]]
    assert sum(row["accuracy"] * row["count"] for row in rows) == 1


def test_some_stories_have_a_row_of_their_own(data, write, small_folder, tmp_path, capsys) -> None:
    """As a file with these stories only; an id that no test story has is a one-line error."""
    place, ids = dict(tasks(data.test)), story_ids(data.test)
    some = [*place["1.2"][:7], *place["1.5"][3:9]]
    path = tmp_path / "clean.txt"
    path.write_text("\n".join(ids[story] for story in some[::-1]) + "\n\n")
    file = write("a", range(len(ids)), wrong=place["1.2"][:3], replicas=2)
    found = clutrr_jax.evaluate([file], data, ids=path)
    alone = clutrr_jax.evaluate([write("b", some, wrong=place["1.2"][:3], replicas=2)], data)
    assert accuracies(found.results, "a (clean)") == accuracies(alone.results, "b")
    assert accuracies(found.results, "a")["1.2"] == (17 / 20, 20)
    assert not found.results["compared"] and len(found.notes()) == 1  # not mapped
    main(["--data", str(small_folder), "--predictions", str(file), "--ids", str(path)])
    assert "a (clean) " in capsys.readouterr().out
    path.write_text("nobody\n")
    with pytest.raises(InputError, match=r"clean.txt, row 1: no test story 'nobody', expected"):
        clutrr_jax.evaluate([file], data, ids=path)
    path.write_text(ids[place["1.2"][0]])
    with pytest.raises(InputError, match="a: no predictions for stories of clean"):
        clutrr_jax.evaluate([write("a", place["1.5"])], data, ids=path)
    path.write_bytes("\xe9".encode("latin-1"))
    unread = "cannot be read"
    for wrong, expected in ((tmp_path / "none", unread), (tmp_path, unread), ("", unread),
                            (path, "not UTF-8"), (["1.2/1"], "expected a file")):  # fmt: skip
        with pytest.raises(InputError, match=expected):
            clutrr_jax.evaluate([file], data, ids=wrong)
