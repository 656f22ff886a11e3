"""Free text -> relation, files of predictions, and the paired test."""

import csv
import json
import re
import string
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, wilcoxon

from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import positional_ids, story_ids
from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.evaluation.metrics import score
from clutrr_jax.evaluation.predictions import write_predictions
from clutrr_jax.evaluation.significance import holm, paired_p
from clutrr_jax.language_models.answers import to_relation
from clutrr_jax.language_models.scoring import collect, compare
from clutrr_jax.language_models.submissions import UNMAPPED, read_submissions
from clutrr_jax.report.tables import format_fraction
from clutrr_jax.score import main
from generator.errors import InputError
from generator.kinship import NUM_RELATIONS, RELATIONS
from tests.data.test_dataset import rows_of
from tests.evaluation.test_metrics import some_predictions

relations = st.integers(0, NUM_RELATIONS - 1)
# Text around an answer, without relatives or markers of an answer.
before_it = st.sampled_from(["", "**", '"', "\n", "Well: ", "I would say (", "her ", "Bob's "])
after_it = st.sampled_from(["", "**", '"', "\n", "  ", "!", ".", ")", " of Bob", ", I would say"])


def plural(name: str) -> str:
    """sons, sisters-in-law, wives."""
    word, *law = name.split("-", 1)
    return "-".join(["wives" if word == "wife" else word + "s", *law])


surfaces = st.tuples(
    st.sampled_from([str.lower, str.upper, str.title, str.capitalize]),
    st.sampled_from(
        ["-", " ", "_", "\N{NON-BREAKING HYPHEN}", "\N{EN DASH}", "\N{NO-BREAK SPACE}"]
    ),
    st.sampled_from([str, plural, lambda name: name + "'s", lambda name: name + "\u2019s"]),
)


@pytest.mark.parametrize(
    ("value", "sign", "text"),
    [
        (0.874, "", ".87"),
        (0.996, "", "1.00"),
        (0.0, "", ".00"),
        (0.07, "+", "+.07"),
        (-0.07, "+", "-.07"),
        (-0.003, "+", "+.00"),
        (-1.0, "+", "-1.00"),
    ],
)
def test_a_fraction_is_formatted_as_in_the_papers(value, sign, text):
    assert format_fraction(value, sign) == text


@given(relations, surfaces, before_it, after_it)
def test_a_relation_is_recognized_in_every_form(relation, surface, before, after) -> None:
    case, hyphen, ending = surface
    text = case(ending(RELATIONS[relation]).replace("-", hyphen))
    name = RELATIONS[relation]
    assert to_relation(before + text + after, RELATIONS) == name
    for longer in (
        f"Let me think: uncle, niece.\nFinal answer: {text}\nSo: aunt",
        f"<think>son? wife?</think>\n\n{before}{text}",
        json.dumps({"answer": text}, ensure_ascii=False),
    ):
        assert to_relation(longer, RELATIONS) == name


@given(relations, relations)
def test_several_different_relations_are_not_mapped(one, other) -> None:
    text = f"{RELATIONS[one]}, or maybe her {RELATIONS[other]}"
    assert to_relation(text, RELATIONS) == (RELATIONS[one] if one == other else None)


@given(st.text(string.ascii_lowercase, max_size=3), relations)
def test_a_relation_within_a_word_is_ignored(letters, relation) -> None:
    name = RELATIONS[relation]
    for text in (f"x{letters}{name}", f"{name}x{letters}"):
        assert to_relation(text, RELATIONS) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Grandma", "grandmother"),
        ("He is her grandpa.", "grandfather"),
        ("grand daughter", "granddaughter"),
        ("Mom", "mother"),
        ("her dad's", "father"),
        ("auntie", "aunt"),
        ("in-law daughter", "daughter-in-law"),
        ("motherinlaw", "mother-in-law"),
        ("**Answer:**\n\n Nephew", "nephew"),
        ("Answer: **father**-in-law", "father-in-law"),
        ("Answer: _father_-in-law", "father-in-law"),
        ("Answer: `father`-in-law", "father-in-law"),
        ("her father`s", "father"),
        ("The answer is: wife. The answer is: husband.", "husband"),
        ("The father of her father is her grandfather.\nAnswer: grandfather", "grandfather"),
        ("Answer: son, the brother of his daughter", None),
        ("The father said so. Answer: I do not know.", None),
        ("The father said so. Answer:", None),
        ("sibling", None),
        ("parent-in-law", None),
        ("cousin", None),
        ("the aunt of her cousin", None),
        ("stepmother", None),
        ("half-brother", None),
        ("great-grandmother", None),
        ("great-aunt", None),
        ("aunt-in-law", None),
        ("ex-wife", None),
        ("season", None),
        ("", None),
        ("3", None),
    ],
)
def test_the_stated_rules(text: str, expected: str | None) -> None:
    assert to_relation(text, RELATIONS) == expected


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


def test_holm_by_hand() -> None:
    assert np.allclose(holm(np.array([0.04, 0.01, 0.03, 0.6])), [0.09, 0.04, 0.09, 0.6])


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
    write_predictions(paths[2], predictions, data.test)
    rows = [
        (id, RELATIONS[predictions.best[r, s]], r) for r in range(3) for s, id in enumerate(ids)
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
        np.testing.assert_array_equal(submission.predictions.best, predictions.best)


def test_unmapped_predictions_are_counted_and_wrong(data, ids, tmp_path) -> None:
    texts = [RELATIONS[t] for t in data.test.target]
    texts[0], texts[30], texts[31] = "dunno", "a cousin", ""
    (tmp_path / "lm.jsonl").write_text(lines_of(ids, texts))
    submissions = read_submissions([tmp_path / "lm.jsonl"], data.test)
    assert np.flatnonzero(submissions[0].predictions.best[0] == UNMAPPED).tolist() == [0, 30, 31]
    found = collect(data, submissions)
    points = [row for row in found["rows"] if row["model"] == "lm"]
    assert [p["task"] for p in points] == ["1.2", "1.3", "1.5", "2.4"]
    assert sum(p["unmapped"] for p in points) == 3
    for point in points:
        assert np.isclose(point["accuracy"], 1 - point["unmapped"] / 20)
        assert point["low"] <= point["accuracy"] <= point["high"] and point["ceiling"] == 1
    assert [row["model"] for row in found["rows"][4::4]] == list(BASELINES)


def test_a_submission_cannot_have_the_name_of_a_baseline(data, ids, tmp_path) -> None:
    path = tmp_path / f"{BASELINES[0]}.jsonl"
    path.write_text(lines_of(ids, ["dunno"] * len(ids)))
    with pytest.raises(InputError, match="two rows named 'given rules', expected each once"):
        collect(data, read_submissions([path], data.test))


def test_a_swapped_comparison_has_the_opposite_sign(data, ids, tmp_path) -> None:
    """The difference is that of the accuracies, also with different numbers of replicas."""
    for name, replicas in (("a", 2), ("b", 3)):
        (tmp_path / name).mkdir()
        predictions = some_predictions(data.test, replicas)
        best = np.where(predictions.best % 3 == replicas - 2, data.test.target, predictions.best)
        write_predictions(
            tmp_path / name / "predictions.csv", predictions._replace(best=best), data.test
        )
    a, b = read_submissions([tmp_path / name / "predictions.csv" for name in "ab"], data.test)
    there, back = compare(a, b, data)["tasks"], compare(b, a, data)["tasks"]
    rows_a, rows_b = (score({s.name: s.predictions}, data.test) for s in (a, b))
    for one, other, row_a, row_b in zip(there, back, rows_a, rows_b, strict=True):
        assert np.isclose(one["difference"], row_a.accuracy - row_b.accuracy)
        assert np.isclose(one["difference"], -other["difference"])
        assert (one["better"], one["worse"]) == (other["worse"], other["better"])
        assert one["p"] == other["p"] <= one["p_holm"] == other["p_holm"]
    same = compare(a, a, data)["tasks"]
    assert {(p["difference"], p["p"], p["p_holm"]) for p in same} == {(0.0, 1.0, 1.0)}


def test_names_and_paths_may_contain_an_equals_sign(data, ids, tmp_path) -> None:
    path = tmp_path / "lr=0.1" / "answers.jsonl"
    path.parent.mkdir()
    path.write_text(lines_of(ids, ["aunt" for _ in ids]))
    for file, name in ((f"mine={path}", "mine"), (f"a=b={path}", "a=b"), (str(path), "answers")):
        assert [s.name for s in read_submissions([file], data.test)] == [name]


def test_the_command(small_folder, data, ids, tmp_path, capsys) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.csv"
    first.write_text(lines_of(ids, ["Answer: " + RELATIONS[t] for t in data.test.target]))
    second.write_text("id,prediction\n" + "".join(f"{i},who knows\n" for i in ids))
    arguments = ["--data", str(small_folder), "--predictions", str(first), str(second)]
    main([*arguments, "--out", str(tmp_path / "out")])
    printed = capsys.readouterr().out
    cells = {line[:20].strip(): line[20:].split() for line in printed.splitlines()[:12]}
    assert cells["first (1 replica)"] == ["1.00"] * 4
    assert cells["second (1 replica)"] == [".00"] * 4
    assert printed.splitlines()[6].split() == ["not", "mapped", *["20"] * 4]
    for words in (*BASELINES, "ceiling", "first against second", "Holm", "+1.00", "<.001"):
        assert words in printed
    written = {path.name: path for path in (tmp_path / "out").iterdir()}
    assert set(written) == {"scores.json", "scores.txt", "scores.png"}
    assert written["scores.txt"].read_text() == printed
    assert json.loads(written["scores.json"].read_text())["compared"][0]["tasks"][0]["better"] == 20
    assert written["scores.png"].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("a.jsonl", lambda lines: [], "empty file"),
        ("a.jsonl", lambda lines: [lines[0].replace('"id": "', '"id": "x'), *lines[1:]], "row 1"),
        ("a.jsonl", lambda lines: [*lines, lines[0]], "row 81: second prediction"),
        ("a.jsonl", lambda lines: lines[1:], "no prediction for 1 of 80"),
        ("a.jsonl", lambda lines: [*lines[:3], "{", *lines[4:]], "row 4: not a line of JSON"),
        ("a.jsonl", lambda lines: ["[" * 100_000], "row 1: not a line of JSON"),
        ("a.jsonl", lambda lines: ["[1]", *lines], "row 1: expected a JSON object"),
        ("a.jsonl", lambda lines: ['{"di": 1}', *lines], 'row 1: "id" is missing'),
        ("a.jsonl", lambda lines: ['{"id": 1}', *lines], '"prediction" is missing'),
        ("a.jsonl", lambda lines: ['{"id": "1.2/1", "prediction": 4}'], '"prediction" is missing'),
        ("a.jsonl", lambda lines: [lines[0].replace("{", '{"replica": -1, ')], "replica '-1'"),
        ("a.jsonl", lambda lines: [*lines, lines[0].replace("{", '{"replica": 1, ')], "replica 1"),
        ("a.csv", lambda lines: ["id,answer"], 'expected one column "prediction"'),
        ("a.csv", lambda lines: ["id,prediction"], "no predictions"),
        ("a.csv", lambda lines: ["id,prediction", "1.2/1"], "row 1: 1 cells, expected 2"),
        ("a.csv", lambda lines: ["id,prediction", '"1.2/1'], "not a CSV row"),
        ("a.csv", lambda lines: ["id,prediction", "9.9/1,aunt"], "row 1: no test story '9.9/1'"),
        ("a.csv", lambda lines: ["replica,task,row,x", "0,1,2,3"], "expected the header"),
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
    options = ["--data", str(small_folder), "--predictions"]
    for arguments, expected in [
        ([*options, str(path), str(path)], "expected each once"),
        ([*options, str(tmp_path / "absent.csv")], "No such file"),
        ([*options], "--predictions"),
        ([*options, str(path), "--out", str(path)], "cannot be written"),
        (["--data", "nowhere", "--predictions", str(path)], "nowhere"),
    ]:
        with pytest.raises(InputError, match=expected):
            main(arguments)
