"""Speed of the generator on one core: `python -m benchmarks generator`.

Stories per second from nothing to the bytes of the CSV file (or .csv.gz, .parquet), all published
columns and the audit of each row included, and from nothing to arrays in memory.
"""

import argparse
import time
from collections.abc import Callable

from generator.config import Config, parse_tasks
from generator.generate import generate
from generator.hold_out import split_bank
from generator.paraphrases.load import load_bank
from generator.write import FORMATS, Piece, Renderer

_TASKS = ("1.2", "1.3", "5.3", "1.10")


def main(argv: list[str]) -> int:
    """Prints one line per task and form of output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks generator", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="per measurement [3]")
    seconds = parser.parse_args(argv).seconds
    print("stories per second of processor time, on one core")
    print(f"{'task':6}{'language':12}" + "".join(f"{name:>12}" for name in (*FORMATS, "arrays")))
    for language in ("paraphrase", "synthetic"):
        for name in _TASKS:
            config = Config(train=parse_tasks(name), test=(), language=language)
            speeds = [_rate(_written(config, form), seconds) for form in FORMATS]
            speeds.append(_rate(_arrays(config), seconds))
            print(f"{name:6}{language:12}" + "".join(f"{s:12,.0f}" for s in speeds), flush=True)
    return 0


def _written(config: Config, form: str) -> Callable[[int], int]:
    render = Renderer(config, split_bank(load_bank(config), config), form)

    def run(block: int) -> int:
        render(Piece("train", config.train[0], block, 1024, 1 + 1024 * block))
        return 1024

    return run


def _arrays(config: Config) -> Callable[[int], int]:
    return lambda block: len(generate(config, rows=1024, first=1024 * block, text=False))


def _rate(run: Callable[[int], int], seconds: float) -> float:
    """Stories per second of processor time of `run(block)`; the first block is warm-up."""
    run(0)
    start = time.process_time()
    stories, block = 0, 0
    while (passed := time.process_time() - start) < seconds:
        block += 1
        stories += run(block)
    return stories / passed
