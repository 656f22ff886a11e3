"""The report of a run and its rebuilding, without a browser."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from clutrr_jax.data.records import positional_ids, tasks
from clutrr_jax.evaluation.predictions import read_predictions
from clutrr_jax.report.__main__ import main
from clutrr_jax.report.run_page import GENERATIONS
from generator.errors import InputError
from generator.kinship import COMPOSE, PREDICATE_OF, PREDICATES, RELATIONS, RULE_TABLE
from tests.report.conftest import EVIL, MODELS, check_self_contained


def test_generations_add_up_along_every_rule() -> None:
    assert tuple(GENERATIONS) == PREDICATES and GENERATIONS["child"] == 1
    first, second, head = np.array(list(GENERATIONS.values()))[RULE_TABLE.T]
    np.testing.assert_array_equal(first + second, head)


@pytest.fixture(scope="module")
def content(run_folder) -> dict:
    """The JSON object in the page."""
    text = (run_folder / "report.html").read_text()
    return json.loads(text.split('id="data">')[1].split("</script>")[0])


def test_the_page_holds_all_stories_and_predictions(run_folder, content, test_records) -> None:
    order = np.concatenate([rows for _, rows in tasks(test_records)])
    assert content["stories"]["text"] == [test_records.stories[s] for s in order]
    for model in MODELS:
        best = read_predictions(run_folder / model / "predictions.csv", test_records).best
        letters = content["models"][model]["predictions"]
        found = [[ord(c) - ord("a") for c in replica] for replica in letters]
        assert found == best[:, order].tolist()
    assert EVIL in content["stories"]["names"][0]
    check_self_contained(run_folder)


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
    assert (
        "Replica 2 of gat diverged in epoch 7 (non-finite loss); the state before that epoch is "
        "evaluated."
    ) in (run_folder / "results.md").read_text()


def test_a_rebuilt_report_is_the_same(run_folder, tmp_path, capsys) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run_folder, copy)
    for name in ("report.html", "results.md", "curve.png"):
        (copy / name).unlink()
    main([str(copy)])
    assert capsys.readouterr().out == f"{copy / 'report.html'}\n"
    for name in ("report.html", "results.md", "results.json", "curve.png"):
        assert (copy / name).read_bytes() == (run_folder / name).read_bytes()


def reword(folder: Path) -> None:
    for path in folder.glob("*_test.csv"):
        path.write_text(path.read_text().replace(" the ", " no "))


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda run: (run / "results.json").unlink(), "results.json: cannot be read"),
        (lambda run: (run / "results.json").write_text("{"), "results.json: damaged"),
        (lambda run: (run / "results.json").write_text("[]"), "results.json: damaged"),
        (lambda run: (run / "gat" / "model.json").write_text("{}"), "model.json: damaged"),
        (lambda run: (run / "gat" / "predictions.csv").unlink(), "csv: cannot be read"),
        (lambda run: (run / "gat" / "predictions.csv").write_text("x"), "expected the header"),
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
    assert (
        "| oracle (1 replica) | 1.00 | 1.00 | 1.00 | 1.00 |" in (folder / "results.md").read_text()
    )
    assert (folder / "curve.png").read_bytes() != (run_folder / "curve.png").read_bytes()
    with pytest.raises(InputError, match="two rows named 'gat'"):
        main([str(folder), "--add", f"gat={answers}"])
    main([str(folder)])  # without --add it is the report of the run
    assert (folder / "results.md").read_bytes() == (run_folder / "results.md").read_bytes()
