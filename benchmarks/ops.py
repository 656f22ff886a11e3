"""Training speed with the hand-written matrix product of `clutrr_jax.ops` and with its reference.

    python -m benchmarks ops --cores 1 --data path/to/data_089907f8.zip

The model is the Edge Transformer, which spends its time in bfloat16 products. Both versions are
compiled first; then their epochs are timed in turn.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
from ml_collections import ConfigDict

from benchmarks import positive_int
from benchmarks.models import limit_cores
from clutrr_jax.data.prepare import Prepared, prepare
from clutrr_jax.models import MODELS
from clutrr_jax.ops import matmul
from clutrr_jax.training.loop import device_name
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.trainer import Trainer
from experiments.base import base
from generator.config import Config
from generator.errors import Parser
from generator.write import write_dataset

MODEL = "edge_transformer"


def main(argv: list[str]) -> int:
    """Prints both speeds and their ratio."""
    parser = Parser(
        prog="python -m benchmarks ops",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", help="a CLUTRR data set; default: 10,000 generated stories")
    parser.add_argument("--stories", type=positive_int, help="most train stories to use [all]")
    parser.add_argument("--cores", type=positive_int, default=1, help="CPU cores to use [1]")
    parser.add_argument("--repeats", type=positive_int, default=5, help="timed epochs of each [5]")
    arguments = parser.parse_args(argv)
    limit_cores(arguments.cores, 1)
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.data:
            write_dataset(Config(), Path(folder))
        data = prepare(arguments.data or folder, max_stories=arguments.stories)
    print(f"{device_name()}; {MODEL}, train stories/s, median of {arguments.repeats} epochs")
    fast, reference = compare(data, arguments.repeats)
    print(f"hand-written {fast:,.0f}, reference {reference:,.0f}, ratio {fast / reference:.2f}")
    return 0


def compare(data: Prepared, repeats: int) -> tuple[float, float]:
    """Train stories/s with the hand-written matrix product, and with its reference."""
    train = base("benchmarks", "").train
    train.dev_fraction = 0.0
    spec, stories = MODELS[MODEL], data.train_stories
    seconds: dict[bool, list[float]] = {True: [], False: []}
    runs: dict[bool, tuple[Trainer, Any]] = {}
    for fast in seconds:
        with patch.object(matmul, "use_fast_matmul", lambda fast=fast: fast):
            trainer = Trainer(
                spec, ConfigDict(spec.config), train, data.sizes, stories, Replicas(1)
            )
            state, _ = jax.block_until_ready(trainer.epoch(trainer.init(), 1))
            runs[fast] = trainer, state
    for epoch in range(2, 2 + repeats):
        for fast, (trainer, state) in runs.items():
            start = time.perf_counter()
            state, _ = jax.block_until_ready(trainer.epoch(state, epoch))
            seconds[fast].append(time.perf_counter() - start)
            runs[fast] = trainer, state
    rates = {fast: len(data.train) / statistics.median(times) for fast, times in seconds.items()}
    return rates[True], rates[False]
