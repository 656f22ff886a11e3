"""Files made to do harm, and damage that readers once stumbled over."""

import ast
import gzip
import json
import os
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clutrr_jax.data.dataset import load
from clutrr_jax.data.prepare import prepare
from clutrr_jax.evaluation.attention import read_attention
from clutrr_jax.evaluation.learned_rules import read_learned
from clutrr_jax.language_models.submissions import read_submissions
from clutrr_jax.training.loop import _keep_epochs
from generator.__main__ import main
from generator.config import Config
from generator.errors import InputError
from generator.paraphrases.importer import cut, read_stories
from generator.paraphrases.load import read_bank
from generator.tables import data_sets
from launch import claim
from tests.data.test_records import ROW, table
from tests.fuzz import csv_bytes, guarded

ROOT = Path(__file__).parent.parent
WIDE = {**ROW, "f_comb": "son-sister", "clean_story": ROW["story"]}


def refused(read, path: Path, *expected: str) -> None:
    """It is told of in one line that names the file."""
    with guarded(path.parent), pytest.raises(InputError) as error:
        read(path)
    message = str(error.value)
    assert path.name in message and "\n" not in message
    for part in expected:
        assert part in message


def read_all(path: Path) -> None:
    """As the generator's commands do."""
    for tables in data_sets([path]).values():
        for one in tables:
            list(one.rows())


def test_a_message_is_one_line_whatever_it_quotes() -> None:
    message = str(InputError("x.csv: \x1b[2J\n\ud800 " + "a" * 10**6 + " expected b"))
    assert message.startswith("x.csv: \\x1b[2J\\n\\ud800 aaa") and message.endswith("expected b")
    assert message.isprintable() and len(message) < 2100


# Archives.


@pytest.mark.parametrize(
    "name", ["../../t_train.csv", "/t_train.csv", "C:\\t_train.csv", "a/b/t_train.csv"]
)
def test_an_entry_is_read_and_never_unpacked(name: str, tmp_path: Path) -> None:
    path = tmp_path / "inner" / "x.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, csv_bytes([list(WIDE), list(WIDE.values())]))
    with guarded(path.parent):
        assert len(load(path).train) == 1
        read_all(path)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["inner", "x.zip"]
    assert not Path("/t_train.csv").exists()


def entry(path: Path, content: bytes, method: int = 8, name: str = "t_train.csv") -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(name, content)


def patch(path: Path, local: int, central: int, value: bytes) -> None:
    """Replaces a field of the only entry, in both of its headers."""
    data = bytearray(path.read_bytes())
    for sign, offset in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        at = data.index(sign) + offset
        data[at : at + len(value)] = value
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("method", "field", "expected"),
    [
        (8, (6, 8, b"\x01\x00"), "password"),  # encrypted
        (8, (8, 10, b"\x63\x00"), "unusual method"),
        (12, None, "unusual method"),  # bzip2 has no bound on what it unpacks
        (14, None, "unusual method"),
        (0, (8, 10, b"\x08\x00"), "damaged"),  # stored, said to be deflated: zlib.error
        (8, (14, 16, b"1234"), "CRC"),
        (8, (22, 24, b"\xff\xff\xff\x7f"), "unpacks to 2,147,483,647 bytes"),
        (8, (22, 24, b"\x05\x00\x00\x00"), "t_train.csv"),
        (8, (26, 28, b"\xff\xff"), "zip"),
    ],
)
def test_an_entry_that_lies_is_named(method, field, expected, tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    entry(path, csv_bytes([list(WIDE), *[list(WIDE.values())] * 40]), method)
    if field:
        patch(path, *field)
    refused(load, path, expected)
    refused(read_all, path, expected)


def test_a_link_in_an_archive_is_text(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("t_train.csv")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    refused(load, tmp_path / "x.zip", 'no column "story"')


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    """A pipe would be waited for without end."""
    os.mkfifo(tmp_path / "t_train.csv")
    refused(load, tmp_path, "no data in it")
    refused(load, tmp_path / "t_train.csv", "expected a folder")
    (tmp_path / "t_test.csv").mkdir()
    refused(read_all, tmp_path, "holds no data")


# Small files that unpack to gigabytes: (how each is made, what is said of it). They are read in a
# process of their own, whose memory is measured.


def zeros_zip(path: Path) -> None:
    """1.1 GB of zeros in 1.1 MB, with true sizes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    entry(path, block * 1100 + b"\x03\x00", zipfile.ZIP_STORED)
    patch(path, 8, 10, b"\x08\x00")
    patch(path, 22, 24, (1100 << 20).to_bytes(4, "little"))


def zeros_gzip(path: Path) -> None:
    path.write_bytes(gzip.compress(bytes(1 << 20)) * 1100)


def commas_gzip(path: Path) -> None:
    path.write_bytes(gzip.compress(b"," * (1 << 20)) * 1100)


def lines_gzip(path: Path) -> None:
    """One row of many short cells, each of which takes much more memory than room in the file."""
    path.write_bytes(gzip.compress(b'"\n",' * (1 << 18)) * 1100)


def rows_gzip(path: Path) -> None:
    """Good rows, all the same."""
    head, row = table({}).split(b"\r\n", 1)
    path.write_bytes(gzip.compress(head + b"\r\n") + gzip.compress(row * 4000) * 40)


def rows_parquet(path: Path) -> None:
    """300,000 good rows, of which each cell is kept once."""
    rows = pa.array(np.zeros(300_000, np.int32))
    story = ROW["story"] + " x" * 500
    cells = {**ROW, "story": story}
    columns = [pa.DictionaryArray.from_arrays(rows, pa.array([cell])) for cell in cells.values()]
    pq.write_table(pa.Table.from_arrays(columns, list(cells)), path, compression="zstd")


def cell_parquet(path: Path) -> None:
    """One cell of 50 MB."""
    cells = {name: [cell] for name, cell in ROW.items()} | {"story": ["x" * 50_000_000]}
    pq.write_table(pa.table(cells), path, compression="zstd", write_statistics=False)


def page_parquet(path: Path, unpacked: int = 2**31 - 2, values: int = 1) -> None:
    """The page of a column claims to unpack to 2 GB, and holds next to nothing."""

    def number(value: int, size: int) -> bytes:
        """As Thrift has it, in so many bytes at least."""
        value = 2 * value if value >= 0 else -2 * value - 1
        found = []
        while value or len(found) < size:
            found.append(value & 127 | 128)
            value >>= 7
        return bytes([*found[:-1], found[-1] & 127])

    pq.write_table(pa.table({name: [cell] for name, cell in ROW.items()}), path,
                   compression="zstd", use_dictionary=False)  # fmt: skip
    whole = path.read_bytes()
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    start, end = column.data_page_offset, column.data_page_offset + column.total_compressed_size
    packed = whole.index(b"\x28\xb5\x2f\xfd", start)  # where zstd begins
    head = b"\x15\x00\x15" + number(unpacked, 5) + b"\x15" + number(end - packed, 1)
    head += b"\x2c\x15" + number(values, 5) + b"\x15\x00\x15\x06\x15"
    room = packed - start - len(head) - 2  # what the statistics took
    assert room > 0
    head += number(3, room) + b"\x00\x00"
    path.write_bytes(whole[:start] + head + whole[packed:])


def people_csv(path: Path) -> None:
    crowd = ",".join(f"N{i}:male" for i in range(20_000))
    path.write_bytes(table({"genders": f"{ROW['genders']},{crowd}"}))


BOMBS = {
    "zeros_train.zip": (zeros_zip, "unpacks to 1,153,433,600 bytes or more, expected at most"),
    "zeros_train.csv.gz": (zeros_gzip, "not a CSV row"),
    "commas_train.csv.gz": (commas_gzip, "not a CSV row"),
    "lines_train.csv.gz": (lines_gzip, "not a CSV row"),
    "rows_train.csv.gz": (rows_gzip, "or more, expected at most"),
    "rows_train.parquet": (rows_parquet, "or more, expected at most"),
    "cell_train.parquet": (cell_parquet, "or more, expected at most"),
    "page_train.parquet": (page_parquet, "unpacks to 2,147,4"),
    "people_train.csv": (people_csv, "20,003 people, expected at most 150"),
}
READ_ALL = """
import json, resource, sys
from pathlib import Path
import numpy, pyarrow.compute, pyarrow.parquet
from clutrr_jax.data.dataset import load
from generator.errors import InputError
from generator.tables import data_sets

def read_all(path):
    for tables in data_sets([path]).values():
        for one in tables:
            for row in one.rows():
                pass

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in map(Path, sys.argv[1:]):
    for read in (load, read_all):
        try:
            read(path)
            said = "loaded"
        except InputError as error:
            said = str(error)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(json.dumps([path.name, said, grown * 1024]))
"""


def test_bombs_are_refused_without_the_memory(tmp_path: Path) -> None:
    for name, (make, _) in BOMBS.items():
        make(tmp_path / name)
        assert (tmp_path / name).stat().st_size < 8 << 20
    paths = [str(tmp_path / name) for name in BOMBS]
    done = subprocess.run([sys.executable, "-c", READ_ALL, *paths], cwd=ROOT, capture_output=True,
                          text=True, timeout=600)  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 2 * len(BOMBS)
    for number, (name, said, grown) in enumerate(lines):
        assert name in said, said
        if number % 2 == 0:
            assert BOMBS[name][1] in said, said
        assert grown < 1 << 30, (name, grown)


@pytest.mark.parametrize(
    ("unpacked", "values", "message"),
    [
        (1, 1, "damaged, not a readable Parquet file"),
        (len(ROW["story"]) + 4 + 6, 10**9, "a page has more values than it can"),
        (0, -1, "a page does not tell its size"),
    ],
)
def test_pages_that_lie(unpacked: int, values: int, message: str, tmp_path: Path) -> None:
    page_parquet(tmp_path / "x_train.parquet", unpacked, values)
    refused(load, tmp_path / "x_train.parquet", message)


def test_attention_of_another_size_is_not_read(small, tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "attention.npz", over="facts", weights=np.zeros(10_000_000))
    with pytest.raises(InputError, match="damaged"):
        read_attention(tmp_path, small.test)


# Texts for which a pattern or a loop once took time by the square of their length.


@pytest.mark.parametrize(
    "change",
    [
        {"story": ROW["story"] + "[" * 32_000},
        {"story": ROW["story"] + "[ " * 16_000},
        {"query": "(" + "'a'," * 50_000},
        {"clean_story": "[Ann] " + "a. " * 10_000 + "[Bob] [Cy]"},
        {"story_edges": "[" + "(0, 1)," * 40_000},
        {"story": "x" * 100_000},
    ],
)
def test_long_cells_take_no_longer_than_their_length(change, tmp_path: Path) -> None:
    row = {**WIDE, **change}
    path = tmp_path / "x.csv"
    cells = [list(row), list(row.values()), list({**row, "task_split": "test"}.values())]
    path.write_bytes(csv_bytes(cells))
    for read in (prepare, lambda p: cut(next(iter(read_stories([p]).values())))):
        with guarded(tmp_path):
            try:
                read(path)
            except InputError as error:
                assert path.name in str(error)


def test_a_paraphrase_of_many_sentences_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bank.json"
    path.write_text(json.dumps({"male:son": ["{0} {1}. " + "a. " * 100_000]}))
    refused(read_bank, path, "over 30 sentences")


# Damage of single files.


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[]", '"a"', "{", "\xff", '{"templates": 3}', "9" * 5000, ""]
)
def test_json_of_another_shape_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bank.json"
    path.write_bytes(text.encode("latin-1"))
    refused(read_bank, path)
    path = path.rename(tmp_path / "config.json")
    if text != '{"templates": 3}':
        refused(lambda path: claim(path, {}), path)


def test_a_folder_with_a_damaged_config_is_not_written_to(tmp_path: Path, capsys) -> None:
    (tmp_path / "config.json").write_bytes(b"\xff\xfe")
    assert main(["--train-rows", "10", "--test", "", "--out", str(tmp_path)]) == 2
    assert "config.json" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["x\n", "1\n-1\n", "\xff\n", "9" * 5000 + "\n"])
def test_a_damaged_journal_is_named(text: str, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    arguments = ["--train", "1.2", "--test", "", "--train-rows", "3", "--language", "synthetic"]
    assert main([*arguments, "--out", str(out)]) == 0
    (out / "1.2_train.csv").rename(out / "1.2_train.csv.part")
    (out / "1.2_train.csv.journal").write_text(text, encoding="latin-1")
    capsys.readouterr()
    assert main([*arguments, "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert "1.2_train.csv.journal" in error and error.count("\n") == 1


@pytest.mark.parametrize("lines", ["", "3\n", '{"epoch": 1}\n', '{"epoch": "a"}', "\xff"])
def test_epochs_that_are_lost_are_told(lines: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(lines, encoding="latin-1")
    refused(lambda path: _keep_epochs(path, before=2), path, "up to 1")


def test_epochs_are_cut_off_whole_or_not_at_all(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "metrics.jsonl"
    line = {"epoch": 1, "seconds": 1.0, "loss": [1.0], "dev_accuracy": [0.5]}
    text = "".join(json.dumps(line | {"epoch": epoch}) + "\n" for epoch in (1, 2, 3))
    path.write_text(text)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", raises(OSError(28, "No space left on device")))
        with pytest.raises(OSError, match="No space"):
            _keep_epochs(path, before=3)
        assert path.read_text() == text
        assert len(_keep_epochs(path, before=4)) == 3  # nothing to cut, so nothing is written
    assert len(_keep_epochs(path, before=3)) == 2
    assert path.read_text() == text[: text.rindex('{"epoch": 3')]


def raises(error: Exception):
    def function(*_: object) -> None:
        raise error

    return function


def test_a_run_without_predictions_is_named(small, tmp_path: Path) -> None:
    path = tmp_path / "predictions.csv"
    path.write_text("replica,task,row,target,prediction,probability,last_prediction\n")
    refused(lambda p: read_submissions([p], ["a"], small.test), path, "0 rows")


def test_replicas_by_the_thousand_take_no_memory(small, tmp_path: Path) -> None:
    """Each has one prediction: none is complete."""
    path = tmp_path / "x.csv"
    rows = "".join(f"1.2/1,aunt,{replica}\n" for replica in range(20_000))
    path.write_text("id,prediction,replica\n" + rows)
    ids = [str(i) for i in range(len(small.test))]
    refused(lambda p: read_submissions([p], ids, small.test), path, "no prediction by replica 0")


def test_an_unfinished_prover_has_no_rules(tmp_path: Path) -> None:
    (tmp_path / "prover").mkdir()
    (tmp_path / "prover" / "model.json").write_text('{"replicas": 1}')
    (tmp_path / "config.json").write_text('{"prover.scale": 1.0}')
    with pytest.raises(InputError, match="no checkpoint of a finished prover"):
        read_learned(tmp_path)


@pytest.mark.parametrize(
    "values",
    [{"train": 5}, {"seed": float("inf")}, {"max_levels": 10**9}, {"max_child": 10**9},
     {"p_marry": float("nan")}, {"train_rows": "9" * 5000}, {"nothing": 1}, {"seed": None}],
)  # fmt: skip
def test_settings_that_cannot_be_met(values: dict) -> None:
    with pytest.raises(InputError):
        Config.from_json(values)


def test_a_task_of_no_facts_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(csv_bytes([list(WIDE), list({**WIDE, "task_name": "task_1.0"}.values())]))
    refused(lambda p: read_stories([p]), path, 'column "task_name"')


# Nothing that is read is run.

FORBIDDEN_MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "marshal",
    "shelve",
    "joblib",
    "yaml",
}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}


@pytest.mark.parametrize("folder", ["benchmarks", "clutrr_jax", "experiments", "generator", "."])
def test_nothing_that_is_read_is_run(folder: str) -> None:
    files = list((ROOT / folder).glob("*.py" if folder == "." else "**/*.py"))
    assert files
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            where = f"{file}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                assert not {alias.name.split(".")[0] for alias in node.names} & FORBIDDEN_MODULES, (
                    where
                )
            elif isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in FORBIDDEN_MODULES, where
            elif isinstance(node, ast.Call):
                called = node.func
                assert not (isinstance(called, ast.Name) and called.id in FORBIDDEN_CALLS), where
                for keyword in node.keywords:
                    if keyword.arg == "allow_pickle":
                        assert isinstance(keyword.value, ast.Constant), where
                        assert keyword.value.value is False, where
