"""Metrics of a training as TensorBoard event files, in addition to `metrics.jsonl`.

pip install tensorboardX
python -m clutrr_jax train --workdir=runs/first --config.tensorboard=True
tensorboard --logdir runs/first
"""

from pathlib import Path
from typing import Any

from generator.errors import InputError


class Scalars:
    """Writer of loss and dev accuracy of each replica, learning rate and train stories/s."""

    def __init__(self, folder: Path, first: int):
        """
        Args:
          folder: of the event files.
          first: first epoch to be written; TensorBoard drops this and later epochs of earlier
            files in the folder.
        Raises:
          InputError: tensorboardX is not installed.
        """
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise InputError(
                "setting tensorboard: tensorboardX is not installed, expected it by "
                "pip install tensorboardX"
            ) from None
        self.writer = SummaryWriter(str(folder), purge_step=first)

    def write(self, line: dict[str, Any], learning_rate: float, speed: float) -> None:
        """Writes the metrics of one epoch.

        Args:
          line: the line of `metrics.jsonl`.
          learning_rate: in this epoch.
          speed: train stories per second, of all replicas together.
        """
        for name in ("loss", "dev_accuracy", "dev_loss"):
            for replica, value in enumerate(line[name]):
                if value is not None:  # the loss of a diverged replica
                    self.writer.add_scalar(f"{name}/replica_{replica}", value, line["epoch"])
        self.writer.add_scalar("learning_rate", learning_rate, line["epoch"])
        self.writer.add_scalar("stories_per_second", speed, line["epoch"])
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()
