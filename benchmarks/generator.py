"""Speed of the generator.

Stories per second of processor time on one core, for each task and output format: from nothing to
the bytes of a file with all published columns and the audit of each row, and from nothing to arrays
in memory.
"""

import time
from collections.abc import Callable
from functools import partial
from itertools import product

from generator.errors import Parser
from generator.paraphrases.load import load_bank
from generator.stories.blocks import BLOCK, block
from generator.stories.config import LANGUAGES, Config, parse_tasks
from generator.stories.hold_out import split_bank
from generator.write import FORMATS, Piece, Renderer

TASKS = ("1.2", "1.3", "5.3", "1.10")


def main(argv: list[str]) -> int:
    """Prints one line per task and language."""
    options = Parser(prog="python -m benchmarks generator", description=__doc__)
    options.add_argument("--seconds", type=float, default=3.0, help="per measurement [3]")
    seconds = options.parse_args(argv).seconds
    print("stories per second of processor time, on one core")
    print(f"{'task':6}{'language':12}" + "".join(f"{name:>12}" for name in (*FORMATS, "arrays")))
    for language, name in product(LANGUAGES, TASKS):
        config = Config(train=parse_tasks(name), test=(), language=language)
        bank = split_bank(load_bank(config), config)
        runs: list[Callable[[Config, int], None]] = [
            partial(_render, Renderer(config, bank, form)) for form in FORMATS
        ]
        speeds = [_rate(run, config, seconds) for run in [*runs, _arrays]]
        print(f"{name:6}{language:12}" + "".join(f"{s:12,.0f}" for s in speeds), flush=True)
    return 0


def _render(render: Renderer, config: Config, index: int) -> None:
    render(Piece("train", config.train[0], index, BLOCK, 1 + BLOCK * index))


def _arrays(config: Config, index: int) -> None:
    block(config, "train", config.train[0], index)


def _rate(run: Callable[[Config, int], None], config: Config, seconds: float) -> float:
    """Stories per second of processor time of a function of one block; block 0 is warm-up."""
    run(config, 0)
    start, index = time.process_time(), 0
    while (passed := time.process_time() - start) < seconds:
        index += 1
        run(config, index)
    return index * BLOCK / passed
