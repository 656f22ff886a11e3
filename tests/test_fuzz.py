"""Every file loads, or is refused with one line that names it.

The cases are the same in every run; `case(kind, index)` rebuilds one.
"""

import io
import json
import random
import zipfile
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save

from clutrr_jax.data.dataset import load
from clutrr_jax.data.prepare import prepare
from clutrr_jax.data.records import build_records, story_ids
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.language_models.prompts import prompts, question
from clutrr_jax.language_models.submissions import read_submissions
from clutrr_jax.models.pretrained.folder import read_config
from clutrr_jax.models.pretrained.load import load_encoder
from clutrr_jax.models.pretrained.tokenizer import load_tokenizer
from generator.audit import Seen, audit
from generator.data_sets import data_sets
from generator.errors import InputError
from generator.files import read_json
from generator.paraphrases.importer import cut, read_stories
from generator.paraphrases.load import read_bank
from generator.paraphrases.templates import synthetic_templates
from generator.relations.kinship import NUM_RELATIONS
from generator.stories.config import Config
from generator.stories.hold_out import split_bank
from generator.stories.text import clause_name
from generator.tables.rows import parse_rows
from tests import fuzz, tiny_bert
from tests.generator.tables.test_columns import ROW

ROWS = [
    {**ROW, "id": i, "clean_story": ROW["story"], "f_comb": "son-sister", "task_split": split}
    for i, split in (("a", "train"), ("b", "train"), ("c", "test"), ("d", "test"))
]
TABLE = [list(ROWS[0]), *(list(row.values()) for row in ROWS)]
TEST = build_records(list(parse_rows("test", ROWS[2:])))
BERT = tiny_bert.CONFIG | {"vocab_size": 6, "hidden_size": 4, "intermediate_size": 4,
                           "num_hidden_layers": 1, "max_position_embeddings": 8}  # fmt: skip
TENSORS = save(tiny_bert.random_tensors(BERT))
VOCABULARY = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "[MASK]": 3, "a": 4, "##b": 5}
TOKENIZER = {"version": "1.0", "added_tokens": [], "normalizer": {"type": "Lowercase"},
             "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": VOCABULARY,
                       "continuing_subword_prefix": "##", "max_input_chars_per_word": 9},
             "pre_tokenizer": {"type": "Whitespace"}}  # fmt: skip
PREDICTIONS = [["id", "replica", "target", "prediction", "probability", "last_prediction"]]
PREDICTIONS += [
    [f"1.2/{row}", replica, "daughter", "It is an aunt.", "0.5", "aunt"]
    for replica in "01" for row in (1, 2)
]  # fmt: skip
JSON_PREDICTIONS = [{"id": f"1.2/{row}", "prediction": "Answer: aunt"} for row in (1, 2)]
INSPECT_LOG = Path(__file__).parent / "language_models" / "inspect.eval"
INSPECT_HEADER = {"status": "success", "eval": {"task": "clutrr", "model": "m"}}
HARNESS_ROWS = list(prompts(TEST, range(len(TEST)), [], False))
INSPECT_SAMPLES = [
    {"id": row["id"], "epoch": 1, "input": row["prompt"], "target": row["target"],
     "output": {"completion": "Answer: aunt"}} for row in HARNESS_ROWS
]  # fmt: skip
INSPECT_JSON = INSPECT_HEADER | {"samples": INSPECT_SAMPLES}
LM_EVAL_SAMPLES = [{"doc": row, "resps": [["aunt"]]} for row in HARNESS_ROWS]
CHOICES = [{"doc": row, "resps": [[["-1.5", "False"]]] * NUM_RELATIONS} for row in HARNESS_ROWS]
BANK = {clause_name(key): list(pool) for key, pool in synthetic_templates().items()}


# Files with a random fault.

Make = Callable[[random.Random], bytes]


def archive(rng: random.Random) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", rng.choice((0, 8, 12))) as archive:
        archive.writestr("d/1.2_train.csv", fuzz.csv_bytes(TABLE[:3]))
        archive.writestr("d/all.csv", fuzz.csv_bytes(fuzz.damaged_rows(rng, TABLE)))
    return stream.getvalue()


def parquet(rng: random.Random) -> bytes:
    """A table in which missing cells are null, and some columns have another type."""
    header, *cells = fuzz.damaged_rows(rng, TABLE) or [["story"]]
    columns = [pa.array(column, pa.string()) for column in zip_longest(*cells)][: len(header)]
    columns = [rng.choice((column, column.dictionary_encode())) for column in columns]
    columns += [pa.nulls(len(cells), pa.list_(pa.int8()))] * (len(header) - len(columns))
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, header), stream)
    return stream.getvalue()


def rows_like(rows: fuzz.Rows) -> Make:
    return lambda rng: fuzz.csv_bytes(fuzz.damaged_rows(rng, rows))


def json_like(value: Any) -> Make:
    return lambda rng: fuzz.json_bytes(fuzz.damaged_json(rng, value))


def lines_like(values: list) -> Make:
    def make(rng: random.Random) -> bytes:
        lines = fuzz.damaged_json(rng, values)
        return b"\n".join(map(fuzz.json_bytes, lines if isinstance(lines, list) else [lines]))

    return make


def inspect_log(rng: random.Random) -> bytes:
    """The log of a real run, or one with damaged JSON."""
    if rng.random() < 0.3:
        return INSPECT_LOG.read_bytes()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", rng.choice((0, 8, 12))) as archive:
        for name, value in (("header", INSPECT_HEADER), *enumerate(INSPECT_SAMPLES)):
            folder = "" if name == "header" else "samples/"
            archive.writestr(f"{folder}{name}.json", json_like(value)(rng))
    return stream.getvalue()


def safetensors(rng: random.Random) -> bytes:
    size = int.from_bytes(TENSORS[:8], "little")
    header = fuzz.json_bytes(fuzz.damaged_json(rng, json.loads(TENSORS[8 : 8 + size])))
    stated = rng.choice((0, 7, 2**63, 2**64 - 1)) if rng.random() < 0.1 else len(header)
    return stated.to_bytes(8, "little") + header + TENSORS[8 + size :]


# Readers.

Read = Callable[[Path], Any]


def read_data(path: Path) -> None:
    data = load(path)
    if data.test is not None:
        story_ids(data.test)
    for _, tables in data_sets([path]):
        for one in tables:
            audit(one, Seen())


def read_import(path: Path) -> None:
    read_data(path)
    cut([story for part in read_stories([path]).values() for story in part])


def read_prepared(path: Path) -> None:
    """All preprocessing before a model."""
    data = prepare(path)
    assert GroundTruth(data.test, data.train).baselines
    for story in range(len(data.test)):
        question(data.test, story)


def read_split_bank(path: Path) -> None:
    bank = read_bank(path)
    try:
        split_bank(bank, Config(train=(), test=(), hold_out=("paraphrases",)))
    except InputError as error:  # a clause is missing: the message names the bank, not the file
        assert bank.name in str(error)


def read_settings(path: Path) -> None:
    values = read_json(path)
    try:
        Config.from_json(values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_answers(path: Path) -> None:
    read_submissions([path], TEST)


def read_lm_eval(path: Path) -> None:
    try:
        read_answers(path.parent)
    except InputError as error:  # the message may name the folder only
        raise InputError(f"{path}: {error}") from None


def read_encoder(path: Path) -> None:
    read_config(path.parent)


def read_weights(path: Path) -> None:
    (path.parent / "config.json").write_text(json.dumps(BERT))
    load_encoder(path.parent)


def read_tokenizer(path: Path) -> None:
    load_tokenizer(path.parent, 6)


# Kind -> file name, how to damage it, how to read it, number of cases.
KINDS: dict[str, tuple[str, Make, Read, int]] = {
    "csv": ("x.csv", rows_like(TABLE), read_import, 150),
    "zip": ("x.zip", archive, read_data, 100),
    "parquet": ("x.parquet", parquet, read_data, 100),
    "json lines of stories": ("x.jsonl", lines_like(ROWS), read_data, 100),
    "prepared": ("x.csv", rows_like(TABLE), read_prepared, 30),
    "bank": ("bank.json", json_like(BANK), read_split_bank, 100),
    "settings": ("x.json", json_like(Config().to_json()), read_settings, 75),
    "predictions": ("x.csv", rows_like(PREDICTIONS), read_answers, 150),
    "json lines": ("x.jsonl", lines_like(JSON_PREDICTIONS), read_answers, 100),
    "inspect log": ("x.eval", inspect_log, read_answers, 150),
    "inspect json": ("x.json", json_like(INSPECT_JSON), read_answers, 75),
    "lm-eval log": ("samples_clutrr_1.2.jsonl", lines_like(LM_EVAL_SAMPLES), read_lm_eval, 75),
    "multiple choice": ("samples_clutrr_mc_1.2.jsonl", lines_like(CHOICES), read_lm_eval, 75),
    "bert config": ("config.json", json_like(BERT), read_encoder, 50),
    "deberta config": ("config.json", json_like(tiny_bert.DEBERTA), read_encoder, 50),
    "safetensors": ("model.safetensors", safetensors, read_weights, 75),
    "tokenizer": ("tokenizer.json", json_like(TOKENIZER), read_tokenizer, 50),
}


def case(kind: str, index: int) -> bytes:
    rng = random.Random(f"{kind} {index}")
    content = KINDS[kind][1](rng)
    return fuzz.damaged_bytes(rng, content) if rng.random() < 0.4 else content


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_loads_or_is_refused(kind: str, tmp_path: Path) -> None:
    name, _, read, cases = KINDS[kind]
    path = tmp_path / name
    outcomes = set()
    for index in range(cases):
        path.write_bytes(case(kind, index))
        try:
            error = fuzz.error_of(read, path)
        except BaseException as error:
            error.add_note(f'replay: case("{kind}", {index}), kept as {path}')
            raise
        outcomes.add(error != "")
    assert outcomes == {True, False}, "the cases are all valid or all invalid"
