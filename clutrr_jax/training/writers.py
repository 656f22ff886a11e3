"""Writers of the metrics of a training: JSON Lines, TensorBoard, W&B, and those of a user."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from clutrr_jax.training import distributed
from generator.errors import InputError, first_line
from generator.files import read_json, write_text

METRICS = ("loss", "dev_accuracy", "dev_loss")  # of each replica


@runtime_checkable
class Writer(Protocol):
    """A place for the metrics of a training. Only the first host calls it."""

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Called after each epoch, counted from 1, with `seconds`, `stories_per_second` and
        NAME/replica_I for the METRICS of each replica. A value that is not finite is left out."""

    def close(self) -> None:
        """Called once at the end of a training, also of one that fails."""


class Own(NamedTuple):
    """Writers and callback of a user, see `clutrr_jax.train`."""

    writers: Sequence[Writer] = ()
    callback: Callable[[dict[str, Any]], Any] | None = None

    def stops(self, line: dict[str, Any]) -> bool:
        """Returns whether the callback ends the training after the epoch of this line of
        `metrics.jsonl`. Collective."""
        if self.callback is None:
            return False
        stops = self.callback(deepcopy(line)) if distributed.is_primary() else None
        if not isinstance(stops, bool | np.bool_ | None):
            raise InputError(f"callback: returned {stops!r}, expected True, False or None")
        return distributed.any_host(bool(stops))


NOTHING = Own()


def to_json(metrics: dict[str, np.ndarray]) -> dict[str, list[float | None]]:
    """Returns METRICS [R] for `metrics.jsonl`; None if not finite."""
    return {
        name: [round(float(x), 6) if np.isfinite(x) else None for x in metrics[name]]
        for name in METRICS
    }


def scalars(line: dict[str, Any], stories_per_epoch: int) -> dict[str, float]:
    """Returns the values that writers get for a line of `metrics.jsonl`."""
    seconds = line["seconds"]
    return {"seconds": seconds, "stories_per_second": stories_per_epoch / seconds} | {
        f"{name}/replica_{replica}": value
        for name in METRICS
        for replica, value in enumerate(line[name])
        if value is not None
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


class JsonLines:
    """Writer of `metrics.jsonl`, a line for each epoch with METRICS [R]."""

    def __init__(self, path: Path, replicas: int):
        self.path, self.replicas = path, range(replicas)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        line: dict[str, Any] = {"epoch": step, "seconds": values["seconds"]}
        for name in METRICS:
            line[name] = [values.get(f"{name}/replica_{replica}") for replica in self.replicas]
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def close(self) -> None:
        pass


class TensorBoard:
    """Writer of event files in the folder of a run."""

    def __init__(self, folder: Path, epoch: int):
        """TensorBoard drops the epochs after this one in earlier files of the folder."""
        from tensorboardX import SummaryWriter

        self.writer = SummaryWriter(str(folder / "tensorboard"), purge_step=epoch + 1)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


class WandB:
    """Writer of a W&B run for each run, which a resume continues. W&B drops epochs that it has."""

    def __init__(self, folder: Path, epoch: int):
        import wandb

        before = sorted(folder.glob("wandb/*run-*-*"))  # W&B names its folders by time and id
        try:
            self.run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "clutrr-jax"),
                name=f"{folder.parent.name}/{folder.name}",
                id=before[-1].name.split("run-", 1)[1].partition("-")[2] if before else None,
                resume="allow",
                dir=folder,
                config=read_json(folder / "config.json"),
            )
        except wandb.Error as error:
            raise InputError(f"log wandb: cannot start ({first_line(error)})") from None

    def write(self, step: int, values: Mapping[str, float]) -> None:
        self.run.log(dict(values), step=step)

    def close(self) -> None:
        self.run.finish()


LOGS: dict[str, tuple[Callable[[Path, int], Writer], str]] = {
    "tensorboard": (TensorBoard, "tensorboardX"),
    "wandb": (WandB, "wandb"),
}


def open_all(folder: Path, log: str, epoch: int, replicas: int) -> Iterator[Writer]:
    """Opens the writers of a run for the epochs after this one: that of `metrics.jsonl`, and those
    of the setting `log`, names joined by commas. Raises InputError if a package is missing."""
    yield JsonLines(folder / "metrics.jsonl", replicas)
    for name in filter(None, log.split(",")):
        writer, package = LOGS[name]
        try:
            yield writer(folder, epoch)
        except ImportError:
            raise InputError(
                f"log {name}: {package} is not installed, expected it by pip install {package}"
            ) from None
