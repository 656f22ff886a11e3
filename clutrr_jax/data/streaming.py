"""Training on resampled stories: a thread samples the next epoch while this one trains."""

import math
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.data.batching import GRAPHS, LENGTH_STEP, InputKind, Shape, plan_shapes
from clutrr_jax.data.resample import EpochSampler, Layout
from generator.config import Config

# The arrays of all epochs have the sizes of the first stories, with some margin. Stories that do
# not fit are paraphrased again.
_LENGTH_MARGIN = 1.1  # longest story
_NAMES_MARGIN = 1.5  # names of people in a story
_COUNT_MARGIN = 4.0  # standard deviations of the number of stories of a length bucket


class ResampledStories:
    """Train stories of epoch 1, 2, ..., sampled one epoch ahead.

    Attributes:
      shapes: shapes of the batches, the same in all epochs.
      rows: for each shape the rows of its stories, the same in all epochs.
      first_rows: for each shape the rows of its stories in the stories given at the start.
      waited: seconds of waiting for the stories of the last epoch.
    """

    def __init__(
        self, kind: InputKind, config: Config, first: StoryArrays, entities: int, batch_size: int
    ):
        """
        Args:
          kind: input kind of the model, except "states".
          config: generator settings.
          first: stories of epoch 0, which determine the sizes of arrays and batches.
          entities: size of the pool of entities.
          batch_size: stories of a batch.
        """
        self.shapes, self.rows, self.first_rows, layout = _plan(kind, config, first, batch_size)
        self.waited = 0.0
        self._sampler = EpochSampler(config, entities, layout)
        self._thread = ThreadPoolExecutor(1)
        self._sampled: dict[int, Future[StoryArrays]] = {}  # the last epoch, and the one ahead

    def __call__(self, epoch: int) -> StoryArrays:
        """Returns the stories of an epoch, and one that owns the padding.

        Raises:
          InputError: the stories cannot be sampled.
        """
        start = time.perf_counter()
        self._sampled = {
            each: self._sampled.get(each) or self._thread.submit(self._sampler, each)
            for each in (epoch, epoch + 1)
        }
        stories = self._sampled[epoch].result()
        self.waited = time.perf_counter() - start
        return stories

    def close(self) -> None:
        """Ends the thread."""
        self._thread.shutdown(cancel_futures=True)


def _plan(
    kind: InputKind, config: Config, first: StoryArrays, batch_size: int
) -> tuple[list[Shape], list[np.ndarray], list[np.ndarray], Layout]:
    """Shapes, rows and first rows of `ResampledStories`, and the sizes of its arrays."""
    sizes = [(config.max_size(task), config.rows("train", task)) for task in config.train]
    people, facts = np.repeat(
        [size for size, _ in sizes], [rows for _, rows in sizes], axis=0
    ).T  # of each story at most
    layout = Layout(int(people.sum()), int(facts.sum()), 1, None, 0)
    if kind in GRAPHS:
        largest = first._replace(n_node=people, n_edge=facts)  # type: ignore[arg-type]
        shapes, rows = plan_shapes(kind, largest, batch_size)
        return shapes, rows, rows, layout
    shapes, first_rows = plan_shapes(kind, first, batch_size)
    shapes, counts = _add_margin(shapes, [len(rows) for rows in first_rows])
    # A shape may receive stories of any task.
    max_names = math.ceil(_NAMES_MARGIN * max(shape.names for shape in shapes))
    shapes = [
        replace(shape, people=int(people.max()), facts=int(facts.max()), names=max_names)
        for shape in shapes
    ]
    rows = np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
    max_tokens = np.repeat([shape.tokens for shape in shapes], counts).tolist()
    layout = layout._replace(tokens=sum(max_tokens), max_tokens=max_tokens, max_names=max_names)
    return shapes, rows, first_rows, layout


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
