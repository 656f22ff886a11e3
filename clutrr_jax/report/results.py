"""The results of an experiment, `results.json`, computed from the folders of its runs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.data.copies import count_copies
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.metrics import Counts, Measured, measure, score
from clutrr_jax.evaluation.predictions import is_derived, with_derived
from clutrr_jax.evaluation.published import Accuracy, intervals_disjoint
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
from clutrr_jax.language_models.submissions import Submission, check_names
from clutrr_jax.models import MODELS
from generator.errors import one_line
from generator.files import read_json

REPORT_FILES = (
    "results.json", "results.md", "curve.png", "report.html", "results.csv", "results.tex",
    "curve.pdf", "curve.svg",
)  # fmt: skip
# Verdicts on a claim of a paper: see `clutrr_jax.evaluation.claims.Evidence`; or cells are missing.
VERDICTS = ("supported", "not supported", "undecided", "not measured")
MEASURED = tuple(field.name for field in fields(Measured))


def describe(data: Prepared, truth: GroundTruth) -> dict[str, Any]:
    """Returns the content of `data.json`: sizes, fingerprint, and counts of the baselines."""
    return {
        "name": data.name,
        "train_rows": len(data.train),
        "test_rows": len(data.test),
        "fingerprint": data.fingerprint,
        "copies": count_copies(data.train, data.test),
        "tests": [asdict(c) for c in score(truth.baselines, truth)],
    }


def read_counts(content: Mapping[str, Any]) -> list[Counts]:
    """Returns the counts in the content of `model.json` or `data.json`."""
    return [Counts(**test) for test in content["tests"]]


def collect(
    config: Mapping[str, Any],
    all_runs: Sequence[Run],
    workdir: Path,
    added: Sequence[tuple[Submission, GroundTruth]] = (),
) -> dict[str, Any]:
    """Returns the results of an experiment as a JSON object.

    Args:
      config: settings of the experiment, of which name, scale and experiment are used.
      all_runs, workdir: its runs and its folder.
      added: predictions of models that were trained elsewhere, with the truth of the test stories.
    """
    experiment, scale = config.get("experiment", SINGLE), config.get("scale", "")
    finished = {run.name: read_json(workdir / run.name / SUMMARY) for run in all_runs
                if (workdir / run.name / SUMMARY).exists()}  # fmt: skip
    training_of = {run.dataset: run.training for run in all_runs}
    data = {name: read_json(workdir / name / DATA) for name in training_of
            if (workdir / name / DATA).exists()}  # fmt: skip
    if experiment is SINGLE and any(
        test["task"].startswith("b") for content in data.values() for test in content["tests"]
    ):
        experiment = PATHS
    tests = [(run.training, read_counts(finished[run.name])) for run in all_runs
             if run.name in finished]  # fmt: skip
    compares = not experiment.published and experiment.column_names[2] == "model"
    if not compares:
        tests = [(t, [c for c in of_run if not is_derived(c.model)]) for t, of_run in tests]
    found = {run.model: dict.fromkeys(series_of(run.model)) for run in all_runs}
    for run, (_, of_run) in zip([r for r in all_runs if r.name in finished], tests, strict=True):
        found[run.model] |= dict.fromkeys(c.model for c in of_run)
    series = [name for of_model in found.values() for name in of_model]
    knowledge = dict(BASELINES)
    check_names([submission for submission, _ in added], [*series, *BASELINES])
    for submission, truth in added:
        counts = score_added(submission, truth)
        tests.append((SINGLE.trainings[0], counts))
        knowledge |= {c.model: submission.given for c in counts}
        series += dict.fromkeys(c.model for c in counts)
    if compares:
        tests += [(training_of[name], read_counts(content)) for name, content in data.items()]
        series += dict.fromkeys(c.model for content in data.values() for c in read_counts(content))
    rows = table_rows(experiment, tests, series)
    comparable = compared(tests, {run.model for run in all_runs})
    for run in all_runs:
        settings = finished.get(run.name, {}).get("settings", run.config.get(run.model))
        path, spec = workdir / run.name / "config.json", MODELS.get(run.model)
        started = path.exists() and "start" in read_json(path)
        for name in found[run.model]:
            _, _, variant = name.partition(": ")
            knowledge[name] = spec.given(settings, variant, started) if spec and settings else ""
    return {
        "name": config["name"],
        "scale": scale,
        "columns": experiment.column_names,
        "data": [{"dataset": n} | {k: v for k, v in content.items() if k != "tests"}
                 for n, content in data.items()],
        "models": models_summary(all_runs, finished),
        "runs": [_state(workdir, run, finished.get(run.name)) for run in all_runs],
        "series": [{"name": name, "baseline": name in BASELINES} for name in series],
        "given": knowledge,
        "rows": rows,
        "averages": averages(experiment, series, rows),
        "references": [_reference(*reference) for reference in experiment.references],
        "claims": {} if scale == "smoke" else verdicts(experiment.claims, comparable),
        "note": experiment.note,
        "versions": next((f["versions"] for f in finished.values()), {}),
        "devices": sorted({f["device"] for f in finished.values()}),
        "wall_seconds": round(sum(f["seconds"] for f in finished.values()), 2),
    }  # fmt: skip


def score_added(submission: Submission, truth: GroundTruth) -> list[Counts]:
    """Returns the counts of all series of a model that was trained elsewhere, on the stories that
    it was asked."""
    found = with_derived(submission.name, submission.predictions, submission.strict)
    return score(found, truth.select(submission.stories))


def series_of(model: str) -> list[str]:
    """Returns the series of a trained model: itself and its variants, "MODEL: VARIANT"."""
    variants = MODELS[model].variants if model in MODELS else ()
    return [model, *(f"{model}: {variant}" for variant in variants)]


def cells(training: Training, tests: Sequence[Counts]) -> Iterator[tuple[Key, list[Counts]]]:
    """Yields the cells of the table that the tests of a run fill, with their counts."""
    by_name = {(test.model, test.task): test for test in tests}
    of_key = training.cells(dict.fromkeys(test.task for test in tests))
    for series in dict.fromkeys(test.model for test in tests):
        for key, names in of_key.items():
            if found := [by_name[series, t] for t in names if (series, t) in by_name]:
                yield with_series(key, series), found


def with_series(key: Key, series: str) -> Key:
    """Returns the key of a training for a series."""
    panel, x, last = (series if part == MODEL else part for part in key)
    return panel, x, last


def measured_cells(
    tests: Iterable[tuple[Training, Sequence[Counts]]],
) -> dict[Key, list[list[Counts]]]:
    """Returns the counts of each run that fills a cell of the table."""
    found: defaultdict[Key, list[list[Counts]]] = defaultdict(list)
    for training, of_run in tests:
        for key, counts in cells(training, of_run):
            found[key].append(counts)
    return found


def table_rows(
    experiment: Experiment,
    tests: Sequence[tuple[Training, Sequence[Counts]]],
    series: Sequence[str],
) -> list[dict[str, Any]]:
    """Returns one row for each cell of the table, also for cells without a measured accuracy."""
    found = measured_cells(tests)
    keys: dict[Key, Sequence[str]] = {}
    for training in experiment.trainings:
        known = dict.fromkeys(c.task for t, of_run in tests if t is training for c in of_run)
        of_training = training.cells(known)
        keys |= {
            with_series(key, name): names for name in series for key, names in of_training.items()
        }
    rows = []
    for key, names in keys.items():
        of_key = found.get(key, [])
        measured = measure(of_key) if of_key else None
        tested = list(dict.fromkeys(c.task for of_run in of_key for c in of_run)) or names
        published = experiment.published.get(key)
        if measured or published or key[2] not in BASELINES:
            rows.append(table_row(experiment.column_names, key, tested, measured, published))
    return rows


def table_row(
    columns: Sequence[str],
    key: Key,
    tests: Sequence[str],
    measured: Measured | None,
    published: Accuracy | None = None,
) -> dict[str, Any]:
    """Returns a row of the results: its key, tests, accuracy, and comparison with the paper."""
    row: dict[str, Any] = dict(zip(columns, key, strict=True)) | {"task": ",".join(tests)}
    row |= asdict(measured) if measured else dict.fromkeys(MEASURED)
    return row | {
        "published": published._asdict() if published else None,
        "difference": measured.accuracy - published.mean if measured and published else None,
        "intervals_disjoint": bool(
            measured and published and intervals_disjoint(measured, published)
        ),
    }


def compared(tests: Sequence[tuple[Training, Sequence[Counts]]], models: set[str]) -> Measurements:
    """Returns the measured cells of models, for comparisons between cells.

    If all cells have tests of some lengths k in common, only those are counted: released test files
    have k = 2 on the diagonal of table 2 alone.
    """
    of_models = [(t, [c for c in of_run if c.model in models]) for t, of_run in tests]
    found = measured_cells(of_models)
    lengths = [{_length(c) for run in of_key for c in run} for of_key in found.values()]
    common = set.intersection(*lengths) if lengths else set()
    table = {}
    for key, of_key in found.items():
        shared = [[c for c in run if _length(c) in common] for run in of_key]
        table[key] = measure(shared if all(shared) else of_key)
    return table


def _length(counts: Counts) -> str:
    """The clause length k of a test T.K, as text."""
    return counts.task.partition(".")[2]


def averages(
    experiment: Experiment, series: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Returns rows of means over cells, once all of them are measured.

    They have no errors: the cells share replicas and are not independent.
    """
    accuracy = {tuple(row[name] for name in experiment.column_names): row["accuracy"]
                for row in rows}  # fmt: skip
    found = []
    for (panel, x), average in experiment.averages.items():
        for name in series:
            published = None
            if name in average.published:
                published = Accuracy(average.published[name], None)
            row = table_row(experiment.column_names, (panel, x, name), (), None, published)
            values = [accuracy.get((*cell, name)) for cell in average.cells]
            if None not in values:
                row["accuracy"] = float(np.mean(np.array(values)))
                if published:
                    row["difference"] = row["accuracy"] - published.mean
            found.append(row)
    return found


def models_summary(
    all_runs: Sequence[Run], finished: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Returns for each model with a finished run: size, length and speed of its training, and the
    settings of its first run."""
    found: dict[str, dict[str, Any]] = {}
    for model in dict.fromkeys(run.model for run in all_runs):
        of_model = {run.name: finished[run.name] for run in all_runs
                    if run.model == model and run.name in finished}  # fmt: skip
        if not of_model:
            continue
        first, *_ = summaries = list(of_model.values())
        found[model] = {
            "parameters": first["parameters"],
            "replicas": sum(s["replicas"] for s in summaries),
            "epochs": max(s["epochs"] for s in summaries),
            "dev_accuracy": float(np.mean([x for s in summaries for x in s["dev_accuracy"]])),
            "seconds": round(sum(s["seconds"] for s in summaries), 2),
            "stories_per_second": round(float(np.median([s["stories_per_second"]
                                                         for s in summaries]))),
            "diverged": [
                f"Replica {replica} of {name} diverged in epoch {epoch} (non-finite loss); the "
                "state before that epoch is evaluated."
                for name, s in of_model.items()
                for replica, epoch in enumerate(s["diverged_epochs"])
                if epoch
            ],
            "settings": first["settings"],
        }  # fmt: skip
    return found


def _state(workdir: Path, run: Run, summary: Mapping[str, Any] | None) -> dict[str, Any]:
    state = {"name": run.name, "dataset": run.dataset, "model": run.model}
    if summary:
        return state | {"state": "finished"}
    if reason := failure(workdir / run.name):
        return state | {"state": "failed", "error": reason}
    return state | {"state": "not run"}


def failure(folder: Path) -> str:
    """Returns why the run in this folder failed, one line; empty if it did not."""
    error = folder / ERROR
    return error.read_text(errors="replace").partition("\n")[0] if error.exists() else ""


def _reference(panel: Any, row: Any, shown: bool) -> dict[str, Any]:
    return {
        "panel": panel, "name": row.label, "series": row.model, "shown": shown,
        "source": str(row.source), "given": row.given,
        "values": {str(x): accuracy._asdict() for x, accuracy in row.by_k.items()},
    }  # fmt: skip


def verdicts(claims: Claims, table: Measurements) -> dict[str, dict[str, list[str]]]:
    """Returns question -> each of `VERDICTS` -> statements.

    A claim with a fault counts as not measured, so that its report is not lost, and says why.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for question, of_question in claims.items():
        found[question] = {word: [] for word in VERDICTS}
        for statement, judge in of_question.items():
            try:
                verdict = judge(table).verdict
            except KeyError:
                verdict = "not measured"
            except Exception as error:
                verdict, statement = "not measured", f"{statement} (fault: {one_line(error)})"
            found[question][verdict].append(statement)
    return found
