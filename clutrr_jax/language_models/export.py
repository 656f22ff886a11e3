"""Folders with test stories as prompts, for evaluation harnesses or for a script of one's own.

Every folder has prompts.jsonl. The files of a harness import nothing of this project and refer to
each other by name only, so that the folder can be moved to another machine.
"""

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.data.dataset import Dataset
from clutrr_jax.data.records import Records, story_ids, tasks
from clutrr_jax.language_models.prompts import examples, prompts
from generator.errors import InputError, check_range, one_of
from generator.files import cache_folder, write_text
from generator.relations.algebras import write_algebra

HARNESSES = Path(__file__).parent / "harnesses"
READERS = ("named_answers.py", "answers.py", "marked_text.py", "statements.py")
SCORING = {"jsonl": (), "lm-eval": READERS, "inspect": (*READERS, "inspect_scoring.py")}
FORMATS = tuple(SCORING)
TASK = "clutrr"  # name of the task of inspect, and of the group of lm-eval with free answers
MULTIPLE_CHOICE = "clutrr_mc"  # group of lm-eval
DEFAULT_SHOTS = 4
DEFAULT_TOKENS = 8192  # room for the thoughts of a reasoning model
# The settings in the files of a harness that the export writes.
_LIMIT = re.compile(r"^(MAX_TOKENS = |  max_gen_toks: )\d+$", re.MULTILINE)
# Style -> minimum and maximum number of examples.
STYLES = {"zero-shot": (0, 0), "few-shot": (1, 1000), "chain-of-thought": (0, 1000)}


def export(
    data: Dataset,
    out: Path | None,
    format: str,
    style: str,
    shots: int | None = None,
    seed: int = 0,
    max_tokens: int = DEFAULT_TOKENS,
    per_task: int | None = None,
    limit: int | None = None,
) -> tuple[int, Path]:
    """Writes a folder with the test stories as prompts, by default one in the cache folder, and
    returns their number and the folder. The format is one of FORMATS. `max_tokens` is the limit of
    an answer in the files of a harness. Existing files are replaced.
    """
    check_range("--max-tokens", max_tokens, 1)
    rows = prompt_rows(data, style, shots, seed, per_task, limit)
    files = {"prompts.jsonl": "".join(json.dumps(row) + "\n" for row in rows)}
    if format != "jsonl":
        # With copies of the files that read answers, which import each other from the folder.
        paths = [*map(HARNESSES.with_name, SCORING[format]), *(HARNESSES / format).iterdir()]
        for path in filter(Path.is_file, paths):
            text = path.read_text("utf-8").replace(f"from {__package__}.", "from ")
            files[path.name] = _LIMIT.sub(rf"\g<1>{max_tokens}", text)
    if format == "lm-eval":
        names = sorted(
            {row["task"] for row in rows}, key=lambda task: [*map(int, re.findall(r"\d+", task))]
        )
        files |= _lm_eval_tasks(TASK, names) | _lm_eval_tasks(MULTIPLE_CHOICE, names)
    algebra = data.records("test").algebra
    digest = sha256(json.dumps([files, algebra.to_json()]).encode()).hexdigest()
    out = out or cache_folder() / "exports" / digest[:16]
    for name, content in files.items():
        write_text(out / name, content)
    write_algebra(out, algebra)
    return len(rows), out


def prompt_rows(
    data: Dataset,
    style: str,
    shots: int | None = None,
    seed: int = 0,
    per_task: int | None = None,
    limit: int | None = None,
) -> list[dict[str, Any]]:
    """Returns test stories as prompts, see `prompts`. The style is one of STYLES; the same seed
    chooses the same examples in every style."""
    one_of("style", style, STYLES)
    least, most = STYLES[style]
    shots = min(DEFAULT_SHOTS, most) if shots is None else shots
    check_range(f"--style {style}: --shots", shots, least, most)
    check_range("--seed", seed, 0)
    for name, value in (("per-task", per_task), ("limit", limit)):
        check_range(f"--{name}", 1 if value is None else value, 1)
    test, steps, solved = _texts(data, "test"), style == "chain-of-thought", []
    stories = chosen(test, per_task, limit)
    if shots and steps and not test.algebra.has_rules_only:
        raise InputError(
            f"--style {style}: pairs of relations of {test.algebra.name} have several heads, and "
            "examples no proofs; expected --shots 0"
        )
    if shots:
        train = _texts(data, "train")
        solved = examples(train.select(~train.are_among(test)), shots, seed, steps)
    return list(prompts(test, stories.tolist(), solved, steps))


def _texts(data: Dataset, split: str) -> Records:
    """The stories of a split. Raises InputError if one of kinship has facts only, or another
    neither text nor facts."""
    records = data.records(split)
    facts = np.diff(records.edge_start) * (not records.algebra.is_kinship)
    for id, story, count in zip(story_ids(records), records.stories, facts, strict=True):
        if not story.strip() and not count:
            raise InputError(f"{data.name}: {split} story {id!r} has no text, expected one in each")
    return records


def chosen(test: Records, per_task: int | None = None, limit: int | None = None) -> np.ndarray:
    """Indices of the first stories of each task, in the order of the data set: at most `per_task`
    of each, and `limit` in all, for which the tasks take turns."""
    row = np.empty(len(test), int)  # of each story within its task
    for _, stories in tasks(test):
        row[stories] = np.arange(len(stories))
    order = np.argsort(row, kind="stable")[:limit]
    return np.sort(order if per_task is None else order[row[order] < per_task])


def _lm_eval_tasks(group: str, tasks: list[str]) -> dict[str, str]:
    """One YAML file per task T.K, and one of the group with the mean of all stories."""
    names = [f"{group}_{task}" for task in tasks]
    files = {
        f"{name}.yaml": f"include: _{group}_yaml\ntask: {name}\n"
        f'dataset_kwargs: {{task: "{task}"}}\n'
        for name, task in zip(names, tasks, strict=True)
    }
    lines = [f"group: {group}", "task:", *(f"  - {name}" for name in names),
             "aggregate_metric_list:", "  - metric: acc", "    aggregation: mean",
             "    weight_by_size: true", "metadata:", "  version: 1.0"]  # fmt: skip
    return files | {f"{group}.yaml": "\n".join(lines) + "\n"}
