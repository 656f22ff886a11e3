"""Training on stories that a process of its own draws anew for every epoch, ahead of the device.

That process is none of `multiprocessing`, which would import launch.py there, and JAX with it. It
ends when its pipe does, however this process has ended.
"""

import json
import math
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.data.batching import GRAPHS, LENGTH_STEP, InputKind, Shape, plan_shapes
from clutrr_jax.data.resample import Layout
from generator.config import Config
from generator.errors import InputError

AHEAD = 1  # epochs that are asked for before they are needed; the pipe holds no more
_SLACK = 4.0  # standard deviations of a number of long stories that a bucket has room for beside
_LONGEST = 1.1  # how much longer than the longest of the first draw a story may be
_MOST_NAMES = 1.5  # times those of the story that names people most, in the first draw
_PROGRAM = """import sys
sys.path[:] = {path}
from clutrr_jax.data.resample import serve
serve(sys.stdin.buffer, sys.stdout.buffer)"""


class Streaming:
    """StoryArrays of epoch 1, 2, ... as the settings of the generator ask for.

    Attributes:
      shapes: of the batches, for all epochs.
      rows: of the stories of any epoch, those of each shape.
      first_rows: of the first draw, those of each shape.
      waited: seconds that the last epoch had to wait for its stories.
    """

    def __init__(
        self, kind: InputKind, config: Config, first: StoryArrays, entities: int, batch_size: int
    ):
        """Starts the process.

        Args:
          kind: what the model reads: anything but frozen states.
          config: of the generator.
          first: the stories of draw 0, by which the arrays and batches of all others are measured.
          entities: size of the pool that the people of each story are drawn from.
          batch_size: stories of a batch.
        """
        rows = [(config.max_size(task), config.rows("train", task)) for task in config.train]
        people, facts = np.repeat(
            [most for most, _ in rows], [count for _, count in rows], axis=0
        ).T
        layout = Layout(int(people.sum()), int(facts.sum()), 1, None, 0)
        if kind in GRAPHS:
            bounds = first._replace(n_node=people, n_edge=facts)  # type: ignore[arg-type]
            self.shapes, self.first_rows = plan_shapes(kind, bounds, batch_size)
            self.rows = self.first_rows
        else:
            shapes, self.first_rows = plan_shapes(kind, first, batch_size)
            shapes, counts = _with_slack(shapes, list(map(len, self.first_rows)))
            # StoryArrays of any task may have the length of any shape.
            self.shapes = [
                replace(
                    shape,
                    people=int(people.max()),
                    facts=int(facts.max()),
                    names=math.ceil(_MOST_NAMES * max(shape.names for shape in shapes)),
                )
                for shape in shapes
            ]
            ends = np.cumsum(counts)
            self.rows = [np.arange(e - c, e) for e, c in zip(ends, counts, strict=True)]
            limits = np.repeat([shape.tokens for shape in self.shapes], counts).tolist()
            layout = layout._replace(tokens=sum(limits), limits=limits, names=self.shapes[0].names)
        self.waited = 0.0
        self._asked: deque[int] = deque()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # Ctrl-C and a scheduler's SIGTERM are for this process to answer
        )
        settings = {"config": config.to_json(), "entities": entities, "layout": layout._asdict()}
        self._send(json.dumps(settings))

    def __call__(self, epoch: int) -> StoryArrays:
        """The stories of an epoch, and one that owns the padding.

        Raises:
          InputError: the process has failed, or has been killed.
        """
        start = time.perf_counter()
        while self._asked and self._asked[0] != epoch:
            self._receive(self._asked.popleft())
        for number in range(epoch + len(self._asked), epoch + 1 + AHEAD):
            self._asked.append(number)
            self._send(str(number))
        stories = self._receive(self._asked.popleft())
        self.waited = time.perf_counter() - start
        return stories

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        # Where the process has ended, what it has said before tells why.
        with suppress(BrokenPipeError):
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def _receive(self, epoch: int) -> StoryArrays:
        answers = self._process.stdout
        assert answers is not None
        line = answers.readline()
        shapes = json.loads(line) if line.endswith(b"\n") else None
        if shapes and "error" in shapes:
            raise InputError(f"epoch {epoch}: no stories can be generated: {shapes['error']}")
        arrays: dict[str, Any] = {}
        for name, shape in (shapes or {}).items():
            content = answers.read(4 * math.prod(shape))
            if len(content) == 4 * math.prod(shape):
                arrays[name] = np.frombuffer(content, np.int32).reshape(shape)
        if not shapes or len(arrays) < len(shapes):
            raise InputError(
                f"epoch {epoch}: the process that generates its stories has ended (exit code "
                f"{self._process.wait()}); the same command goes on from the last checkpoint"
            )
        return StoryArrays(**arrays)


def _with_slack(shapes: list[Shape], counts: list[int]) -> tuple[list[Shape], list[int]]:
    """The shapes of text batches and how many stories each is for, such that the stories of another
    draw fit in too."""
    total = sum(counts)
    longer = total - np.cumsum(counts)  # than each shape has room for
    # Of the difference of two draws.
    deviation = np.sqrt(2 * longer * (1 - longer / total) + 1)
    room = np.minimum(total, np.ceil(longer + _SLACK * deviation)).astype(int)
    room[-1] = 0
    longest = math.ceil(_LONGEST * shapes[-1].tokens / LENGTH_STEP) * LENGTH_STEP
    shapes = [*shapes[:-1], replace(shapes[-1], tokens=longest)]
    return shapes, (-np.diff([total, *room])).tolist()
