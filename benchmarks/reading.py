"""Time from a data file to padded batches.

Seconds for each step: file to records, records to flat arrays on the device, and arrays to padded
batches of all stories, as graphs and as tokens. Packing is compiled beforehand, because training
and testing run it inside their own compiled programs.
"""

import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax

from benchmarks import parser
from clutrr_jax.data.arrays import build_arrays
from clutrr_jax.data.batching import InputKind, chunk, pack, plan_shapes
from clutrr_jax.data.dataset import load
from clutrr_jax.data.vocabulary import build_vocabulary, entity_pool

BATCH = 100  # stories


def main(argv: list[str]) -> int:
    """Prints one line per data set."""
    arguments = parser("reading", __doc__)
    arguments.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a CLUTRR data set")
    files = arguments.parse_args(argv).files
    print(f"{'data set':20}{'stories':>9}{'records':>9}{'arrays':>9}{'batches':>9}{'total':>9}")
    for file in files:
        stories, seconds = measure(file)
        columns = [*seconds, sum(seconds)]
        print(f"{file.stem:20}{stories:9,}" + "".join(f"{s:8.2f}s" for s in columns), flush=True)
    return 0


def measure(file: Path) -> tuple[int, list[float]]:
    """Returns the number of stories and the seconds of each of the three steps."""
    times = [time.perf_counter()]
    data = load(file)
    splits = [records for records in (data.train, data.test) if records is not None]
    times.append(time.perf_counter())
    vocabulary = build_vocabulary(splits[0], entity_pool(*splits))
    arrays = [build_arrays(records, vocabulary, seed=0) for records in splits]
    jax.block_until_ready(arrays)
    times.append(time.perf_counter())
    programs = [program for stories in arrays for program in packing(stories)]
    compiled = time.perf_counter()
    jax.block_until_ready([program() for program in programs])
    seconds = [b - a for a, b in pairwise(times)]
    return sum(map(len, splits)), [*seconds, time.perf_counter() - compiled]


def packing(stories: Any) -> list[Callable[[], Any]]:
    """Returns compiled programs that pack all stories into graph batches and token batches."""

    def batches(stories: Any, chunks: Any, shape: Any) -> Any:
        return jax.lax.map(lambda rows: pack(stories, rows, shape), chunks)

    programs: list[Callable[[], Any]] = []
    kinds: tuple[InputKind, ...] = ("graph", "tokens")
    for kind in kinds:
        shapes, buckets = plan_shapes(kind, stories, min(BATCH, len(stories.target)))
        for shape, rows in zip(shapes, buckets, strict=True):
            chunks = chunk(rows, shape.stories)
            lowered = jax.jit(batches, static_argnums=2).lower(stories, chunks, shape)
            programs.append(partial(lowered.compile(), stories, chunks))
    return programs
