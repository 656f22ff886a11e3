"""Speed of the generator.

Stories per second of processor time on one core, for each task and output format: from nothing to
the bytes of a file with all published columns and the audit of each row, and from nothing to arrays
in memory.
"""

import time
from collections.abc import Callable
from functools import partial

from benchmarks import parser
from generator.config import LANGUAGES, Config, parse_tasks
from generator.paraphrases.load import load_bank
from generator.stories.blocks import BLOCK, block
from generator.stories.hold_out import split_bank
from generator.write import FORMATS, Piece, Renderer

TASKS = ("1.2", "1.3", "5.3", "1.10")


def main(argv: list[str]) -> int:
    """Prints one line per task and language."""
    arguments = parser("generator", __doc__)
    arguments.add_argument("--seconds", type=float, default=3.0, help="per measurement [3]")
    seconds = arguments.parse_args(argv).seconds
    print("stories per second of processor time, on one core")
    print(f"{'task':6}{'language':12}" + "".join(f"{name:>12}" for name in (*FORMATS, "arrays")))
    for language in LANGUAGES:
        for name in TASKS:
            config = Config(train=parse_tasks(name), test=(), language=language)
            speeds = [_rate(_file_block(config, form), seconds) for form in FORMATS]
            speeds.append(_rate(partial(_arrays, config), seconds))
            print(f"{name:6}{language:12}" + "".join(f"{s:12,.0f}" for s in speeds), flush=True)
    return 0


def _file_block(config: Config, form: str) -> Callable[[int], int]:
    """Returns a function that renders one block of stories as bytes and returns their number."""
    render = Renderer(config, split_bank(load_bank(config), config), form)

    def run(block: int) -> int:
        render(Piece("train", config.train[0], block, BLOCK, 1 + BLOCK * block))
        return BLOCK

    return run


def _arrays(config: Config, index: int) -> int:
    return len(block(config, "train", config.train[0], index)[0])


def _rate(run: Callable[[int], int], seconds: float) -> float:
    """Stories per second of processor time of `run(block)`; the first block is warm-up."""
    run(0)
    start = time.process_time()
    stories, block = 0, 0
    while (passed := time.process_time() - start) < seconds:
        block += 1
        stories += run(block)
    return stories / passed
