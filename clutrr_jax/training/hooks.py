"""Hooks that run after each epoch: metrics, progress and TensorBoard.

Each is called with an `EpochEnd`.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from clutrr_jax.training.steps import TrainState
from generator.errors import InputError
from generator.files import write_text


class EpochEnd(NamedTuple):
    """State and metrics after an epoch."""

    state: TrainState
    line: dict[str, Any]  # of metrics.jsonl: epoch, seconds and METRICS
    speed: float  # train stories per second, of all replicas together
    diverged: np.ndarray  # [R] epoch in which a replica has diverged, or 0
    is_last: bool


Hook = Callable[[EpochEnd], None]
METRICS = ("loss", "dev_accuracy", "dev_loss")  # of each replica


def to_json(metrics: dict[str, np.ndarray]) -> dict[str, list[float | None]]:
    """Returns METRICS [R] for `metrics.jsonl`; None if not finite."""
    return {
        name: [round(float(x), 6) if np.isfinite(x) else None for x in metrics[name]]
        for name in METRICS
    }


def read_metrics(path: Path, last: int) -> list[dict[str, Any]]:
    """Returns the lines of `metrics.jsonl` up to epoch `last`, and removes later ones from the
    file. Raises InputError if one of them cannot be read."""
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


def append_metrics(path: Path, end: EpochEnd) -> None:
    """Appends a line to `metrics.jsonl`."""
    with path.open("a") as file:
        file.write(json.dumps(end.line) + "\n")


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


class TensorBoard:
    """Writer of loss and dev accuracy of each replica, learning rate and train stories/s as event
    files, next to `metrics.jsonl`."""

    def __init__(self, folder: Path, epoch: int, learning_rate: float):
        """TensorBoard drops the epochs after this one in earlier files of the folder. Raises
        InputError if tensorboardX is not installed."""
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise InputError(
                "setting tensorboard: tensorboardX is not installed, expected it by "
                "pip install tensorboardX"
            ) from None
        self.writer = SummaryWriter(str(folder), purge_step=epoch + 1)
        self.learning_rate = learning_rate

    def __call__(self, end: EpochEnd) -> None:
        scalars = {"learning_rate": self.learning_rate, "stories_per_second": end.speed}
        for name in METRICS:
            for replica, value in enumerate(end.line[name]):
                if value is not None:  # the loss of a diverged replica
                    scalars[f"{name}/replica_{replica}"] = value
        for name, value in scalars.items():
            self.writer.add_scalar(name, value, end.line["epoch"])
        self.writer.flush()
        if end.is_last:
            self.writer.close()
