"""Training and test speed of each model, beside the matmul rate of the machine in the same run.

    python -m benchmarks models
    python -m benchmarks models --cores 1 --data path/to/data_089907f8.zip --json today.json
    python -m benchmarks models --cores 1 --data path/to/data_089907f8.zip --compare today.json

A training step is what an epoch is made of: packing a batch, the gradient, and the optimizer; a
test predicts all test stories. FLOP are those of the matrix products, padding included. Memory is
the most that the process had at once while it was busy with the model; on an accelerator, what had
been in use there at once until then.
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

from benchmarks import whole
from benchmarks.flops import matmul_flops
from generator.errors import InputError, Parser, at
from generator.files import read_json


def main(argv: list[str]) -> int:
    """Prints the table."""
    parser = Parser(
        prog="python -m benchmarks models",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", help="a CLUTRR data set; default: 10,000 generated stories")
    parser.add_argument(
        "--stories", type=whole, help="train and test stories at most; default: all"
    )
    parser.add_argument("--models", default="", help="comma-separated; default: all")
    parser.add_argument("--cores", type=whole, default=os.cpu_count(), help="CPU cores to use")
    parser.add_argument(
        "--replicas", type=_numbers, default="1", help="trained at once; 1,10: each"
    )
    parser.add_argument(
        "--batch", type=_numbers, default="100", help="stories per step; 100,400: each"
    )
    parser.add_argument(
        "--repeats", type=whole, default=5, help="timed epochs; their median counts"
    )
    parser.add_argument("--json", type=Path, help="file to write the figures to, every epoch's")
    parser.add_argument("--compare", type=Path, help="such a file, to show the change since")
    arguments = parser.parse_args(argv)
    before = _read(arguments.compare) if arguments.compare else []
    if arguments.json and not arguments.json.absolute().parent.is_dir():
        raise InputError(f"{at(arguments.json)}: cannot be written, there is no such folder")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.cores])
    jax.config.update("jax_num_cpu_devices", min(arguments.cores, max(arguments.replicas)))
    # Imported here: what it imports looks at the devices.
    from clutrr_jax.training.loop import device_name

    print(f"{device_name()}, {arguments.cores} core(s), median of {arguments.repeats}")
    peak = matmul_rate(arguments.repeats)
    print(f"matmul [2048, 2048] x [2048, 2048], float32: {peak / 1e9:.0f} GFLOP/s")
    of_each = ["stories/s", "GFLOP/s", "of matmul"]
    head = ["train " + of_each[0], *of_each[1:], "test " + of_each[0], *of_each[1:]]
    head += ["compile s", "GB"]
    line = "{:18}{:>9}{:>6}" + "{:>16}{:>9}{:>10}" * 2 + "{:>10}{:>7}"
    print(line.format("model", "replicas", "batch", *head))
    rows = []
    for row in measure(arguments):
        rows.append(row)
        cells = []
        for part, flops in (("train", "flops"), ("test", "test_flops")):
            speed = statistics.median(row[part])
            rate = row[flops] * speed
            cells += [f"{speed:,.0f}", f"{rate / 1e9:.1f}", f"{rate / peak:.0%}"]
        cells += [f"{row['compile']:.1f}", f"{row['memory']:.2f}"]
        print(
            line.format(row["model"], row["replicas"], row["batch"], *cells) + _change(row, before),
            flush=True,
        )
        if arguments.json:
            about = {"device": device_name(), "cores": arguments.cores, "matmul": peak}
            arguments.json.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")
    return 0


def _numbers(text: str) -> list[int]:
    return [whole(number) for number in text.split(",")]


def _read(path: Path) -> list[dict[str, Any]]:
    row = {"model": str, "replicas": int, "batch": int, "train": [float]}
    try:
        rows: list[dict[str, Any]] = read_json(path, {"rows": [row]})["rows"]
        return rows
    except InputError as error:
        raise InputError(f"{at(path)}: expected what --json has written ({error})") from None


def _change(row: dict[str, Any], before: list[dict[str, Any]]) -> str:
    """The change of the training speed since, and how far the epochs of either run lay apart."""
    for old in before:
        if all(old[key] == row[key] for key in ("model", "replicas", "batch")):
            was, now = statistics.median(old["train"]), statistics.median(row["train"])
            noise = max(np.ptp(old["train"]) / was, np.ptp(row["train"]) / now)
            return f"  {now / was - 1:+.0%} (epochs differ by {noise:.0%})"
    return ""


def peak_memory() -> float:
    """GB. Where Linux tells it, since the last call."""
    stats = jax.devices()[0].memory_stats()
    if stats:
        return stats["peak_bytes_in_use"] / 1e9
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    most = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
    return int(most.split()[1]) * 1024 / 1e9


def seconds(run: Callable[[], Any], repeats: int) -> list[float]:
    """Of `repeats` calls after one that is not counted."""
    jax.block_until_ready(run())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
    return times


def matmul_rate(repeats: int) -> float:
    """Float32 operations per second of one large product, on the first device."""
    n = 2048
    x = jax.random.normal(jax.random.key(0), (n, n))
    square = jax.jit(lambda x: x @ x)
    return 2 * n**3 / statistics.median(seconds(lambda: square(x), repeats))


def flops_per_story(
    spec: Any, settings: Any, data: Any, stories: Any, batch: int, train: bool
) -> float:
    """Operations in the matrix products of a gradient, or of a prediction, padding included; over
    the shapes that `stories` are packed to, by how many of them each has."""
    import optax
    from flax import nnx

    from clutrr_jax.data.batching import pack, plan_shapes, targets
    from clutrr_jax.models.common import split

    model = spec.model(settings, data.sizes, rngs=nnx.Rngs(0))
    if train:
        model.train()
    else:
        model.eval()
    graph, params, other = split(model)
    total = 0.0
    for shape, rows in zip(*plan_shapes(spec.kind, stories, batch), strict=True):
        packed = pack(stories, jnp.arange(shape.stories), shape)

        def answer(params: Any, packed: Any = packed) -> jax.Array:
            return nnx.merge(graph, params, other, copy=True)(packed)

        def loss(params: Any, packed: Any = packed) -> jax.Array:
            logits, target = answer(params, packed), targets(packed)[0]
            return optax.softmax_cross_entropy_with_integer_labels(logits, target).mean()

        flops = matmul_flops(jax.grad(loss) if train else answer, params)
        total += flops / shape.stories * len(rows)
    return total / len(stories.target)


def measure(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """For each model, number of replicas and batch: train and test stories per second in each
    epoch, FLOP per train and test story, the seconds that compiling adds to the first epoch, and
    memory in GB."""
    from ml_collections import ConfigDict

    from clutrr_jax.data.batching import TEST_BATCH
    from clutrr_jax.data.prepare import prepare
    from clutrr_jax.models import MODELS
    from clutrr_jax.models.pretrained.frozen_states import with_states
    from clutrr_jax.training.replicas import Replicas
    from clutrr_jax.training.steps import build
    from experiments.base import base
    from generator.config import Config
    from generator.write import write_dataset

    names = arguments.models.split(",") if arguments.models else list(MODELS)
    for name in names:
        if name not in MODELS:
            raise InputError(f'no model "{name}", expected some of {", ".join(MODELS)}')
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.data:
            write_dataset(Config(), Path(folder))
        words = prepare(arguments.data or folder, most=arguments.stories)
    for name, count, batch in product(names, arguments.replicas, arguments.batch):
        peak_memory()
        train = base("benchmarks", "").train
        train.update(batch=batch, dev=0.0)
        spec, replicas = MODELS[name], Replicas(count)
        settings = ConfigDict(spec.config)
        data = with_states(words, settings) if spec.kind == "states" else words
        programs = build(spec, settings, train, data.sizes, data.train_stories, replicas)
        start = time.perf_counter()
        state, _ = jax.block_until_ready(programs.epoch(programs.init(), 1))
        first = time.perf_counter() - start
        epochs = []
        for epoch in range(2, 2 + arguments.repeats):
            start = time.perf_counter()
            state, _ = jax.block_until_ready(programs.epoch(state, epoch))
            epochs.append(time.perf_counter() - start)
        test = partial(programs.predict, state.params, state.other, data.test_stories)
        tests = seconds(test, arguments.repeats)
        flops = partial(flops_per_story, spec, settings, data)
        test_batch = min(TEST_BATCH, len(data.test))
        yield {
            "model": name,
            "replicas": count,
            "batch": batch,
            "train": [count * len(words.train) / s for s in epochs],
            "test": [count * len(words.test) / s for s in tests],
            "flops": flops(data.train_stories, batch, train=True),
            "test_flops": flops(data.test_stories, test_batch, train=False),
            "compile": first - statistics.median(epochs),
            "memory": peak_memory(),
        }
