"""Runs that are finished without training."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clutrr_jax.evaluation.scores import Score
from clutrr_jax.experiment import SUMMARY, Run


def finish(workdir: Path, run: Run, tests: Sequence[Score], **changes: Any) -> None:
    """Writes the `model.json` of a run with these scores."""
    settings = run.config[run.model].to_dict()
    settings["train"] = asdict(run.config.train)
    summary = {
        "parameters": 12_345, "epochs": 7, "replicas": 1, "dev_accuracy": [0.5], "seconds": 61.4,
        "stories_per_second": 9_000, "diverged_epochs": [0], "device": "a device", "versions": {},
        "settings": settings, "tests": [test.to_json() for test in tests],
    }  # fmt: skip
    folder = workdir / run.name
    folder.mkdir(parents=True)
    (folder / SUMMARY).write_text(json.dumps(summary | changes))
