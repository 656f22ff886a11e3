"""The results of an experiment, `results.json`: one table with a row for each cell of a series.

The keys of a row are the three columns of the experiment, whose last one names the series in
tables, and

    name, kind, of, given   of the series, see `clutrr_jax.evaluation.scores.Series`
    task                    tests T.K, which are taken as one; empty for a mean over cells
    accuracy, ...           see `clutrr_jax.evaluation.scores.Measured`; None if not measured
    metrics                 the same for each further metric: mean, stderr, low, high, replicas
    unmapped                answers that are no relation
    average                 whether it is a mean over cells, which has no interval and no stories

A published accuracy is a row of kind "published". One of a cell of the experiment has the key of
the measured row; others also have `source`, and `shown`, whether plots show them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.evaluation.metrics import METRICS
from clutrr_jax.evaluation.published import Accuracy, published_interval
from clutrr_jax.evaluation.scores import (
    Measured,
    Score,
    Series,
    measure_all,
    read_scores,
    series_of,
)
from clutrr_jax.experiment import (
    DATA,
    ERROR,
    MODEL,
    PATHS,
    SINGLE,
    SUMMARY,
    Claims,
    Experiment,
    Key,
    Measurements,
    Run,
    Training,
)
from clutrr_jax.language_models.submissions import check_names
from clutrr_jax.models.swept import of_point
from generator.errors import one_line
from generator.files import read_json

REPORT_FILES = (
    "results.json", "results.md", "curve.png", "report.html", "results.csv", "results.tex",
    "curve.pdf", "curve.svg",
)  # fmt: skip
# Verdicts on a claim of a paper: see `clutrr_jax.evaluation.claims.Evidence`; or cells are missing.
VERDICTS = ("supported", "not supported", "undecided", "not measured")
MEASURED = tuple(field.name for field in fields(Measured))
BESIDE = ("sweep", "ensemble", "strict", "part")  # kinds of series that stand in tables only

# The rows of a run, or of the baselines of a data set, with the name of the data set.
Scored = tuple[str, Training, Sequence[Score]]


def collect(
    config: Mapping[str, Any],
    all_runs: Sequence[Run],
    workdir: Path,
    added: Sequence[Sequence[Score]] = (),
) -> tuple[dict[str, Any], list[Scored]]:
    """Returns the results of an experiment as a JSON object, and the scores that it shows, with
    those of models that were trained elsewhere. Name, scale and experiment of `config` are used."""
    experiment, scale = config.get("experiment", SINGLE), config.get("scale", "")
    summaries: dict[str, Any] = {}
    series: list[Series] = []
    scores: list[Scored] = []
    for run in all_runs:
        path, begun = workdir / run.name / SUMMARY, workdir / run.name / "config.json"
        settings = of_point((run.config.get(run.model) or ConfigDict()).to_dict(), 0)
        if path.exists():
            summaries[run.name] = read_json(path)
            settings = summaries[run.name]["settings"]
        started = begun.exists() and "start" in read_json(begun)
        known = series_of(run.model, settings, started)
        series += known
        if run.name in summaries:
            scores.append((run.dataset, run.training, read_scores(summaries[run.name], known)))
    data = []
    for dataset, training in {run.dataset: run.training for run in all_runs}.items():
        if (path := workdir / dataset / DATA).exists():
            content = {"dataset": dataset} | read_json(path)
            scores.append((dataset, training, read_scores(content)))
            data.append({k: v for k, v in content.items() if k != "tests"})
    check_names(added, {one.name: None for one in series} | BASELINES)
    scores += [(all_runs[0].dataset, SINGLE.trainings[0], rows) for rows in added]
    finished = summaries.values()
    results = {
        "name": config["name"],
        "scale": scale,
        **table(experiment, scores, series),
        "data": data,
        "models": _models(all_runs, summaries),
        "runs": [{"name": run.name, "dataset": run.dataset, "model": run.model,
                  **_state(workdir / run.name)} for run in all_runs],
        "claims": {} if scale == "smoke" else verdicts(experiment.claims, compared(scores)),
        "note": experiment.note,
        "versions": next((one["versions"] for one in finished), {}),
        "devices": sorted({one["device"] for one in finished}),
        "wall_seconds": round(sum(one["seconds"] for one in finished), 2),
    }  # fmt: skip
    return results, scores


def table(
    experiment: Experiment, scores: Sequence[Scored], series: Iterable[Series] = ()
) -> dict[str, Any]:
    """Returns the columns and the rows of the results, as described above. The given series have
    rows even if they are not measured."""
    if experiment is SINGLE and any(r.task.startswith("b") for *_, rows in scores for r in rows):
        experiment = PATHS
    compares = not experiment.published and experiment.column_names[2] == "model"
    known = {one.name: one for one in series}
    for *_, of_run in scores:
        for row in of_run:
            if compares or row.series.kind not in (*BESIDE, "baseline"):
                known.setdefault(row.series.name, row.series)
    models = list(dict.fromkeys(one.model for one in known.values()))  # in the order of their runs
    ordered = sorted(
        known.values(), key=lambda one: (one.kind == "baseline", models.index(one.model))
    )
    rows = _measured_rows(experiment, scores, ordered)
    rows += averages(experiment, ordered, rows)
    return {
        "columns": list(experiment.column_names),
        "rows": rows + list(_published_rows(experiment, rows)),
    }


def _measured_rows(
    experiment: Experiment, scores: Sequence[Scored], series: Sequence[Series]
) -> list[dict[str, Any]]:
    """One row for each cell of a series, also for cells that are not measured."""
    found = measured_cells(scores)
    measured = {metric: measure_all(found, metric) for metric in METRICS}
    keys: dict[Key, tuple[Series, Sequence[str]]] = {}
    for training in experiment.trainings:
        known = dict.fromkeys(row.task for _, t, rows in scores if t is training for row in rows)
        of_training = training.cells(known)
        keys |= {with_series(key, one.name): (one, names)
                 for one in series for key, names in of_training.items()}  # fmt: skip
    rows = []
    for key, (one, names) in keys.items():
        runs = found.get(key, [])
        if runs or one.kind != "baseline":
            tested = list(dict.fromkeys(row.task for run in runs for row in run)) or names
            of_cell = {metric: of_all[key] for metric, of_all in measured.items() if key in of_all}
            row = cell_row(experiment.column_names, key, one, tested, of_cell)
            rows.append(row | {"unmapped": sum(test.unmapped for run in runs for test in run)})
    return rows


def cell_row(
    columns: Sequence[str],
    key: Key,
    series: Series,
    tests: Sequence[str] = (),
    metrics: Mapping[str, Measured] = MappingProxyType({}),
) -> dict[str, Any]:
    """Returns a row of the results, given the metrics of its cell."""
    return dict(zip(columns, key, strict=True)) | {
        "name": series.name, "kind": series.kind, "of": series.model, "given": series.given,
        "task": ",".join(tests),
        **(asdict(metrics["accuracy"]) if metrics else dict.fromkeys(MEASURED)),
        "metrics": {
            name: {"mean": found.accuracy, "stderr": found.stderr, "low": found.low,
                   "high": found.high, "replicas": found.accuracies}
            for name, found in metrics.items() if name != "accuracy"
        },
        "average": False, "unmapped": 0,
    }  # fmt: skip


def averages(
    experiment: Experiment, series: Sequence[Series], rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Returns rows of means over cells, once all of them are measured. They have no errors: the
    cells share replicas and are not independent."""
    columns = experiment.column_names
    accuracy = {tuple(row[name] for name in columns): row["accuracy"] for row in rows}
    found = []
    for (panel, x), average in experiment.averages.items():
        for one in series:
            row = cell_row(columns, (panel, x, one.name), one) | {"average": True}
            values = [accuracy.get((*cell, one.name)) for cell in average.cells]
            if None not in values:
                row["accuracy"] = float(np.mean(np.array(values)))
            found.append(row)
    return found


def _published_rows(
    experiment: Experiment, rows: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Published accuracies of the cells of these rows, and the references of the experiment."""
    columns = experiment.column_names

    def row(key: Key, series: Series, accuracy: Accuracy, **more: Any) -> dict[str, Any]:
        low, high = published_interval(accuracy)
        values = {"accuracy": accuracy.mean, "stderr": accuracy.error, "low": low, "high": high}
        return cell_row(columns, key, series) | values | more

    published = dict(experiment.published)
    for (panel, x), average in experiment.averages.items():
        for model, mean in average.published.items():
            published[panel, x, model] = Accuracy(mean, None)
    for key in dict.fromkeys(tuple(row[name] for name in columns) for row in rows):
        if key in published:
            model = key[columns.index("model")]
            yield row(key, Series(model, "published", model), published[key])
    for panel, one, shown in experiment.references:
        series = Series(one.label, "published", one.model, one.given)
        for x, accuracy in one.by_k.items():
            key = panel, x, one.label
            yield row(key, series, accuracy, source=str(one.source), shown=shown)


def with_series(key: Key, series: str) -> Key:
    """Returns the key of a training for a series."""
    panel, x, last = (series if part == MODEL else part for part in key)
    return panel, x, last


def measured_cells(scores: Iterable[Scored]) -> dict[Key, list[list[Score]]]:
    """Returns the scores of each run that fills a cell of the table."""
    found: defaultdict[Key, list[list[Score]]] = defaultdict(list)
    for _, training, of_run in scores:
        by_name = {(row.series.name, row.task): row for row in of_run}
        of_key = training.cells(dict.fromkeys(row.task for row in of_run))
        for series in dict.fromkeys(row.series.name for row in of_run):
            for key, names in of_key.items():
                if rows := [by_name[series, t] for t in names if (series, t) in by_name]:
                    found[with_series(key, series)].append(rows)
    return found


def compared(scores: Sequence[Scored]) -> Measurements:
    """Returns the measured cells of models, for comparisons between cells. If all cells have tests
    of some lengths k in common, only those are counted: released test files have k = 2 on the
    diagonal of table 2 alone."""
    found = measured_cells((name, training, [row for row in rows if row.series.kind == "model"])
                           for name, training, rows in scores)  # fmt: skip
    lengths = [{_length(row) for run in of_key for row in run} for of_key in found.values()]
    common = set.intersection(*lengths) if lengths else set()
    for key, of_key in found.items():
        shared = [[row for row in run if _length(row) in common] for run in of_key]
        found[key] = shared if all(shared) else of_key
    return measure_all(found)


def _length(row: Score) -> str:
    """The clause length k of a test T.K, as text."""
    return row.task.partition(".")[2]


def _models(all_runs: Sequence[Run], summaries: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Size, length and speed of the training of each model with a finished run, and the settings of
    its first run."""
    by_model: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for run in all_runs:
        if run.name in summaries:
            by_model[run.model][run.name] = summaries[run.name]
    models = {}
    for model, of_model in by_model.items():
        first, *_ = found = list(of_model.values())
        speeds = [one["stories_per_second"] for one in found]
        models[model] = {
            "parameters": first["parameters"],
            "replicas": sum(one["replicas"] for one in found),
            "epochs": max(one["epochs"] for one in found),
            "dev_accuracy": float(np.mean([x for one in found for x in one["dev_accuracy"]])),
            "seconds": round(sum(one["seconds"] for one in found), 2),
            "stories_per_second": round(float(np.median(speeds))),
            "diverged": [
                f"Replica {replica} of {name} diverged in epoch {epoch} (non-finite loss); the "
                "state before that epoch is evaluated."
                for run, one in of_model.items()
                for name, epochs in _diverged(run, one)
                for replica, epoch in enumerate(epochs)
                if epoch
            ],
            "settings": first["settings"],
        }
        if "sweep" in first:
            models[model]["sweep"] = first["sweep"]
    return models


def _diverged(run: str, summary: Mapping[str, Any]) -> Iterator[tuple[str, list[int]]]:
    """Yields the name and the epochs of divergence of a run, or of each point of its sweep."""
    for point in summary.get("sweep", {}).get("points", [summary]):
        yield point.get("name", run), point["diverged_epochs"]


def _state(folder: Path) -> dict[str, str]:
    if (folder / SUMMARY).exists():
        return {"state": "finished"}
    reason = failure(folder)
    return {"state": "failed", "error": reason} if reason else {"state": "not run"}


def failure(folder: Path) -> str:
    """Returns why the run in this folder failed, one line; empty if it did not."""
    error = folder / ERROR
    return error.read_text(errors="replace").partition("\n")[0] if error.exists() else ""


def verdicts(claims: Claims, cells: Measurements) -> dict[str, dict[str, list[str]]]:
    """Returns question -> each of `VERDICTS` -> statements. A claim with a fault counts as not
    measured, so that its report is not lost, and says why."""
    found: dict[str, dict[str, list[str]]] = {}
    for question, of_question in claims.items():
        found[question] = {word: [] for word in VERDICTS}
        for statement, judge in of_question.items():
            try:
                verdict = judge(cells).verdict
            except KeyError:
                verdict = "not measured"
            except Exception as error:
                verdict, statement = "not measured", f"{statement} (fault: {one_line(error)})"
            found[question][verdict].append(statement)
    return found
