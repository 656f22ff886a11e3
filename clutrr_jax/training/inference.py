"""Predictions of a trained model on test stories, in its run or after it is loaded again.

Shapes: R replicas, S stories, N relations, C batches, B stories of a batch.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.data.batching import Shape, pad_question
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.evaluation.attention import write_attention
from clutrr_jax.evaluation.extraction import write_extracted
from clutrr_jax.evaluation.predict import Output, classify, map_batches, test_batches
from clutrr_jax.evaluation.predictions import (
    Predictions,
    export_predictions,
    prediction_file,
    write_predictions,
)
from clutrr_jax.models.functional import ModelDef
from clutrr_jax.models.swept import of_point
from clutrr_jax.training import distributed
from clutrr_jax.training.replicas import REPLICA, REPLICATED, Replicas
from clutrr_jax.training.steps import TrainState

BATCHES = PartitionSpec("data")  # [C, B]: all replicas have the same, a group shares them
REPLICA_BATCHES = PartitionSpec("replica", "data")  # [R, C, B]


class Predictor:
    """Inference of all replicas of a model, with its compiled programs."""

    def __init__(self, model: ModelDef, replicas: Replicas):
        self.model, self.replicas = model, replicas

        @cache
        def program(shape: Shape, variant: Output | None) -> Any:
            output = partial(classify, relations=model.sizes.relations, variant=variant)

            def predict(stories: StoryArrays, rows: jax.Array, params: Any, buffers: Any) -> Any:
                return map_batches(output, model.evaluated(params, buffers), shape, stories, rows)

            return replicas.map(predict, (REPLICATED, BATCHES), (REPLICA, REPLICA), REPLICA_BATCHES)

        self._program = program

    def __call__(
        self, params: Any, buffers: Any, stories: StoryArrays, variant: Output | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Predicted relation [R, S] and probabilities [R, S, N] of every story, by all replicas of
        the model or of one of its `Spec.variants`."""
        stories = pad_question(self.model.spec.with_inputs(stories))
        replicas, placed = self.replicas, self.replicas.place(stories, REPLICATED)
        batches = test_batches(self.model.spec.kind, stories, replicas.devices_per_group)
        outputs = [
            self._program(shape, variant)(placed, replicas.place(rows, BATCHES), params, buffers)
            for shape, rows in batches
        ]
        size = replicas.count, len(stories.target)
        relation = np.zeros(size, int)
        probabilities = np.zeros((*size, self.model.sizes.relations), np.float32)
        for (_, rows), output in zip(batches, outputs, strict=True):
            real = rows >= 0
            for array, values in zip((relation, probabilities), output, strict=True):
                array[:, rows[real]] = replicas.gather(values)[:, real]
        return relation, probabilities

    def first(self, params: Any, buffers: Any, point: int = 0) -> Any:
        """Model of the first replica of a point, in evaluation mode, on this host. Collective."""
        row = point * self.replicas.per_point
        first = jax.tree.map(lambda array: distributed.gather(array)[row], (params, buffers))
        settings = ConfigDict(of_point(self.model.config.to_dict(), point))
        return replace(self.model, config=settings).evaluated(*first)


def predict_all(
    name: str, predictor: Predictor, tested: Any, last: Any, buffers: Any, stories: StoryArrays
) -> dict[str, Predictions]:
    """Predictions of a model, NAME, and of its variants, "NAME: VARIANT", with the parameters of
    the tested epoch, and of the last one; perhaps the same."""
    found = {}
    for suffix, (variant, _) in {"": (None, ""), **predictor.model.spec.variants}.items():
        relation, probabilities = predictor(tested, buffers, stories, variant)
        of_last = relation
        if last is not tested:
            of_last, _ = predictor(last, buffers, stories, variant)
        found[f"{name}: {suffix}" if suffix else name] = Predictions(
            relation, of_last, probabilities.max(axis=-1), probabilities
        )
    return found


def predict_tests(
    name: str,
    predictor: Predictor,
    state: TrainState,
    data: Prepared,
    folder: Path,
    sweep: Sequence[str] = (),
    chosen: int = 0,
) -> dict[str, Predictions]:
    """Predicts the test stories, see `predict_all`: at the `chosen` point of a sweep, and at each
    of its points, whose names these are. The first host writes the predictions, and attention and
    extracted graphs of the first replica, into the folder of the run."""
    tested, stories = state.tested_params, data.test_stories
    found = predict_all(name, predictor, tested, state.ema_params, state.buffers, stories)
    if sweep:
        every = found[name].by_point(len(sweep))
        found = {series: all_.by_point(len(sweep))[chosen] for series, all_ in found.items()}
        found |= dict(zip(sweep, every, strict=True))
    first = predictor.first(tested, state.buffers, chosen)
    if distributed.is_primary():
        for series, predictions in found.items():
            variant = series.removeprefix(name)
            write_predictions(folder / prediction_file(variant), predictions, data.test)
            export_predictions(folder / prediction_file(variant, ".csv"), predictions, data.test)
        kind = predictor.model.spec.kind
        write_attention(folder, first, kind, stories)
        write_extracted(folder, first, kind, data)
    return found
