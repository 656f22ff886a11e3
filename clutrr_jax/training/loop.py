"""Training of one model of a run: train, resume from the last checkpoint, predict the tests.

The folder of a model holds `checkpoints/`, `metrics.jsonl` (a line per epoch), `tensorboard/` if it
was asked for, and, once the model is finished, `predictions.csv`, the predictions of each variant
of the model, `attention.npz` and `extracted.npz` for models that have them, and `model.json`.
"""

import json
import math
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx
from tqdm import tqdm

from clutrr_jax.data.prepare import Prepared
from clutrr_jax.devices import device_name
from clutrr_jax.evaluation.attention import write_attention
from clutrr_jax.evaluation.extraction import write_extracted
from clutrr_jax.evaluation.frozen_states import with_states
from clutrr_jax.evaluation.predictions import Predictions, prediction_file, write_predictions
from clutrr_jax.models import MODELS
from clutrr_jax.models.common import EntityVectors
from clutrr_jax.models.functional import ModelDef, check_methods
from clutrr_jax.models.pretrained.folder import find_folder, read_config
from clutrr_jax.settings import train_settings
from clutrr_jax.training import distributed, preemption
from clutrr_jax.training.checkpoints import Checkpoints
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.state import TrainState, replica_model
from clutrr_jax.training.tensorboard import Scalars
from clutrr_jax.training.trainer import Metrics, Trainer
from generator.errors import InputError
from generator.files import write_text


def check_model(name: str, config: Any, data: Prepared) -> None:
    """Builds a model without its arrays.

    Raises:
      InputError: a setting of the model, a file that it needs, or the signature of an optional
        method is wrong.
    """
    spec, sizes = MODELS[name], data.sizes
    try:
        if spec.kind == "states":
            sizes = replace(sizes, states=read_config(find_folder(config[name].folder)).hidden_size)
        model = nnx.eval_shape(lambda: spec.model(config[name], sizes, rngs=nnx.Rngs(0)))
        check_methods(model)
        policy = config[name].train.get("entities") or config.train.get("entities")
        if spec.entity_vectors and policy and not nnx.state(model, EntityVectors):
            raise InputError(
                f'train.entities "{policy}": no effect, the model has no vectors of people; '
                "expected MODEL.train.entities of others"
            )
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def run_model(name: str, config: Any, data: Prepared, folder: Path) -> None:
    """Trains and tests one model of the registry, unless its folder says that it is finished.

    Every host calls this; the first one alone reads and writes the folder.

    Args:
      name: of the model.
      config: settings of the run.
      data: train and test stories.
      folder: of the model.
    """
    finished = folder / "model.json"
    if distributed.any_host(distributed.is_primary() and finished.exists()):
        if distributed.is_primary():
            print(f"{name}: trained before ({finished})", flush=True)
        return
    if distributed.any_host(preemption.requested()):
        preemption.exit_resumable()
    spec, train = MODELS[name], train_settings(config, name)
    replicas = Replicas(train.replicas, config.seed, train.microbatches)
    try:
        if spec.kind == "states":
            data = with_states(data, config[name])
        trainer = Trainer(spec, config[name], train, data, replicas)
        if not trainer.dev_stories:
            raise InputError(
                f"train.dev_fraction {train.dev_fraction}: none of {len(data.train)} train stories "
                "is a dev story, expected a larger fraction"
            )
        state = trainer.init()
    except InputError as error:  # of a setting of the model, or a train setting
        raise InputError(f"{name}: {error}") from None
    if distributed.is_primary():
        folder.mkdir(parents=True, exist_ok=True)
    with closing(trainer):
        state, history = train_model(name, trainer, state, folder, config.tensorboard)
    _evaluate(trainer, state, data, folder)
    selected_epochs = trainer.selected_epochs(state)
    diverged_epochs = trainer.replicas.gather(state.diverged_epoch).tolist()
    if distributed.is_primary():
        seconds = [line["seconds"] for line in history]
        summary = {
            "parameters": sum(math.prod(p.shape[1:]) for p in jax.tree.leaves(state.params)),
            "epochs": len(history),
            "replicas": train.replicas,
            "seconds": round(sum(seconds), 2),
            # The median epoch, since the first one is mostly compilation.
            "stories_per_second": round(trainer.stories_per_epoch / float(np.median(seconds))),
            "device": device_name(),
            "settings": config[name].to_dict() | {"train": train.to_dict()},
            "selected_epochs": selected_epochs,
            "diverged_epochs": diverged_epochs,
            "dev_accuracy": [
                history[max(epoch, 1) - 1]["dev_accuracy"][replica]
                for replica, epoch in enumerate(selected_epochs)
            ],
        }
        write_text(finished, json.dumps(summary, indent=1) + "\n")


def train_model(
    name: str,
    trainer: Trainer,
    state: TrainState,
    folder: Path,
    tensorboard: bool,
) -> tuple[TrainState, list[dict[str, Any]]]:
    """Trains until the last epoch, or until no replica improves any more.

    Args:
      name: of the model, for the progress bar.
      trainer: model, data and replicas.
      state: before the first epoch. That of the last checkpoint replaces it.
      folder: of the model.
      tensorboard: whether to write TensorBoard events.

    Returns:
      The state after the last epoch, and the lines of `metrics.jsonl`.
    """
    checkpoints = Checkpoints(folder / "checkpoints")
    start, state = checkpoints.restore(state) or (0, state)
    is_writer = distributed.is_primary()
    metrics_file = folder / "metrics.jsonl"
    history = _truncate_metrics(metrics_file, start) if is_writer else []
    scalars = Scalars(folder / "tensorboard", start + 1) if tensorboard and is_writer else None
    saved_at = time.monotonic()
    ended = start > 0 and trainer.has_stopped(state, start)
    bar = tqdm(
        desc=name,
        initial=start,
        total=trainer.epochs,
        unit="epoch",
        file=sys.stderr,
        disable=ended or not is_writer,
    )
    for epoch in () if ended else range(start + 1, trainer.epochs + 1):
        began = time.perf_counter()
        state, metrics = trainer.epoch(state, epoch)
        line = _metrics_line(epoch, metrics, time.perf_counter() - began)
        if trainer.resampled:
            line["waited"] = round(trainer.resampled.waited, 4)  # seconds, for the stories
        history.append(line)
        speed = trainer.stories_per_epoch / line["seconds"]
        diverged = trainer.replicas.gather(state.diverged_epoch)
        if is_writer:
            with metrics_file.open("a") as file:
                file.write(json.dumps(line) + "\n")
            _report(name, bar, line, speed, diverged)
        bar.update()
        if scalars:
            scalars.write(line, trainer.train.learning_rate, speed)
        due = time.monotonic() - saved_at > 60 * trainer.train.checkpoint_minutes
        stop = distributed.any_host(preemption.requested())
        ended = trainer.has_stopped(state, epoch)
        if ended or stop or distributed.any_host(due and is_writer):
            checkpoints.save(epoch, state)
            saved_at = time.monotonic()
        if stop:
            preemption.exit_resumable()
        if ended:
            break
    bar.close()
    if scalars:
        scalars.close()
    return state, history


def _metrics_line(epoch: int, metrics: Metrics, seconds: float) -> dict[str, Any]:
    return {
        "epoch": epoch,
        "seconds": round(seconds, 4),
        "loss": [round(float(x), 6) if np.isfinite(x) else None for x in metrics.loss],
        "dev_accuracy": [round(float(x), 6) for x in metrics.dev_accuracy],
        "dev_loss": [round(float(x), 6) if np.isfinite(x) else None for x in metrics.dev_loss],
    }


def _report(name: str, bar: tqdm, line: dict[str, Any], speed: float, diverged: np.ndarray) -> None:
    """Shows the metrics of an epoch in the progress bar, and the replicas that diverged in it."""
    values = {
        "loss": f"{np.mean([x for x in line['loss'] if x is not None] or np.nan):.3f}",
        "dev": f"{np.mean(line['dev_accuracy']):.3f}",
        "stories": f"{speed:,.0f}/s",
    }
    if "waited" in line:
        values["waited"] = f"{line['waited'] / line['seconds']:.1%}"
    bar.set_postfix(values, refresh=False)
    for replica in np.flatnonzero(diverged == line["epoch"]):
        tqdm.write(
            f"{name}: replica {replica} diverged in epoch {line['epoch']} (non-finite loss); it "
            "keeps its state before that epoch",
            file=sys.stderr,
        )


def _truncate_metrics(path: Path, last: int) -> list[dict[str, Any]]:
    """Lines of `metrics.jsonl` up to epoch `last`; later ones are removed from the file.

    Raises:
      InputError: one of these lines is missing.
    """
    lines = []
    for text in path.read_text(errors="replace").splitlines() if path.exists() else []:
        try:
            line = json.loads(text)
            line |= {"epoch": int(line["epoch"]), "seconds": float(line["seconds"])}
            lines.append(line | {"dev_accuracy": [float(x) for x in line["dev_accuracy"]]})
        except (ValueError, KeyError, TypeError, RecursionError):  # last line of a killed run
            break
    lines = [line for line in lines if line["epoch"] <= last]
    if [line["epoch"] for line in lines] != list(range(1, last + 1)):
        raise InputError(
            f"{path}: damaged, expected a line for each epoch up to {last}, the epoch of the "
            "last checkpoint; remove the folder to train again"
        )
    if path.exists():
        write_text(path, "".join(json.dumps(line) + "\n" for line in lines))
    return lines


def _evaluate(trainer: Trainer, state: TrainState, data: Prepared, folder: Path) -> None:
    """Writes predictions, attention and extracted graphs of the test stories."""
    model, test = trainer.model, data.test_stories
    for variant in ("", *model.spec.variants):
        own = model
        if variant:
            spec = model.spec._replace(model=model.spec.variants[variant])
            own = ModelDef(spec, model.config, model.sizes, model.learn_entities)
        relation, probability = trainer.predict(state.tested_params, state.buffers, test, own)
        last = relation
        if trainer.train.selection != "last":
            last, _ = trainer.predict(state.ema_params, state.buffers, test, own)
        if distributed.is_primary():
            predictions = Predictions(relation, last, probability)
            write_predictions(folder / prediction_file(variant), predictions, data.test)
    if distributed.is_primary():
        first = replica_model(model, state)
        write_attention(folder, first, model.spec.kind, test)
        write_extracted(folder, first, model.spec.kind, data)
