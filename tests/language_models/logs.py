"""Logs of harnesses, with the keys of the real ones that are read and some of the others."""

import json
import zipfile
from pathlib import Path


def inspect_log(rows: list[dict], answers: list[list[str]]) -> dict:
    """Log of one answer per epoch and story."""
    samples = [
        {"id": row["id"], "epoch": epoch, "input": row["prompt"], "target": row["target"],
         "output": {"choices": [], "completion": text}, "metadata": {"k": row["k"]}}
        for epoch, texts in enumerate(answers, start=1)
        for row, text in zip(rows, texts, strict=True)
    ]  # fmt: skip
    return {"version": 2, "status": "success", "eval": {"task": "clutrr", "model": "lab/model"},
            "samples": samples}  # fmt: skip


def write_inspect(path: Path, log: dict) -> Path:
    if path.suffix == ".json":
        path.write_text(json.dumps(log))
        return path
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for i, sample in enumerate(log["samples"]):
            archive.writestr(f"samples/{i}.json", json.dumps(sample))
        header = {name: value for name, value in log.items() if name != "samples"}
        archive.writestr("header.json", json.dumps(header))
    return path


def write_lm_eval(folder: Path, rows: list[dict], answers: list[list[str]]) -> Path:
    """Log of one repeat per list of answers; one file per task."""
    return write_samples(
        folder, "clutrr", rows, [[list(texts)] for texts in zip(*answers, strict=True)]
    )


def write_choices(folder: Path, rows: list[dict], likelihoods: list[list[list[str]]]) -> Path:
    """Log of multiple choice: the log-likelihood of each choice for each repeat and row."""
    resps = [
        [[[x, "False"] for x in of_choice] for of_choice in zip(*repeats, strict=True)]
        for repeats in zip(*likelihoods, strict=True)
    ]
    return write_samples(folder, "clutrr_mc", rows, resps)


def write_samples(folder: Path, group: str, rows: list[dict], resps: list) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results_2026.json").write_text("{}")
    for i, (row, of_row) in enumerate(zip(rows, resps, strict=True)):
        sample = {"doc_id": i, "doc": row, "target": row["target"], "filter": "none",
                  "resps": of_row}  # fmt: skip
        with (folder / f"samples_{group}_{row['task']}_2026.jsonl").open("a") as file:
            file.write(json.dumps(sample) + "\n")
    return folder
