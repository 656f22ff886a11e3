import csv
import re
import shutil
from pathlib import Path

import pytest

from generator.__main__ import main
from generator.audit import Seen, audit
from generator.data_sets import data_sets
from generator.relations.kinship import GENDER_OF, PREDICATE_OF, RELATION_ID, RELATION_OF, RELATIONS
from generator.stories.config import Config, parse_tasks
from generator.write import write_dataset
from tests.generator.test_write import read


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    out = tmp_path_factory.mktemp("data") / "set"
    tests = parse_tasks("1.2,1.3,2.3,3.4,4.3,5.2,6.2,7.3,1.7")
    write_dataset(Config(test=tests, train_rows=400, test_rows=40), out)
    return out


def findings(path):
    ((_, tables),) = data_sets([Path(path)])
    train = Seen()
    return {table.name: audit(table, train) for table in tables}


def rewrite(source, target, change):
    """Copies a CSV file; `change(index, row)` changes its rows in place."""
    rows = read(source)
    for index, row in enumerate(rows):
        change(index, row)
    with open(target, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_generated_data_have_no_faults(data, capsys):
    for name, found in findings(data).items():
        assert found.unique == found.rows > 0, name
        assert not found.wrong + found.ambiguous + found.duplicates + found.unnamed
        assert not found.disagreeing + found.shared_stories
        if name not in ("1.2_test.csv", "5.2_test.csv", "6.2_test.csv"):
            assert not found.shared_clauses
    assert main(["audit", str(data)]) == 0
    assert capsys.readouterr().out.endswith("1160 rows, 0 wrong labels\n")


def test_ambiguous_labels_are_counted_with_their_readings(tmp_path):
    config = Config(train=(), test=parse_tasks("1.3"), test_rows=500, ambiguous="keep", hold_out=())
    write_dataset(config, tmp_path)
    found = findings(tmp_path)["1.3_test.csv"]
    assert found.ambiguous > 0 and found.wrong == 0
    assert found.unique + found.ambiguous == found.rows
    assert sum(found.readings.values()) == found.ambiguous
    assert set(found.readings) <= {"mother or mother-in-law", "father or father-in-law"}


def test_each_fault_is_found(data, tmp_path, capsys):
    def change(index, row):
        if index == 0:
            row["target"] = "son" if row["target"] != "son" else "uncle"
        elif index == 1:  # right predicate, wrong gender
            label = RELATION_ID[row["target"]]
            row["target"] = RELATIONS[RELATION_OF[PREDICATE_OF[label], 1 - GENDER_OF[label]]]
        elif index in (2, 3):
            row["story"] = "[Nobody] is here."
        elif index == 4:
            row["f_comb"] = "son-son"
        elif index == 5:
            row["task_name"] = "task_1.9"
        elif index == 6:
            man, woman = row["genders"].find(":male"), row["genders"].find(":female")
            old, new = (":male", ":female") if man > woman else (":female", ":male")
            row["genders"] = row["genders"].replace(old, new, 1)

    rewrite(data / "1.7_test.csv", tmp_path / "1.7_test.csv", change)
    found = findings(tmp_path)["1.7_test.csv"]
    assert (found.wrong, found.unique, found.duplicates, found.unnamed) == (2, 38, 1, 2)
    assert found.disagreeing == 3
    assert len(found.mistakes) == 2 and found.mistakes[0].startswith("row 1: ")
    assert main(["audit", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "WRONG: row 1: " in out and "2 wrong labels" in out
    assert "row 3: the story does not name " in out
    for row, column in ((5, "f_comb"), (6, "task_name"), (7, "genders")):
        assert f"row {row}: {column} contradicts the facts" in out
    assert re.search("WRONG: row 2: .* is (male by facts or genders|female by facts or g)", out)


def test_overlap_with_train_is_found(data, tmp_path):
    shutil.copy(data / "1.2,1.3_train.csv", tmp_path / "1.2,1.3_train.csv")
    rewrite(data / "1.2,1.3_train.csv", tmp_path / "1.2,1.3_test.csv",
            lambda n, row: row.update(task_split="test"))  # fmt: skip
    found = findings(tmp_path)["1.2,1.3_test.csv"]
    assert found.shared_stories == found.rows
    assert found.shared_clauses == found.clauses
    assert found.shared_sentences == found.sentences > 0


def test_stories_of_two_test_files_are_counted(data, tmp_path, capsys):
    shutil.copy(data / "1.7_test.csv", tmp_path / "1.7_test.csv")
    shutil.copy(data / "1.7_test.csv", tmp_path / "1.7_test (1).csv")
    rewrite(data / "1.7_test.csv", tmp_path / "2.7_test.csv",
            lambda n, row: row.update(story=row["story"] + " So.") if n > 2 else None)  # fmt: skip
    copies = {name: dict(found.copies) for name, found in findings(tmp_path).items()}
    first = "1.7_test.csv"
    assert copies == {first: {}, "1.7_test (1).csv": {first: 40}, "2.7_test.csv": {first: 3}}
    assert main(["audit", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "  1.7_test (1).csv: stories that are also in 1.7_test.csv: 40\n" in out
    assert [line.split()[-1] for line in out.splitlines()[2:5]] == ["0", "40", "3"]


def test_the_audit_of_the_releases(releases):
    found = {(path.stem, name): f for path in releases for name, f in findings(path).items()}
    assert len({stem for stem, _ in found}) == 6
    values = found.values()
    assert sum(f.rows for f in values) == 69631
    assert sum(f.wrong + f.disagreeing + f.shared_stories for f in values) == 0
    assert sum(f.unnamed for f in values) == 1449
    assert sum(f.duplicates for f in values) == 261  # 4 with sentences in another order
    assert sum(f.copies.total() for f in values) == 0
    assert found["data_db9b8f04", "1.4_test.csv"].ambiguous == 12
    for (_, name), f in found.items():
        if "train" in name:
            assert 0.01 < f.ambiguous / f.rows < 0.015
            assert len(f.clauses) == (2183 if "1.4" in name else 383)


def audited(tmp_path, capsys, **change):
    """Exit code and report of the audit of one row."""
    row = {
        "story": "[Ann] and her son [Bob] met [Bob]'s sister [Cy].", "query": "('Ann', 'Cy')",
        "target": "daughter", "task_name": "task_1.2", "story_edges": "[(0, 1), (1, 2)]",
        "edge_types": "['son', 'sister']", "query_edge": "(0, 2)",
        "genders": "Ann:female,Bob:male,Cy:female",
    } | change  # fmt: skip
    with open(tmp_path / "own_test.csv", "w", newline="") as file:
        csv.writer(file).writerows([row, row.values()])
    return main(["audit", str(tmp_path)]), capsys.readouterr().out


@pytest.mark.parametrize(
    ("genders", "target", "code", "found"),
    [
        ("Ann:unknown,Bob:male,Cy:unknown", "daughter", 0, "1 ambiguous: daughter or son"),
        ("Ann:unknown,Bob:male,Cy:unknown", "son", 0, "1 ambiguous: daughter or son"),
        ("Ann:unknown,Bob:male,Cy:female", "daughter", 0, "0 wrong labels"),
        ("Ann:unknown,Bob:male,Cy:unknown", "aunt", 1, "the aunt of Ann; son or daughter follows"),
    ],
)
def test_a_person_of_unknown_gender_has_either(genders, target, code, found, tmp_path, capsys):
    result, out = audited(tmp_path, capsys, genders=genders, target=target)
    assert result == code and found in out and "contradicts" not in out


def test_a_row_without_a_label_is_wrong(tmp_path, capsys):
    code, out = audited(tmp_path, capsys, target="")
    assert code == 1 and "in-law" not in out
    assert "WRONG: row 1: no label; daughter follows from son-sister\n" in out
    assert out.splitlines()[-3].split() == ["no", "label", "1"]
