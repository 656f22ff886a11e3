"""Training of one model: data, state, epochs, tests, summary.

The folder of a model holds `checkpoints/`, `metrics.jsonl` (a line per epoch), `tensorboard/` and
`wandb/` if they were asked for, and, once the model is finished, `predictions.npz`, the predictions
of each variant of the model, and `attention.npz` and `extracted.npz` for models that have them.

Shapes: R replicas, S stories, C batches, B stories of a batch, M microbatches.
"""

import math
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, nullcontext
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec

from clutrr_jax.data.order import TrainBatches
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.devices import device_name, free_memory, warn_if_too_large
from clutrr_jax.evaluation.frozen_states import with_states
from clutrr_jax.evaluation.ground_truth import GroundTruth
from clutrr_jax.evaluation.scores import Series, score, score_run, series_of
from clutrr_jax.models import MODELS, Spec
from clutrr_jax.models.functional import ModelDef
from clutrr_jax.models.swept import at_point, label, of_point, points
from clutrr_jax.training import distributed, preemption, writers
from clutrr_jax.training.checkpoints import Checkpoints, Saver
from clutrr_jax.training.inference import REPLICA_BATCHES, Predictor, predict_tests
from clutrr_jax.training.progress import Progress
from clutrr_jax.training.replicas import REPLICA, REPLICATED, Replicas
from clutrr_jax.training.steps import (
    Batches,
    EpochState,
    Segment,
    Setup,
    TrainState,
    begin_epoch,
    create_optimizer,
    draw_epoch,
    init_state,
    is_trained,
    train_segment,
)
from clutrr_jax.training.trace import tracing
from generator.errors import InputError

PACKAGES = ("jax", "flax", "optax", "jraph", "numpy", "orbax-checkpoint")
SEGMENT_SECONDS = 5.0  # of a segment of an epoch, which takes up to twice as long
_MICROBATCHES = PartitionSpec("replica", None, "data")  # [R, steps, M, b]


def run_model(
    name: str,
    config: Any,
    data: Prepared,
    truth: GroundTruth,
    folder: Path,
    start: tuple[Any, Any] | None = None,
    begin: Callable[[], None] = lambda: None,
    own: writers.Own = writers.NOTHING,
) -> dict[str, Any]:
    """Trains and tests a model of the registry, and returns the summary of the run.

    Every host calls this; the first one alone reads and writes the folder, has the summary, and
    calls `begin` after all checks, before it writes a file. `start` is as for `Trainer.init`.
    """
    if distributed.any_host(preemption.requested()):
        preemption.exit_resumable()
    train = config.train
    settings = config[name].to_dict() | {"train": asdict(train)}
    sweep = points(settings)
    replicas = Replicas(train.replicas, config.seed, train.microbatches, sweep)
    try:
        with preemption.at_once():
            if MODELS[name].encoder:
                data = with_states(data, config[name])
            trainer = Trainer(MODELS[name], config[name], train, data, replicas)
            if not trainer.batches.dev_count:
                raise InputError(
                    f"train.dev_fraction {train.dev_fraction}: none of {len(data.train)} train "
                    "stories is a dev story, expected a larger fraction"
                )
            state = trainer.init(start)
    except InputError as error:  # of a setting of the model, or a train setting
        raise InputError(f"{name}: {error}") from None
    state, history = train_model(name, trainer, state, folder, config.log, begin, own, config.trace)
    epochs = int(distributed.broadcast(np.array(len(history))))  # the first host has all lines
    stopped = not trainer.has_stopped(state, epochs)
    on_dev = dev_results(trainer, state, history)
    chosen = choose_point(on_dev)
    names = [f"{name} ({label(point)})" for point in sweep]
    with preemption.at_once():
        tested = predict_tests(name, trainer.predict, state, data, folder, names, chosen)
    if not distributed.is_primary():
        return {}
    seconds = [line["seconds"] for line in history]
    every = [of_point(settings, index) for index in range(len(sweep) or 1)]
    given = [MODELS[name].given(one, started=start is not None) for one in every]
    scores = score_run(series_of(name, every[chosen], start is not None), tested, truth)
    for series, of_series in zip(names, given, strict=False):
        scores += score(Series(series, "sweep", name, of_series), tested[series], truth)
    summary = {
        "parameters": sum(math.prod(p.shape[1:]) for p in jax.tree.leaves(state.params)),
        "epochs": epochs,
        "stopped_by_callback": stopped,
        "replicas": train.replicas,
        "seconds": round(sum(seconds), 2),
        # The median epoch, since timings are noisy.
        "stories_per_second": round(trainer.stories_per_epoch / float(np.median(seconds))),
        "device": device_name(),
        "versions": {package: version(package) for package in PACKAGES},
        "tests": [row.to_json() for row in scores],
        "settings": every[chosen],
        **on_dev[chosen],
    }
    if sweep:
        of_points = zip(names, sweep, on_dev, strict=True)
        summary["sweep"] = {
            "chosen": names[chosen],
            "points": [{"name": series, "settings": point, **found}
                       for series, point, found in of_points],
        }  # fmt: skip
    return summary


def dev_results(
    trainer: "Trainer", state: TrainState, history: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Returns the tested epoch, the epoch of divergence and the dev metrics of the replicas of each
    point of a sweep. Collective; the other hosts have no metrics."""
    replicas, selected = trainer.replicas, trainer.selected_epochs(state)
    diverged = replicas.gather(state.diverged_epoch).tolist()
    found = {"selected_epochs": selected, "diverged_epochs": diverged}
    for metric in ("dev_accuracy", "dev_loss") if distributed.is_primary() else ():
        of_epoch = [line[metric] for line in history]
        found[metric] = [of_epoch[max(epoch, 1) - 1][r] for r, epoch in enumerate(selected)]
    return [
        {name: values[first : first + replicas.per_point] for name, values in found.items()}
        for first in range(0, replicas.count, replicas.per_point)
    ]


def choose_point(on_dev: list[dict[str, Any]]) -> int:
    """Returns the index of the point with the lowest mean dev loss, given `dev_results`.
    Collective."""
    losses = [
        np.mean([np.inf if loss is None else loss for loss in found.get("dev_loss", [0])])
        for found in on_dev
    ]
    return int(distributed.broadcast(np.argmin(losses)))


def train_model(
    name: str,
    trainer: "Trainer",
    state: TrainState,
    folder: Path,
    log: str = "",
    begin: Callable[[], None] = lambda: None,
    own: writers.Own = writers.NOTHING,
    trace: str = "",
) -> tuple[TrainState, list[dict[str, Any]]]:
    """Trains from the last checkpoint, if there is one, until the last epoch, until no replica
    improves any more, or until the callback ends it. Returns the state, and the lines of
    `metrics.jsonl`. The first host calls `begin` before it changes a file. `trace` is a
    folder for a profiler trace of the first epoch."""
    is_primary, train = distributed.is_primary(), trainer.setup.train
    checkpoints = Checkpoints(folder / "checkpoints")
    epoch, done, within = 0, 0, None
    if restored := checkpoints.restore(state, (state, trainer.begin(state))):
        epoch, done, found = restored
        state, within = found if done else (found, None)
    if epoch > trainer.epochs:
        raise InputError(
            f"{folder}: has trained {epoch} epochs, expected at least as many, now {trainer.epochs}"
        )
    history: list[dict[str, Any]] = []
    with ExitStack() as stack:
        is_last = trainer.has_stopped(state, epoch)
        written_to: list[writers.Writer] = []
        if is_primary:
            begin()
            history = writers.read_metrics(folder / "metrics.jsonl", epoch)
        if is_primary and not is_last:
            opened = writers.open_all(folder, log, epoch, trainer.replicas.count)
            written_to = [stack.enter_context(closing(each)) for each in (*opened, *own.writers)]
        if not is_last:
            progress = Progress(name, epoch, trainer.epochs, disable=not is_primary)
            progress.bar.set_postfix_str("compiling")
            with preemption.at_once():
                trainer.compile(state, epoch + 1)
            progress.bar.set_postfix_str("")
        save = Saver(checkpoints, train.checkpoint_minutes)
        while not is_last:
            epoch, began = epoch + 1, time.perf_counter()
            save_within = partial(save, epoch - 1)
            with tracing(trace, trainer.program) if trace else nullcontext():
                state, metrics = trainer.epoch(state, epoch, done, within, save_within)
            seconds = (time.perf_counter() - began) / (1 - done / trainer.count)  # of all batches
            seconds, done, within, trace = round(seconds, 4), 0, None, ""
            history.append({"epoch": epoch, "seconds": seconds} | writers.to_json(metrics))
            values = writers.scalars(history[-1], trainer.stories_per_epoch)
            for writer in written_to:
                writer.write(epoch, dict(values))
            is_last = own.stops(history[-1]) or trainer.has_stopped(state, epoch)
            diverged = trainer.replicas.gather(state.diverged_epoch)
            progress(history[-1], values["stories_per_second"], diverged, is_last)
            save(epoch, state, is_last=is_last)
    return state, history


class Trainer:
    """Model and data of a training, with the compiled program of an epoch of its replicas."""

    def __init__(self, spec: Spec, config: Any, train: Any, data: Prepared, replicas: Replicas):
        data = replace(data, train_stories=spec.with_inputs(data.train_stories))
        self.replicas = replicas
        self.batches = batches = TrainBatches(
            spec.kind, data, train, replicas.seeds, replicas.devices_per_group
        )
        self.stories_per_epoch = batches.train_count * replicas.count  # of all replicas together
        # A run of a given number of epochs is never stopped early.
        self.epochs = train.epochs or math.ceil(train.steps / batches.steps)
        patience = 0 if train.epochs else math.ceil(train.patience / batches.steps)
        model = ModelDef(spec, config, data.sizes, train.entities == "learned")
        optimizer = create_optimizer(train, config, data.sizes.encoder)
        self.setup = Setup(model, optimizer, train, batches.shapes, patience)
        self.stories = replicas.place(data.train_stories, REPLICATED)
        self._seeds = replicas.place(replicas.seeds)
        self._dev_rows = replicas.place(batches.dev_rows, REPLICA_BATCHES)
        of_batches = Batches(REPLICA, _MICROBATCHES, REPLICA_BATCHES, REPLICA)
        within = EpochState(REPLICA, REPLICA, REPLICA, REPLICA_BATCHES)
        self._draw = replicas.map(
            partial(draw_epoch, self.setup), (REPLICATED, REPLICATED), (REPLICA,)
        )
        begin = partial(begin_epoch, batches.steps)
        self._begin_epoch = replicas.map(begin, (), (REPLICA_BATCHES, REPLICA), within)
        self._train_segment: Any = replicas.map(
            partial(train_segment, self.setup),
            (REPLICATED, REPLICATED),
            (of_batches, REPLICA, within),
            (within, REPLICA),
            donate=(4,),
        )
        dev_batches = sum(rows.shape[1] for rows in batches.dev_rows) // replicas.devices_per_group
        self.count = batches.steps + dev_batches  # batches of an epoch, see `Segment`
        self._segment = 1  # batches of a segment
        self.predict = Predictor(model, replicas)

    def init(self, start: tuple[Any, Any] | None = None) -> TrainState:
        """Initial state of all replicas, on their devices. It has random parameters, or the
        parameters and buffers [R, ...] of `start`, which must have the shapes of the model."""

        init = jax.jit(partial(at_point, partial(init_state, self.setup), self.replicas.sweep))
        pretrained = self.setup.model.load_pretrained()
        replicas = zip(self.replicas.point, self.replicas.seeds, strict=True)
        states = [init(point, seed, pretrained) for point, seed in replicas]
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
        seeds = self.replicas.seeds
        rows = np.minimum(seeds - seeds[0], self.replicas.per_point - 1)
        params, buffers = jax.tree.map(lambda array: np.asarray(array)[rows], start)
        best = None if state.best_params is None else params
        return state._replace(params=params, buffers=buffers, ema_params=params, best_params=best)

    def _batches(self, epoch: int) -> tuple[Segment, Batches]:
        """Batches of an epoch; the whole epoch is the segment."""
        with jax.profiler.TraceAnnotation("load"):
            rows, buckets = self.batches(epoch)
            rows = self.replicas.place(rows, _MICROBATCHES)
            index = self.replicas.place(np.int32(epoch), REPLICATED)
            drawn = jax.block_until_ready(self._draw(self.stories, index, self._seeds))
        batches = Batches(self._seeds, rows, self._dev_rows, drawn)
        return Segment(np.int32(epoch), buckets, np.int32(0), np.int32(self.count)), batches

    def begin(self, state: TrainState) -> EpochState:
        """State within an epoch, before its first batch."""
        return self._begin_epoch(self._dev_rows, state)

    def compile(self, state: TrainState, epoch: int) -> None:
        """Compiles the program of the epochs from this one on, as `epoch` otherwise does when it is
        called first."""
        segment, batches = self._batches(epoch)
        segment = self.replicas.place(segment, REPLICATED)
        within = self.begin(state)
        lowered = self._train_segment.lower(self.stories, segment, batches, state, within)
        self._train_segment = lowered.compile()
        self._check_memory()

    def _check_memory(self) -> None:
        """Warns if what the program needs besides its arguments is not free on the devices."""
        devices, sizes = self.replicas.mesh.local_devices, self._train_segment.memory_analysis()
        if sizes is None:
            return
        needed = sizes.temp_size_in_bytes + sizes.output_size_in_bytes - sizes.alias_size_in_bytes
        if devices[0].platform == "cpu":  # devices that share the memory
            needed, free = needed * len(devices), free_memory()
        else:
            stats = devices[0].memory_stats() or {}
            free = stats.get("bytes_limit", math.inf) - stats.get("bytes_in_use", 0)
        warn_if_too_large("the training", needed, free)

    @property
    def program(self) -> str:
        """Text of the compiled program."""
        return str(self._train_segment.as_text())

    def epoch(
        self,
        state: TrainState,
        epoch: int,
        done: int = 0,
        within: EpochState | None = None,
        between: Callable[[Any, int], None] = lambda *_: None,
    ) -> tuple[TrainState, dict[str, np.ndarray]]:
        """Trains one epoch, counted from 1, in segments of about `SEGMENT_SECONDS`. Returns the
        state and the metrics of `train_segment`, [R] each.

        `between` is called between two segments, with the states before and within the epoch, and
        the number of batches done. Given these again, it goes on from there.
        """
        whole, batches = self._batches(epoch)
        within = within or self.begin(state)
        while done < self.count:
            began, start = time.perf_counter(), done
            done = min(start + self._segment, self.count)
            segment = whole._replace(start=np.int32(start), stop=np.int32(done))
            segment = self.replicas.place(segment, REPLICATED)
            within, metrics = self._train_segment(self.stories, segment, batches, state, within)
            if done < self.count:
                jax.block_until_ready(within)
                if done <= self.batches.steps:  # a dev batch takes less time
                    seconds = time.perf_counter() - began
                    self._segment = segment_length(seconds / (done - start))
                between((state, within), done)
        return within.state, {name: self.replicas.gather(x) for name, x in metrics.items()}

    def has_stopped(self, state: TrainState, epoch: int) -> bool:
        """Returns whether the training ends with this epoch. Collective."""
        continues = self.replicas.gather(is_trained(state, epoch + 1, self.setup.patience))
        return epoch >= self.epochs or not continues.any()

    def selected_epochs(self, state: TrainState) -> list[int]:
        """Epoch of each replica whose parameters are tested. Collective."""
        if self.setup.train.selection == "last":
            return (self.replicas.gather(state.step) // self.batches.steps).tolist()
        return self.replicas.gather(state.best_epoch).tolist()


def segment_length(seconds: float) -> int:
    """Number of batches of a segment, given the seconds of one. Collective: the same everywhere."""
    return max(1, int(distributed.broadcast(np.array(SEGMENT_SECONDS / seconds))))
