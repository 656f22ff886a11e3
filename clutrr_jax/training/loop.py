"""Training of one model: data, state, epochs, tests, summary.

The folder of a model holds `checkpoints/`, `metrics.jsonl` (a line per epoch), `tensorboard/` if it
was asked for, and, once the model is finished, `predictions.csv`, the predictions of each variant
of the model, `attention.npz` and `extracted.npz` for models that have them, and `model.json`.

Shapes: R replicas, S stories, C batches, B stories of a batch, M microbatches.
"""

import json
import math
import sys
import time
from contextlib import closing
from dataclasses import asdict
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec
from tqdm import tqdm

from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.data.batching import Shape
from clutrr_jax.data.order import TrainBatches
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.devices import device_name
from clutrr_jax.evaluation.attention import write_attention
from clutrr_jax.evaluation.extraction import write_extracted
from clutrr_jax.evaluation.frozen_states import with_states
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.metrics import score
from clutrr_jax.evaluation.predict import Output, classify, test_batches
from clutrr_jax.evaluation.predictions import Predictions, prediction_file, write_predictions
from clutrr_jax.experiment import SUMMARY
from clutrr_jax.models import MODELS, Spec
from clutrr_jax.models.functional import ModelDef
from clutrr_jax.settings import train_settings
from clutrr_jax.training import distributed, preemption
from clutrr_jax.training.checkpoints import Checkpoints
from clutrr_jax.training.replicas import REPLICA, REPLICATED, Replicas
from clutrr_jax.training.steps import (
    TrainState,
    create_optimizer,
    dev_metrics,
    init_state,
    is_trained,
    predict,
    select_epoch,
    train_epoch,
)
from clutrr_jax.training.tensorboard import Scalars
from generator.errors import InputError
from generator.files import write_text

PACKAGES = ("jax", "flax", "optax", "jraph", "numpy", "orbax-checkpoint")
_BATCHES = PartitionSpec("data")  # [C, B]: all replicas have the same, a group shares them
_DEV_BATCHES = PartitionSpec("replica", "data")  # [R, C, B]
_MICROBATCHES = PartitionSpec("replica", None, "data")  # [R, steps, M, b]


def run_model(name: str, config: Any, data: Prepared, truth: GroundTruth, folder: Path) -> None:
    """Trains and tests a model of the registry, unless its folder says that it is finished.

    Every host calls this; the first one alone reads and writes the folder.

    Args:
      name: of the model.
      config: settings of the run: `seed`, `tensorboard`, `train` and those of the model.
      data: train and test stories.
      truth: of the test stories.
      folder: of the model.
    """
    finished = folder / SUMMARY
    if distributed.any_host(distributed.is_primary() and finished.exists()):
        if distributed.is_primary():
            print(f"{name}: trained before ({finished})", flush=True)
        return
    if distributed.any_host(preemption.requested()):
        preemption.exit_resumable()
    train = train_settings(config, name)
    replicas = Replicas(train.replicas, config.seed, train.microbatches)
    try:
        if MODELS[name].kind == "states":
            data = with_states(data, config[name])
        trainer = Trainer(MODELS[name], config[name], train, data, replicas)
        if not trainer.batches.dev_count:
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
    tested = predict_tests(name, trainer, state, data, folder)
    selected = trainer.selected_epochs(state)
    diverged = trainer.replicas.gather(state.diverged_epoch).tolist()
    if distributed.is_primary():
        seconds = [line["seconds"] for line in history]
        accuracy = [line["dev_accuracy"] for line in history]
        summary = {
            "parameters": sum(math.prod(p.shape[1:]) for p in jax.tree.leaves(state.params)),
            "epochs": len(history),
            "replicas": train.replicas,
            "seconds": round(sum(seconds), 2),
            # The median epoch, since the first one is mostly compilation.
            "stories_per_second": round(trainer.stories_per_epoch / float(np.median(seconds))),
            "device": device_name(),
            "versions": {package: version(package) for package in PACKAGES},
            "tests": [asdict(counts) for counts in score(tested, truth)],
            "settings": config[name].to_dict() | {"train": train.to_dict()},
            "selected_epochs": selected,
            "diverged_epochs": diverged,
            "dev_accuracy": [accuracy[max(epoch, 1) - 1][r] for r, epoch in enumerate(selected)],
        }
        write_text(finished, json.dumps(summary, indent=1) + "\n")


def train_model(
    name: str, trainer: "Trainer", state: TrainState, folder: Path, tensorboard: bool
) -> tuple[TrainState, list[dict[str, Any]]]:
    """Trains from the last checkpoint, if there is one, until the last epoch, or until no replica
    improves any more. Returns the state, and the lines of `metrics.jsonl`."""
    checkpoints = Checkpoints(folder / "checkpoints")
    epoch, state = checkpoints.restore(state) or (0, state)
    is_writer = distributed.is_primary()
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
    while not ended:
        epoch, began = epoch + 1, time.perf_counter()
        state, metrics = trainer.epoch(state, epoch)
        line: dict[str, Any] = {"epoch": epoch, "seconds": round(time.perf_counter() - began, 4)}
        line |= {key: _rounded(values) for key, values in metrics.items()}
        if resampled := trainer.batches.resampled:
            line["waited"] = round(resampled.waited, 4)  # seconds, for the stories
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
    if "waited" in line:
        values["waited"] = f"{line['waited'] / line['seconds']:.1%}"
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
    """Writes predictions, attention and extracted graphs of the test stories.

    Returns:
      Predictions of the model, NAME, and of its variants, "NAME: VARIANT".
    """
    spec, stories = trainer.model.spec, data.test_stories
    tested = {}
    for suffix, variant in {"": None, **spec.variants}.items():
        relation, chance = trainer.predict(state.tested_params, state.buffers, stories, variant)
        last = relation
        if state.best_params is not None:
            last, _ = trainer.predict(state.ema_params, state.buffers, stories, variant)
        predictions = Predictions(relation, last, chance)
        tested[f"{name}: {suffix}" if suffix else name] = predictions
        if distributed.is_primary():
            write_predictions(folder / prediction_file(suffix), predictions, data.test)
    if distributed.is_primary():
        first = first_replica(trainer.model, state)
        write_attention(folder, first, spec.kind, stories)
        write_extracted(folder, first, spec.kind, data)
    return tested


def first_replica(model: ModelDef, state: TrainState) -> Any:
    """Model of the first replica with its tested parameters, in evaluation mode, on this host."""
    arrays = state.tested_params, state.buffers
    return model.evaluated(
        *jax.tree.map(lambda array: np.asarray(array.addressable_data(0)[0]), arrays)
    )


class Trainer:
    """Model and data of a training, with the compiled programs of its replicas.

    Args:
      spec: entry of the model in the registry.
      config: settings of the model.
      train: train settings, see clutrr_jax/settings.py.
      data: train stories. If they are resampled, a thread samples them until `close`.
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
        self._dev_rows = replicas.place(batches.dev_rows, _DEV_BATCHES)
        self._stories = replicas.place(data.train_stories, REPLICATED)
        self._seeds = replicas.place(replicas.seeds)
        self.model = ModelDef(spec, config, data.sizes, train.entities == "learned")
        self.optimizer = create_optimizer(train, config, data.sizes.encoder)
        static = self.model, self.optimizer, batches.shapes, train, self.patience
        self._train_epoch = replicas.map(
            partial(train_epoch, *static),
            (REPLICATED, REPLICATED, REPLICATED, REPLICA, _MICROBATCHES, REPLICA),
            donate=(5,),
        )
        self._dev_metrics = replicas.map(
            partial(dev_metrics, self.model, batches.shapes), (REPLICATED, _DEV_BATCHES, REPLICA)
        )
        self._select_epoch = replicas.map(
            partial(select_epoch, self.patience), (REPLICATED, REPLICA, REPLICA), donate=(2,)
        )

        @cache
        def predictor(shape: Shape, variant: Output | None) -> Any:
            output = partial(classify, variant=variant)
            function = partial(predict, output, self.model, shape)
            return replicas.map(function, (REPLICATED, _BATCHES, REPLICA, REPLICA), _DEV_BATCHES)

        self._predictor = predictor

    def close(self) -> None:
        """Ends the thread that samples stories. Predictions are still possible."""
        if self.batches.resampled:
            self.batches.resampled.close()

    def init(self) -> TrainState:
        """Initial state of all replicas, on their devices."""
        init = jax.jit(partial(init_state, self.model, self.optimizer, self.train))
        pretrained = self.model.load_pretrained()
        states = [init(seed, pretrained) for seed in self.replicas.seeds]
        return self.replicas.place(jax.tree.map(lambda *leaves: np.stack(leaves), *states))

    def epoch(self, state: TrainState, epoch: int) -> tuple[TrainState, dict[str, np.ndarray]]:
        """Trains one epoch, counted from 1, and selects the parameters that are tested.

        Returns:
          The state, and the metrics, [R] each: mean loss over the train stories, NaN if the replica
          has stopped or diverged, dev accuracy, and mean cross-entropy over the dev stories.
        """
        replicas, stories, resampled = self.replicas, self._stories, self.batches.resampled
        if resampled:
            stories = replicas.place(resampled(epoch), REPLICATED)
        rows, buckets = self.batches(epoch)
        index, buckets = replicas.place((np.int32(epoch), buckets), REPLICATED)
        rows = replicas.place(rows, _MICROBATCHES)
        state, loss = self._train_epoch(stories, index, buckets, self._seeds, rows, state)
        accuracy, dev_loss = self._dev_metrics(self._stories, self._dev_rows, state)
        score = accuracy if self.train.selection == "dev_accuracy" else -dev_loss
        state = self._select_epoch(index, score, state)
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

    def predict(
        self, params: Any, buffers: Any, stories: StoryArrays, variant: Output | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Predicted relation and its probability for every story, [R, S] each.

        Args:
          params, buffers: of all replicas.
          stories: what to predict.
          variant: of the model, see `Spec.variants`.
        """
        replicas, placed = self.replicas, self.replicas.place(stories, REPLICATED)
        batches = test_batches(self.model.spec.kind, stories, replicas.devices_per_group)
        outputs = [
            self._predictor(shape, variant)(placed, replicas.place(rows, _BATCHES), params, buffers)
            for shape, rows in batches
        ]
        size = replicas.count, len(stories.target)
        relation, probability = np.zeros(size, int), np.zeros(size, np.float32)
        for (_, rows), output in zip(batches, outputs, strict=True):
            real = rows >= 0
            for array, values in zip((relation, probability), output, strict=True):
                array[:, rows[real]] = replicas.gather(values)[:, real]
        return relation, probability
