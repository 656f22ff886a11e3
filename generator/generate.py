"""Stories in memory, for training on fresh data without any file."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from generator.blocks import BLOCK, block
from generator.config import Config
from generator.hold_out import SplitBank, split_bank
from generator.names import bracketed
from generator.paraphrases.load import load_bank
from generator.stories import Stories
from generator.text import texts


@dataclass(frozen=True)
class Generated:
    """S stories with up to N people and E facts; -1 stands for no person and no fact.

    People are numbered within their story. The first `clause_length` facts are the path from the
    first to the second asked person, the others are noise (or the stated answer).
    """

    edges: np.ndarray  # [S, E, 2] people (X, Y) of the facts
    relations: np.ndarray  # [S, E] what Y is to X, index in kinship.RELATIONS
    genders: np.ndarray  # [S, N] index in kinship.GENDERS
    query: np.ndarray  # [S, 2] the asked pair (X, Y)
    target: np.ndarray  # [S] what Y is to X, index in kinship.RELATIONS
    task: np.ndarray  # [S] the T of task T.K
    clause_length: np.ndarray  # [S] its K
    stories: list[str]  # S texts, names in [brackets]; empty without text
    names: list[list[str]]  # the names of each story's people, with brackets; empty without text

    def __len__(self) -> int:
        return len(self.target)


def generate(
    config: Config,
    split: str = "train",
    rows: int | None = None,
    first: int = 0,
    text: bool = True,
    draw: int = 0,
) -> Generated:
    """Draws the stories of a split, all tasks one after the other.

    Each task is an endless sequence of stories; files hold its start. A training that wants fresh
    stories in each epoch takes the epoch's number as `draw`: what is held out stays the same.

    Args:
      config: the settings.
      split: train, test or dev.
      rows: stories per task, by default those of the settings.
      first: position of the first story of each task in its sequence.
      text: whether to write the text too, which takes most of the time.
      draw: which of endlessly many sequences; files hold those of draw 0.
    Raises:
      InputError: the settings cannot be met.
    """
    banks = _banks(config)
    tellable = banks.tellable()
    parts: list[Stories] = []
    stories: list[str] = []
    names: list[list[str]] = []
    for task in config.tasks(split):
        last = first + (config.rows(split, task) if rows is None else rows)
        for index in range(first // BLOCK, -(-last // BLOCK) if last > first else 0):
            part, rng = block(config, split, task, index, tellable, draw)
            wanted = slice(max(first - index * BLOCK, 0), last - index * BLOCK)
            if text:
                people = bracketed(part.gender, part.name)
                told = texts(part, people, banks.of(split), rng)
                stories += [story for story, _, _ in told][wanted]
                names += people[wanted]
            parts.append(part.select(wanted))
    most = max((part.gender.shape[1] for part in parts), default=0)
    facts = max((part.edge_relations().shape[1] for part in parts), default=0)
    return Generated(
        edges=_stack([part.edges() for part in parts], (facts, 2)),
        relations=_stack([part.edge_relations() for part in parts], (facts,)),
        genders=_stack([part.gender for part in parts], (most,)),
        query=_stack([part.query() for part in parts], (2,)),
        target=_stack([part.target for part in parts], ()),
        task=_stack([np.full(len(part), part.task.noise) for part in parts], ()),
        clause_length=_stack([np.full(len(part), part.task.k) for part in parts], ()),
        stories=stories,
        names=names,
    )


@lru_cache(maxsize=8)
def _banks(config: Config) -> SplitBank:
    return split_bank(load_bank(config), config)


def _stack(parts: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """All rows, each filled up with -1 to the given shape."""
    padded = [
        np.pad(
            part,
            [(0, 0), *((0, size - has) for size, has in zip(shape, part.shape[1:], strict=True))],
            constant_values=-1,
        )
        for part in parts
    ]
    return np.concatenate(padded) if padded else np.empty((0, *shape), np.int64)
