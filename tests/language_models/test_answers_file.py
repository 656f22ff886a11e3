"""The file of all answers, with the relation that was read from each."""

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import story_ids
from clutrr_jax.evaluation.predictions import export_predictions
from clutrr_jax.score import main
from generator.errors import InputError
from generator.relations.kinship import RELATIONS
from tests.evaluation.test_metrics import some_predictions

# Text -> the relation that is read.
TEXTS = {
    "<think>a\nson": "",
    "": "",
    'a "cousin", \u00e9;\r\n': "",
    "half a pair \ud800, aunt": "aunt",
    "a carriage\rreturn": "",
    "nul \0 byte\nAnswer: uncle": "uncle",
    "=SUM(A1), Answer: **Mother-in-law**.": "mother-in-law",
}


def answers_in(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_all_answers_are_written(small_folder, tmp_path, capsys) -> None:
    """Every text is in the file once, whatever is in it, with what `scores.json` counts."""
    data = load(small_folder)
    ids, target = story_ids(data.test), [RELATIONS[t] for t in data.test.target]
    texts = dict(enumerate(TEXTS, start=3))
    rows = [
        {"id": id, "replica": replica, "prediction": texts.get(story, target[story])}
        for replica in (1, 2)
        for story, id in enumerate(ids)
    ]
    (tmp_path / "lm.jsonl").write_text("\n".join(map(json.dumps, reversed(rows))))
    run = some_predictions(data.test, replicas=1)
    export_predictions(tmp_path / "run/predictions.csv", run, data.test)
    files = [f"mine={tmp_path / 'lm.jsonl'}", str(tmp_path / "run/predictions.csv")]
    main(["--data", str(small_folder), "--predictions", *files, "--out", str(tmp_path / "out")])
    found = answers_in(tmp_path / "out" / "answers.csv")
    assert list(found[0]) == ["model", "replica", "id", "task", "target", "relation", "right",
                              "text"]  # fmt: skip
    assert [(row["model"], row["replica"], row["id"], row["target"]) for row in found] == [
        (model, replica, id, label)
        for model, replica in (("mine", "1"), ("mine", "2"), ("run", "0"))
        for id, label in zip(ids, target, strict=True)
    ]
    for i, row in enumerate(found[:160]):
        text = rows[i]["prediction"]
        assert row["text"] == text.encode(errors="backslashreplace").decode()
        assert row["relation"] == TEXTS.get(text, text)
    assert [row["relation"] for row in found[160:]] == [RELATIONS[r] for r in run.relation[0]]
    assert all(row["right"] == str(int(row["relation"] == row["target"])) for row in found)
    results = json.loads((tmp_path / "out" / "scores.json").read_text())
    frame = pd.read_csv(tmp_path / "out" / "answers.csv", dtype={"task": str})
    accuracy = frame.groupby(["model", "task"]).right.mean()
    for row in results["rows"]:
        if row["model"] in ("mine", "run"):
            assert accuracy[row["model"], row["task"]] == row["accuracy"]
    printed = capsys.readouterr().out
    assert printed.count("were not mapped to a relation") == 1
    assert "mine: 8 of 160 answers were not mapped to a relation (score --out DIR writes" in printed


def test_a_file_of_predictions_is_not_replaced(small_folder, tmp_path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("id,prediction\n1.2/1,aunt\n")
    for out in (tmp_path, tmp_path / "x" / ".."):
        with pytest.raises(
            InputError, match=r"--out .*: answers\.csv would replace mine=.*answers"
        ):
            main(["--data", str(small_folder), "--predictions", f"mine={path}", "--out", str(out)])
    assert path.read_text() == "id,prediction\n1.2/1,aunt\n"
    assert list(tmp_path.iterdir()) == [path]
