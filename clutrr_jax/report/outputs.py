"""Outputs of the runs on one data set, for the page."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clutrr_jax.data.prepare import Prepare, Prepared
from clutrr_jax.evaluation.attention import Attention, read_attention
from clutrr_jax.evaluation.extraction import Extraction, read_extracted
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.predictions import Predictions, read_run
from clutrr_jax.experiment import DATA, SUMMARY, Run
from clutrr_jax.language_models.submissions import Submission
from generator.errors import InputError
from generator.files import json_lines, read_json

MAX_POINTS = 100  # of a training curve on the page
NOT_ASKED = -2  # prediction of an added model that has none for a story


class Outputs(NamedTuple):
    """Outputs of one model on the test stories."""

    predictions: Predictions
    attention: Attention | None
    extraction: Extraction | None
    curves: list[dict[str, Any]] | None = None  # see `read_curves`


class Shown(NamedTuple):
    """A data set whose stories the page shows."""

    dataset: str  # its name in the experiment
    data: Prepared
    truth: GroundTruth
    outputs: dict[str, Outputs]  # by model


def read_outputs(folder: Path, truth: GroundTruth) -> Outputs:
    """Reads the outputs of a run from its folder.

    Raises:
      InputError: a file cannot be read, or belongs to other stories.
    """
    return Outputs(
        read_run(folder, truth.test),
        read_attention(folder, truth.test),
        read_extracted(folder, truth),
        read_curves(folder / "metrics.jsonl"),
    )


def read_curves(path: Path) -> list[dict[str, Any]] | None:
    """Returns loss and dev accuracy of at most MAX_POINTS evenly spaced epochs and the last one.

    They are means over the replicas; the loss is None once no replica is trained any more. None if
    the file does not exist.

    Raises:
      InputError: the file cannot be read.
    """
    if not path.exists():
        return None
    lines = list(json_lines(path))
    shown = [*lines[:: -(-len(lines) // MAX_POINTS) or 1], *lines[-1:]]
    try:
        return [
            {
                "epoch": line["epoch"],
                "loss": float(np.mean(trained)) if trained else None,
                "dev accuracy": float(np.mean(line["dev_accuracy"])),
            }
            for line in {line["epoch"]: line for line in shown}.values()
            for trained in [[loss for loss in line["loss"] if loss is not None]]
        ]
    except (KeyError, TypeError):
        raise InputError(f"{path}: damaged, expected epochs with loss and dev accuracy") from None


def added_outputs(submission: Submission, stories: int) -> Outputs:
    """Returns the predictions of a model that was trained elsewhere, NOT_ASKED where it has none.

    Args:
      submission: its predictions of some of the test stories.
      stories: the number of all test stories.
    """
    predicted = submission.predictions.relation
    relation = np.full((len(predicted), stories), NOT_ASKED)
    relation[:, submission.stories] = predicted
    return Outputs(Predictions(relation, relation, np.ones(relation.shape)), None, None)


def shown_sets(all_runs: Sequence[Run], workdir: Path, prepare: Prepare) -> list[Shown]:
    """Returns the first data set of each training on which a run is finished.

    Raises:
      InputError: a file cannot be read, or the data set is another one than in training.
    """
    finished = [run for run in all_runs if (workdir / run.name / SUMMARY).exists()]
    first = {run.training.name: run for run in reversed(finished)}
    found = []
    for run in reversed(first.values()):
        folder = workdir / run.dataset
        data, description = prepare(run.config, folder / "data"), read_json(folder / DATA)
        begun = read_json(workdir / run.name / "config.json")
        stories = begun.get("stories", description["fingerprint"])
        if not data.is_of(workdir / run.name, stories):
            source = run.config.data or folder / "data"
            raise InputError(f"{source}: not the data set of this run, expected the same files")
        truth = GroundTruth(data.test, data.train)
        outputs = {
            other.model: read_outputs(workdir / other.name, truth)
            for other in finished
            if other.dataset == run.dataset
        }
        data = replace(data, name=description["name"])  # of stories that were not in a file
        found.append(Shown(run.dataset, data, truth, outputs))
    return found
