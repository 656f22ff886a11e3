"""Hooks that run after each epoch: progress, checkpoints and preemption.

Each is called with an `EpochEnd`.
"""

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from clutrr_jax.training import distributed, preemption
from clutrr_jax.training.checkpoints import Checkpoints
from clutrr_jax.training.steps import TrainState


class EpochEnd(NamedTuple):
    """State and metrics after an epoch."""

    state: TrainState
    line: dict[str, Any]  # of metrics.jsonl
    speed: float  # train stories per second, of all replicas together
    diverged: np.ndarray  # [R] epoch in which a replica has diverged, or 0
    is_last: bool


Hook = Callable[[EpochEnd], None]


class Progress:
    """Progress bar, and a message for each replica that diverges."""

    def __init__(self, name: str, epoch: int, epochs: int, disable: bool):
        self.name = name
        self.bar = tqdm(
            desc=name, initial=epoch, total=epochs, unit="epoch", file=sys.stderr, disable=disable
        )

    def __call__(self, end: EpochEnd) -> None:
        line = end.line
        if self.bar.disable:
            return
        values = {
            "loss": f"{np.mean([x for x in line['loss'] if x is not None] or np.nan):.3f}",
            "dev": f"{np.mean(line['dev_accuracy']):.3f}",
            "stories": f"{end.speed:,.0f}/s",
        }
        self.bar.set_postfix(values, refresh=False)
        self.bar.update()
        for replica in np.flatnonzero(end.diverged == line["epoch"]):
            tqdm.write(
                f"{self.name}: replica {replica} diverged in epoch {line['epoch']} (non-finite "
                "loss); it keeps its state before that epoch",
                file=sys.stderr,
            )
        if end.is_last:
            self.bar.close()


class CheckpointHook:
    """Saves the state every few minutes and at the end. After SIGTERM it saves it and exits.
    Collective."""

    def __init__(self, checkpoints: Checkpoints, minutes: float):
        self.checkpoints, self.minutes, self.saved_at = checkpoints, minutes, time.monotonic()

    def __call__(self, end: EpochEnd) -> None:
        is_due = time.monotonic() - self.saved_at > 60 * self.minutes
        stop = distributed.any_host(preemption.requested())
        if end.is_last or stop or distributed.any_host(is_due and distributed.is_primary()):
            self.checkpoints.save(end.line["epoch"], end.state)
            self.saved_at = time.monotonic()
        if stop:
            preemption.exit_resumable()
