"""Runs: one model trained on one data set.

The folder of an experiment holds, for each data set, `data/` (the stories, if they
are generated), `data.json` (their description) and one folder per run, MODEL. The folder of a run
holds `config.json` (its resolved settings and the fingerprint of the stories) and what
`clutrr_jax.training` writes. The same command resumes what was interrupted.
"""

import json
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import format_exc
from typing import Any

import jax
import numpy as np
from flax.traverse_util import flatten_dict
from ml_collections import ConfigDict

from clutrr_jax.cli import FolderLocked, folder_lock
from clutrr_jax.data.copies import count_copies
from clutrr_jax.data.prepare import GENERATE, Prepare, Prepared, data_sets
from clutrr_jax.data.vocabulary import VOCABULARY, write_vocabulary
from clutrr_jax.devices import available_cores
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.scores import score_baselines
from clutrr_jax.experiment import DATA, ERROR, JOB_ID, SUMMARY, Run
from clutrr_jax.models.check import check_model
from clutrr_jax.training import distributed, preemption
from clutrr_jax.training.loop import run_model
from clutrr_jax.training.writers import NOTHING, Own
from generator.errors import InputError, one_line
from generator.files import cache_folder, read_json, write_text
from generator.relations.algebras import write_algebra

LENGTHS = ("train.epochs", "train.steps", "train.patience")  # a training goes on if they grow
MARKS = {".lock", ERROR, JOB_ID}  # files in the folder of a run that has not started


def configure_jax() -> None:
    """Caches compiled programs, and uses all CPU cores if JAX has not started yet."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    with suppress(RuntimeError):  # JAX has started
        # One CPU device per core: replicas are distributed over devices.
        jax.config.update("jax_num_cpu_devices", available_cores())


def run_all(
    selected: Sequence[Run],
    workdir: Path,
    prepare: Prepare,
    start: tuple[Any, Any] | None = None,
    own: Own = NOTHING,
) -> dict[str, str]:
    """Trains and tests the unfinished ones of some runs, one after the other. Returns {name of a
    failed run: reason}: the others go on. An error that concerns all of them is raised."""
    failed: dict[str, str] = {}

    @contextmanager
    def failing(concerned: list[Run]) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:  # of stdout
            raise
        except Exception as error:
            if len(concerned) == len(selected) or jax.process_count() > 1:
                raise
            if isinstance(error, FolderLocked):
                say(f"Skipped: {error}")
                return
            for run in concerned:
                failed[run.name] = record_failure(workdir / run.name, error)
                print(f"failed: {run.name}: {failed[run.name]}", file=sys.stderr, flush=True)

    for _, group in groupby(selected, key=lambda run: run.dataset):
        of_data_set = list(group)
        unfinished = [run for run in of_data_set if not is_finished(run, workdir / run.name, start)]
        if not unfinished:
            continue
        with failing(of_data_set):
            with preemption.at_once():
                data, truth = _read(unfinished, workdir, prepare)
            for run in unfinished:
                say(f"\n{run.name}" if len(selected) > len(of_data_set) else "")
                with failing([run]):
                    _train_and_test(run, workdir / run.name, data, truth, start, own)
    return failed


def describe(data: Prepared, truth: GroundTruth) -> dict[str, Any]:
    """Returns the content of `data.json`: sizes, fingerprint, and scores of the baselines."""
    return {
        "name": data.name,
        "train_rows": len(data.train),
        "test_rows": len(data.test),
        "fingerprint": data.fingerprint,
        "copies": count_copies(data.train, data.test),
        "tests": [row.to_json() for row in score_baselines(truth)],
    }


def is_finished(run: Run, folder: Path, start: tuple[Any, Any] | None) -> bool:
    """Returns whether a run is finished and does not go on, and prints it. Collective."""
    goes_on = distributed.is_primary() and check_run_folder(folder, identity(run, start))
    summary = folder / SUMMARY
    found = distributed.any_host(distributed.is_primary() and summary.exists() and not goes_on)
    if found:
        say(f"{run.name}: trained before ({summary})")
    return found


def record_failure(folder: Path, error: Exception) -> str:
    """Writes why a run failed into its folder, and returns it as one line."""
    reason, trace = one_line(error), ""
    if not isinstance(error, InputError):
        reason += f" (traceback in {folder / ERROR})"
        trace = format_exc()
    write_text(folder / ERROR, f"{reason}\n{trace}")
    return reason


def _read(unfinished: list[Run], workdir: Path, prepare: Prepare) -> tuple[Prepared, GroundTruth]:
    """The data set of these runs and its ground truth, and checks that the models fit."""
    first = unfinished[0]
    folder = workdir / first.dataset
    if not distributed.is_primary():
        with TemporaryDirectory() as temporary:
            data = prepare(first.config, Path(temporary))
            truth = GroundTruth(data.test, data.train)
    else:
        with folder_lock(folder, wait=True):
            clear_old_stories(folder, first.config)
            data = prepare(first.config, folder / "data")
            truth = GroundTruth(data.test, data.train)
            check_stories(folder, data)
            description = describe(data, truth) | {"generate": generated(first.config)}
            write_text(folder / DATA, json.dumps(description, indent=1) + "\n")
    say(f"Read {len(data.train):,} train and {len(data.test):,} test stories.")
    distributed.barrier("data")
    for run in unfinished:
        distributed.assert_same(identity(run) | {"stories": data.stories})
        check_model(run.model, run.config, data)
    return data, truth


def _train_and_test(
    run: Run,
    folder: Path,
    data: Prepared,
    truth: GroundTruth,
    start: tuple[Any, Any] | None,
    own: Own = NOTHING,
) -> None:
    if run.config[run.model].get("reasoner", "rules") != "rules" and not data.sizes.relation_words:
        say(
            f"{run.model}: no English word for a relation in the train stories; to learn what "
            f"words mean, it needs the rules: --config.{run.model}.reasoner=rules"
        )

    def begin() -> None:
        settings = identity(run, start) | {"stories": data.stories}
        (folder / SUMMARY).unlink(missing_ok=True)
        write_text(folder / "config.json", json.dumps(settings, indent=1) + "\n")
        write_vocabulary(folder / VOCABULARY, data.vocabulary)
        write_algebra(folder, data.test.algebra)

    with folder_lock(folder) if distributed.is_primary() else nullcontext():
        if distributed.is_primary():
            (folder / ERROR).unlink(missing_ok=True)
        if not is_finished(run, folder, start):  # another process may have finished it
            summary = run_model(run.model, run.config, data, truth, folder, start, begin, own)
            if distributed.is_primary():
                write_text(folder / SUMMARY, json.dumps(summary, indent=1) + "\n")
    distributed.barrier(f"end of {run.name}")


def say(text: str) -> None:
    """Prints on the first host only."""
    if text and distributed.is_primary():
        print(text, flush=True)


def identity(run: Run, start: tuple[Any, Any] | None = None) -> dict[str, Any]:
    """Returns the settings that determine the results of a run, by dotted name: all but how often
    it writes checkpoints. `start` is represented by a hash."""
    config = run.config
    train = asdict(config.train)
    del train["checkpoint_minutes"]
    settings = {"model": run.model, "data": config.data, "seed": config.seed,
                run.model: config[run.model].to_dict(), "train": train}  # fmt: skip
    settings["generate"] = generated(config) or {}
    if start:
        leaves = map(np.asarray, jax.tree.leaves(start))
        settings["start"] = sha256(b"".join(leaf.tobytes() for leaf in leaves)).hexdigest()[:16]
    # Lists instead of tuples, and of the values of a sweep.
    text = json.dumps(flatten_dict(settings, sep="."), default=lambda swept: swept.values)
    return json.loads(text)


def check_run_folder(folder: Path, settings: dict[str, Any]) -> bool:
    """Checks that a folder holds nothing, or the run with these settings or a shorter one. Returns
    whether it is a shorter one: this one goes on, even if it is finished.

    A run that ended before its first epoch, for example because of a wrong setting, leaves nothing
    to resume: its settings are replaced.
    """
    path = folder / "config.json"
    if not path.exists():
        for file in sorted(folder.glob("*")):
            if file.name not in MARKS:
                raise InputError(f"{file}: not of a run, expected another --workdir")
        return False
    before = read_json(path)
    is_run = {"model", "seed", "stories"} <= set(before)
    if is_run and not has_begun(folder):
        return False
    was, now = _lengths(before), _lengths(settings)
    for name in before | settings:
        old, new, is_length = before.get(name), settings.get(name), name in LENGTHS
        fits = was.get(name, 0) <= now.get(name, math.inf) if is_length else old == new
        if not fits and name != "stories":
            expected = "at least as long a training" if is_length else "the same settings"
            raise InputError(
                f"{path}: belongs to a run with another configuration: {name} was "
                f'"{old}", now "{new}"; expected {expected}, or another folder'
            )
    return was != now


def _lengths(settings: dict[str, Any]) -> dict[str, float]:
    """The settings of the length of a training that have an effect. A length in epochs and one in
    steps are compared by the training itself, see `train_model`."""
    names = LENGTHS[:1] if settings.get(LENGTHS[0]) else LENGTHS[1:]
    return {name: settings.get(name) or math.inf for name in names}  # patience 0: never stopped


def has_begun(folder: Path) -> bool:
    """Returns whether the run in this folder has finished an epoch, or has a checkpoint."""
    return (folder / "metrics.jsonl").exists() or (folder / "checkpoints").exists()


def check_stories(folder: Path, data: Prepared) -> None:
    """Raises InputError if a run in the folder of a data set has begun on other stories."""
    for path in folder.glob("*/config.json"):
        stories = read_json(path).get("stories")
        if has_begun(path.parent) and not data.is_of(path.parent, stories):
            raise InputError(
                f"{path}: belongs to a run on other stories, expected the same data, or another "
                "folder"
            )


def generated(config: ConfigDict) -> dict[str, Any] | None:
    """Returns the settings of generated stories; None if none are generated."""
    return json.loads(config.generate.to_json()) if GENERATE in data_sets(config.data) else None


def clear_old_stories(folder: Path, config: ConfigDict) -> None:
    """Removes stories that were generated with other settings, if no run has begun on them."""
    stories, description, settings = folder / "data", folder / DATA, generated(config)
    if settings is None or not stories.exists() or any(map(has_begun, folder.glob("*"))):
        return
    if description.exists():
        if read_json(description)["generate"] != settings:
            shutil.rmtree(stories)
    elif not (stories / "config.json").exists():
        for file in sorted(stories.glob("*")):
            raise InputError(f"{file}: not of a run, expected another --workdir")
