"""Data and scoring of the CLUTRR tasks of lm-evaluation-harness.

Written by `python -m clutrr_jax.language_models export`, with prompts.jsonl, answers.py and
what that imports. An answer is mapped to a relation by the rules in answers.py.
"""

import json
import sys
from pathlib import Path
from typing import Any

import datasets

HERE = Path(__file__).parent
sys.path.append(str(HERE))

from named_answers import stated_relation  # noqa: E402


def dataset(task: str, **_: Any) -> dict[str, datasets.Dataset]:
    """Test stories of task T.K, wherever this folder is."""
    with (HERE / "prompts.jsonl").open(encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["task"] == task]
    return {"test": datasets.Dataset.from_list(rows)}


def choices(doc: dict[str, Any]) -> list[str]:
    """The relations as lines: "daughter" alone is never less likely than "daughter-in-law"."""
    return [f"{choice}\n" for choice in doc["choices"]]


def process_results(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """Accuracy of one answer."""
    return {"acc": float(stated_relation(results[0], doc) == doc["target"])}
