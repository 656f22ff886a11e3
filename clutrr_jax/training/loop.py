"""Training of one model: data, state, epochs, tests, summary.

The folder of a model holds `checkpoints/`, `metrics.jsonl` (a line per epoch), `tensorboard/` if it
was asked for, and, once the model is finished, `predictions.npz`, the predictions of each variant
of the model, `attention.npz` and `extracted.npz` for models that have them, and `model.json`.

Shapes: R replicas, S stories, C batches, B stories of a batch, M microbatches.
"""

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec
from tqdm import tqdm

from clutrr_jax.data.order import TrainBatches
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.data.vocabulary import VOCABULARY, write_vocabulary
from clutrr_jax.devices import device_name
from clutrr_jax.evaluation.frozen_states import with_states
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.predictions import Predictions
from clutrr_jax.evaluation.scores import score_run, series_of
from clutrr_jax.experiment import SUMMARY
from clutrr_jax.models import MODELS, Spec
from clutrr_jax.models.functional import ModelDef
from clutrr_jax.training import distributed, preemption
from clutrr_jax.training.checkpoints import Checkpoints
from clutrr_jax.training.inference import (
    REPLICA_BATCHES,
    Predictor,
    predict_all,
    write_outputs,
)
from clutrr_jax.training.replicas import REPLICA, REPLICATED, Replicas
from clutrr_jax.training.steps import (
    TrainState,
    create_optimizer,
    dev_metrics,
    init_state,
    is_trained,
    select_epoch,
    train_epoch,
)
from clutrr_jax.training.tensorboard import Scalars
from generator.algebras import write_algebra
from generator.errors import InputError
from generator.files import write_text

PACKAGES = ("jax", "flax", "optax", "jraph", "numpy", "orbax-checkpoint")
_MICROBATCHES = PartitionSpec("replica", None, "data")  # [R, steps, M, b]


def run_model(
    name: str,
    config: Any,
    data: Prepared,
    truth: GroundTruth,
    folder: Path,
    start: tuple[Any, Any] | None = None,
    begin: Callable[[], None] | None = None,
) -> None:
    """Trains and tests a model of the registry.

    Every host calls this; the first one alone reads and writes the folder.

    Args:
      name: of the model.
      config: settings of the run: `seed`, `tensorboard`, `train` and those of the model.
      data: train and test stories.
      truth: of the test stories.
      folder: of the model.
      start: parameters and buffers of all replicas to start from, see `Trainer.init`.
      begin: called by the first host after all checks, before it writes the first file.
    """
    if distributed.any_host(preemption.requested()):
        preemption.exit_resumable()
    train = config.train
    replicas = Replicas(train.replicas, config.seed, train.microbatches)
    try:
        if MODELS[name].encoder:
            data = with_states(data, config[name])
        trainer = Trainer(MODELS[name], config[name], train, data, replicas)
        if not trainer.batches.dev_count:
            raise InputError(
                f"train.dev_fraction {train.dev_fraction}: none of {len(data.train)} train stories "
                "is a dev story, expected a larger fraction"
            )
        state = trainer.init(start)
    except InputError as error:  # of a setting of the model, or a train setting
        raise InputError(f"{name}: {error}") from None

    def begin_files() -> None:
        if begin:
            begin()
        write_vocabulary(folder / VOCABULARY, data.vocabulary)
        write_algebra(folder, data.test.algebra)

    state, history = train_model(name, trainer, state, folder, config.tensorboard, begin_files)
    tested = predict_tests(name, trainer, state, data, folder)
    selected = trainer.selected_epochs(state)
    diverged = trainer.replicas.gather(state.diverged_epoch).tolist()
    if distributed.is_primary():
        seconds = [line["seconds"] for line in history]
        accuracy = [line["dev_accuracy"] for line in history]
        settings = config[name].to_dict() | {"train": asdict(train)}
        scores = score_run(series_of(name, settings, start is not None), tested, truth)
        summary = {
            "parameters": sum(math.prod(p.shape[1:]) for p in jax.tree.leaves(state.params)),
            "epochs": len(history),
            "replicas": train.replicas,
            "seconds": round(sum(seconds), 2),
            # The median epoch, since timings are noisy.
            "stories_per_second": round(trainer.stories_per_epoch / float(np.median(seconds))),
            "device": device_name(),
            "versions": {package: version(package) for package in PACKAGES},
            "tests": [row.to_json() for row in scores],
            "settings": settings,
            "selected_epochs": selected,
            "diverged_epochs": diverged,
            "dev_accuracy": [accuracy[max(epoch, 1) - 1][r] for r, epoch in enumerate(selected)],
        }
        write_text(folder / SUMMARY, json.dumps(summary, indent=1) + "\n")


def train_model(
    name: str,
    trainer: "Trainer",
    state: TrainState,
    folder: Path,
    tensorboard: bool,
    begin: Callable[[], None] | None = None,
) -> tuple[TrainState, list[dict[str, Any]]]:
    """Trains from the last checkpoint, if there is one, until the last epoch, or until no replica
    improves any more. Returns the state, and the lines of `metrics.jsonl`. The first host calls
    `begin` before it changes a file."""
    checkpoints = Checkpoints(folder / "checkpoints")
    epoch, state = checkpoints.restore(state) or (0, state)
    if epoch > trainer.epochs:
        raise InputError(
            f"{folder}: has trained {epoch} epochs, expected at least as many, now {trainer.epochs}"
        )
    is_writer = distributed.is_primary()
    if begin and is_writer:
        begin()
    metrics_file = folder / "metrics.jsonl"
    history = truncate_metrics(metrics_file, epoch) if is_writer else []
    scalars = Scalars(folder / "tensorboard", epoch + 1) if tensorboard and is_writer else None
    saved_at = time.monotonic()
    ended = epoch > 0 and trainer.has_stopped(state, epoch)
    bar = tqdm(
        desc=name,
        initial=epoch,
        total=trainer.epochs,
        unit="epoch",
        file=sys.stderr,
        disable=ended or not is_writer,
    )
    if not ended:
        bar.set_postfix_str("compiling")
        trainer.compile(state, epoch + 1)
        bar.set_postfix_str("")
    while not ended:
        epoch, began = epoch + 1, time.perf_counter()
        state, metrics = trainer.epoch(state, epoch)
        line: dict[str, Any] = {"epoch": epoch, "seconds": round(time.perf_counter() - began, 4)}
        line |= {key: _rounded(values) for key, values in metrics.items()}
        history.append(line)
        speed = trainer.stories_per_epoch / line["seconds"]
        diverged = trainer.replicas.gather(state.diverged_epoch)
        if is_writer:
            with metrics_file.open("a") as file:
                file.write(json.dumps(line) + "\n")
            _report(name, bar, line, speed, diverged)
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
    bar.close()
    if scalars:
        scalars.close()
    return state, history


def _rounded(values: np.ndarray) -> list[float | None]:
    return [round(float(x), 6) if np.isfinite(x) else None for x in values]


def _report(name: str, bar: tqdm, line: dict[str, Any], speed: float, diverged: np.ndarray) -> None:
    """Shows the metrics of an epoch in the progress bar, and the replicas that diverged in it."""
    values = {
        "loss": f"{np.mean([x for x in line['loss'] if x is not None] or np.nan):.3f}",
        "dev": f"{np.mean(line['dev_accuracy']):.3f}",
        "stories": f"{speed:,.0f}/s",
    }
    bar.set_postfix(values, refresh=False)
    bar.update()
    for replica in np.flatnonzero(diverged == line["epoch"]):
        tqdm.write(
            f"{name}: replica {replica} diverged in epoch {line['epoch']} (non-finite loss); it "
            "keeps its state before that epoch",
            file=sys.stderr,
        )


def truncate_metrics(path: Path, last: int) -> list[dict[str, Any]]:
    """Lines of `metrics.jsonl` up to epoch `last`; later ones are removed from the file.

    Raises:
      InputError: one of these lines cannot be read.
    """
    texts = path.read_text(errors="replace").splitlines()[:last] if path.exists() else []
    try:
        lines = [json.loads(text) for text in texts]
        if [line["epoch"] for line in lines] != list(range(1, last + 1)):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{path}: damaged, expected a line for each epoch up to {last}, the epoch of the "
            "last checkpoint; remove the folder to train again"
        ) from None
    if path.exists():
        write_text(path, "".join(text + "\n" for text in texts))
    return lines


def predict_tests(
    name: str, trainer: "Trainer", state: TrainState, data: Prepared, folder: Path
) -> dict[str, Predictions]:
    """Predicts the test stories and writes the outputs, see `training.inference`."""
    predict, tested, buffers = trainer.predict, state.tested_params, state.buffers
    found = predict_all(name, predict, tested, state.ema_params, buffers, data.test_stories)
    if distributed.is_primary():
        kind, first = trainer.model.spec.kind, predict.first(tested, buffers)
        write_outputs(folder, name, found, kind, first, data)
    return found


class Trainer:
    """Model and data of a training, with the compiled programs of its replicas.

    Args:
      spec: entry of the model in the registry.
      config: settings of the model.
      train: train settings, see clutrr_jax/settings.py.
      data: train stories.
      replicas: their number and placement.
    Raises:
      InputError: a wrong train setting.
    """

    def __init__(self, spec: Spec, config: Any, train: Any, data: Prepared, replicas: Replicas):
        self.train, self.replicas = train, replicas
        self.batches = batches = TrainBatches(
            spec.kind, data, train, replicas.seeds, replicas.devices_per_group
        )
        self.stories_per_epoch = batches.train_count * replicas.count  # of all replicas together
        # A run of a given number of epochs is never stopped early.
        self.epochs = train.epochs or math.ceil(train.steps / batches.steps)
        self.patience = 0 if train.epochs else math.ceil(train.patience / batches.steps)
        self._dev_rows = replicas.place(batches.dev_rows, REPLICA_BATCHES)
        self._stories = replicas.place(data.train_stories, REPLICATED)
        self._seeds = replicas.place(replicas.seeds)
        self.model = ModelDef(spec, config, data.sizes, train.entities == "learned")
        self.optimizer = create_optimizer(train, config, data.sizes.encoder)
        static = self.model, self.optimizer, batches.shapes, train, self.patience
        self._train_epoch: Any = replicas.map(
            partial(train_epoch, *static),
            (REPLICATED, REPLICATED, REPLICATED, REPLICA, _MICROBATCHES, REPLICA),
            donate=(5,),
        )
        self._dev_metrics: Any = replicas.map(
            partial(dev_metrics, self.model, batches.shapes), (REPLICATED, REPLICA_BATCHES, REPLICA)
        )
        self._select_epoch: Any = replicas.map(
            partial(select_epoch, self.patience, train.selection),
            (REPLICATED, REPLICA, REPLICA, REPLICA),
            donate=(3,),
        )
        self.predict = Predictor(self.model, replicas)

    def init(self, start: tuple[Any, Any] | None = None) -> TrainState:
        """Initial state of all replicas, on their devices.

        Args:
          start: parameters and buffers [R, ...] to start from, instead of random ones.
        Raises:
          InputError: they have other shapes than those of the model.
        """
        init = jax.jit(partial(init_state, self.model, self.optimizer, self.train))
        pretrained = self.model.load_pretrained()
        states = [init(seed, pretrained) for seed in self.replicas.seeds]
        state = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
        if start:
            state = self._started(state, start)
        return self.replicas.place(state)

    def _started(self, state: TrainState, start: tuple[Any, Any]) -> TrainState:
        """An initial state with the parameters and buffers of a trained model."""
        own, given = (
            {jax.tree_util.keystr(path): leaf.shape[1:] for path, leaf in
             jax.tree_util.tree_leaves_with_path(tree)}
            for tree in ((state.params, state.buffers), start)
        )  # fmt: skip
        for name in own | given:
            if own.get(name) != given.get(name):
                raise InputError(
                    f"start: array {name} of shape {given.get(name)}, expected {own.get(name)}; "
                    "the settings or sizes of the model differ"
                )
        # Additional replicas, see `Replicas`, are copies of the last one.
        rows = np.minimum(np.arange(len(self.replicas.seeds)), self.replicas.count - 1)
        params, buffers = jax.tree.map(lambda array: np.asarray(array)[rows], start)
        best = None if state.best_params is None else params
        return state._replace(params=params, buffers=buffers, ema_params=params, best_params=best)

    def _inputs(self, epoch: int) -> tuple[Any, ...]:
        """Stories, index, buckets, seeds and rows of an epoch, on the devices."""
        replicas, (rows, buckets) = self.replicas, self.batches(epoch)
        index, buckets = replicas.place((np.int32(epoch), buckets), REPLICATED)
        return self._stories, index, buckets, self._seeds, replicas.place(rows, _MICROBATCHES)

    def compile(self, state: TrainState, epoch: int) -> None:
        """Compiles the programs of the epochs from this one on, as `epoch` otherwise does when it
        is called first."""
        inputs, score = self._inputs(epoch), state.best_score
        select = self._select_epoch.lower(inputs[1], score, score, state)
        dev = self._dev_metrics.lower(self._stories, self._dev_rows, state)
        self._train_epoch = self._train_epoch.lower(*inputs, state).compile()
        self._dev_metrics, self._select_epoch = dev.compile(), select.compile()

    def epoch(self, state: TrainState, epoch: int) -> tuple[TrainState, dict[str, np.ndarray]]:
        """Trains one epoch, counted from 1, and selects the parameters that are tested.

        Returns:
          The state, and the metrics, [R] each: mean loss over the train stories, NaN if the replica
          has stopped or diverged, dev accuracy, and mean cross-entropy over the dev stories.
        """
        replicas, inputs = self.replicas, self._inputs(epoch)
        state, loss = self._train_epoch(*inputs, state)
        accuracy, dev_loss = self._dev_metrics(self._stories, self._dev_rows, state)
        state = self._select_epoch(inputs[1], accuracy, dev_loss, state)
        metrics = {"loss": loss, "dev_accuracy": accuracy, "dev_loss": dev_loss}
        return state, {name: replicas.gather(values) for name, values in metrics.items()}

    def has_stopped(self, state: TrainState, epoch: int) -> bool:
        """Returns whether the training ends with this epoch. Collective."""
        continues = self.replicas.gather(is_trained(state, epoch + 1, self.patience))
        return epoch >= self.epochs or not continues.any()

    def selected_epochs(self, state: TrainState) -> list[int]:
        """Epoch of each replica whose parameters are tested. Collective."""
        if self.train.selection == "last":
            return (self.replicas.gather(state.step) // self.batches.steps).tolist()
        return self.replicas.gather(state.best_epoch).tolist()
