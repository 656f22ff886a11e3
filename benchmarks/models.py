"""Training and test speed of each model, beside the matmul rate of the machine in the same run.

    python -m benchmarks models
    python -m benchmarks models --cores 1 --data path/to/data_089907f8.zip

A training step is what an epoch is made of: packing a batch, the gradient, and the optimizer.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.flops import matmul_flops


def main(argv: list[str]) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks models",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", help="a CLUTRR data set; default: 10,000 generated stories")
    parser.add_argument("--models", default="", help="comma-separated; default: all")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="CPU cores to use")
    parser.add_argument("--replicas", type=int, default=1, help="trained at once")
    parser.add_argument("--batch", type=int, default=100, help="stories per step")
    parser.add_argument("--repeats", type=int, default=5, help="timed epochs; their median counts")
    arguments = parser.parse_args(argv)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.cores])
    jax.config.update("jax_num_cpu_devices", min(arguments.cores, arguments.replicas))
    # Imported here: what they import looks at the devices.
    from clutrr_jax.run import device_name

    print(f"{device_name()}, {arguments.cores} core(s), batch {arguments.batch}, "
          f"{arguments.replicas} replica(s), median of {arguments.repeats}")  # fmt: skip
    peak = matmul_rate(arguments.repeats)
    print(f"matmul [2048, 2048] x [2048, 2048], float32: {peak / 1e9:.0f} GFLOP/s")
    head = ("model", "train/s", "test/s", "GFLOP/s", "of matmul", "compile s")
    print(("{:18}" + "{:>11}" * 5).format(*head))
    for model, rates in measure(arguments):
        flops = rates["flops"] * rates["train"]
        print(
            f"{model:18}{rates['train']:11,.0f}{rates['test']:11,.0f}{flops / 1e9:11.1f}"
            f"{flops / peak:10.0%} {rates['compile']:10.1f}",
            flush=True,
        )
    return 0


def median_seconds(run: Callable[[], Any], repeats: int) -> float:
    """Of `repeats` calls after one that is not counted."""
    jax.block_until_ready(run())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def matmul_rate(repeats: int) -> float:
    """Float32 operations per second of one large product, on the first device."""
    n = 2048
    x = jax.random.normal(jax.random.key(0), (n, n))
    product = jax.jit(lambda x: x @ x)
    return 2 * n**3 / median_seconds(lambda: product(x), repeats)


def gradient_flops(spec: Any, settings: Any, data: Any, shape: Any) -> int:
    """Operations in the matrix products of one gradient, padding included."""
    import optax
    from flax import nnx

    from clutrr_jax.data.batches import pack, targets
    from clutrr_jax.models.common import split

    model = spec.model(settings, data.sizes, rngs=nnx.Rngs(0))
    graph, params, other = split(model)
    batch = pack(data.train_stories, jnp.arange(shape.stories), shape)

    def loss(params: Any) -> jax.Array:
        logits = nnx.merge(graph, params, other, copy=True)(batch)
        return optax.softmax_cross_entropy_with_integer_labels(logits, targets(batch)[0]).mean()

    return matmul_flops(jax.grad(loss), params)


def measure(arguments: argparse.Namespace):
    """Name and rates of each model: train and test stories per second, FLOP per train story, and
    the seconds until the first epoch is done."""
    from ml_collections import ConfigDict

    from clutrr_jax.bert.features import with_states
    from clutrr_jax.data.batches import plan_shapes
    from clutrr_jax.models import MODELS
    from clutrr_jax.prepare import prepare
    from clutrr_jax.replicas import Replicas
    from clutrr_jax.training import build
    from experiments.base import base
    from generator.config import Config
    from generator.errors import InputError
    from generator.write import write_dataset

    names = arguments.models.split(",") if arguments.models else list(MODELS)
    for name in names:
        if name not in MODELS:
            raise InputError(f'no model "{name}", expected some of {", ".join(MODELS)}')
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.data:
            write_dataset(Config(), Path(folder))
        words = prepare(arguments.data or folder)
    train = base("benchmarks", "").train
    train.update(batch=arguments.batch, dev=0.0)
    replicas = Replicas(arguments.replicas)
    stories = arguments.replicas * len(words.train)
    for name in names:
        spec = MODELS[name]
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
        seconds = statistics.median(epochs)
        test = partial(programs.predict, state.params, state.other, data.test_stories)
        testing = median_seconds(test, arguments.repeats)
        shapes, buckets = plan_shapes(spec.kind, data.train_stories, arguments.batch)
        flops = [gradient_flops(spec, settings, data, shape) for shape in shapes]
        shares = np.array([len(rows) for rows in buckets]) / len(data.train)
        yield (
            name,
            {
                "train": stories / seconds,
                "test": arguments.replicas * len(data.test) / testing,
                "flops": float(np.dot(flops, shares)) / arguments.batch,
                "compile": first - seconds,
            },
        )
