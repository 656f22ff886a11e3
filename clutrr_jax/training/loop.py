"""One model of a run: train it, going on from its last checkpoint, and predict the tests.

A model's folder holds `checkpoints/`, `metrics.jsonl` (a line per epoch), `tensorboard/` if it is
asked for, and, once it is done, `predictions.csv`, that of each variant of the model,
`attention.npz` if it has attention, `extracted.npz` if it extracts a graph, and `model.json`.
"""

import json
import platform
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from clutrr_jax.data.prepare import Prepared
from clutrr_jax.data.streaming import Streaming
from clutrr_jax.evaluation.attention import write_attention
from clutrr_jax.evaluation.extraction import write_extracted
from clutrr_jax.evaluation.metrics import Predictions, prediction_file, write_predictions
from clutrr_jax.models import MODELS
from clutrr_jax.models.pretrained.frozen_states import with_states
from clutrr_jax.training import distributed, preemption
from clutrr_jax.training.checkpoints import Checkpoints
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.settings import train_settings
from clutrr_jax.training.steps import Metrics, Programs, State, build, parameter_count, part_size
from clutrr_jax.training.tensorboard import Scalars
from generator.errors import InputError, at
from generator.files import check_shape

_EPOCH = {
    "epoch": int,
    "seconds": float,
    "loss": [object],
    "dev_accuracy": [object],
}  # a line of metrics.jsonl


def device_name() -> str:
    """What JAX found to run on, in words."""
    devices = jax.local_devices()
    count = jax.process_count()
    of_hosts = f", on each of {count} hosts" if count > 1 else ""
    if devices[0].platform != "cpu":
        kind = f"{devices[0].device_kind} ({devices[0].platform.upper()})"
        return f"{len(devices)} x {kind}{of_hosts}"
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cores = f"{len(devices)} core{'s' if len(devices) > 1 else ''}"
    return f"{cores} of {names[0] if names else platform.machine()} (CPU){of_hosts}"


def run_model(model: str, config: Any, data: Prepared, folder: Path) -> None:
    """Trains and tests one model of the registry; does nothing when that has been done. Of several
    hosts all train and test, and the first one alone reads and writes the folder.

    Args:
      model: its name.
      config: the whole run's.
      data: what to train and test on.
      folder: the model's own.
    """
    done = folder / "model.json"
    if distributed.any_of(distributed.first() and done.exists()):
        return
    if distributed.any_of(preemption.requested()):
        preemption.exit_resumable()
    spec, train = MODELS[model], train_settings(config, model)
    if spec.kind == "states":
        data = with_states(data, config[model])
    if distributed.first():
        folder.mkdir(parents=True, exist_ok=True)
    replicas = Replicas(train.replicas, config.seed, train.microbatches)
    with ExitStack() as stack:
        fresh, stories = None, data.train_stories
        trained = (
            int(len(data.train) * (1 - train.dev_fraction)) * train.replicas
        )  # stories in an epoch
        if data.fresh:
            part, pool = part_size(train, len(data.train)), data.sizes.entities
            fresh = stack.enter_context(
                closing(Streaming(spec.kind, data.fresh, stories, pool, part))
            )
            trained = len(data.train) * train.replicas
        try:
            programs = build(spec, config[model], train, data.sizes, stories, replicas, fresh)
        except InputError as error:  # a setting that the model cannot have
            raise InputError(f"{model}: {error}") from None
        state, seconds = _train(
            model, train, trained, programs, replicas, folder, fresh, config.tensorboard
        )

    said = {}
    for variant in ("", *spec.variants):
        if variant:
            other = spec._replace(model=spec.variants[variant])
            programs = build(other, config[model], train, data.sizes, data.train_stories, replicas)
        best, probability = programs.predict(state.best_params, state.other, data.test_stories)
        last, _ = programs.predict(state.average, state.other, data.test_stories)
        said[variant] = Predictions(*map(replicas.keep, (best, last, probability)))
    best_epochs, stopped, accuracy = map(
        replicas.keep, (state.best_epoch, state.stopped, state.best_accuracy)
    )
    if not distributed.first():
        return
    for variant, predictions in said.items():
        write_predictions(folder / prediction_file(variant), predictions, data.test)
    write_attention(folder, spec, config[model], data, state)
    write_extracted(folder, spec, config[model], data, state)
    summary = {
        "parameters": parameter_count(state.params),
        "epochs": train.epochs,
        "replicas": train.replicas,
        "best_epochs": best_epochs.tolist(),
        "diverged_epochs": stopped.tolist(),
        "dev_accuracy": accuracy.round(4).tolist(),
        "seconds": round(sum(seconds), 2),
        # Of the median epoch: the first one is mostly compilation.
        "stories_per_second": round(trained / float(np.median(seconds))),
        "device": device_name(),
    }
    partial = done.with_suffix(".part")
    partial.write_text(json.dumps(summary, indent=1) + "\n")
    partial.replace(done)


def _train(
    model: str,
    train: Any,
    trained: int,
    programs: Programs,
    replicas: Replicas,
    folder: Path,
    fresh: Streaming | None,
    tensorboard: bool,
) -> tuple[State, list[float]]:
    """All epochs that are left; the state after the last, and the seconds that each epoch took,
    the dev accuracy included."""
    checkpoints = Checkpoints(folder / "checkpoints")
    state = programs.init()
    restored = checkpoints.restore(state)
    first = 1
    if restored:
        first, state = restored[0] + 1, restored[1]
    metrics_file = folder / "metrics.jsonl"
    writes = distributed.first()
    history = _keep_epochs(metrics_file, before=first) if writes else []
    scalars = Scalars(folder / "tensorboard", first) if tensorboard and writes else None
    saved_at = time.monotonic()
    bar = tqdm(
        range(first, train.epochs + 1),
        desc=model,
        initial=first - 1,
        total=train.epochs,
        unit="epoch",
        file=sys.stderr,
        disable=first > train.epochs or not writes,
    )
    for epoch in bar:
        start = time.perf_counter()
        state, metrics = programs.epoch(state, epoch)
        line = _epoch_line(epoch, metrics, replicas, start)
        if fresh:
            line["waited"] = round(fresh.waited, 4)  # for the stories
        history.append(line)
        if writes:
            with metrics_file.open("a") as file:
                file.write(json.dumps(line) + "\n")
        speed = trained / line["seconds"]
        bar.set_postfix(
            loss=f"{np.mean([x for x in line['loss'] if x is not None] or np.nan):.3f}",
            dev=f"{np.mean(line['dev_accuracy']):.3f}",
            stories=f"{speed:,.0f}/s",
            **({"waited": f"{line['waited'] / line['seconds']:.1%}"} if fresh else {}),
        )
        for replica in np.flatnonzero((replicas.keep(state.stopped) == epoch) & writes):
            tqdm.write(f"{model}: in epoch {epoch} the loss of replica {replica} was no number; it "
                       "stays as it was before", file=sys.stderr)  # fmt: skip
        if scalars:
            scalars.write(line, train.learning_rate, speed)
        due = time.monotonic() - saved_at > 60 * train.checkpoint_minutes
        stop = distributed.any_of(preemption.requested())
        if epoch == train.epochs or stop or distributed.any_of(due and writes):
            checkpoints.save(epoch, state)
            saved_at = time.monotonic()
        if stop:
            preemption.exit_resumable()
    if scalars:
        scalars.close()
    return state, [line["seconds"] for line in history]


def _epoch_line(epoch: int, metrics: Metrics, replicas: Replicas, start: float) -> dict[str, Any]:
    loss, accuracy = replicas.keep(metrics.loss), replicas.keep(metrics.dev_accuracy)
    return {
        "epoch": epoch,
        "seconds": round(time.perf_counter() - start, 4),
        "loss": [round(float(x), 6) if np.isfinite(x) else None for x in loss],
        "dev_accuracy": [round(float(x), 6) for x in accuracy],
    }


def _keep_epochs(path: Path, before: int) -> list[dict[str, Any]]:
    """The lines of the epochs before the given one; the file is cut to them.

    Raises:
      InputError: not all of them are there.
    """
    lines = []
    for text in path.read_text(errors="replace").splitlines() if path.exists() else []:
        try:
            line = json.loads(text)
            check_shape(line, _EPOCH)
        except (ValueError, RecursionError):  # the last line of a killed run
            break
        if line["epoch"] < before:
            lines.append(line)
    if [line["epoch"] for line in lines] != list(range(1, before)):
        raise InputError(
            f"{at(path)}: damaged, expected a line for each epoch up to {before - 1}, that of the "
            "last checkpoint; remove the folder to train anew"
        )
    kept = "".join(json.dumps(line) + "\n" for line in lines)
    if path.exists() and path.read_text(errors="replace") != kept:
        partial = path.with_suffix(".part")
        partial.write_text(kept)
        partial.replace(path)
    return lines
