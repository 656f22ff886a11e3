"""Outputs of the runs on one data set, for the page."""

from collections.abc import Mapping, Sequence
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
    attention: Attention | None = None
    extraction: Extraction | None = None
    curves: Sequence[Mapping[str, Any]] = ()  # see `read_curves`


class Shown(NamedTuple):
    """A data set whose stories the page shows."""

    dataset: str  # its name in the experiment
    data: Prepared
    truth: GroundTruth
    outputs: dict[str, Outputs]  # by model


def read_curves(path: Path, shown: slice = slice(None)) -> list[dict[str, Any]]:
    """Returns loss and dev accuracy of at most MAX_POINTS evenly spaced epochs and the last one.

    They are means over the replicas that are shown; the loss is None once none of them is trained
    any more.
    """
    lines = list(json_lines(path)) if path.exists() else []
    step = -(-len(lines) // MAX_POINTS) or 1
    points = []
    for line in lines[:-1:step] + lines[-1:]:
        try:
            loss = [value for value in line["loss"][shown] if value is not None]
            points.append({
                "epoch": line["epoch"],
                "loss": float(np.mean(loss)) if loss else None,
                "dev accuracy": float(np.mean(line["dev_accuracy"][shown])),
            })  # fmt: skip
        except (KeyError, TypeError):
            raise InputError(
                f"{path}: damaged, expected epochs with loss and dev accuracy"
            ) from None
    return points


def replicas_of_result(folder: Path) -> slice:
    """Replicas of a run that are its result: in a sweep those of the point that dev chose."""
    summary = read_json(folder / SUMMARY)
    if not (sweep := summary.get("sweep")):
        return slice(None)
    chosen = [point["name"] for point in sweep["points"]].index(sweep["chosen"])
    return slice(chosen * summary["replicas"], (chosen + 1) * summary["replicas"])


def added_outputs(submission: Submission, stories: int) -> Outputs:
    """Returns the predictions of a model that was trained elsewhere, NOT_ASKED where it has none,
    given the number of all test stories."""
    predicted = submission.predictions.relation
    relation = np.full((len(predicted), stories), NOT_ASKED)
    relation[:, submission.stories] = predicted
    return Outputs(Predictions(relation, relation, np.ones(relation.shape)))


def shown_sets(all_runs: Sequence[Run], workdir: Path, prepare: Prepare) -> list[Shown]:
    """Returns the first data set of each training on which a run is finished.

    Raises:
      InputError: a file cannot be read, or the data set is another one than in training.
    """
    finished = [run for run in all_runs if (workdir / run.name / SUMMARY).exists()]
    first: dict[str, Run] = {}
    for run in finished:
        first.setdefault(run.training.name, run)
    found = []
    for run in first.values():
        folder = workdir / run.dataset
        data, description = prepare(run.config, folder / "data"), read_json(folder / DATA)
        begun = read_json(workdir / run.name / "config.json")
        if not data.is_of(workdir / run.name, begun.get("stories", description["fingerprint"])):
            source = run.config.data or folder / "data"
            raise InputError(f"{source}: not the data set of this run, expected the same files")
        truth, outputs = GroundTruth(data.test, data.train), {}
        for other in (other for other in finished if other.dataset == run.dataset):
            own = workdir / other.name
            outputs[other.model] = Outputs(
                read_run(own, data.test),
                read_attention(own, data.test),
                read_extracted(own, truth),
                read_curves(own / "metrics.jsonl", replicas_of_result(own)),
            )
        data = replace(data, name=description["name"])  # of stories that were not in a file
        found.append(Shown(run.dataset, data, truth, outputs))
    return found
