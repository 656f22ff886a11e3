"""Writes the report of a run: `results.json`, `results.md`, `curve.png` and `report.html`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clutrr_jax.data.prepare import Prepared
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.language_models.submissions import Submission
from clutrr_jax.report.page import render
from clutrr_jax.report.plots import plot_curve
from clutrr_jax.report.results import collect, read_outputs
from clutrr_jax.report.run_page import content
from clutrr_jax.report.tables import results_markdown
from generator.files import atomic_write, write_text


def write_report(
    models: list[str],
    config: dict[str, Any],
    data: Prepared,
    folder: Path,
    device: str,
    versions: dict[str, str] | None = None,
    added: Sequence[Submission] = (),
) -> dict[str, Any]:
    """Writes all files of the report and returns the results, see `collect`.

    Args:
      models: names of the trained models; each has its own folder below `folder`.
      config: settings of the run as a plain dictionary.
      data: the data set of the run.
      folder: folder of the run.
      device: description of the hardware used for training.
      versions: package versions used for training; the installed ones by default.
      added: predictions of models that were trained elsewhere.
    Raises:
      InputError: an output of a model is missing, damaged or for other stories.
    """
    truth = GroundTruth(data.test, data.train)
    outputs = {model: read_outputs(model, folder / model, truth) for model in models}
    results = collect(outputs, config, data, truth, device, versions, added)
    write_text(folder / "results.json", json.dumps(results, indent=1) + "\n")
    write_text(folder / "results.md", results_markdown(results))
    with atomic_write(folder / "curve.png") as part:
        plot_curve(results).savefig(part)
    write_text(folder / "report.html", render("run", content(results, outputs, truth)))
    return results
