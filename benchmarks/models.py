"""Training and test speed of models, next to the machine's matmul rate measured in the same run.

    python -m benchmarks models --models gat,bilstm_attention
    python -m benchmarks models --cores 1 --data path/to/data_089907f8.zip --json before.json
    python -m benchmarks models --cores 1 --data path/to/data_089907f8.zip --compare before.json

An epoch packs the batches, computes the gradients and updates the parameters; a test predicts all
test stories. "of matmul": FLOPs of the matrix products of training, padding included. Memory is the
peak of the process while it worked on the model; on an accelerator, the peak in use so far.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxprs_in_params
from ml_collections import ConfigDict

import clutrr_jax
from clutrr_jax.data.batching import pack, plan_shapes
from clutrr_jax.data.dataset import Dataset
from clutrr_jax.data.prepare import Prepared, prepare
from clutrr_jax.devices import device_name
from clutrr_jax.evaluation.frozen_states import with_states
from clutrr_jax.models import MODELS, Spec
from clutrr_jax.models.functional import ModelDef
from clutrr_jax.settings import TRAIN, model_names
from clutrr_jax.training.loop import Trainer
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.steps import loss_fn
from experiments.paper import commit
from generator.errors import Parser
from generator.files import read_json, write_text

# The part of the file of `--json` that `--compare` needs.
FIGURES = {"rows": [{"model": str, "replicas": int, "batch": int, "train": [float]}]}
COLUMNS = "{:18}{:>9}{:>6}{:>16}{:>10}{:>15}{:>7}"


def main(argv: list[str]) -> int:
    """Prints the table."""
    options = data_options("models", __doc__, repeats=5)
    options.add_argument(
        "--cores", type=positive_int, default=os.cpu_count(), help="CPU cores to use [all]"
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
    arguments = options.parse_args(argv)
    before = read_json(arguments.compare, FIGURES)["rows"] if arguments.compare else []
    limit_cores(arguments.cores, max(arguments.replicas))
    print(f"{device_name()}, {arguments.cores} core(s), median of {arguments.repeats}")
    peak = matmul_rate(arguments.repeats)
    print(f"matmul, float32: {peak / 1e9:,.0f} GFLOP/s")
    head = "model", "replicas", "batch", "train stories/s", "of matmul", "test stories/s", "GB"
    print(COLUMNS.format(*head))
    about = {"commit": commit(), "device": device_name(), "cores": arguments.cores,
             "matmul": {"float32": peak}}  # fmt: skip
    rows = []
    for row in measure(arguments):
        rows.append(row)
        train, test = statistics.median(row["train"]), statistics.median(row["test"])
        cells = (f"{train:,.0f}", f"{row['flops'] * train / peak:.0%}", f"{test:,.0f}",
                 f"{row['memory']:.2f}")  # fmt: skip
        line = COLUMNS.format(row["model"], row["replicas"], row["batch"], *cells)
        print(line + change(row, before), flush=True)
        if arguments.json:
            write_text(arguments.json, json.dumps(about | {"rows": rows}, indent=1) + "\n")
    return 0


def positive_int(text: str) -> int:
    """Parses a command-line value that must be a whole number, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}": expected 1 or more')
    return int(text)


def _positive_ints(text: str) -> list[int]:
    return [positive_int(number) for number in text.split(",")]


def data_options(name: str, description: str | None, repeats: int) -> Parser:
    """Returns a parser with the options of a benchmark that trains."""
    options = Parser(prog=f"python -m benchmarks {name}", description=description)
    options.add_argument("--data", help="a data set; default: 10,000 generated stories")
    options.add_argument(
        "--stories", type=positive_int, help="most train stories and most test stories to use [all]"
    )
    options.add_argument("--repeats", type=positive_int, default=repeats,
                         help=f"timed epochs; the median is printed [{repeats}]")  # fmt: skip
    return options


def read_data(arguments: argparse.Namespace) -> Prepared:
    """Reads the data set, or generates one; a random sample of a split with more stories."""
    data = clutrr_jax.load(arguments.data) if arguments.data else clutrr_jax.generate()
    parts = []
    for records in (data.records("train"), data.records("test")):
        order = np.random.default_rng(0).permutation(len(records))
        parts.append(records.select(np.sort(order[: arguments.stories])))
    return prepare(Dataset(data.name, *parts))


def new_trainer(
    spec: Spec, settings: ConfigDict, data: Prepared, replicas: int = 1, batch: int = 100
) -> Trainer:
    """Returns a trainer of all train stories, with the default settings of training."""
    train = ConfigDict(TRAIN | {"batch": batch, "dev_fraction": 0.0})
    return Trainer(spec, settings, train, data, Replicas(replicas))


def limit_cores(cores: int, replicas: int) -> None:
    """Restricts the process to some CPU cores, with one JAX device per core that replicas can use:
    before JAX initialises its devices."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    jax.config.update("jax_num_cpu_devices", min(cores, replicas))


def change(row: dict[str, Any], before: list[dict[str, Any]]) -> str:
    """Change of the training speed, and the largest spread between epochs of either run."""
    for old in before:
        if all(old[key] == row[key] for key in ("model", "replicas", "batch")):
            was, now = statistics.median(old["train"]), statistics.median(row["train"])
            noise = max(np.ptp(old["train"]) / was, np.ptp(row["train"]) / now)
            return f"  {now / was - 1:+.0%} (epochs differ by {noise:.0%})"
    return ""


def measure(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measures each combination of model, number of replicas and batch size: stories per second of
    each epoch, FLOPs per train story, and peak memory in GB."""
    words = read_data(arguments)
    for name, count, batch in product(arguments.models, arguments.replicas, arguments.batch):
        peak_memory()
        spec = MODELS[name]
        settings = ConfigDict(spec.config)
        data = with_states(words, settings) if spec.encoder else words
        trainer = new_trainer(spec, settings, data, count, batch)
        state = trainer.init()
        test = partial(trainer.predict, state.params, state.buffers, data.test_stories)
        _, *epochs = seconds(next_epoch(trainer), 1 + arguments.repeats)
        _, *tests = seconds(test, 1 + arguments.repeats)
        yield {
            "model": name,
            "replicas": count,
            "batch": batch,
            "train": [count * len(words.train) / s for s in epochs],
            "test": [count * len(words.test) / s for s in tests],
            "flops": flops_per_story(ModelDef(spec, settings, data.sizes), data, batch),
            "memory": peak_memory(),
        }


def next_epoch(trainer: Trainer) -> Callable[[], None]:
    """Returns a function that trains the next epoch."""
    state, epoch = trainer.init(), 0

    def run() -> None:
        nonlocal state, epoch
        epoch += 1
        state, _ = jax.block_until_ready(trainer.epoch(state, epoch))

    return run


def seconds(run: Callable[[], Any], repeats: int) -> list[float]:
    """Seconds of each of `repeats` calls; the first call compiles."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(run())
        found.append(time.perf_counter() - start)
    return found


def matmul_rate(repeats: int) -> float:
    """FLOP/s of large float32 products on the first device, with JAX's default precision."""
    # On an accelerator a single product would take less time than its launch.
    n, products = (2048, 1) if jax.default_backend() == "cpu" else (4096, 100)
    x = jax.random.normal(jax.random.key(0), (n, n)) / n**0.5  # the products stay finite
    run = jax.jit(lambda x: jax.lax.fori_loop(0, products, lambda _, y: x @ y, x))
    return products * 2 * n**3 / statistics.median(seconds(lambda: run(x), 1 + repeats)[1:])


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


def flops_per_story(definition: ModelDef, data: Prepared, batch: int) -> float:
    """Matmul FLOPs of a gradient per train story, padding included: averages over the padded
    shapes to which the stories are packed, weighted by their stories."""
    params, buffers = definition.init(jax.random.key(0))

    def loss(params: Any, packed: Any) -> jax.Array:
        return loss_fn(params, definition, buffers, packed, jax.random.key(0))

    stories, total = definition.spec.with_inputs(data.train_stories), 0.0
    for shape, rows in zip(*plan_shapes(definition.spec.kind, stories, batch), strict=True):
        packed = pack(stories, jnp.arange(shape.stories), shape)
        flops = matmul_flops(jax.make_jaxpr(jax.grad(loss))(params, packed).jaxpr)
        total += flops / shape.stories * len(rows)
    return total / len(stories.target)


def matmul_flops(jaxpr: Any) -> int:
    """FLOPs of every `dot_general` in a jaxpr, two per multiply-add. Those in a scan count once per
    iteration; XLA's cost analysis counts its body once."""
    total = 0
    for equation in jaxpr.eqns:
        iterations = equation.params["length"] if equation.primitive.name == "scan" else 1
        total += iterations * sum(map(matmul_flops, jaxprs_in_params(equation.params)))
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            total += 2 * prod(equation.outvars[0].aval.shape) * prod(left[d] for d in contracted)
    return total
