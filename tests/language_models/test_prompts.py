"""Prompts: one per story, with the listed relations, and accepted by clutrr_jax.score."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clutrr_jax import cli, score
from clutrr_jax.data.dataset import Dataset, load
from clutrr_jax.data.records import story_ids
from clutrr_jax.evaluation.proofs import facts_of
from clutrr_jax.language_models import __main__ as export_command
from clutrr_jax.language_models.__main__ import main
from clutrr_jax.language_models.answers import to_relation
from clutrr_jax.language_models.export import STYLES, chosen, export
from clutrr_jax.language_models.prompts import examples, prompts, question
from clutrr_jax.language_models.submissions import read_submissions
from generator.errors import InputError
from generator.relations.kinship import NUM_RELATIONS, PREDICATE_OF, RELATION_ID, RELATIONS
from generator.stories.text import NAME

KEYS = ("id", "task", "k", "story", "query", "names", "algebra", "choices", "prompt", "target",
        "edges", "task_split", "task_name", "story_edges", "edge_types", "query_edge",
        "genders")  # fmt: skip
JSONL = ("export", "--format", "jsonl")


def write(folder: Path, out: Path, style: str, *more: str) -> list[dict]:
    main([*JSONL, "--data", str(folder), "--style", style, "--out", str(out), *more])
    return [json.loads(line) for line in (out / "prompts.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("style", STYLES)
def test_there_is_a_prompt_for_every_story(small_folder, small, tmp_path, style: str) -> None:
    rows = write(small_folder, tmp_path / "out", style)
    ids = story_ids(small.test)
    assert sorted(row["id"] for row in rows) == sorted(ids)
    shots = 0 if style == "zero-shot" else 4
    for row in rows:
        story = ids.index(row["id"])
        assert tuple(row) == (*KEYS, "proof") and set(row["choices"]) == set(RELATIONS)
        assert row["task"] == f"{small.test.task[story]}.{row['k']}"
        assert row["k"] == small.test.clause_length[story]
        assert row["target"] == RELATIONS[small.test.target[story]]
        prompt = row["prompt"]
        assert all(re.search(rf"\b{name}[,.]", prompt) for name in RELATIONS)
        assert prompt.endswith(question(small.test, story) + "\n")
        assert "[" not in prompt and "]" not in prompt
        assert prompt.count("Question:") == shots + 1
        assert len(re.findall(r"^Answer: [a-z-]+$", prompt, re.M)) == shots
        assert ("step by step" in prompt) == (style == "chain-of-thought")


@pytest.mark.parametrize("style", STYLES)
def test_an_answer_may_repeat_its_prompt(small_folder, tmp_path, style: str) -> None:
    """As pipelines return it; the answer of no solved example counts."""
    for row in write(small_folder, tmp_path, style, "--per-task", "7"):
        for answer in (f"Answer: {row['target']}", row["target"], "I do not know."):
            found = to_relation(row["prompt"] + answer, RELATIONS, row["query"], row["names"])
            assert found == (row["target"] if row["target"] in answer else None), row["prompt"]


@pytest.mark.parametrize("style", ["zero-shot", "few-shot"])
def test_the_file_of_prompts_is_a_data_set(small_folder, small, tmp_path, style: str) -> None:
    """Its test stories are those of the data, also with facts whose relation is not stated."""
    write(small_folder, tmp_path, style, "--per-task", "7")
    data = load(tmp_path / "prompts.jsonl")
    test = small.test.select(chosen(small.test, per_task=7))
    assert data.train is None and len(data.test) == 28
    unstated = replace(test, relations=test.relations.copy())
    unstated.relations[int(test.edge_start[1]) - 1] = NUM_RELATIONS
    export(Dataset("unstated", small.train, unstated), tmp_path / "unstated", "jsonl", style)
    for found, expected in ((data.test, test), (load(tmp_path / "unstated").test, unstated)):
        for name, values in vars(expected).items():
            np.testing.assert_array_equal(getattr(found, name), values, err_msg=name)
    rows = [json.loads(line) for line in (tmp_path / "prompts.jsonl").read_text().splitlines()]
    assert load({"test": rows}).test.stories == test.stories


def test_facts_and_proofs_by_name(small) -> None:
    """The edges are the facts of the data. A proof rests on them, and ends in the label."""
    ids = story_ids(small.test)
    for row in prompts(small.test, range(len(small.test)), [], False):
        story = ids.index(row["id"])
        names = small.test.names[small.test.node_start[story] :]
        x, y = row["query"]
        assert facts_of(small.test, story) == [
            (names.index(a), PREDICATE_OF[RELATION_ID[r]], names.index(b))
            for a, r, b in row["edges"]
        ]
        known = {f"{b} is the {relation} of {a}" for a, relation, b in row["edges"]}
        for step in row["proof"]:
            first, second, head = re.fullmatch(r"(.+) and (.+), so (.+)\.", step).groups()
            assert {first, second} <= known
            known.add(head)
        assert head == f"{y} is the {row['target']} of {x}"
        assert row["story"] in row["prompt"] and {x, y} <= set(re.findall(r"\w+", row["story"]))


def test_a_label_without_a_proof_and_an_unstated_relation(small) -> None:
    test = small.test.select(np.arange(3))
    test.relations[0] = NUM_RELATIONS
    rows = list(prompts(test, range(3), [], False))
    assert [tuple(row) for row in rows] == [KEYS, (*KEYS, "proof"), (*KEYS, "proof")]
    assert rows[0]["edges"][0][1] is None


def test_a_perfect_model_scores_one(small_folder, small, tmp_path) -> None:
    """Its output repeats the prompt, with other relations in it, and ends with the answer."""
    rows = write(small_folder, tmp_path / "out", "chain-of-thought", "--shots", "2")
    for row in rows:
        lines = [line for line in row["prompt"].splitlines()[1:] if not line.startswith("Story:")]
        answer = f"So she is that.\n\n**Answer:** {row['target'].title()}."
        row["prediction"] = "\n".join([*lines, answer])
    (tmp_path / "output.jsonl").write_text("\n".join(map(json.dumps, rows)))
    submission = read_submissions([tmp_path / "output.jsonl"], small.test)[0]
    assert (submission.predictions.relation == small.test.target).all()


def test_examples_are_no_test_stories(small, tmp_path) -> None:
    """Nor the same in other words' order, case or brackets: the prompt would hold its answer."""
    train, tests = small.train, small.train.select(np.arange(len(small.train) - 5))
    texts = [" ".join(reversed(re.split(r"(?<=\.) ", text))).upper() for text in tests.stories]
    data = Dataset("", train, replace(tests, stories=texts))
    export(data, tmp_path, "jsonl", "few-shot", shots=3)
    for line in (tmp_path / "prompts.jsonl").read_text().splitlines():
        prompt = json.loads(line)["prompt"]
        shown = set(re.findall(r"(?m)^Story: (.*)$", prompt.rpartition("Story: ")[0]))
        assert len(shown) == 3
        assert shown <= {NAME.sub(r"\1", text) for text in train.stories[-5:]}
    with pytest.raises(InputError, match="--shots 6: expected at most 5, the number of training"):
        export(data, tmp_path, "jsonl", "few-shot", shots=6)


def test_the_seed_selects_the_same_examples_in_every_style(small) -> None:
    few, again, steps = (examples(small.train, 5, 3, s) for s in (False, False, True))
    assert few == again and len(set(few)) == 5
    assert few != examples(small.train, 5, 4, False)
    for plain, thought in zip(few, steps, strict=True):
        head, answer = plain.rsplit("\n", 1)
        assert thought.startswith(head) and thought.endswith(answer)
        assert ", so " in thought.removeprefix(head)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--style", "zero-shot", "--shots", "1"], "--shots 1"),
        (["--style", "few-shot", "--shots", "0"], "--shots 0"),
        (["--style", "few-shot", "--shots", "500"], "at most 120"),
        (["--style", "zero-shot", "--format", "helm"], "helm"),
        (["--style", "few-shot", "--seed", "-1"], "--seed -1"),
        (["--style", "few-shot", "--format", "inspect", "--max-tokens", "0"], "--max-tokens 0"),
        (["--style", "zero-shot", "--per-task", "0"], "--per-task 0"),
        (["--style", "zero-shot", "--limit", "-1"], "--limit -1"),
        (["--style", "zero-shot", "--limit", "a"], "--limit"),
        (["--style", "riddle"], "riddle"),
        ([], "--style"),
        (["--style", "zero-shot", "--data", "nowhere.zip"], "nowhere.zip"),
    ],
)
def test_an_invalid_argument_is_a_one_line_error(
    small_folder, tmp_path, arguments, expected: str
) -> None:
    out = tmp_path / "out"
    with pytest.raises(InputError, match=expected):
        main([*JSONL, "--data", str(small_folder), "--out", str(out), *arguments])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["--per-task", "3"], {"1.2": 3, "1.3": 3, "1.5": 3, "2.4": 3}),
        (["--limit", "6"], {"1.2": 2, "1.3": 2, "1.5": 1, "2.4": 1}),
        (["--limit", "1"], {"1.2": 1}),
        (["--limit", "9", "--per-task", "2"], {"1.2": 2, "1.3": 2, "1.5": 2, "2.4": 2}),
        (["--limit", "3", "--per-task", "2"], {"1.2": 1, "1.3": 1, "1.5": 1}),
        (["--limit", "999"], {"1.2": 20, "1.3": 20, "1.5": 20, "2.4": 20}),
    ],
)
def test_a_part_of_the_stories(small_folder, small, tmp_path, arguments, count) -> None:
    """The first of each task, with the lines that all stories have, in the same order."""
    every = write(small_folder, tmp_path / "all", "few-shot")
    rows = write(small_folder, tmp_path / "part", "few-shot", *arguments)
    expected = [
        row
        for task, n in count.items()
        for row in [row for row in every if row["task"] == task][:n]
    ]
    assert sorted(rows, key=every.index) == rows == sorted(expected, key=every.index)


def test_stories_without_a_text_have_no_prompts(tmp_path) -> None:
    told = {"story": "Bo is the son of Al.", "query": ("Al", "Bo"), "target": "son"}
    facts = {"story": "", "query": ("Al", "Bo"), "target": "son", "facts": [("Al", "son", "Bo")]}
    told |= {"facts": facts["facts"]}
    for train, test, problem in (
        ([told], [told, facts], "test story '0.0/2' has no text"),
        ([facts], [told], "train story '0.0/1' has no text"),
    ):
        data = load({"train": train, "test": test})
        with pytest.raises(InputError, match=f"data set: {problem}, expected one in each"):
            export(data, tmp_path / "out", "jsonl", "few-shot", 1)
    export(load({"train": [facts], "test": [told]}), tmp_path, "jsonl", "zero-shot")
    assert [path.name for path in tmp_path.iterdir()] == ["prompts.jsonl"]


FOLDERS = {"name": "folders", "relations": "in holds apart",
           "inverse": {"in": "holds", "holds": "in", "apart": "apart"},
           "composition": {"in": {"in": "in", "apart": "apart"}, "holds": {"holds": "holds"},
                           "apart": {"holds": "apart"}}}  # fmt: skip


@pytest.mark.parametrize("defined", [True, False])
def test_prompts_of_other_relations(tmp_path, defined: bool) -> None:
    """Facts as lines, with the definitions that the algebra has; numbers have a letter. The file
    of prompts is a data set of the same relations."""
    words = {"in": "X lies in Y.", "holds": "Y lies in X.", "apart": "Neither holds the other."}
    content = FOLDERS | ({"definitions": words} if defined else {})
    (tmp_path / "algebra.json").write_text(json.dumps(content))
    row = {"facts": [("a", "in", "7"), ("7", "apart", "c")], "query": ("a", "c"),
           "target": "apart", "k": 2}  # fmt: skip
    other = row | {"facts": [("a", "in", "b"), ("b", "in", "7")], "query": ("a", "7")}
    other["target"] = "in"
    data = load({"train": [other], "test": [row]}, algebra=str(tmp_path / "algebra.json"))
    export(data, tmp_path / "out", "jsonl", "chain-of-thought", 1)
    (found,) = [json.loads(line) for line in (tmp_path / "out/prompts.jsonl").open()]
    assert found["choices"] == ["in", "holds", "apart"] and found["algebra"] == "folders"
    opening, solved, asked = found["prompt"].split("\n\n")
    for name, definition in words.items():
        assert (f"\nX {name} Y: {definition}\n" in opening) == defined
    assert "one of: in, holds, apart." in opening
    assert solved == (
        "Facts:\na in b\nb in x7\nQuestion: What is a to x7?\n"
        "a in b and b in x7, so a in x7.\nAnswer: in"
    )
    assert asked == "Facts:\na in x7\nx7 apart c\nQuestion: What is a to c?\n"
    again = load(tmp_path / "out" / "prompts.jsonl").test
    assert (again.algebra == data.test.algebra and again.algebra.definition == words) or not defined
    assert again.story(0) == data.test.story(0)._replace(id=again.ids[0])


def test_examples_of_sets_of_relations_have_no_proofs(tmp_path) -> None:
    row = {"facts": [("a", "TPP", "b"), ("b", "DC", "c")], "query": ("a", "c"), "target": "DC"}
    train = row | {"facts": [("a", "NTPP", "b"), ("b", "DC", "c")]}
    data = load({"train": [train], "test": [row]})
    export(data, tmp_path, "jsonl", "few-shot", 1)
    (found,) = [json.loads(line) for line in (tmp_path / "prompts.jsonl").open()]
    assert "What is a to c?\nAnswer: DC\n\nFacts:" in found["prompt"]
    assert "X DC Y: X and Y have no point in common.\n" in found["prompt"]
    with pytest.raises(InputError, match=r"several heads.*expected --shots 0"):
        export(data, tmp_path, "jsonl", "chain-of-thought", 1)
    export(data, tmp_path, "jsonl", "chain-of-thought", 0)


def test_other_relations_need_a_text_or_facts(tmp_path) -> None:
    row = {"facts": [], "story": "", "query": ("a", "b"), "target": "DC"}
    test = load({"test": [row | {"facts": [("a", "DC", "b")]}]}).test
    empty = replace(test, edge_start=np.array([0, 0]), relations=test.relations[:0],
                    senders=test.senders[:0], receivers=test.receivers[:0])  # fmt: skip
    with pytest.raises(InputError, match="has no text"):
        export(Dataset("regions", None, empty), tmp_path, "jsonl", "zero-shot")


def test_a_part_of_stories_without_ids(small, tmp_path) -> None:
    """Their ids T.K/ROW are those in all of the data."""
    test = small.test.select(np.arange(len(small.test))[::-1])
    test = replace(test, ids=[""] * len(test))
    export(Dataset("by hand", None, test), tmp_path, "jsonl", "zero-shot", limit=5)
    rows = [json.loads(line) for line in (tmp_path / "prompts.jsonl").read_text().splitlines()]
    assert sorted(row["id"] for row in rows) == ["1.2/1", "1.3/1", "1.5/1", "2.4/1", "2.4/2"]
    text_of = dict(zip(story_ids(test), test.stories, strict=True))
    for row in rows:
        assert row["story"] == text_of[row["id"]].replace("[", "").replace("]", "")


def test_the_command_tells_what_it_has_written(small_folder, tmp_path, monkeypatch, capsys) -> None:
    """The number of prompts and the limit of an answer. An error is one line and exit code 2."""
    for format in ("jsonl", "lm-eval", "inspect"):
        arguments = ["export", "--format", format, "--data", str(small_folder), "--style"]
        main([*arguments, "zero-shot", "--out", str(tmp_path / format)])
        told = capsys.readouterr().out
        assert told.startswith(f"Wrote 80 prompts to {tmp_path / format}.\n")
        assert ("An answer may have 8,192 tokens" in told) == (format != "jsonl")
    (tmp_path / "taken").touch()
    for module, more in (
        (export_command, [*JSONL, "--style", "zero-shot", "--out", str(tmp_path / "taken")]),
        (score, ["--predictions", str(tmp_path / "absent.csv")]),
    ):
        monkeypatch.setattr("sys.argv", [module.__name__, "--data", str(small_folder), *more])
        with pytest.raises(SystemExit, match=r"^2$"):
            cli.run(module.main)
        error = capsys.readouterr().err
        assert error.startswith("error: ") and error.count("\n") == 1


def test_an_export_without_a_folder_prints_its_path_alone(
    small_folder, tmp_path, monkeypatch, capsys
) -> None:
    """The same prompts have the same folder."""
    monkeypatch.setenv("CLUTRR_CACHE", str(tmp_path))
    found = []
    for limit in ("5", "5", "6"):
        main(["--data", str(small_folder), "--format", "lm-eval", "--style", "zero-shot",
              "--limit", limit])  # fmt: skip
        (folder,) = capsys.readouterr().out.splitlines()
        assert (Path(folder) / "clutrr.yaml").exists()
        found.append(folder)
    assert found[0] == found[1] != found[2]
