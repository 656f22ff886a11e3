"""Training speed with the hand-written matrix product of `clutrr_jax.ops` and with its reference.

    python -m benchmarks ops --cores 1 --data path/to/data_089907f8.zip

The model is the Edge Transformer, which spends its time in bfloat16 products. Both versions are
compiled first; then their epochs are timed in turn.
"""

import statistics
from typing import Any
from unittest.mock import patch

import jax
from ml_collections import ConfigDict

from benchmarks.models import limit_cores, new_trainer, read_data, timed, training_parser
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.models import MODELS
from clutrr_jax.ops import matmul
from clutrr_jax.training.loop import device_name
from clutrr_jax.training.trainer import Trainer

MODEL = "edge_transformer"


def main(argv: list[str]) -> int:
    """Prints both speeds and their ratio."""
    arguments = training_parser("ops", __doc__).parse_args(argv)
    limit_cores(arguments.cores, 1)
    data = read_data(arguments)
    print(f"{device_name()}; {MODEL}, train stories/s, median of {arguments.repeats} epochs")
    fast, reference = compare(data, arguments.repeats)
    print(f"hand-written {fast:,.0f}, reference {reference:,.0f}, ratio {fast / reference:.2f}")
    return 0


def compare(data: Prepared, repeats: int) -> tuple[float, float]:
    """Train stories/s with the hand-written matrix product, and with its reference."""
    spec = MODELS[MODEL]
    seconds: dict[bool, list[float]] = {True: [], False: []}
    runs: dict[bool, tuple[Trainer, Any]] = {}
    for fast in seconds:
        with patch.object(matmul, "use_fast_matmul", lambda fast=fast: fast):
            trainer = new_trainer(spec, ConfigDict(spec.config), data)
            state, _ = jax.block_until_ready(trainer.epoch(trainer.init(), 1))
            runs[fast] = trainer, state
    for epoch in range(2, 2 + repeats):
        for fast, (trainer, state) in runs.items():
            took, (state, _) = timed(trainer.epoch, state, epoch)
            seconds[fast].append(took)
            runs[fast] = trainer, state
    rates = {fast: len(data.train) / statistics.median(times) for fast, times in seconds.items()}
    return rates[True], rates[False]
