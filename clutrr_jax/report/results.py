"""Outputs of the models of a run, and the results computed from them."""

from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from clutrr_jax.data.prepare import Prepared
from clutrr_jax.evaluation.attention import Attention, read_attention
from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.evaluation.extraction import Extraction, precision_recall, read_extracted
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.metrics import score
from clutrr_jax.evaluation.predictions import Predictions, prediction_file
from clutrr_jax.evaluation.wordings import by_wording
from clutrr_jax.language_models.submissions import Submission, check_names, read_predictions
from clutrr_jax.models import MODELS
from clutrr_jax.models.given import given
from generator.files import read_json

PACKAGES = ("jax", "flax", "optax", "jraph", "numpy", "orbax-checkpoint")


class Outputs(NamedTuple):
    """Outputs of one model on the test stories."""

    summary: dict[str, Any]  # `model.json`
    # By name in the results: MODEL, then "MODEL: VARIANT" for each of its variants.
    predictions: dict[str, Predictions]
    attention: Attention | None
    extraction: Extraction | None


def read_outputs(model: str, folder: Path, truth: GroundTruth) -> Outputs:
    """Reads the outputs of one model from its folder in the run.

    Raises:
      InputError: a file is missing, damaged or for other stories.
    """
    variants = MODELS[model].variants if model in MODELS else ()
    names = {model: ""} | {f"{model}: {variant}": variant for variant in variants}
    return Outputs(
        read_json(folder / "model.json"),
        {
            name: read_predictions(folder / prediction_file(variant), truth.test)
            for name, variant in names.items()
        },
        read_attention(folder, truth.test),
        read_extracted(folder, truth),
    )


def collect(
    outputs: dict[str, Outputs],
    config: dict[str, Any],
    data: Prepared,
    truth: GroundTruth,
    device: str,
    versions: dict[str, str] | None = None,
    added: Sequence[Submission] = (),
) -> dict[str, Any]:
    """Returns the results of a run as a JSON object; the arguments are those of `write_report`."""
    predictions = {name: p for output in outputs.values() for name, p in output.predictions.items()}
    check_names(added, [*predictions, *BASELINES])
    predictions |= {submission.name: submission.predictions for submission in added}
    predictions |= truth.baselines
    extractions = {model: o.extraction for model, o in outputs.items() if o.extraction}
    knowledge = {
        name: given(config.get(model, {}), name.removeprefix(f"{model}: "))
        for model, output in outputs.items()
        for name in output.predictions
    }
    knowledge |= {submission.name: submission.given for submission in added}
    return {
        "data": {
            "name": data.name,
            "train_rows": len(data.train),
            "test_rows": len(data.test),
            "fingerprint": data.fingerprint,
        },
        "device": device,
        "versions": versions or {package: version(package) for package in PACKAGES},
        "wall_seconds": round(sum(output.summary["seconds"] for output in outputs.values()), 2),
        "models": {model: output.summary for model, output in outputs.items()},
        "added": {s.name: {"replicas": len(s.predictions.relation)} for s in added},
        "given": knowledge | {name: given({}, name) for name in BASELINES},
        "rows": [asdict(row) for row in score(predictions, truth)],
        "extraction": {
            model: precision_recall(extraction, data.test)
            for model, extraction in extractions.items()
        },
        "wordings": {
            model: by_wording(extraction, data.train, data.test)
            for model, extraction in extractions.items()
            if not data.resample  # else the stories of later epochs have other wordings
        },
        "config": config,
    }
