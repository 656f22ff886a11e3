"""Writes the files of the report of an experiment, `REPORT_FILES`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.data.prepare import Prepare
from clutrr_jax.evaluation.extraction import by_wording, precision_recall
from clutrr_jax.evaluation.predictions import prediction_file
from clutrr_jax.evaluation.scores import Series
from clutrr_jax.experiment import Run, run_name
from clutrr_jax.language_models.submissions import (
    Submission,
    given_of,
    read_ids,
    read_submissions,
    score_part,
    score_submission,
)
from clutrr_jax.models import MODELS
from clutrr_jax.report.export import csv_rows, results_latex
from clutrr_jax.report.headline import headline
from clutrr_jax.report.outputs import Shown, added_outputs, shown_sets
from clutrr_jax.report.page import content, render
from clutrr_jax.report.paired import pairs
from clutrr_jax.report.plots import plot_results, plot_sweeps, save_figure
from clutrr_jax.report.results import REPORT_FILES, collect
from clutrr_jax.report.tables import results_markdown
from generator.errors import InputError
from generator.files import atomic_write, csv_text, write_text


def _readers(shown: Shown, workdir: Path) -> Iterator[Submission]:
    """The predictions of the models that read the text of the stories."""
    for name, output in shown.outputs.items():
        if name in MODELS and MODELS[name].kind == "tokens":
            given = given_of(workdir / run_name(shown.dataset, name) / prediction_file())
            stories = np.arange(len(shown.data.test))
            yield Submission(name, output.predictions, stories, given=given)


def write_report(
    config: Mapping[str, Any],
    all_runs: Sequence[Run],
    workdir: Path,
    prepare: Prepare,
    add: Sequence[str] = (),
    ids: Path | None = None,
) -> dict[str, Any]:
    """Writes all files of the report and returns the results, see `clutrr_jax.report.results`.

    `add` are files with predictions of models that were trained elsewhere, [NAME=]FILE. On the test
    stories with these ids, they and the models that read text have further rows.

    Raises:
      InputError: an output of a run cannot be read or is for other stories.
    """
    shown = shown_sets(all_runs, workdir, prepare)
    if (add or ids) and len(shown) != 1:
        raise InputError(f"{workdir}: {len(shown)} data sets, expected one for predictions to add")
    added = read_submissions(add, shown[0].data.test) if add else []
    some = read_ids(ids, shown[0].data.test) if shown else None
    of_added = [score_submission(one, shown[0].truth, some) for one in added]
    if some:
        readers = [*_readers(shown[0], workdir)]
        if not readers and not added:
            raise InputError(f"--ids {ids}: no model of {workdir} reads text, expected one")
        for reader in readers:
            series = Series(reader.name, "model", reader.name, reader.given)
            of_added.append(score_part(series, reader, shown[0].truth, some))
    results, scores = collect(config, all_runs, workdir, of_added)
    results |= {"headline": headline(results), "extraction": {}, "wordings": {}, "compared": []}
    for one in shown:
        train, test = one.data.train, one.data.test
        for model, output in one.outputs.items():
            if output.extraction:
                run = run_name(one.dataset, model)
                results["extraction"][run] = precision_recall(output.extraction, test)
                results["wordings"][run] = by_wording(output.extraction, train, test)
        if len({run.dataset for run in all_runs}) == 1:
            every = np.arange(len(test))
            own = [Submission(name, o.predictions, every) for name, o in one.outputs.items()]
            results["compared"] = pairs([*own, *added], one.truth)
        one.outputs.update((other.name, added_outputs(other, len(test))) for other in added)
    texts = {
        "results.json": json.dumps(results, indent=1) + "\n",
        "results.md": results_markdown(results),
        "report.html": render(content(results, shown)),
        "results.csv": csv_text(csv_rows(results, scores)),
        "results.tex": results_latex(results),
    }
    if sweep := plot_sweeps(results):
        with atomic_write(workdir / "sweep.png") as part:
            save_figure(sweep, part)
    figure = plot_results(results)
    for path in (workdir / name for name in REPORT_FILES):
        if path.name in texts:
            write_text(path, texts[path.name])
        else:
            with atomic_write(path) as part:
                save_figure(figure, part)
    return results
