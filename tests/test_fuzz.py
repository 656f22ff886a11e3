"""Any file loads, or ends with one line that names it: over 20,000 damaged files, the same in every
run. A case that fails is told by its kind and number; `case(kind, number, ...)` makes it again."""

import csv
import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tokenizers.implementations import BertWordPieceTokenizer

from clutrr_jax.data.dataset import load
from clutrr_jax.data.prepare import prepare
from clutrr_jax.data.story_ids import story_ids
from clutrr_jax.evaluation.attention import read_attention
from clutrr_jax.evaluation.baselines import given_rules, predict_with_rules
from clutrr_jax.evaluation.extraction import read_extracted
from clutrr_jax.evaluation.predictions import Predictions, write_predictions
from clutrr_jax.language_models.prompts import question
from clutrr_jax.language_models.submissions import read_submissions
from clutrr_jax.models.pretrained.folder import read_config, read_tensors
from clutrr_jax.models.pretrained.tokenizer import load_tokenizer
from clutrr_jax.report.results import RESULTS, SUMMARY
from clutrr_jax.training.loop import _keep_epochs
from experiments.grid.measured import answers
from generator.audit import Seen, audit
from generator.config import Config
from generator.errors import InputError
from generator.files import read_json
from generator.hold_out import split_bank
from generator.paraphrases.importer import cut, read_stories
from generator.paraphrases.load import read_bank
from generator.paraphrases.templates import synthetic_templates
from generator.tables import data_sets
from generator.text import Bank, clause_name
from generator.write import _progress
from launch import claim
from tests.fuzz import (
    csv_bytes,
    damaged_bytes,
    damaged_json,
    damaged_rows,
    edited,
    json_bytes,
    lied_zip,
    loads,
    parquet_bytes,
    zip_bytes,
)
from tests.tiny_bert import CONFIG, random_tensors, write_weights

BLOCK = 250  # cases of one test
COLUMNS = ("id", "story", "query", "target", "clean_story", "f_comb", "task_name", "story_edges",
           "edge_types", "query_edge", "genders", "task_split")  # fmt: skip


class Whole(NamedTuple):
    """What is damaged: a table of four stories, and files of other kinds about them."""

    folder: Path
    rows: list[list[str]]
    test: Any  # its test records
    ids: list[str]


@pytest.fixture(scope="module")
def whole(small_folder, tmp_path_factory) -> Whole:
    rows = [list(COLUMNS)]
    for name in ("1.2,5.3_train.csv", "1.5_test.csv"):
        with (small_folder / name).open(newline="") as file:
            some = list(csv.DictReader(file))[-2:]
        rows += [[row[column] for column in COLUMNS] for row in some]
    folder = tmp_path_factory.mktemp("whole")
    (folder / "all.csv").write_bytes(csv_bytes(rows))
    test = load(folder / "all.csv").test
    vocabulary = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    config = CONFIG | {"vocab_size": 6, "hidden_size": 4, "intermediate_size": 4,
                       "max_position_embeddings": 8, "num_hidden_layers": 1}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    write_weights(folder, random_tensors(config))
    said = np.array([test.target, test.target])
    write_predictions(folder / "predictions.csv", Predictions(said, said, said * 0.01), test)
    np.savez_compressed(
        folder / "attention.npz", over="facts", weights=np.ones(len(test.relations))
    )
    pairs = int((np.diff(test.node_start) ** 2).sum())
    np.savez_compressed(
        folder / "extracted.npz",
        relation=np.ones(pairs, np.uint8),
        chance=np.ones(pairs, np.float16),
        rules=np.zeros((22, 22, 22), np.float16),
    )
    return Whole(folder, rows, test, story_ids(folder / "all.csv", test))


def table(rng: random.Random, whole: Whole) -> bytes:
    rows = damaged_rows(rng, whole.rows) if rng.random() < 0.85 else whole.rows
    return csv_bytes(rows)


def archive(rng: random.Random, whole: Whole) -> bytes:
    train, test = csv_bytes(whole.rows[:3]), table(rng, whole)
    if rng.random() < 0.1:
        test = gzip.compress(test, 1)
    data = zip_bytes(rng, {"d/1.2_train.csv": train, "d/1.5_test.csv": test, "d/x.txt": b"x"})
    return lied_zip(rng, data) if rng.random() < 0.5 else data


def parquet(rng: random.Random, whole: Whole) -> bytes:
    rows = damaged_rows(rng, whole.rows) if rng.random() < 0.5 else whole.rows
    return parquet_bytes(rng, rows if rows else [["story"]])


def objects(value: Any) -> Callable[[random.Random, Whole], bytes]:
    """JSON like the value."""
    return lambda rng, whole: json_bytes(damaged_json(rng, value))


def predictions(rng: random.Random, whole: Whole) -> bytes:
    rows = [["id", "prediction", "replica"]]
    rows += [[name, "It is an aunt.", str(r)] for r in (0, 1) for name in whole.ids]
    return csv_bytes(damaged_rows(rng, rows))


def json_lines(rng: random.Random, whole: Whole) -> bytes:
    rows: list[Any] = [{"id": name, "prediction": "Answer: aunt", "replica": 0}
                       for name in whole.ids]  # fmt: skip
    rows = damaged_json(rng, rows)
    return b"\n".join(map(json_bytes, rows if isinstance(rows, list) else [rows]))


def run_predictions(rng: random.Random, whole: Whole) -> bytes:
    with (whole.folder / "predictions.csv").open(newline="") as file:
        return csv_bytes(damaged_rows(rng, list(csv.reader(file))))


def file(name: str) -> Callable[[random.Random, Whole], bytes]:
    """Of another kind, only its bytes to be damaged."""
    return lambda rng, whole: (whole.folder / name).read_bytes()


def safetensors(rng: random.Random, whole: Whole) -> bytes:
    data = (whole.folder / "model.safetensors").read_bytes()
    if rng.random() < 0.2:
        return data
    size = int.from_bytes(data[:8], "little")
    header = json_bytes(damaged_json(rng, json.loads(data[8 : 8 + size])))
    said = rng.choice((0, 7, 2**63, 2**64 - 1)) if rng.random() < 0.1 else len(header)
    return said.to_bytes(8, "little") + header + data[8 + size :]


def vocabulary(rng: random.Random, whole: Whole) -> bytes:
    text = (whole.folder / "vocab.txt").read_text()
    return edited(rng, text).encode(errors="surrogatepass")


def attention(rng: random.Random, whole: Whole) -> bytes:
    size = len(whole.test.relations)
    weights = rng.choice((
        np.ones(size), np.ones(size + 1), np.ones((size, 1)), np.ones(size, np.int8), np.array("x"),
        np.full(size, np.nan), -np.ones(size), np.ones(size, complex), np.zeros(size, "S3"),
        np.zeros(size, "V2"), np.array([{}], object),
    ))  # fmt: skip
    stream = io.BytesIO()
    over = np.array(rng.choice(("facts", "facts", "words", "x", b"facts", 3)))
    np.savez(stream, over=over, weights=weights) if rng.random() < 0.3 else np.savez(
        stream, weights=np.ones(size), over="facts"
    )
    return lied_zip(rng, stream.getvalue()) if rng.random() < 0.4 else stream.getvalue()


def extracted(rng: random.Random, whole: Whole) -> bytes:
    content = (whole.folder / "extracted.npz").read_bytes()
    with np.load(io.BytesIO(content)) as file:
        arrays = dict(file)
    name = rng.choice(list(arrays))
    array = arrays[name]
    arrays[name] = rng.choice((
        array, array[:-1], array[None], array.astype(float), array + array.dtype.type(200), -array,
        np.full(array.shape, np.nan, np.float16), array.astype("S3"), np.array([{}], object),
    ))  # fmt: skip
    if rng.random() < 0.1:
        del arrays[name]
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return lied_zip(rng, stream.getvalue()) if rng.random() < 0.4 else stream.getvalue()


def epochs(rng: random.Random, whole: Whole) -> bytes:
    lines = [{"epoch": e, "seconds": 1.0, "loss": [0.1], "dev_accuracy": [1]} for e in (1, 2, 3)]
    lines = damaged_json(rng, lines)
    return b"\n".join(map(json_bytes, lines if isinstance(lines, list) else [lines]))


def bank(rng: random.Random, whole: Whole) -> bytes:
    texts = {clause_name(key): list(pool) for key, pool in synthetic_templates().items()}
    return json_bytes(damaged_json(rng, rng.choice((texts, {"name": "x", "templates": texts}))))


def read_data(path: Path, whole: Whole) -> None:
    data = load(path)
    if data.test is not None:
        story_ids(path, data.test)


def read_whole_data(path: Path, whole: Whole) -> None:
    """And all that is done with data before a model sees them."""
    data = prepare(path)
    predict_with_rules(data.test, given_rules())
    for story in range(len(data.test)):
        question(data.test, story)


def read_audit(path: Path, whole: Whole) -> None:
    for tables in data_sets([path]).values():
        for one in tables:
            audit(one, Seen())


def read_import(path: Path, whole: Whole) -> None:
    cut([story for part in read_stories([path]).values() for story in part])


def read_split_bank(path: Path, whole: Whole) -> None:
    found: Bank = read_bank(path)
    config = Config(train=(), test=(), hold_out=("paraphrases",))
    try:
        split_bank(found, config)
    except InputError as error:  # of what is missing in it, not of the file
        assert found.name in str(error)


def read_weights(path: Path, whole: Whole) -> None:
    config = json.loads((whole.folder / "config.json").read_text())
    shapes = {name: tensor.shape for name, tensor in random_tensors(config).items()}
    assert all(x.dtype == np.float32 for x in read_tensors(path.parent, shapes).values())


def read_settings(path: Path, whole: Whole) -> None:
    values = read_json(path)
    try:
        Config.from_json(values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_journal(path: Path, whole: Whole) -> None:
    part = path.with_suffix(".part")
    part.write_bytes(b"x" * 40)
    assert all(end <= 40 for end in _progress(part, path))


RESULT_ROWS = [{"model": "gat", "task": "1.5", "replicas": 2, "count": 2, "ceiling": 1.0}]
RUN = {"rows": RESULT_ROWS, "device": "cpu", "wall_seconds": 1.0}
POINT = {"model": "gat", "task": "1.5", "k": 5, "accuracy": 1.0, "stderr": None, "low": 0.5,
         "high": 1.0, "count": 2, "replicas": 1, "ceiling": 1.0, "accuracy_last": 1.0,
         "stderr_last": 0.1}  # fmt: skip
REPORT = {"data": {"name": "x", "train_rows": 2, "test_rows": 2, "fingerprint": "0"},
          "rows": [POINT], "device": "cpu", "wall_seconds": 1, "models": {"gat": {"replicas": 1}},
          "config": {"name": "x", "generate": {}}}  # fmt: skip
MODEL = {"parameters": 9, "epochs": 2, "replicas": 1, "best_epochs": [1], "diverged_epochs": [0],
         "dev_accuracy": [1.0], "seconds": 2.5, "stories_per_second": 100}  # fmt: skip
IDENTITY = {"data": "x.zip", "seed": 0, "train.epochs": 3, "models": "gat", "generate.test": "1.2"}
VOCABULARY = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "[MASK]": 3, "a": 4, "##b": 5}
TOKENIZER = json.loads(BertWordPieceTokenizer(VOCABULARY).to_str())


def bert_config(rng: random.Random, whole: Whole) -> bytes:
    return json_bytes(damaged_json(rng, json.loads((whole.folder / "config.json").read_text())))


def journal(rng: random.Random, whole: Whole) -> bytes:
    return edited(rng, "10\n30\n40\n").encode(errors="surrogatepass")


def read_answers(path: Path, whole: Whole) -> None:
    read_submissions([path], whole.ids, whole.test)


def read_tokenizer(path: Path, whole: Whole) -> None:
    load_tokenizer(path.parent, 6)


def read_run(path: Path, whole: Whole) -> None:
    place = path.parent / "gat"
    place.mkdir(exist_ok=True)
    if path.name == "results.json":
        (place / "predictions.csv").write_bytes((whole.folder / "predictions.csv").read_bytes())
        answers(path.parent, "gat")
    else:
        (place / "predictions.csv").write_bytes(path.read_bytes())
        (path.parent / "results.json").write_text(json.dumps(RUN))
        answers(path.parent, "gat")


class Kind(NamedTuple):
    """A kind of file: its name, how one is made, how it is read, and how many are tried."""

    name: str
    make: Callable[[random.Random, Whole], bytes]
    read: Callable[[Path, Whole], Any]
    cases: int


KINDS = {
    "csv": Kind("x.csv", table, read_data, 3000),
    "gzip": Kind("x.csv.gz", lambda r, w: gzip.compress(table(r, w), 1), read_data, 1000),
    "zip": Kind("x.zip", archive, read_data, 3000),
    "parquet": Kind("x.parquet", parquet, read_data, 1500),
    "prepared": Kind("x.csv", table, read_whole_data, 250),
    "audited csv": Kind("x.csv", table, read_audit, 1500),
    "audited zip": Kind("x.zip", archive, read_audit, 1000),
    "audited parquet": Kind("x.parquet", parquet, read_audit, 500),
    "imported": Kind("x.csv", table, read_import, 1000),
    "bank": Kind("bank.json", bank, read_split_bank, 1500),
    "settings": Kind("x.json", objects(Config().to_json()), read_settings, 750),
    "predictions": Kind("x.csv", predictions, read_answers, 1000),
    "json lines": Kind("x.jsonl", json_lines, read_answers, 1000),
    "run predictions": Kind("predictions.csv", run_predictions, read_answers, 750),
    "config": Kind("config.json", objects(IDENTITY), lambda p, w: claim(p, IDENTITY), 500),
    "run results": Kind("results.json", objects(RUN), read_run, 750),
    "run answers": Kind("predictions.csv", run_predictions, read_run, 750),
    "report": Kind("results.json", objects(REPORT), lambda p, w: read_json(p, RESULTS), 500),
    "summary": Kind("model.json", objects(MODEL), lambda p, w: read_json(p, SUMMARY), 250),
    "metrics": Kind("metrics.jsonl", epochs, lambda p, w: _keep_epochs(p, 3), 500),
    "journal": Kind("x.journal", journal, read_journal, 250),
    "attention": Kind("attention.npz", attention,
                      lambda p, w: read_attention(p.parent, w.test), 750),
    "extracted": Kind("extracted.npz", extracted,
                      lambda p, w: read_extracted(p.parent, w.test), 500),
    "bert config": Kind("config.json", bert_config, lambda p, w: read_config(p.parent), 500),
    "safetensors": Kind("model.safetensors", safetensors, read_weights, 750),
    "tokenizer": Kind("tokenizer.json", objects(TOKENIZER), read_tokenizer, 500),
    "vocabulary": Kind("vocab.txt", vocabulary, read_tokenizer, 250),
}  # fmt: skip


def case(kind: str, number: int, whole: Whole) -> bytes:
    """The damaged file of that kind and number."""
    rng = random.Random(f"{kind} {number}")
    content = KINDS[kind].make(rng, whole)
    return damaged_bytes(rng, content) if rng.random() < 0.4 else content


@pytest.mark.filterwarnings("ignore:Duplicate name")  # of entries in an archive
@pytest.mark.parametrize(
    ("kind", "first"),
    [(kind, first) for kind in KINDS for first in range(0, KINDS[kind].cases, BLOCK)],
)
def test_any_file_loads_or_is_named(kind: str, first: int, whole: Whole, tmp_path: Path) -> None:
    path = tmp_path / KINDS[kind].name
    outcomes = set()
    for number in range(first, first + BLOCK):
        path.write_bytes(case(kind, number, whole))
        try:
            outcomes.add(loads(lambda path: KINDS[kind].read(path, whole), path))
        except BaseException as error:
            error.add_note(f'replay: case("{kind}", {number}, whole), left in {path}')
            raise
    assert outcomes == {True, False}, "the cases are all good or all bad: they try nothing"


def test_there_are_enough_of_them() -> None:
    assert sum(kind.cases for kind in KINDS.values()) >= 20_000
