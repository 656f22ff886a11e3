"""Training on resampled stories: another process samples the next epoch while this one trains."""

import math
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from multiprocessing import Pipe

import numpy as np

from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.data.batching import GRAPHS, LENGTH_STEP, InputKind, Shape, plan_shapes
from clutrr_jax.data.resample import Layout
from generator.config import Config
from generator.errors import InputError

# The arrays of all epochs have the sizes of the first stories, with some margin. Stories that do
# not fit are paraphrased again.
_LENGTH_MARGIN = 1.1  # longest story
_NAMES_MARGIN = 1.5  # names of people in a story
_COUNT_MARGIN = 4.0  # standard deviations of the number of stories of a length bucket

# `multiprocessing` would import the main module, and with it JAX, in the new process.
_PROGRAM = """import sys
sys.path[:] = {path}
from multiprocessing.connection import Connection
from clutrr_jax.data.resample import serve
serve(Connection({file}))"""


class ResampledStories:
    """Train stories of epoch 1, 2, ..., sampled by another process one epoch ahead.

    Attributes:
      shapes: shapes of the batches, the same in all epochs.
      rows: for each shape the rows of its stories, the same in all epochs.
      first_rows: for each shape the rows of its stories in the stories given at the start.
      waited: seconds of waiting for the stories of the last epoch.
    """

    def __init__(
        self, kind: InputKind, config: Config, first: StoryArrays, entities: int, batch_size: int
    ):
        """Starts the process.

        Args:
          kind: input kind of the model, except "states".
          config: generator settings.
          first: stories of epoch 0, which determine the sizes of arrays and batches.
          entities: size of the pool of entities.
          batch_size: stories of a batch.
        """
        layout = self._plan(kind, config, first, batch_size)
        self.waited = 0.0
        self._requested: int | None = None  # epoch whose stories are sampled ahead
        self._connection, connection = Pipe()
        program = _PROGRAM.format(path=sys.path, file=connection.fileno())
        self._process = subprocess.Popen(
            [sys.executable, "-c", program],
            pass_fds=[connection.fileno()],
            stdin=subprocess.DEVNULL,
            process_group=0,  # Ctrl-C goes to the training process only
        )
        connection.close()
        self._send((config, entities, layout))

    def _plan(self, kind: InputKind, config: Config, first: StoryArrays, batch_size: int) -> Layout:
        """Sets the shapes and rows, and returns the sizes of the arrays."""
        sizes = [(config.max_size(task), config.rows("train", task)) for task in config.train]
        people, facts = np.repeat(
            [size for size, _ in sizes], [rows for _, rows in sizes], axis=0
        ).T  # of each story at most
        layout = Layout(int(people.sum()), int(facts.sum()), 1, None, 0)
        if kind in GRAPHS:
            largest = first._replace(n_node=people, n_edge=facts)  # type: ignore[arg-type]
            self.shapes, self.first_rows = plan_shapes(kind, largest, batch_size)
            self.rows = self.first_rows
            return layout
        shapes, self.first_rows = plan_shapes(kind, first, batch_size)
        shapes, counts = _add_margin(shapes, [len(rows) for rows in self.first_rows])
        # A shape may receive stories of any task.
        max_names = math.ceil(_NAMES_MARGIN * max(shape.names for shape in shapes))
        self.shapes = [
            replace(shape, people=int(people.max()), facts=int(facts.max()), names=max_names)
            for shape in shapes
        ]
        self.rows = np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
        max_tokens = np.repeat([shape.tokens for shape in self.shapes], counts).tolist()
        return layout._replace(tokens=sum(max_tokens), max_tokens=max_tokens, max_names=max_names)

    def __call__(self, epoch: int) -> StoryArrays:
        """Returns the stories of an epoch, and one that owns the padding.

        Raises:
          InputError: the stories cannot be sampled, or the process was killed.
        """
        start = time.perf_counter()
        if self._requested != epoch:
            if self._requested is not None:
                self._receive(self._requested)
            self._send(epoch)
        self._send(epoch + 1)
        self._requested = epoch + 1
        stories = self._receive(epoch)
        self.waited = time.perf_counter() - start
        return stories

    def close(self) -> None:
        """Ends the process."""
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def _send(self, message: object) -> None:
        with suppress(OSError):  # the process has ended: `_receive` reports why
            self._connection.send(message)

    def _receive(self, epoch: int) -> StoryArrays:
        try:
            answer = self._connection.recv()
        except (EOFError, OSError):
            raise InputError(
                f"epoch {epoch}: the process that samples the stories has ended (exit code "
                f"{self._process.wait()}), with its error above; run the same command to resume"
            ) from None
        if isinstance(answer, str):
            raise InputError(f"epoch {epoch}: no stories can be sampled: {answer}")
        return StoryArrays(**answer)


def _add_margin(shapes: list[Shape], counts: list[int]) -> tuple[list[Shape], list[int]]:
    """Adjusts shapes and story counts of length buckets to the stories of other epochs.

    Later buckets have room for more stories, as the number of long stories varies by epoch.
    """
    total = sum(counts)
    longer = total - np.cumsum(counts)  # stories that are too long for this bucket
    deviation = np.sqrt(2 * longer * (1 - longer / total) + 1)  # of the difference of two epochs
    room = np.minimum(total, np.ceil(longer + _COUNT_MARGIN * deviation)).astype(int)
    room[-1] = 0
    longest = math.ceil(_LENGTH_MARGIN * shapes[-1].tokens / LENGTH_STEP) * LENGTH_STEP
    shapes = [*shapes[:-1], replace(shapes[-1], tokens=longest)]
    return shapes, (-np.diff([total, *room])).tolist()
