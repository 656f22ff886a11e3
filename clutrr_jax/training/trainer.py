"""Model, data and replicas of a training run, with its compiled programs.

Shapes: R replicas, S stories, C batches, B stories of a batch, M microbatches.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import PartitionSpec

from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.data.batching import chunk, plan_shapes
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.data.streaming import ResampledStories
from clutrr_jax.evaluation.predict import Output, by_story, classify, grade, test_batches
from clutrr_jax.models import Spec
from clutrr_jax.models.functional import ModelDef
from clutrr_jax.training import distributed
from clutrr_jax.training.order import epoch_batches, split_rows
from clutrr_jax.training.replicas import REPLICA, REPLICATED, Replicas
from clutrr_jax.training.state import (
    TrainState,
    create_optimizer,
    create_state,
    has_stopped,
    select_epoch,
)
from clutrr_jax.training.steps import Program, predict, train_epoch

_BATCHES = PartitionSpec("replica", "data")  # [R, C, B]: a group shares the batches
_MICROBATCHES = PartitionSpec("replica", None, "data")  # [R, steps, M, b]


class Metrics(NamedTuple):
    """Metrics of an epoch, [R] each."""

    loss: np.ndarray  # mean over the train stories; NaN if the replica has stopped or diverged
    dev_accuracy: np.ndarray
    dev_loss: np.ndarray  # mean cross-entropy over the dev stories


class Trainer:
    """Trains and evaluates the replicas of one model.

    Args:
      spec: entry of the model in the registry.
      config: settings of the model.
      train: train settings, see clutrr_jax/settings.py.
      data: train stories. If they are resampled, a thread samples new ones for every epoch, until
        `close`, and the dev rows are those of the first stories.
      replicas: their number and placement.
    Raises:
      InputError: a wrong train setting.
    """

    def __init__(self, spec: Spec, config: Any, train: Any, data: Prepared, replicas: Replicas):
        stories, sizes, count = data.train_stories, data.sizes, len(data.train)
        # A small data set is one batch, rounded up to a multiple of the microbatches.
        size = min(train.batch, count + -count % train.microbatches) // train.microbatches
        self.train, self.replicas, self.resampled = train, replicas, None
        if data.resample:
            self.resampled = ResampledStories(
                spec.kind, data.resample, stories, sizes.entities, size
            )
            shapes, buckets = self.resampled.shapes, self.resampled.first_rows
        else:
            shapes, buckets = plan_shapes(spec.kind, stories, size)
        self._train_rows, dev_rows = split_rows(buckets, replicas.seeds, train.dev_fraction)
        if self.resampled:  # all new stories are trained on
            groups = self.resampled.rows
            self._train_rows = [np.tile(rows, (len(replicas.seeds), 1)) for rows in groups]
        rows = sum(rows.shape[1] for rows in self._train_rows)
        self.stories_per_epoch = rows * replicas.count  # of all replicas together
        self.dev_stories = sum(rows.shape[1] for rows in dev_rows)  # of each replica
        self.model = ModelDef(spec, config, sizes, learn_entities=train.entities == "learned")
        self.optimizer = create_optimizer(train, config, sizes.encoder)
        self._batch_size = size * train.microbatches
        # A run of a given number of epochs is never stopped early.
        self._steps = steps = sum(
            -(-rows.shape[1] // self._batch_size) for rows in self._train_rows
        )
        self.epochs = train.epochs or math.ceil(train.steps / steps)
        patience = 0 if train.epochs else math.ceil(train.patience / steps)
        self.program = Program(self.model, self.optimizer, tuple(shapes), train, patience)
        self._dev_rows = [
            np.stack([chunk(own, size, replicas.devices_per_group) for own in bucket])
            for bucket in dev_rows
        ]
        self._dev_batches = replicas.place(self._dev_rows, _BATCHES)
        self._stories = replicas.place(stories, REPLICATED)
        self._seeds = replicas.place(replicas.seeds)
        self._train_epoch = replicas.map(
            partial(train_epoch, self.program),
            (REPLICATED, REPLICATED, REPLICATED, REPLICA, _MICROBATCHES, REPLICA),
            REPLICA,
            donate=(5,),
        )
        select = partial(select_epoch, last=train.selection == "last", patience=patience)
        self._select = jax.jit(select, donate_argnums=0)
        self._predictors: dict[Any, Any] = {}

    def close(self) -> None:
        """Ends the thread that samples stories. Predictions are still possible."""
        if self.resampled:
            self.resampled.close()

    def init(self) -> TrainState:
        """Initial state of all replicas."""
        return create_state(self.model, self.optimizer, self.replicas)

    def epoch(self, state: TrainState, epoch: int) -> tuple[TrainState, Metrics]:
        """Trains one epoch, counted from 1, and selects the parameters that are tested."""
        stories = self._stories
        if self.resampled:
            stories = self.replicas.place(self.resampled(epoch), REPLICATED)
        rows, buckets = epoch_batches(
            epoch, self.replicas.seeds, self._train_rows, self._batch_size
        )
        rows = rows.reshape(*rows.shape[:2], self.train.microbatches, -1)
        state, loss = self._train_epoch(
            stories,
            self.replicas.place(np.int32(epoch), REPLICATED),
            self.replicas.place(buckets, REPLICATED),
            self._seeds,
            self.replicas.place(rows, _MICROBATCHES),
            state,
        )
        accuracy, dev_loss = self._dev_metrics(state)
        score = accuracy if self.train.selection == "dev_accuracy" else -dev_loss
        state = self._select(state, self.replicas.place(score), epoch)
        count = self.replicas.count
        return state, Metrics(self.replicas.gather(loss), accuracy[:count], dev_loss[:count])

    def has_stopped(self, state: TrainState, epoch: int) -> bool:
        """Returns whether the training ends with this epoch. Collective."""
        best = self.replicas.gather(state.best_epoch)
        ended = has_stopped(best, epoch, self.program.patience)
        diverged = self.replicas.gather(state.diverged_epoch) > 0
        return epoch >= self.epochs or bool((ended | diverged).all())

    def selected_epochs(self, state: TrainState) -> list[int]:
        """Epoch of each replica whose parameters are tested. Collective."""
        if self.train.selection == "last":
            return (self.replicas.gather(state.step) // self._steps).tolist()
        return self.replicas.gather(state.best_epoch).tolist()

    def predict(
        self, params: Any, buffers: Any, stories: StoryArrays, model: ModelDef | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Predicted relation and its probability for every story, [replicas, S] each.

        Args:
          params, buffers: of all replicas.
          stories: what to predict.
          model: a variant of the model with the same parameters.
        """
        sharing = self.replicas.devices_per_group
        shapes, rows = test_batches(self.model.spec.kind, stories, sharing)
        tiled = [np.tile(batches, (len(self.replicas.seeds), 1, 1)) for batches in rows]
        placed = self.replicas.place(stories, REPLICATED)
        batches = self.replicas.place(tiled, _BATCHES)
        outputs = self._predict(
            classify, model or self.model, shapes, placed, params, buffers, batches
        )
        relation, probability = (
            by_story(rows, [output[i] for output in outputs], len(stories.target)) for i in (0, 1)
        )
        return relation[: self.replicas.count], probability[: self.replicas.count]

    def _dev_metrics(self, state: TrainState) -> tuple[np.ndarray, np.ndarray]:
        """Dev accuracy and mean loss of the averaged parameters, float32 [R] each, additional
        replicas included."""
        arrays = self._stories, state.ema_params, state.buffers, self._dev_batches
        outputs = self._predict(grade, self.model, self.program.shapes, *arrays)
        stories = max(self.dev_stories, 1)
        correct, loss = (sum(out[i].sum(axis=(1, 2)) for out in outputs) for i in (0, 1))
        return (correct / stories).astype(np.float32), (loss / stories).astype(np.float32)

    def _predict(
        self, output: Output, model: ModelDef, shapes: Any, *arrays: Any
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Outputs [R, C, B] for each shape. `arrays` are stories, parameters, buffers, batches."""
        key = output, model.spec.model, shapes
        if key not in self._predictors:
            self._predictors[key] = self.replicas.map(
                partial(predict, output, model, shapes),
                (REPLICATED, REPLICA, REPLICA, _BATCHES),
                _BATCHES,
            )
        return jax.tree.map(distributed.gather, self._predictors[key](*arrays))
