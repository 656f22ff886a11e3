"""Logs of evaluation harnesses -> answers. Neither harness needs to be installed."""

import json
import math
import re
import sys
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from clutrr_jax.language_models.export import MULTIPLE_CHOICE, TASK
from generator.errors import InputError, at
from generator.files import check_shape, json_lines, read_json

_SAMPLE = {
    "id": str,
    "epoch": int,
    "input": str | list,
    "target": str,
    "output": {"completion": str},
}
# Samples of both groups of lm-eval: a list per request, with an answer per repeat. A request is the
# prompt or, in multiple choice, one of the choices: its answer has log-likelihood and greediness.
_DOC = {"id": str, "prompt": str, "target": str}
_LM_EVAL_SAMPLES: dict[str, dict[str, Any]] = {
    TASK: {"doc": _DOC, "resps": [[str]]},
    MULTIPLE_CHOICE: {"doc": _DOC | {"choices": [str]}, "resps": [[[str]]]},
}
# Group of tasks of lm-eval -> end of the name of its answers.
_ENDS = {TASK: "", MULTIPLE_CHOICE: " (multiple choice)"}
_ZSTANDARD = 93  # method of compression in a .zip


class Answer(NamedTuple):
    """One answer to one test story."""

    place: str  # file and row, for messages
    id: str
    text: str
    replica: str = "0"
    prompt: str = ""  # prompt and label in the log of a harness
    target: str = ""


def json_objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the place and the value of each line of a file of JSON objects, at least one."""
    number = 0
    for number, row in enumerate(json_lines(path), start=1):
        if not isinstance(row, dict):
            raise InputError(f"{at(path, number)}: expected a JSON object")
        yield at(path, number), row
    if not number:
        raise InputError(f"{path}: empty file, expected a JSON object on each line")


def prompt_text(prompt: Any) -> str:
    """The text of a prompt, which may be a list of messages such as those of a chat."""
    messages = prompt if isinstance(prompt, list) else []
    contents = [one["content"] for one in messages if isinstance(one, dict) and "content" in one]
    lists = [one if isinstance(one, list) else [{"text": one}] for one in contents]
    texts = [str(part.get("text", "")) for one in lists for part in one if isinstance(part, dict)]
    return "\n".join(texts) if texts else str(prompt)


def lm_eval_answers(folder: Path) -> dict[str, Iterator[Answer]]:
    """Answers in a log folder of lm-eval, which has a file for each task, by the end of their name:
    free ones, multiple choice or both. Repeats are replicas."""
    return {_ENDS[group]: _lm_eval_group(group, files) for group, files in _newest(folder).items()}


def _lm_eval_group(group: str, files: list[Path]) -> Iterator[Answer]:
    for place, sample in (line for file in files for line in json_objects(file)):
        _check(place, sample, _LM_EVAL_SAMPLES[group])
        doc, resps = sample["doc"], sample["resps"]
        if group == TASK:
            answers = [text for request in resps for text in request]
        else:
            answers = _best_choices(place, doc["choices"], resps)
        for replica, text in enumerate(answers):
            yield Answer(place, doc["id"], text, str(replica), doc["prompt"], doc["target"])


def _best_choices(place: str, choices: list[str], resps: list[list[list[str]]]) -> list[str]:
    """The choice with the highest log-likelihood in each repeat; of several the first."""
    try:
        repeats = [[float(likelihood) for likelihood, _ in repeat]
                   for repeat in zip(*resps, strict=True)]  # fmt: skip
        if len(resps) != len(choices) or any(math.isnan(x) for one in repeats for x in one):
            raise ValueError
    except ValueError:
        raise InputError(
            f"{place}: expected the log-likelihood of each of the {len(choices)} choices"
        ) from None
    return [choices[likelihoods.index(max(likelihoods))] for likelihoods in repeats]


def _newest(folder: Path) -> dict[str, list[Path]]:
    """The files samples_TASK_DATE.jsonl of the newest run of each group of the exported tasks. Runs
    of different tasks belong together. A run that is older than one which is not read may be of
    another model or export: it is not read either, and printed."""
    # Group -> date -> task -> file.
    groups: dict[str, dict[str, dict[str, Path]]] = defaultdict(lambda: defaultdict(dict))
    pattern = rf"samples_(?P<group>{TASK}|{MULTIPLE_CHOICE})_(?P<task>b?\d+\.\d+)_?(?P<date>.*)"
    for file in folder.glob("samples_*.jsonl"):
        if ours := re.fullmatch(pattern, file.stem):
            groups[ours["group"]][ours["date"]][ours["task"]] = file
    if not groups:
        raise InputError(
            f"{folder}: no samples_*.jsonl of {TASK}, expected a log folder of lm-eval "
            "(--log_samples) or the file of a log of inspect; predictions of a run are "
            "RUN/predictions.npz"
        )
    found: dict[str, list[Path]] = {}
    for group, runs in sorted(groups.items()):
        read: dict[str, Path] = {}  # task -> file
        skipped = False
        for date in sorted(runs, reverse=True):
            skipped = skipped or not read.keys().isdisjoint(runs[date])
            if not skipped:
                read |= runs[date]
                continue
            print(
                f"{folder}: read the run of {max(runs)}, not of {date or 'no date'}",
                file=sys.stderr,
            )
        found[group] = [read[task] for task in sorted(read)]
    return found


def inspect_answers(path: Path) -> tuple[str, Iterator[Answer]]:
    """Name of the model and answers in a log of inspect, .eval or .json; epochs are replicas."""
    if path.suffix == ".json":
        header = read_json(path, {"samples": [dict]})
        samples = iter([(f"{path}, sample {i}", s) for i, s in enumerate(header["samples"], 1)])
    else:
        samples = _read_eval(path)
        _, header = next(samples)
    _check(path, header, {"status": str, "eval": {"task": str, "model": str}}, "a log of inspect")
    task = header["eval"]["task"]
    if task.rpartition("/")[2] != TASK:
        raise InputError(f'{path}: log of the task "{task}", expected "{TASK}"')
    if header["status"] != "success":
        raise InputError(
            f'{path}: status "{header["status"]}", expected a finished run ("success")'
        )
    return header["eval"]["model"], (_inspect_answer(*sample) for sample in samples)


def _inspect_answer(place: str, sample: dict[str, Any]) -> Answer:
    if sample.get("error"):
        raise InputError(f"{place}: ended with an error, expected an answer")
    _check(place, sample, _SAMPLE)
    text, replica = sample["output"]["completion"], str(sample["epoch"])
    prompt = prompt_text(sample["input"])
    return Answer(place, sample["id"], text, replica, prompt, sample["target"])


def _check(
    place: object, value: Any, shape: Any, expected: str = "a sample of the exported task"
) -> None:
    try:
        check_shape(value, shape)
    except ValueError as error:
        raise InputError(f"{place}: not {expected} ({error})") from None


def _read_eval(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields places and values of the header and the samples in an .eval file, a .zip of JSON."""
    place = str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if name.startswith("samples/"))
            if "header.json" not in archive.namelist():
                raise InputError(f"{place}: no header.json, expected the log of a finished run")
            for name in ["header.json", *names]:
                place = f"{path}/{name}"
                value = json.loads(_content(archive, archive.getinfo(name)))
                check_shape(value, {})
                yield place, value
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{place}: cannot be read, not a log of inspect ({reason})") from None


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.compress_type != _ZSTANDARD:
        return archive.read(member)
    # Before Python 3.14 the zipfile module cannot decompress Zstandard, so it reads the bytes as if
    # they were stored.
    stored = copy(member)
    stored.compress_type, stored.file_size = zipfile.ZIP_STORED, member.compress_size
    stored.CRC = None  # type: ignore[assignment]
    content = pa.decompress(archive.read(stored), member.file_size, "zstd", asbytes=True)
    if zlib.crc32(content) != member.CRC:
        raise zipfile.BadZipFile("wrong checksum")
    return content
