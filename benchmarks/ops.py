"""Training speed with the hand-written kernels of clutrr_jax/ops and with their plain references.

    python -m benchmarks ops --cores 1 --data path/to/data_089907f8.zip

Both versions of a model are compiled first; then their epochs are timed in turn.
"""

import argparse
import statistics
import tempfile
import time
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
from ml_collections import ConfigDict

from benchmarks import positive_int
from benchmarks.models import limit_cores
from clutrr_jax.data.prepare import Prepared, prepare
from clutrr_jax.models import MODELS
from clutrr_jax.training.loop import device_name
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.trainer import Trainer
from experiments.base import base
from generator.config import Config
from generator.errors import Parser
from generator.write import write_dataset

# A model that spends its time in the kernel.
KERNELS = {
    "graph_attention": "gat",
    "lstm": "bilstm_attention",
    "triangular_attention": "edge_transformer",
    "matmul": "edge_transformer",
}
COLUMNS = "{:22}{:20}{:>14}{:>14}{:>9}"


def main(argv: list[str]) -> int:
    """Prints the table."""
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
    print(f"{device_name()}; train stories/s, median of {arguments.repeats} epochs")
    print(COLUMNS.format("kernel", "model", "hand-written", "reference", "ratio"))
    for kernel, name in KERNELS.items():
        fast, reference = compare(kernel, name, data, arguments.repeats)
        cells = f"{fast:,.0f}", f"{reference:,.0f}", f"{fast / reference:.2f}"
        print(COLUMNS.format(kernel, name, *cells), flush=True)
    return 0


def compare(kernel: str, name: str, data: Prepared, repeats: int) -> tuple[float, float]:
    """Train stories/s of a model with a hand-written kernel, and with its reference."""
    module = import_module(f"clutrr_jax.ops.{kernel}")
    train = base("benchmarks", "").train
    train.dev_fraction = 0.0
    seconds: dict[bool, list[float]] = {True: [], False: []}
    runs: dict[bool, tuple[Trainer, Any]] = {}
    reference = getattr(module, f"{kernel}_reference")
    for fast in seconds:
        with nullcontext() if fast else patch.object(module, f"{kernel}_fast", reference):
            spec = MODELS[name]
            config, stories = ConfigDict(spec.config), data.train_stories
            trainer = Trainer(spec, config, train, data.sizes, stories, Replicas(1))
            state, _ = jax.block_until_ready(trainer.epoch(trainer.init(), 1))
            runs[fast] = trainer, state
    for epoch in range(2, 2 + repeats):
        for fast, (trainer, state) in runs.items():
            start = time.perf_counter()
            state, _ = jax.block_until_ready(trainer.epoch(state, epoch))
            seconds[fast].append(time.perf_counter() - start)
            runs[fast] = trainer, state
    rates = [len(data.train) / statistics.median(seconds[fast]) for fast in (True, False)]
    return rates[0], rates[1]
