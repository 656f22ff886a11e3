"""Every file loads, or is refused with one line that names it.

The cases are the same in every run; `case(kind, index, files)` rebuilds one.
"""

import csv
import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from clutrr_jax.data.dataset import load
from clutrr_jax.data.prepare import prepare
from clutrr_jax.data.story_ids import story_ids
from clutrr_jax.evaluation.attention import read_attention
from clutrr_jax.evaluation.baselines import baselines
from clutrr_jax.evaluation.extraction import read_extracted
from clutrr_jax.language_models.prompts import question
from clutrr_jax.language_models.submissions import read_submissions
from clutrr_jax.models.pretrained.folder import read_config, read_tensors
from clutrr_jax.models.pretrained.tokenizer import load_tokenizer
from clutrr_jax.report.results import RESULTS, SUMMARY
from clutrr_jax.run import check_or_write_config
from clutrr_jax.training.loop import _truncate_metrics
from experiments.grid.measured import results_by_test
from generator.audit import Seen, audit
from generator.config import Config
from generator.errors import InputError
from generator.files import read_json
from generator.hold_out import split_bank
from generator.kinship import NUM_RELATIONS, RELATIONS
from generator.paraphrases.importer import cut, read_stories
from generator.paraphrases.load import read_bank
from generator.paraphrases.templates import synthetic_templates
from generator.tables import data_sets
from generator.text import clause_name
from tests import fuzz, tiny_bert

COLUMNS = ("id", "story", "query", "target", "clean_story", "f_comb", "task_name", "story_edges",
           "edge_types", "query_edge", "genders", "task_split")  # fmt: skip
BERT = tiny_bert.CONFIG | {"vocab_size": 6, "hidden_size": 4, "intermediate_size": 4,
                           "num_hidden_layers": 1, "max_position_embeddings": 8}  # fmt: skip
VOCABULARY = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "[MASK]": 3, "a": 4, "##b": 5}
TOKENIZER = {"version": "1.0", "added_tokens": [], "normalizer": {"type": "Lowercase"},
             "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": VOCABULARY,
                       "continuing_subword_prefix": "##", "max_input_chars_per_word": 9},
             "pre_tokenizer": {"type": "Whitespace"}}  # fmt: skip
CONFIG = {"data": "x.zip", "seed": 0, "train.epochs": 3, "models": "gat", "generate.test": "1.2"}
RUN = {"rows": [{"model": "gat", "task": "1.5", "correct": [1, 2], "count": 2, "ceiling": 1.0}],
       "device": "cpu", "wall_seconds": 1.0}  # fmt: skip
REPORT = {"data": {"name": "x", "fingerprint": "0"}, "device": "cpu", "versions": {"jax": "1"},
          "models": {"gat": {}}, "config": {"name": "x", "data": "", "generate": {}}}  # fmt: skip
MODEL = {"parameters": 9, "epochs": 2, "replicas": 1, "best_epochs": [1], "diverged_epochs": [0],
         "dev_accuracy": [1.0], "seconds": 2.5, "stories_per_second": 100}  # fmt: skip
PREDICTIONS = [["id", "prediction", "replica"]]
PREDICTIONS += [[f"1.5/{row}", "It is an aunt.", replica] for replica in "01" for row in (1, 2)]
JSON_PREDICTIONS = [{"id": f"1.5/{row}", "prediction": "Answer: aunt"} for row in (1, 2)]
EPOCHS = [{"epoch": e, "seconds": 1.0, "loss": [0.1], "dev_accuracy": [1]} for e in (1, 2, 3)]
BANK = {clause_name(key): list(pool) for key, pool in synthetic_templates().items()}


class Files(NamedTuple):
    """Undamaged files."""

    folder: Path
    rows: list[list[str]]  # two train and two test stories
    test: Any  # the test records


@pytest.fixture(scope="module")
def files(small_folder, tmp_path_factory) -> Files:
    rows = [list(COLUMNS)]
    for name in ("1.2,5.3_train.csv", "1.5_test.csv"):
        with (small_folder / name).open(newline="") as file:
            rows += [[row[column] for column in COLUMNS] for row in list(csv.DictReader(file))[-2:]]
    folder = tmp_path_factory.mktemp("files")
    (folder / "all.csv").write_bytes(fuzz.csv_bytes(rows))
    test = load(folder / "all.csv").test
    assert test is not None
    tiny_bert.write_weights(folder, tiny_bert.random_tensors(BERT))
    return Files(folder, rows, test)


# Files with a random fault.

Make = Callable[[random.Random, Files], bytes]


def table(rng: random.Random, files: Files) -> bytes:
    return fuzz.csv_bytes(fuzz.damaged_rows(rng, files.rows))


def archive(rng: random.Random, files: Files) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", rng.choice((0, 8, 8, 8, 12))) as archive:
        archive.writestr("d/1.2_train.csv", fuzz.csv_bytes(files.rows[:3]))
        archive.writestr("d/1.5_test.csv", table(rng, files))
    content = stream.getvalue()
    return fuzz.zip_with_wrong_header(rng, content) if rng.random() < 0.5 else content


def parquet(rng: random.Random, files: Files) -> bytes:
    return fuzz.parquet_bytes(rng, fuzz.damaged_rows(rng, files.rows) or [["story"]])


def json_like(value: Any) -> Make:
    return lambda rng, files: fuzz.json_bytes(fuzz.damaged_json(rng, value))


def lines_like(values: list) -> Make:
    def make(rng: random.Random, files: Files) -> bytes:
        lines = fuzz.damaged_json(rng, values)
        return b"\n".join(map(fuzz.json_bytes, lines if isinstance(lines, list) else [lines]))

    return make


def rows_like(rows: fuzz.Rows) -> Make:
    return lambda rng, files: fuzz.csv_bytes(fuzz.damaged_rows(rng, rows))


def run_predictions(rng: random.Random, files: Files) -> bytes:
    header = ["replica", "task", "row", "target", "prediction", "probability", "last_prediction"]
    targets = [RELATIONS[target] for target in files.test.target]
    rows = [
        [replica, "1.5", str(row), target, "aunt", "0.5", "aunt"]
        for replica in "01"
        for row, target in enumerate(targets, 1)
    ]
    return rows_like([header, *rows])(rng, files)


def safetensors(rng: random.Random, files: Files) -> bytes:
    content = (files.folder / "model.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = fuzz.json_bytes(fuzz.damaged_json(rng, json.loads(content[8 : 8 + size])))
    stated = rng.choice((0, 7, 2**63, 2**64 - 1)) if rng.random() < 0.1 else len(header)
    return stated.to_bytes(8, "little") + header + content[8 + size :]


def vocabulary(rng: random.Random, files: Files) -> bytes:
    return fuzz.edited(rng, "\n".join(VOCABULARY)).encode(errors="replace")


def arrays(rng: random.Random, values: dict[str, np.ndarray]) -> bytes:
    """An .npz file with one array changed or missing."""
    name = rng.choice(list(values))
    array = values[name]
    values[name] = rng.choice((
        array, array, array[:-1] if array.ndim else array, array[None], array.astype("S3"),
        np.full(array.shape, np.nan, np.float16), np.array([{}], object), np.array("x"),
        np.zeros(array.shape, "V2"), np.full(array.shape, 200).astype(array.dtype),
    ))  # fmt: skip
    if rng.random() < 0.1:
        del values[name]
    stream = io.BytesIO()
    np.savez_compressed(stream, **values)
    content = stream.getvalue()
    return fuzz.zip_with_wrong_header(rng, content) if rng.random() < 0.4 else content


def attention(rng: random.Random, files: Files) -> bytes:
    over = np.array(rng.choice(("facts", "words")))
    return arrays(rng, {"over": over, "weights": np.ones(len(files.test.relations))})


def extracted(rng: random.Random, files: Files) -> bytes:
    pairs = int((np.diff(files.test.node_start) ** 2).sum())
    rules = np.zeros((NUM_RELATIONS,) * 3, np.float16)
    chance = np.ones(pairs, np.float16)
    return arrays(rng, {"relation": np.ones(pairs, np.uint8), "chance": chance, "rules": rules})


# Readers.

Read = Callable[[Path, Files], Any]


def read_data(path: Path, files: Files) -> None:
    data = load(path)
    if data.test is not None:
        story_ids(data.test)


def read_prepared(path: Path, files: Files) -> None:
    """All preprocessing before a model."""
    data = prepare(path)
    baselines(data.train, data.test)
    for story in range(len(data.test)):
        question(data.test, story)


def read_audit(path: Path, files: Files) -> None:
    for tables in data_sets([path]).values():
        for one in tables:
            audit(one, Seen())


def read_import(path: Path, files: Files) -> None:
    cut([story for part in read_stories([path]).values() for story in part])


def read_split_bank(path: Path, files: Files) -> None:
    bank = read_bank(path)
    try:
        split_bank(bank, Config(train=(), test=(), hold_out=("paraphrases",)))
    except InputError as error:  # a clause is missing: the message names the bank, not the file
        assert bank.name in str(error)


def read_settings(path: Path, files: Files) -> None:
    values = read_json(path)
    try:
        Config.from_json(values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_answers(path: Path, files: Files) -> None:
    read_submissions([path], story_ids(files.test), files.test)


def read_weights(path: Path, files: Files) -> None:
    shapes = {name: tensor.shape for name, tensor in tiny_bert.random_tensors(BERT).items()}
    assert read_tensors(path.parent, shapes).keys() == shapes.keys()


def read_tokenizer(path: Path, files: Files) -> None:
    load_tokenizer(path.parent, 6)


# Kind -> file name, how to damage it, how to read it, number of cases.
KINDS: dict[str, tuple[str, Make, Read, int]] = {
    "csv": ("x.csv", table, read_data, 300),
    "gzip": ("x.csv.gz", lambda r, f: gzip.compress(table(r, f), 1), read_data, 100),
    "zip": ("x.zip", archive, read_data, 300),
    "parquet": ("x.parquet", parquet, read_data, 200),
    "prepared": ("x.csv", table, read_prepared, 30),
    "audited": ("x.csv", table, read_audit, 150),
    "imported": ("x.csv", table, read_import, 100),
    "bank": ("bank.json", json_like(BANK), read_split_bank, 100),
    "settings": ("x.json", json_like(Config().to_json()), read_settings, 75),
    "predictions": ("x.csv", rows_like(PREDICTIONS), read_answers, 100),
    "json lines": ("x.jsonl", lines_like(JSON_PREDICTIONS), read_answers, 100),
    "run predictions": ("predictions.csv", run_predictions, read_answers, 75),
    "config": ("config.json", json_like(CONFIG), lambda p, f: check_or_write_config(p, CONFIG), 50),
    "run": ("results.json", json_like(RUN), lambda p, f: results_by_test(p.parent, "gat"), 75),
    "report": ("results.json", json_like(REPORT), lambda p, f: read_json(p, RESULTS), 50),
    "summary": ("model.json", json_like(MODEL), lambda p, f: read_json(p, SUMMARY), 30),
    "metrics": ("metrics.jsonl", lines_like(EPOCHS), lambda p, f: _truncate_metrics(p, 2), 50),
    "attention": ("attention.npz", attention, lambda p, f: read_attention(p.parent, f.test), 75),
    "extracted": ("extracted.npz", extracted, lambda p, f: read_extracted(p.parent, f.test), 50),
    "bert config": ("config.json", json_like(BERT), lambda p, f: read_config(p.parent), 50),
    "safetensors": ("model.safetensors", safetensors, read_weights, 75),
    "tokenizer": ("tokenizer.json", json_like(TOKENIZER), read_tokenizer, 50),
    "vocabulary": ("vocab.txt", vocabulary, read_tokenizer, 30),
}


def case(kind: str, index: int, files: Files) -> bytes:
    rng = random.Random(f"{kind} {index}")
    content = KINDS[kind][1](rng, files)
    return fuzz.damaged_bytes(rng, content) if rng.random() < 0.4 else content


@pytest.mark.parametrize("factor", [1, pytest.param(9, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_loads_or_is_refused(kind, factor, files, tmp_path: Path) -> None:
    name, _, read, cases = KINDS[kind]
    path = tmp_path / name
    outcomes = set()
    for index in range(factor * cases):
        path.write_bytes(case(kind, index, files))
        try:
            error = fuzz.error_of(lambda path: read(path, files), path)
        except BaseException as error:
            error.add_note(f'replay: case("{kind}", {index}, files), kept as {path}')
            raise
        outcomes.add(error != "")
    assert outcomes == {True, False}, "the cases are all valid or all invalid"


def test_the_number_of_cases() -> None:
    assert sum(cases for *_, cases in KINDS.values()) >= 2000
