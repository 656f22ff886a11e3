"""Writes the files of the report of an experiment, `REPORT_FILES`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.data.prepare import Prepare
from clutrr_jax.evaluation.extraction import by_wording, precision_recall
from clutrr_jax.experiment import Run, run_name
from clutrr_jax.language_models.submissions import Submission, read_submissions, score_submission
from clutrr_jax.report.export import csv_rows, latex_paired, latex_tables
from clutrr_jax.report.headline import headline
from clutrr_jax.report.markdown import results_markdown
from clutrr_jax.report.outputs import Shown, added_outputs, shown_sets
from clutrr_jax.report.page import render
from clutrr_jax.report.page_content import content
from clutrr_jax.report.paired import paired_table, pairs
from clutrr_jax.report.plots import plot_results, save_figure
from clutrr_jax.report.results import REPORT_FILES, Finished, collect
from generator.errors import InputError
from generator.files import atomic_write, csv_text, write_text


def write_report(
    config: Mapping[str, Any],
    all_runs: Sequence[Run],
    workdir: Path,
    prepare: Prepare,
    add: Sequence[str] = (),
) -> dict[str, Any]:
    """Writes all files of the report and returns the results, see `clutrr_jax.report.results`.

    Args:
      config: settings of the experiment, of which name, scale, experiment and data are used.
      all_runs: its runs, also those that are not finished.
      workdir: its folder.
      prepare: reads the data set of a run.
      add: files with predictions of models that were trained elsewhere, [NAME=]FILE.
    Raises:
      InputError: an output of a run cannot be read or is for other stories.
    """
    shown = shown_sets(all_runs, workdir, prepare)
    if add and len(shown) != 1:
        raise InputError(f"{workdir}: {len(shown)} data sets, expected one for predictions to add")
    added = read_submissions(add, shown[0].data.test) if add else []
    finished = Finished(all_runs, workdir)
    scores = [(dataset, rows) for dataset, _, rows in finished.scores]
    of_added = [score_submission(one, shown[0].truth) for one in added]
    results = collect(config, finished, of_added)
    results["headline"] = headline(results)
    found = {
        run_name(one.dataset, model): (output.extraction, one.data)
        for one in shown
        for model, output in one.outputs.items()
        if output.extraction
    }
    results["extraction"] = {
        run: precision_recall(extraction, data.test) for run, (extraction, data) in found.items()
    }
    results["wordings"] = {
        run: by_wording(extraction, data.train, data.test)
        for run, (extraction, data) in found.items()
    }
    one_set = len({run.dataset for run in all_runs}) == 1
    results["compared"] = [pair for one in shown if one_set for pair in _pairs(one, added)]
    for submission, rows in zip(added, of_added, strict=True):
        scores.append((shown[0].dataset, rows))
        shown[0].outputs[submission.name] = added_outputs(submission, len(shown[0].data.test))
    paired = paired_table(results["compared"])
    latex_pairs = [latex_paired(paired)] if len(paired) > 1 else []
    texts = {
        "results.json": json.dumps(results, indent=1) + "\n",
        "results.md": results_markdown(results),
        "report.html": render(content(results, shown)),
        "results.csv": csv_text(csv_rows(results, scores)),
        "results.tex": "\n".join([*latex_tables(results), *latex_pairs]),
    }
    figure = plot_results(results)
    for path in (workdir / name for name in REPORT_FILES):
        if path.name in texts:
            write_text(path, texts[path.name])
        else:
            with atomic_write(path) as part:
                save_figure(figure, part)
    return results


def _pairs(shown: Shown, added: Sequence[Submission]) -> list[dict[str, Any]]:
    """The paired tests between all models of a data set."""
    everything = np.arange(len(shown.data.test))
    own = [Submission(name, one.predictions, everything) for name, one in shown.outputs.items()]
    return pairs([*own, *added], shown.data.test)
