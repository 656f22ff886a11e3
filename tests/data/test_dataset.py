"""Data sets in memory, as Parquet, and of the package `datasets`."""

import ast
import gzip
import importlib
import json
import random
import re
import shutil
import sys
import zipfile
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clutrr_jax.api import generate
from clutrr_jax.data.dataset import Dataset, load
from clutrr_jax.data.records import Records
from generator.benchmark.release import card
from generator.errors import InputError
from generator.relations.kinship import RELATION_ID
from generator.stories.config import Config, parse_tasks
from generator.write import write_dataset
from tests import fuzz
from tests.command_line import harnesses
from tests.generator.tables.test_columns import ROW
from tests.generator.test_write import read


def same(one: Dataset, other: Dataset) -> bool:
    """Returns True if two data sets have the same records."""
    for split in ("train", "test"):
        a, b = getattr(one, split), getattr(other, split)
        if (a is None) != (b is None):
            return False
        for field in fields(Records) if a else ():
            x, y = getattr(a, field.name), getattr(b, field.name)
            equal = np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y
            if not equal:
                return False
    return True


def rows_of(folder: Path, split: str) -> list[dict[str, str]]:
    """The rows of a folder of CSV files."""
    return [row for file in sorted(folder.glob(f"*_{split}.csv")) for row in read(file)]


@pytest.fixture(scope="module")
def hugging_face(small_folder: Path, tmp_path_factory) -> Path:
    """The small data set in the folders and columns of the Parquet conversion of CLUTRR/v1."""
    folder = tmp_path_factory.mktemp("v1") / "gen_train23_test2to10"
    train, test = rows_of(small_folder, "train"), rows_of(small_folder, "test")
    dropped = ("", "text_query", "text_target", "syn_story", "node_mapping")
    splits = {"train": train[:100], "validation": train[100:], "test": test}
    for split, rows in splits.items():
        columns = {name: [row[name] for row in rows] for name in rows[0] if name not in dropped}
        columns["target_text"] = columns["target"]
        numbers = [RELATION_ID[name] for name in columns["target"]]
        table = pa.table(columns | {"target": pa.array(numbers, pa.int32())})
        (folder / split).mkdir(parents=True)
        pq.write_table(table, folder / split / "0000.parquet")
    return folder


def test_archives_compressed_files_and_json_lines_equal_the_files(
    small_folder: Path, tmp_path: Path
) -> None:
    archive, gzipped, lines = tmp_path / "d.zip", tmp_path / "gz", tmp_path / "lines"
    gzipped.mkdir()
    lines.mkdir()
    with zipfile.ZipFile(archive, "w") as target:
        for file in small_folder.glob("*.csv"):
            target.write(file, f"inner/{file.name}")
            (gzipped / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    for split in ("train", "test"):
        text = "".join(json.dumps(row) + "\n" for row in rows_of(small_folder, split))
        (lines / f"{split}.jsonl").write_text(text)
    for path in (archive, gzipped, lines):
        assert same(load(path), load(small_folder))


def test_lists_equal_their_text(small_folder: Path, tmp_path: Path) -> None:
    """JSON Lines and Parquet may hold facts as nested lists."""
    facts = ("query", "story_edges", "edge_types", "query_edge")
    for split in ("train", "test"):
        rows = [
            row | {name: json.loads(json.dumps(ast.literal_eval(row[name]))) for name in facts}
            for row in rows_of(small_folder, split)
        ]
        for form in ("jsonl", "parquet"):
            (tmp_path / form).mkdir(exist_ok=True)
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"jsonl/{split}.jsonl").write_text(lines)
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"parquet/{split}.parquet")
    for form in ("jsonl", "parquet"):
        assert same(load(tmp_path / form), load(small_folder))


@pytest.mark.parametrize(
    ("names", "twice"),
    [
        (["train.csv", "test.csv", "train.csv.gz"], "train.csv and train.csv.gz"),
        (["a/train.csv", "a/test.csv", "b/train.csv"], "a/train.csv and b/train.csv"),
        (["a/test/data.csv", "b/test/data.csv"], "a/test/data.csv and b/test/data.csv"),
    ],
)
def test_a_table_that_a_data_set_has_twice_is_refused(names, twice: str, tmp_path: Path) -> None:
    """Rows that count twice would make intervals too narrow."""
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        for name in names:
            archive.writestr(name, b"")
    message = f"data.zip: several tables of one name, {twice}; expected one data set"
    with pytest.raises(InputError, match=re.escape(message)):
        load(tmp_path / "data.zip")


def test_mappings_and_rows_in_memory_equal_the_files(small_folder: Path) -> None:
    expected = load(small_folder)
    train, test = rows_of(small_folder, "train"), rows_of(small_folder, "test")
    splits = {"train": iter(train[:50]), "validation": train[50:], "test": test}
    assert same(load(splits), expected)
    assert same(load(train + test), expected)  # the column task_split decides
    assert same(load({"test": train + test}), load({"test_set": iter(train + test)}))
    numbered = [row | {"target": np.int32(RELATION_ID[row["target"]])} for row in test]
    assert same(load({"test": numbered}), Dataset("", None, expected.test))


def test_stories_generated_in_memory_equal_the_files(tmp_path: Path) -> None:
    tasks = {"train": "1.2,5.3", "test": "1.10,1.2", "train_rows": 9, "test_rows": 4, "dev_rows": 2}
    write_dataset(Config.from_json(tasks | {"seed": 5}), tmp_path)
    assert same(generate(**tasks, seed=5), load(tmp_path))


def test_data_frames_equal_the_files(small_folder: Path, tmp_path: Path) -> None:
    """From CSV, with a column of row numbers, and from Parquet, with lists as arrays."""
    expected = load(small_folder)
    rows = {split: rows_of(small_folder, split) for split in ("train", "test")}
    for split, part in rows.items():
        pd.DataFrame(part).to_csv(tmp_path / f"{split}.csv")
        for row in part:
            for name in ("query", "story_edges", "edge_types", "query_edge"):
                row[name] = list(ast.literal_eval(row[name]))
        pq.write_table(pa.Table.from_pylist(part), tmp_path / f"{split}.parquet")
    for reader, form in ((pd.read_csv, "csv"), (pd.read_parquet, "parquet")):
        frames = {split: reader(tmp_path / f"{split}.{form}") for split in rows}
        assert same(load(frames), expected)
        whole = pd.concat(frames.values()).assign(split="mine")
        assert same(load(whole), expected)  # the column task_split decides
    assert isinstance(frames["train"].story_edges[0], np.ndarray)


@pytest.mark.parametrize("name", ["1.3_test - Copy.csv", "a_test.csv.gz"])
def test_stories_of_two_test_files_are_reported(name, small_folder, tmp_path, capsys) -> None:
    folder = shutil.copytree(small_folder, tmp_path / "data")
    content = (folder / "1.3_test.csv").read_bytes()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert len(load(folder).test) == 100
    first, second = sorted(["1.3_test.csv", name])
    message = f"{folder}/{second}: 20 stories are also in {folder}/{first}, and count twice\n"
    assert message in capsys.readouterr().err


def test_the_same_words_about_other_facts_are_another_story(capsys) -> None:
    other = ROW | {"edge_types": "['son', 'brother']"}
    load({"test": [ROW, ROW], "test_2": [other], "test_3": [ROW | {"query": "('Ann', 'Cy' )"}]})
    assert capsys.readouterr().err == (
        "data set/test: 1 stories are copies of others in it, and count twice\n"
        "data set/test_3: 1 stories are also in data set/test, and count twice\n"
    )


def test_the_parquet_conversion_of_hugging_face_equals_the_files(
    hugging_face: Path, small_folder: Path
) -> None:
    found = load(hugging_face)
    assert found.name == "gen_train23_test2to10" and same(found, load(small_folder))
    assert same(load(hugging_face.parent), found)
    shutil.copytree(hugging_face, hugging_face.parent / "gen_2")
    with pytest.raises(InputError, match="several data sets, expected one of gen_2, gen_train23_t"):
        load(hugging_face.parent)


@pytest.mark.parametrize("name", ["1.5_test.CSV", "test.csv.bz2", "1.5_test.tsv"])
def test_a_table_that_is_not_read_is_reported(name: str, small_folder: Path, tmp_path) -> None:
    folder = shutil.copytree(small_folder, tmp_path / "data")
    (folder / name).write_text("id\n")
    for path in (folder, shutil.make_archive(str(folder), "zip", folder)):
        with pytest.raises(InputError, match=f"{name}: expected a table that ends in .csv"):
            load(path)


def test_missing_files_of_generated_data_are_reported(small_folder: Path, tmp_path, capsys) -> None:
    """The generator was interrupted, or somebody removed them."""
    folder = shutil.copytree(small_folder, tmp_path / "data")
    load(folder)
    assert not capsys.readouterr().err
    for name in ("1.5_test.csv", "2.4_test.csv"):
        (folder / name).unlink()
    load(folder)
    assert "_test.csv and 1 others of config.json are missing" in capsys.readouterr().err


def test_tables_beside_the_folder_of_a_split_are_reported(small_folder: Path, tmp_path) -> None:
    folder = shutil.copytree(small_folder, tmp_path / "data")
    (folder / "test").mkdir()
    shutil.copy(next(folder.glob("*_test.csv")), folder / "test" / "1.9_test.csv")
    with pytest.raises(InputError, match=r"1.9_test.csv: a table beside"):
        load(folder)


def test_parquet_round_trip(small_folder: Path, tmp_path: Path) -> None:
    data = load(small_folder)
    files = data.to_parquet(tmp_path / "both")
    assert [file.name for file in files] == ["train.parquet", "test.parquet"]
    assert same(load(tmp_path / "both"), data)
    Dataset("", None, data.test).to_parquet(tmp_path / "test")
    assert same(load(tmp_path / "test"), Dataset("", None, data.test))
    with pytest.raises(InputError, match=r"both: holds other data, test\.parquet"):
        Dataset("", data.train, None).to_parquet(tmp_path / "both")
    with pytest.raises(InputError, match="name too long"):
        data.to_parquet(tmp_path / ("x" * 300))
    assert same(load(tmp_path / "both"), data)


def test_parquet_keeps_quotes_unstated_facts_and_ids(tmp_path: Path) -> None:
    quoted = {
        "story": '[D\'Arcy] and her son [Bob "B"] met [Bob "B"]\'s sister [C\\y].',
        "query": "(\"D'Arcy\", 'C\\y')",
        "genders": 'D\'Arcy:female,Bob "B":male,C\\y:female',
    }
    unstated = {"id": "an id", "story_edges": "[(0, 1), (1, 2), (1, 0)]"}
    data = load({"test": [ROW | unstated, ROW | quoted | {"id": ""}]})
    records = data.test
    data.to_parquet(tmp_path)
    assert same(load(tmp_path), data) and list(records.names)[3:] == ["D'Arcy", 'Bob "B"', "C\\y"]


@pytest.mark.parametrize(
    "names", [["Smith, Ann", "Bob", "Cy"], ["Ann", "'tHooft", "O'Neil, Cy"], ["a,b,c", "b", "c"],
              ["A", "B, Jr.", '"C", Sr.']]
)  # fmt: skip
def test_parquet_keeps_names_with_commas(names: list[str], tmp_path: Path) -> None:
    ann, bob, cy = names
    row = {
        "story": f"[{ann}] and her son [{bob}] met [{bob}]'s sister [{cy}].",
        "facts": [(ann, "son", bob), (bob, "sister", cy)],
        "query": (ann, cy), "target": "daughter",
    }  # fmt: skip
    data = load({"test": [row]})
    data.to_parquet(tmp_path)
    assert same(load(tmp_path), data) and list(data.test.names) == names


ALPHABETICAL = sorted(RELATION_ID)
LABEL = {"names": ALPHABETICAL, "_type": "ClassLabel"}
FEATURES = {
    "target": LABEL,
    "edge_types": {"feature": LABEL, "_type": "List"},
    "task_split": {"names": ["test", "train"], "_type": "ClassLabel"},
    "story": {"dtype": "string", "_type": "Value"},
}


class Features(dict):
    """As `datasets.Features`."""

    def to_dict(self) -> dict:
        return dict(self)


class Rows(list):
    """Rows of numbers with their types, as `datasets.Dataset`."""

    features = Features(FEATURES)


def numbered(row: dict, number=int) -> dict:
    """A row of ROW with the class labels of FEATURES."""
    types = ast.literal_eval(row["edge_types"])
    return row | {
        "target": number(ALPHABETICAL.index(row["target"])),
        "edge_types": [number(ALPHABETICAL.index(word)) for word in types],
        "task_split": number(["test", "train"].index(row["task_split"])),
    }


@pytest.mark.parametrize("number", [int, float, np.int64, np.float32])
def test_class_labels_are_read_by_name(number, small_folder: Path, tmp_path: Path, capsys) -> None:
    rows = rows_of(small_folder, "train") + rows_of(small_folder, "test")
    labels = Rows(numbered(row, number) for row in rows)
    assert same(load(labels), load(small_folder)) and not capsys.readouterr().err
    table = pa.Table.from_pylist([numbered(row) for row in rows])
    numbers = {"names": {str(i): name for i, name in enumerate(ALPHABETICAL)}}  # of a data card
    older = FEATURES | {"edge_types": [LABEL], "target": LABEL | numbers}
    for features in (FEATURES, older):
        metadata = {"huggingface": json.dumps({"info": {"features": features}})}
        pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "all.parquet")
        assert same(load(tmp_path / "all.parquet"), load(small_folder))
    assert not capsys.readouterr().err


def test_class_labels_that_are_missing_or_have_no_name(tmp_path: Path) -> None:
    row = numbered(ROW)
    assert (
        load(Rows([row | {"target": -1}, row | {"target": None}])).train.target.tolist() == [-1] * 2
    )
    message = 'data set, row 2, column "target": class label 22, expected one below 22'
    with pytest.raises(InputError, match=message):
        load(Rows([row, row | {"target": 22}]))
    damaged = pa.Table.from_pylist([ROW]).replace_schema_metadata({"huggingface": "{"})
    pq.write_table(damaged, tmp_path / "all.parquet")
    assert len(load(tmp_path / "all.parquet").train) == 1


FOREIGN = ("__MACOSX/d/._1.2_test.csv", "__MACOSX/d/x_test.csv", "d/.ipynb_checkpoints/a_test.csv",
           "__MACOSX\\d\\a_test.csv", "d/~$1.2_test.csv", ".Trash/d/algebra.json")  # fmt: skip


def test_hidden_and_foreign_members_are_skipped(small_folder: Path, tmp_path) -> None:
    archive = tmp_path / "d.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for file in small_folder.glob("*.csv"):
            target.write(file, f"d/{file.name}")
        for member in FOREIGN:
            target.writestr(member, b"no table")
    assert same(load(archive), load(small_folder))
    shutil.unpack_archive(archive, tmp_path / "unpacked")
    assert same(load(tmp_path / "unpacked"), load(small_folder))


def without(column: str) -> dict[str, str]:
    return {name: cell for name, cell in ROW.items() if name != column}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"train": [ROW | {"genders": {"Ann": "male"}}]},
            'data set/train, row 1, column "genders": {',
        ),
        ({"test": [ROW, without("query")]}, 'row 2, column "query": missing, expected the same'),
        ({"test": [ROW | {"story": ["[Ann]"]}]}, """column "story": ['[Ann]'], expected text"""),
        ({"test": pd.DataFrame(columns=list(ROW))}, "data set/test: no rows"),
        ({"test": pd.DataFrame([without("query")])}, 'data set/test: no column "query"'),
        ({"test": [ROW | {"target": 99}]}, 'data set/test, row 1, column "target": unknown label'),
        ({"story": ["a", "b"]}, "data set/story, row 1: str, expected columns with their cells"),
        ({"a": {"train": [ROW]}}, "data set/a, row 1: str, expected columns"),
        ({"train": []}, "data set/train: no rows"),
        ({"train": 3}, "data set/train: int, expected rows"),
        ({}, "data set: no data"),
        ([], "data set: no rows"),
        (None, "NoneType: expected the path of a data set, or its rows"),
    ],
)
def test_an_unusable_data_set_is_one_line(data, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        load(data)


def test_damaged_rows_load_or_are_refused() -> None:
    outcomes = set()
    for seed in range(300):
        splits = {"train": [dict(ROW), dict(ROW)], "test": [dict(ROW)]}
        data = fuzz.damaged_json(random.Random(seed), splits)
        try:
            load(data)
            outcomes.add("loaded")
        except InputError:
            outcomes.add("refused")
    assert outcomes == {"loaded", "refused"}


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    """The package `datasets`, from the environment of the evaluation harnesses."""
    (packages,) = harnesses().glob("lib/python*/site-packages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_DATASETS_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(sys, "path", [*sys.path, str(packages)])  # after the packages in use
        yield importlib.import_module("datasets")


@pytest.mark.slow
def test_datasets_of_the_conversion_equal_the_files(
    datasets, hugging_face: Path, small_folder: Path
) -> None:
    expected = load(small_folder)
    files = {name: f"{hugging_face}/{name}/*.parquet" for name in ("train", "validation", "test")}
    data = datasets.load_dataset("parquet", data_files=files)
    assert data["train"].features["target"].dtype == "int32"
    assert same(load(data), expected)
    assert same(load(data.with_format("numpy")), expected)
    assert same(load(datasets.load_dataset("parquet", data_files=files, streaming=True)), expected)
    test = datasets.load_dataset("parquet", data_files=files, split="test")
    assert same(load(test), Dataset("", None, expected.test))
    whole = datasets.load_dataset("parquet", data_files=files, split="train+validation+test")
    assert same(load(whole), expected)
    labels = datasets.ClassLabel(names=list(RELATION_ID))
    assert same(load(data.cast_column("target", labels)), expected)
    with pytest.raises(InputError, match='data set/train: no column "query"'):
        load(data.remove_columns("query"))


@pytest.mark.slow
def test_datasets_reads_what_to_parquet_writes(datasets, small_folder: Path, tmp_path) -> None:
    data = load(small_folder)
    train, test = data.to_parquet(tmp_path / "data")
    found = datasets.load_dataset(str(tmp_path / "data"))
    assert set(found) == {"train", "test"} and same(load(found), data)
    files = {"train": str(train), "test": str(test)}
    assert same(load(datasets.load_dataset("parquet", data_files=files)), data)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "jsonl"])
def test_datasets_reads_the_configurations_of_a_data_card(datasets, form: str, tmp_path) -> None:
    config = Config(train_rows=10, test_rows=5, test=parse_tasks("1.2,5.3,1.10"))
    (tmp_path / "README.md").write_text(card("v1", ["one", "two"], form))
    for seed, name in enumerate(("one", "two")):
        write_dataset(Config.from_json(config.to_json() | {"seed": seed}), tmp_path / name, 1, form)
    assert datasets.get_dataset_config_names(str(tmp_path)) == ["one", "two"]
    for name in ("one", "two"):
        data = datasets.load_dataset(str(tmp_path), name)
        assert {split: len(rows) for split, rows in data.items()} == {"train": 20, "test": 15}
        assert same(load(data), load(tmp_path / name))
