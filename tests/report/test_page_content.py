"""The report of a run and its rebuilding, without a browser."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from clutrr_jax.data.records import positional_ids, tasks
from clutrr_jax.evaluation.attention import Attention
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.predictions import Predictions, read_run, write_predictions
from clutrr_jax.experiment import SUMMARY
from clutrr_jax.models import MODELS as SPECS
from clutrr_jax.report import page
from clutrr_jax.report.__main__ import main
from clutrr_jax.report.graphs import FACT_KINDS, extracted_graphs
from clutrr_jax.report.headline import headline
from clutrr_jax.report.outputs import Outputs, Shown, read_curves
from clutrr_jax.report.results import REPORT_FILES
from generator.errors import InputError
from generator.relations.kinship import (
    COMPOSE,
    KINSHIP,
    PREDICATE_OF,
    PREDICATES,
    RELATION_ID,
    RELATIONS,
)
from tests.data.test_records import records_of
from tests.evaluation.test_extraction import perfect
from tests.report.conftest import EVIL, MODELS, check_self_contained
from tests.report.test_scoring import AMBIGUOUS


def test_generations_add_up_along_every_rule() -> None:
    levels = np.array(KINSHIP.coarse.levels)
    assert levels[PREDICATES.index("child")] == 1
    first, second, head = levels[KINSHIP.coarse.algebra.rules.T]
    np.testing.assert_array_equal(first + second, head)


def content_of(folder: Path) -> dict:
    """The JSON object in the page of a folder, and its only data set."""
    text = (folder / "report.html").read_text()
    found = json.loads(text.split('id="data">')[1].split("</script>")[0])
    (only,) = found["sets"]
    return found | only


@pytest.fixture(scope="module")
def content(run_folder) -> dict:
    return content_of(run_folder)


def test_the_page_holds_all_stories_and_predictions(run_folder, content, test_records) -> None:
    order = np.concatenate([rows for _, rows in tasks(test_records)])
    assert content["stories"]["text"] == [test_records.stories[s] for s in order]
    for model in MODELS:
        best = read_run(run_folder / model, test_records).relation
        letters = content["models"][model]["predictions"]
        found = [[ord(c) - ord("a") for c in replica] for replica in letters]
        assert found == best[:, order].tolist()
    assert EVIL in content["stories"]["names"][0]
    check_self_contained(run_folder)


WITH_NOISE = {
    "story": "[Ann] [Bob] [Cy] [Dan]", "task_name": "task_4.2",
    "story_edges": "[(0, 1), (1, 2), (0, 3)]", "edge_types": "['son', 'sister', 'uncle']",
    "genders": "Ann:female,Bob:male,Cy:female,Dan:male",
}  # fmt: skip


@pytest.fixture(scope="module")
def by_hand() -> dict:
    """The content of the page for three stories, one of them with two possible answers. In the
    records they are in another order.

    The weights of the last story over facts are .2, .05 and 0, those of the others are equal.
    """
    test = records_of(WITH_NOISE, AMBIGUOUS, {})
    predictions = Predictions(test.target[None], test.target[None], np.ones((1, 3)))
    weights = [np.array(w) for w in ([0.2, 0.05, 0.0], [0.3, 0.3, 0.3], [0.5, 0.5])]
    output = Outputs(predictions, Attention("facts", weights), None)
    shown = Shown("", SimpleNamespace(test=test, name="a"), GroundTruth(test), {"gat": output})
    return page.set_content({"extraction": {}, "wordings": {}}, shown)


def test_stories_by_hand(by_hand) -> None:
    """Clauses have the predicates of the path without noise, targets are one letter each, attention
    is one digit per fact."""
    stories = by_hand["stories"]
    assert [by_hand["tests"][i]["name"] for i in stories["test"]] == ["1.2", "1.3", "4.2"]
    assert stories["clause"] == ["child, sibling", "SO, child, inv-grand", "child, sibling"]
    assert [len(facts) for facts in stories["facts"]] == [2, 3, 3]
    targets = [RELATIONS[ord(c) - ord("a")] for c in stories["target"]]
    assert targets == ["daughter", "mother", "daughter"]
    assert stories["possibleAnswers"] == [1, 2, 1]
    assert by_hand["models"]["gat"]["attention"] == ["99", "999", "920"]


def test_a_clause_ends_with_the_facts_of_its_story() -> None:
    """Also in a row whose task has more facts than the row."""
    test = records_of({"task_name": "task_1.5"}, {})
    assert page._stories(test, over_words=False)["clause"] == ["child, sibling"] * 2


def test_probabilities_of_facts_and_words_are_in_percent(content) -> None:
    """Values of `write_graphs` in float16: .4 is below .40, .7 and .502 are above .70 and .50."""
    names = [content["tests"][i]["name"] for i in content["stories"]["test"]]
    story, model = names.index("1.3"), content["models"]["bilstm_mean"]
    facts = [(FACT_KINDS[kind], percent) for *_, kind, percent in model["extracted"][story]]
    assert sorted(facts) == [
        ("follows", 71), ("missing", 40), ("right", 100), ("right", 100), ("wrong", 51),
    ]  # fmt: skip
    words = [(FACT_KINDS[kind], percent) for *_, kind, percent in model["wordFacts"][story]]
    assert words == [("right", 93), ("follows", 50), ("wrong", 10)]


def test_a_proof_has_the_probability_of_its_facts_in_percent() -> None:
    """.75 of the first and .5 of the second fact, which is at most the threshold."""
    test = records_of({})
    extraction = perfect(test)
    extraction.probability[0][0, 1], extraction.probability[0][1, 2] = 0.75, 0.5
    graphs = extracted_graphs(extraction, test, np.array([0]), test.target)
    son, sister = RELATION_ID["son"], RELATION_ID["sister"]
    missing = FACT_KINDS.index("missing")
    assert graphs["extracted"] == [[[0, son, 1, 0, 75], [1, sister, 2, missing, 50]]]
    assert graphs["proofs"] == [[[0, RELATION_ID["daughter"], 2, 0, 1]]]
    assert graphs["proofProbability"] == [37.5]


def check_steps(facts: list, steps: list, query: list, letter: str) -> None:
    """Asserts that each step joins two facts or steps by a rule, and that the last is the goal."""
    known = [tuple(fact[:3]) for fact in facts]
    for x, relation, y, first, second in steps:
        (a, r, z), (other_z, s, b) = known[first], known[second]
        assert (a, b, z) == (x, y, other_z)
        assert COMPOSE[PREDICATE_OF[r], PREDICATE_OF[s]] == PREDICATE_OF[relation]
        known.append((x, relation, y))
    assert known[-1] == (query[0], ord(letter) - ord("a"), query[1])


def test_proofs_are_valid(content) -> None:
    """Predictions from a graph without errors have a proof if and only if they are the label."""
    stories, model = content["stories"], content["models"]["bilstm_mean"]
    for story, (query, target, prediction, steps) in enumerate(
        zip(stories["query"], stories["target"], model["predictions"][0], model["proofs"],
            strict=True)
    ):  # fmt: skip
        check_steps(stories["facts"][story], stories["proof"][story], query, target)
        if content["tests"][stories["test"][story]]["name"] != "1.3":
            assert (steps is not None) == (prediction == target)
            assert model["proofProbability"][story] in (None, 100)
        if steps is not None:
            check_steps(model["extracted"][story], steps, query, prediction)
    assert sum(steps is not None for steps in model["proofs"]) > len(model["proofs"]) / 2


def test_results_count_extracted_facts_and_name_diverged_replicas(run_folder, test_records) -> None:
    results = json.loads((run_folder / "results.json").read_text())
    stated = len(test_records.relations)
    row = results["extraction"]["bilstm_mean"][0]
    counts = [row[name] for name in ("stated", "right", "follow", "wrong", "missing")]
    assert counts == [stated, stated - 1, 1, 1, 1]
    by_wording = results["wordings"]["bilstm_mean"][:3]
    assert sum(row["stated"] for row in by_wording) == stated
    assert [row["in training"] for row in by_wording] == [True, False, None]
    text = (run_folder / "results.md").read_text()
    assert "Replica 2 of gat diverged in epoch 7" in text
    assert results["headline"] == headline(results) != "" and results["headline"] in text


def test_a_rebuilt_report_is_the_same(run_folder, tmp_path, capsys) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run_folder, copy)
    for name in REPORT_FILES[1:]:
        (copy / name).unlink()
    main([str(copy)])
    assert capsys.readouterr().out == f"{copy / 'report.html'}\n"
    for name in REPORT_FILES:
        assert (copy / name).read_bytes() == (run_folder / name).read_bytes()


def reword(folder: Path) -> None:
    for path in folder.glob("*_test.csv"):
        path.write_text(path.read_text().replace(" the ", " no "))


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda run: (run / "results.json").unlink(), "no results.json, expected the folder of"),
        (lambda run: (run / "results.json").write_text("{"), "results.json: damaged"),
        (lambda run: (run / "results.json").write_text("[]"), "results.json: damaged"),
        (lambda run: (run / "gat" / SUMMARY).write_text("{"), "model.json: damaged"),
        (lambda run: (run / "gat" / "predictions.npz").unlink(), "predictions.npz: expected the a"),
        (lambda run: (run / "gat" / "predictions.npz").write_text("x"), "npz: damaged, expected"),
        (lambda run: (run / "gat" / "attention.npz").write_bytes(b"x"), "npz: damaged"),
        (lambda run: (run / "bilstm_mean" / "extracted.npz").write_bytes(b"x"), "npz: damaged"),
        (lambda run: reword(run / "data"), "not the data set of this run"),
        (lambda run: shutil.rmtree(run / "data"), "no such file or folder"),
    ],
)
def test_a_damaged_run_is_a_one_line_error(run_folder, tmp_path, damage, expected) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run_folder, copy)
    before = (copy / "report.html").read_bytes()
    damage(copy)
    with pytest.raises(InputError, match=expected) as error:
        main([str(copy)])
    assert "\n" not in str(error.value) and (copy / "report.html").read_bytes() == before


def test_added_predictions_stand_in_the_table_and_figure(
    run_folder, test_records, tmp_path, capsys
) -> None:
    folder = shutil.copytree(run_folder, tmp_path / "run")
    answers = tmp_path / "answers.jsonl"
    ids = positional_ids(test_records)
    lines = [
        {"id": i, "prediction": RELATIONS[t]} for i, t in zip(ids, test_records.target, strict=True)
    ]
    answers.write_text("\n".join(map(json.dumps, lines)))
    main([str(folder), "--add", f"oracle={answers}"])
    results = json.loads((folder / "results.json").read_text())
    added = [row["accuracy"] for row in results["rows"] if row["model"] == "oracle"]
    assert added == [1.0] * 4
    assert "| clean | oracle (1 replica) |  | 1.00 " in (folder / "results.md").read_text()
    assert (folder / "results.csv").read_text().count(",oracle,0,") == 4
    assert (folder / "curve.png").read_bytes() != (run_folder / "curve.png").read_bytes()
    with pytest.raises(InputError, match="two rows named 'gat'"):
        main([str(folder), "--add", f"gat={answers}"])
    shown = content_of(folder)
    assert shown["models"]["oracle"]["predictions"] == [shown["stories"]["target"]]
    lines[0]["prediction"] = "who knows"
    answers.write_text("\n".join(map(json.dumps, lines[:30])))  # a part of the stories
    main([str(folder), "--add", f"oracle={answers}"])
    results = json.loads((folder / "results.json").read_text())
    (letters,) = content_of(folder)["models"]["oracle"]["predictions"]
    assert letters.count("-") == len(test_records) - 30 and letters.count("w") == 1
    assert sum(row["count"] or 0 for row in results["rows"] if row["model"] == "oracle") == 30
    assert "stories |  | 20 | 10 |  |  |\n| clean | given" in (folder / "results.md").read_text()
    main([str(folder)])  # without --add it is the report of the run
    assert (folder / "results.md").read_bytes() == (run_folder / "results.md").read_bytes()


def test_added_probabilities_are_also_an_ensemble(run_folder, test_records, tmp_path) -> None:
    """Two of three replicas that are wrong with little probability do not outvote the other."""
    folder, count = shutil.copytree(run_folder, tmp_path / "run"), len(test_records)
    target = test_records.target
    chance = np.full((3, count, len(RELATIONS)), 0.01, np.float32)
    chance[0, np.arange(count), target] = 0.9
    chance[1:, np.arange(count), (target + 1) % len(RELATIONS)] = 0.3
    predicted = chance.argmax(axis=-1)
    write_predictions(
        tmp_path / "own.npz",
        Predictions(predicted, predicted, chance.max(-1), chance),
        test_records,
    )
    main([str(folder), "--add", f"own={tmp_path / 'own.npz'}"])
    results = json.loads((folder / "results.json").read_text())
    accuracy = {row["model"]: row["accuracy"] for row in results["rows"]}
    assert accuracy["own"] == pytest.approx(1 / 3) and accuracy["own (ensemble of 3)"] == 1
    assert ",own (ensemble of 3),0," in (folder / "results.csv").read_text()


def test_data_that_have_moved_are_given(run_folder, tmp_path) -> None:
    """Data with another fingerprint are refused."""
    folder = shutil.copytree(run_folder, tmp_path / "run")
    moved = shutil.move(folder / "data", tmp_path / "moved")
    main([str(folder), "--data", str(moved)])
    assert (folder / "report.html").read_bytes() == (run_folder / "report.html").read_bytes()
    reword(moved)
    with pytest.raises(InputError, match="moved: not the data set of this run"):
        main([str(folder), "--data", str(moved)])


def test_training_curves_are_means_of_trained_replicas(tmp_path) -> None:
    """Every third of 201 epochs is shown, and the last one."""
    path = tmp_path / "metrics.jsonl"
    assert read_curves(path) == []
    lines = [{"epoch": 1, "loss": [1.0, 3.0], "dev_accuracy": [0.0, 0.5]},
             {"epoch": 2, "loss": [None, 2.0], "dev_accuracy": [0.0, 1.0]},
             {"epoch": 3, "loss": [None, None], "dev_accuracy": [0.5, 1.0]}]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, lines)))
    assert [tuple(point.values()) for point in read_curves(path)] == [
        (1, 2.0, 0.25), (2, 2.0, 0.5), (3, None, 0.75),
    ]  # fmt: skip
    path.write_text("\n".join(json.dumps(lines[0] | {"epoch": e}) for e in range(1, 202)))
    epochs = [point["epoch"] for point in read_curves(path)]
    assert epochs == [*range(1, 202, 3), 201]
    path.write_text('{"epoch": 1}')
    with pytest.raises(InputError, match="damaged, expected epochs"):
        read_curves(path)


def test_models_that_read_text_have_a_row_for_some_stories(
    run_folder, test_records, tmp_path
) -> None:
    """Their accuracy is that of the predictions; models that read facts have none."""
    folder = shutil.copytree(run_folder, tmp_path / "run")
    some = np.flatnonzero(test_records.clause_length == 2)[:5]
    ids = positional_ids(test_records)
    (tmp_path / "few.txt").write_text("\n".join(ids[story] for story in some))
    main([str(folder), "--ids", str(tmp_path / "few.txt")])
    rows = json.loads((folder / "results.json").read_text())["rows"]
    parts = [row for row in rows if row["kind"] == "part" and row["accuracy"] is not None]
    readers = [model for model in MODELS if SPECS[model].kind == "tokens"]
    assert [(row["name"], row["count"]) for row in parts] == [(f"{m} (few)", 5) for m in readers]
    for row, model in zip(parts, readers, strict=True):
        predictions = read_run(run_folder / model, test_records).relation[:, some]
        assert row["accuracy"] == (predictions == test_records.target[some]).mean()
        assert row["given"]
