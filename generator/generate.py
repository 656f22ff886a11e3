"""In-memory generation: the rows of a data set without files."""

from collections.abc import Iterator

from generator.blocks import BLOCK, block
from generator.columns import COLUMNS
from generator.config import Config
from generator.hold_out import split_bank
from generator.paraphrases.load import load_bank
from generator.render import story_rows


def generate(config: Config, split: str = "train") -> Iterator[dict[str, str]]:
    """Yields the rows that the files of a split contain, task by task.

    Args:
      config: generator settings.
      split: train, test or dev.

    Yields:
      The text of each published column by name. As in the files, the first column ("") is the row
      index; each test task starts at 0.

    Raises:
      InputError: the settings allow no such stories, or too few.
    """
    banks = split_bank(load_bank(config), config)
    expressible = banks.expressible()
    first = 0
    for task in config.tasks(split):
        if split == "test":
            first = 0
        num_rows = config.rows(split, task)
        for index in range(-(-num_rows // BLOCK)):
            stories, rng = block(config, split, task, index, expressible)
            stories = stories.select(slice(num_rows - index * BLOCK))
            for cells in story_rows(stories, split, first, banks.of(split), rng):
                yield dict(zip(COLUMNS, cells, strict=True))
            first += len(stories)
