import ast
import csv
import gzip
import json
import re
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from generator.__main__ import main
from generator.errors import InputError
from generator.paraphrases.load import load_bank
from generator.relations.kinship import GENDER_OF, GENDERS, RELATION_ID, RELATIONS
from generator.stories import render
from generator.stories.config import Config, parse_tasks
from generator.stories.text import clause_name
from generator.tables.columns import COLUMNS
from generator.write import FORMATS, write_dataset

SMALL = Config(
    train=parse_tasks("1.2,1.3"),
    test=parse_tasks("1.2,5.4"),
    train_rows=(1030, 20),  # two blocks, one block
    test_rows=30,
    language="synthetic",
)


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    out = tmp_path_factory.mktemp("data")
    write_dataset(SMALL, out)
    return out


def test_files_columns_and_row_numbers(data):
    assert sorted(p.name for p in data.iterdir()) == [
        "1.2,1.3_train.csv", "1.2_test.csv", "5.4_test.csv", "config.json"
    ]  # fmt: skip
    rows = read(data / "1.2,1.3_train.csv")
    assert tuple(rows[0]) == COLUMNS
    assert [r[""] for r in rows] == [str(i) for i in range(1050)]
    assert [r["task_name"] for r in rows] == ["task_1.2"] * 1030 + ["task_1.3"] * 20
    assert len({r["id"] for r in rows}) == 1050
    assert Config.from_json(json.loads((data / "config.json").read_text())["settings"]) == SMALL


def check_columns(row):
    """Fails unless the columns of a row agree with each other."""
    names, genders = zip(*(x.split(":") for x in row["genders"].split(",")), strict=True)
    assert len(set(names)) == len(names) and set(genders) <= set(GENDERS)
    edges, types = ast.literal_eval(row["story_edges"]), ast.literal_eval(row["edge_types"])
    facts = {(names[x], r, names[y]) for (x, y), r in zip(edges, types, strict=True)}
    assert {r for _, r, _ in facts} <= set(RELATIONS)
    k = int(row["task_name"].rpartition(".")[2])
    assert row["f_comb"] == "-".join(types[:k])
    x, y = ast.literal_eval(row["query_edge"])
    assert ast.literal_eval(row["query"]) == (names[x], names[y])
    assert (x, y) == (edges[0][0], edges[k - 1][1])
    goals = {(names[x], row["target"], names[y])}
    proof = ast.literal_eval(row["proof_state"])
    assert len(proof) == k - 1
    for step in proof:
        ((head, (first, second)),) = step.items()
        assert (head[0], first[2], head[2]) == (first[0], second[0], second[2])
        goals.remove(head)
        goals |= {first, second}
    assert goals <= facts
    for a, r, b in facts | goals | {(names[x], row["target"], names[y])}:
        assert GENDERS[GENDER_OF[RELATION_ID[r]]] == genders[names.index(b)] and a != b
    origin = ast.literal_eval(row["node_mapping"])
    assert sorted(origin.values()) == list(range(len(names)))
    assert all(f"[{name}]" in row["story"] for name in names)
    clean = row["clean_story"].replace(". ", ".|").split("|")
    assert len(clean) == k and set(clean) <= set(row["story"].replace(". ", ".|").split("|"))
    (stated,) = ast.literal_eval(row["text_target"])
    assert row["target"] in stated and stated not in row["story"]


@pytest.mark.parametrize("name", ["1.2,1.3_train.csv", "1.2_test.csv", "5.4_test.csv"])
def test_columns_agree_with_each_other(data, name):
    for row in read(data / name):
        check_columns(row)


def test_train_has_no_held_out_clauses_or_paraphrases(tmp_path):
    config = Config(
        train=parse_tasks("1.2,1.3,1.4"), test=parse_tasks("1.3,1.4"), train_rows=250, dev_rows=50
    )
    write_dataset(config, tmp_path)
    held = json.loads((tmp_path / "config.json").read_text())["held_out"]
    train = [row for s in ("train", "dev") for row in read(tmp_path / f"1.2,1.3,1.4_{s}.csv")]
    shown = {row["f_comb"] for row in train}
    for k, total in (("3", 304), ("4", 1576)):
        assert 0.07 < len(held["clauses"][k]) / total < 0.13
        assert not shown & set(held["clauses"][k])
        assert {r["f_comb"] for r in read(tmp_path / f"1.{k}_test.csv")} <= set(held["clauses"][k])
    assert set(held["clauses"]) == {"3", "4"}

    bank = load_bank(config)
    texts = {True: set(), False: set()}
    for key, templates in bank.templates.items():
        out = held["paraphrases"][clause_name(key)]
        assert 0.05 <= len(out) / len(templates) <= 0.5
        for i, text in enumerate(templates):
            texts[i in out].add(re.sub(r"\{\d\}", "|", text))
    train_text = " ".join(re.sub(r"\[\w+\]", "|", row["clean_story"]) for row in train)
    assert not [text for text in sorted(texts[True] - texts[False]) if text in train_text]
    assert [text for text in texts[False] if text in train_text]


def test_same_bytes_for_any_number_of_workers_and_rows(data, tmp_path):
    write_dataset(SMALL, tmp_path / "two", workers=2)
    for path in data.iterdir():
        assert (tmp_path / "two" / path.name).read_bytes() == path.read_bytes()
    write_dataset(replace(SMALL, test_rows=10), tmp_path / "few")
    few = (tmp_path / "few" / "1.2_test.csv").read_bytes()
    assert (data / "1.2_test.csv").read_bytes().startswith(few)


def test_all_formats_have_the_same_rows(data, tmp_path):
    write_dataset(SMALL, tmp_path / "gz", form="csv.gz")
    write_dataset(SMALL, tmp_path / "parquet", form="parquet")
    write_dataset(SMALL, tmp_path / "jsonl", form="jsonl")
    for name in ("1.2,1.3_train", "1.2_test", "5.4_test"):
        content = gzip.decompress((tmp_path / "gz" / f"{name}.csv.gz").read_bytes())
        assert content == (data / f"{name}.csv").read_bytes()
        table = pq.read_table(tmp_path / "parquet" / f"{name}.parquet").to_pylist()
        assert [{"": str(i)} | row for i, row in enumerate(table)] == read(data / f"{name}.csv")
        with (tmp_path / "jsonl" / f"{name}.jsonl").open() as lines:
            assert [json.loads(line) for line in lines] == table
        assert len(list((tmp_path / "parquet").iterdir())) == 4


@pytest.mark.parametrize("form", FORMATS)
def test_an_interrupted_run_resumes(tmp_path, monkeypatch, form):
    block = render.block
    computed = []

    def interrupted(*args):
        if len(computed) == 2:
            raise KeyboardInterrupt
        computed.append(args[1:4])
        return block(*args)

    write_dataset(SMALL, tmp_path / "at once", form=form)
    out = tmp_path / "resumed"
    monkeypatch.setattr(render, "block", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_dataset(SMALL, out, form=form)
    name = f"1.2,1.3_train.{form}"
    assert not (out / name).exists()
    (out / f".{name}.parts" / ".1.2").write_text("half a row")  # left by a killed process
    monkeypatch.setattr(render, "block", lambda *args: computed.append(args[1:4]) or block(*args))
    write_dataset(SMALL, out, form=form)
    assert len(computed) == len(set(computed)) == 5  # each block once
    assert {p.name: p.read_bytes() for p in out.iterdir()} == {
        p.name: p.read_bytes() for p in (tmp_path / "at once").iterdir()
    }


def test_a_folder_of_other_settings_is_not_changed(data):
    before = {p: p.read_bytes() for p in data.iterdir()}
    with pytest.raises(InputError, match="other settings"):
        write_dataset(replace(SMALL, seed=1), data)
    assert {p: p.read_bytes() for p in data.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--test 1.2,9.3", "unknown noise type 9"),
        ("--test 1", "expected the form T.K"),
        ("--test 1.1", "clause length 1"),
        ("--test 1.2,1.2", "twice"),
        ("--train-rows -5", 'rows "-5": expected a number of 0 or more'),
        ("--test 1.2 --train-rows 0 --test-rows 0", "no stories: expected a task"),
        ("--test-rows 5,6", "one for each of the 9 tasks"),
        ("--test 1.2,1.25 --max-levels 2", "shorter clauses"),
        ("--test 1.2 --unique-test-clauses", "there are 62 clauses"),
        ("--min-child 5", "max_child 4: expected 5 or more"),
        ("--hold-out rules", "clauses,paraphrases"),
        ("--workers 0", "--workers 0: expected 1 or more"),
        ("--bank absent.json", "absent.json: cannot be read"),
        ("--frobnicate", "--frobnicate"),
    ],
)
def test_bad_settings_end_with_one_line_and_code_2(tmp_path, capsys, options, message):
    assert main(["--out", str(tmp_path / "out"), *options.split()]) == 2
    stdout, stderr = capsys.readouterr()
    assert stdout == "" and stderr.count("\n") == 1 and message in stderr
    assert not (tmp_path / "out").exists()


def test_command_writes_and_names_the_files(tmp_path, capsys):
    options = "--train 1.2 --test 6.3,1.4 --train-rows 5 --test-rows 5,3 --dev-rows 2 --seed 7"
    assert main(["--out", str(tmp_path), *options.split()]) == 0
    assert [line.rpartition("/")[2] for line in capsys.readouterr().out.split()] == [
        "1.2_train.csv", "1.2_dev.csv", "6.3_test.csv", "1.4_test.csv"
    ]  # fmt: skip
    assert {r["task_split"] for r in read(tmp_path / "1.2_dev.csv")} == {"dev"}
    assert len(read(tmp_path / "6.3_test.csv")) == 5 and len(read(tmp_path / "1.4_test.csv")) == 3


def test_ids_belong_to_one_story_of_one_data_set(data, tmp_path):
    """Predictions for another data set are noticed: its stories have other ids."""
    write_dataset(replace(SMALL, language="plain"), tmp_path)
    for path in data.glob("*.csv"):
        rows, others = read(path), read(tmp_path / path.name)
        assert [row["target"] for row in rows] == [row["target"] for row in others]
        assert not {row["id"] for row in rows} & {row["id"] for row in others}
