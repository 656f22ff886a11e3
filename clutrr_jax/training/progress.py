"""Progress bar of a training."""

import sys
from typing import Any

import numpy as np
from tqdm import tqdm


class Progress:
    """Progress bar, and a message for each replica that diverges."""

    def __init__(self, name: str, epoch: int, epochs: int, disable: bool):
        self.name = name
        self.bar = tqdm(
            desc=name, initial=epoch, total=epochs, unit="epoch", file=sys.stderr, disable=disable
        )

    def __call__(
        self, line: dict[str, Any], speed: float, diverged: np.ndarray, is_last: bool
    ) -> None:
        """Shows an epoch: its line of `metrics.jsonl`, train stories per second of all replicas
        together, and the epochs in which replicas have diverged [R], or 0."""
        if self.bar.disable:
            return
        values = {
            "loss": f"{np.mean([x for x in line['loss'] if x is not None] or np.nan):.3f}",
            "dev": f"{np.mean(line['dev_accuracy']):.3f}",
            "stories": f"{speed:,.0f}/s",
        }
        self.bar.set_postfix(values, refresh=False)
        self.bar.update()
        for replica in np.flatnonzero(diverged == line["epoch"]):
            tqdm.write(
                f"{self.name}: replica {replica} diverged in epoch {line['epoch']} (non-finite "
                "loss); it keeps its state before that epoch",
                file=sys.stderr,
            )
        if is_last:
            self.bar.close()
