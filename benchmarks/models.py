"""Training and test speed of models, next to the machine's matmul rate measured in the same run.

    python -m benchmarks models --models gat,bilstm_attention
    python -m benchmarks models --cores 1 --data path/to/data_089907f8.zip --json before.json
    python -m benchmarks models --cores 1 --data path/to/data_089907f8.zip --compare before.json

A training epoch packs the batches, computes the gradients and updates the parameters; a test
predicts all test stories. FLOPs are those of the matrix products, padding included. Memory is the
peak of the process while it worked on the model; on an accelerator, the peak in use so far.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from benchmarks import parser, positive_int
from benchmarks.flops import matmul_flops
from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.data.batching import evaluation_batch, pack, plan_shapes
from clutrr_jax.data.dataset import Dataset, load
from clutrr_jax.data.prepare import Prepared, prepare
from clutrr_jax.data.records import Records
from clutrr_jax.devices import device_name
from clutrr_jax.evaluation.frozen_states import with_states
from clutrr_jax.models import MODELS, Spec
from clutrr_jax.models.functional import ModelDef
from clutrr_jax.settings import TRAIN, model_names
from clutrr_jax.training.loop import Trainer
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.steps import loss_fn
from experiments.paper import SPEED, commit
from generator.algebras import DEFAULT
from generator.config import Config
from generator.errors import InputError
from generator.files import read_json, write_text
from generator.networks_command import parser as networks_parser
from generator.networks_command import write_networks
from generator.write import write_dataset

# The parts of the file of `--json` that `--compare` needs.
FIGURES = {"rows": SPEED["rows"]}
COLUMNS = "{:18}{:>9}{:>6}" + "{:>16}{:>9}{:>10}" * 2 + "{:>7}{:>11}"


def main(argv: list[str]) -> int:
    """Prints the table."""
    arguments = parse(argv)
    before = read_json(arguments.compare, FIGURES)["rows"] if arguments.compare else []
    limit_cores(arguments.cores, max(arguments.replicas))
    print(f"{device_name()}, {arguments.cores} core(s), median of {arguments.repeats}")
    peaks = {name: matmul_rate(arguments.repeats, name) for name in ("float32", "bfloat16")}
    peak = peaks["float32"]
    for name, rate in peaks.items():
        print(f"matmul, {name}: {rate / 1e9:,.0f} GFLOP/s")
    speed = ["stories/s", "GFLOP/s", "of matmul"]
    head = ["train " + speed[0], *speed[1:], "test " + speed[0], *speed[1:], "GB", "compile s"]
    print(COLUMNS.format("model", "replicas", "batch", *head))
    rows = []
    about = {"commit": commit(), "device": device_name(), "cores": arguments.cores, "matmul": peaks}
    for row in measure(arguments):
        rows.append(row)
        print(table_row(row, peak) + change(row, before), flush=True)
        if arguments.json:
            write_text(arguments.json, json.dumps(about | {"rows": rows}, indent=1) + "\n")
    return 0


def parse(argv: list[str]) -> argparse.Namespace:
    """Parses the command line; raises InputError."""
    options = parser("models", __doc__)
    options.add_argument("--data", help="a data set; default: 10,000 generated stories")
    options.add_argument(
        "--algebra", default=DEFAULT.name, metavar="NAME", help="of generated graphs [kinship]"
    )
    options.add_argument(
        "--stories", type=positive_int, help="most train stories and most test stories to use [all]"
    )
    options.add_argument(
        "--cores", type=positive_int, default=os.cpu_count(), help="CPU cores to use [all]"
    )
    options.add_argument(
        "--repeats", type=positive_int, default=5, help="timed epochs; the median is printed [5]"
    )
    options.add_argument("--models", type=model_names, default=list(MODELS), metavar="A,B,...",
                         help="names [all; models over an encoder need its weights]")  # fmt: skip
    options.add_argument(
        "--replicas", type=_positive_ints, default="1", metavar="N,N,...",
        help="number of replicas trained together, or several to compare [1]",
    )  # fmt: skip
    options.add_argument(
        "--batch", type=_positive_ints, default="100", metavar="N,N,...",
        help="stories per step, or several to compare [100]",
    )  # fmt: skip
    options.add_argument("--json", type=Path, help="file to write the figures of every epoch to")
    options.add_argument("--compare", type=Path, help="a file written by --json: prints the change")
    found = options.parse_args(argv)
    if found.data and found.algebra != DEFAULT.name:
        raise InputError("--algebra: expected without --data, which has an algebra of its own")
    return found


def read_data(arguments: argparse.Namespace) -> Prepared:
    """Reads the data set, or generates one."""
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.data and arguments.algebra == DEFAULT.name:
            write_dataset(Config(), Path(folder))
        elif not arguments.data:
            options = f"--algebra={arguments.algebra}", f"--out={folder}", "--train-rows=140"
            write_networks(networks_parser().parse_args(options))
        return prepare(sample(load(arguments.data or folder), arguments.stories))


def sample(data: Dataset, size: int | None) -> Dataset:
    """Returns a random sample of each split that has more stories than `size`."""

    def part(split: str) -> Records:
        records = data.records(split)
        if size is None or len(records) <= size:
            return records
        return records.select(np.sort(np.random.default_rng(0).permutation(len(records))[:size]))

    return Dataset(data.name, part("train"), part("test"))


def new_trainer(
    spec: Spec, settings: ConfigDict, data: Prepared, replicas: int = 1, batch: int = 100
) -> Trainer:
    """Returns a trainer of all train stories, with the default settings of training."""
    train = ConfigDict(TRAIN | {"batch": batch, "dev_fraction": 0.0})
    return Trainer(spec, settings, train, data, Replicas(replicas))


def _positive_ints(text: str) -> list[int]:
    return [positive_int(number) for number in text.split(",")]


def limit_cores(cores: int, replicas: int) -> None:
    """Restricts the process to some CPU cores, with one JAX device per core that replicas can use.

    Must run before JAX initialises its devices.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    jax.config.update("jax_num_cpu_devices", min(cores, replicas))


def table_row(row: dict[str, Any], peak: float) -> str:
    """Formats one measurement; rates are medians over epochs, shares are of the matmul `peak`."""
    cells = []
    for part, flops in (("train", "flops"), ("test", "test_flops")):
        speed = statistics.median(row[part])
        rate = row[flops] * speed
        cells += [f"{speed:,.0f}", f"{rate / 1e9:.1f}", f"{rate / peak:.0%}"]
    cells += [f"{row['memory']:.2f}", f"{row['compile']:.1f}"]
    return COLUMNS.format(row["model"], row["replicas"], row["batch"], *cells)


def change(row: dict[str, Any], before: list[dict[str, Any]]) -> str:
    """Change of the training speed, and the largest spread between epochs of either run."""
    for old in before:
        if all(old[key] == row[key] for key in ("model", "replicas", "batch")):
            was, now = statistics.median(old["train"]), statistics.median(row["train"])
            noise = max(np.ptp(old["train"]) / was, np.ptp(row["train"]) / now)
            return f"  {now / was - 1:+.0%} (epochs differ by {noise:.0%})"
    return ""


def measure(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measures each combination of model, number of replicas and batch size.

    Yields:
      A dict: train and test stories per second of each epoch, FLOPs per train and per test story,
      peak memory in GB, seconds by which the first epoch, which compiles, exceeds the others.
    """
    words = read_data(arguments)
    for name, count, batch in product(arguments.models, arguments.replicas, arguments.batch):
        peak_memory()
        spec = MODELS[name]
        settings = ConfigDict(spec.config)
        data = with_states(words, settings) if spec.encoder else words
        trainer = new_trainer(spec, settings, data, count, batch)
        state, epochs = trainer.init(), []
        for epoch in range(1, 2 + arguments.repeats):
            took, (state, _) = timed(trainer.epoch, state, epoch)
            epochs.append(took)
        test = partial(trainer.predict, state.params, state.buffers, data.test_stories)
        tests = seconds(test, arguments.repeats)
        flops = partial(flops_per_story, ModelDef(spec, settings, data.sizes))
        test_batch = min(evaluation_batch(), len(data.test))
        yield {
            "model": name,
            "replicas": count,
            "batch": batch,
            "train": [count * len(words.train) / s for s in epochs[1:]],  # the first compiles
            "test": [count * len(words.test) / s for s in tests],
            "flops": flops(data.train_stories, batch, train=True),
            "test_flops": flops(data.test_stories, test_batch, train=False),
            "memory": peak_memory(),
            "compile": max(epochs[0] - statistics.median(epochs[1:]), 0),
        }


def timed(run: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Returns the seconds of one call, and its result."""
    start = time.perf_counter()
    result = jax.block_until_ready(run(*arguments))
    return time.perf_counter() - start, result


def seconds(run: Callable[[], Any], repeats: int) -> list[float]:
    """Seconds of each of `repeats` calls, after one warm-up call."""
    return [timed(run)[0] for _ in range(1 + repeats)][1:]


def matmul_rate(repeats: int, dtype: str) -> float:
    """FLOP/s of large matrix products on the first device, with JAX's default precision."""
    # On an accelerator a single product would take less time than its launch.
    n, products = (2048, 1) if jax.default_backend() == "cpu" else (4096, 100)
    x = jax.random.normal(jax.random.key(0), (n, n), dtype) / n**0.5  # the products stay finite
    run = jax.jit(lambda x: jax.lax.fori_loop(0, products, lambda _, y: x @ y, x))
    return products * 2 * n**3 / statistics.median(seconds(lambda: run(x), repeats))


def peak_memory() -> float:
    """Peak memory in GB: of the device, or on a CPU of the process since the last call."""
    stats = jax.devices()[0].memory_stats()
    if stats:
        return stats["peak_bytes_in_use"] / 1e9
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    most = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
    return int(most.split()[1]) * 1024 / 1e9


def flops_per_story(definition: ModelDef, stories: StoryArrays, batch: int, train: bool) -> float:
    """Matmul FLOPs per story of a gradient (`train`) or a prediction, padding included.

    Averages over the padded shapes that `stories` are packed to, weighted by their stories.
    """
    params, buffers = definition.init(jax.random.key(0))

    def run(params: Any, packed: Any) -> jax.Array:
        if train:
            return loss_fn(params, definition, buffers, packed, jax.random.key(0))
        return definition.evaluated(params, buffers)(packed)

    total = 0.0
    for shape, rows in zip(*plan_shapes(definition.spec.kind, stories, batch), strict=True):
        packed = pack(stories, jnp.arange(shape.stories), shape)
        flops = matmul_flops(jax.grad(run) if train else run, params, packed)
        total += flops / shape.stories * len(rows)
    return total / len(stories.target)
