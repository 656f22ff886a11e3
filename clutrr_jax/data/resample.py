"""Train stories drawn anew for every epoch, as arrays, and the process that makes them.

NumPy only: JAX belongs to the process that trains. Nor are sentences written: a paraphrase is
turned into tokens once, and a story is put together of them.
"""

import json
import os
from typing import BinaryIO, NamedTuple

import numpy as np

from clutrr_jax.data.vocabulary import FIRST_ENTITY, Vocabulary, draw_entities, tokens_of, words_of
from generator.blocks import BLOCK, block
from generator.config import Config
from generator.errors import InputError
from generator.hold_out import split_bank
from generator.paraphrases.load import load_bank
from generator.stories import Stories as Part
from generator.text import MAX_PARAPHRASE_FACTS, Bank, choose_templates

_ATTEMPTS = 1000  # to tell a story in fewer words


class Layout(NamedTuple):
    """How the arrays of an epoch look, whatever its stories."""

    people: int  # room for so many in all
    facts: int
    tokens: int
    limits: list[int] | None  # [S] most tokens of the shortest story, the next, ...; None: no text
    names: int  # most names of people in a story


class _Pieces(NamedTuple):
    """P paraphrases, story by story in the order of the text."""

    story: np.ndarray  # [P]
    template: np.ndarray  # [P]
    people: np.ndarray  # [P, 4] counted within the story


def bank_words(config: Config) -> tuple[str, ...]:
    """All words that train stories can have."""
    return words_of(_named(split_bank(load_bank(config), config).train))


def _named(bank: Bank) -> list[str]:
    """The templates by number; their people are called 0, 1, ... behind a sign that no text has."""
    return [
        text.format(*(f"[\0{i}]" for i in range(MAX_PARAPHRASE_FACTS + 1)))
        for text in bank.pools.texts
    ]


class Epochs:
    """Makes the stories of any epoch, by its number alone."""

    def __init__(self, config: Config, entities: int, layout: Layout):
        """
        Args:
          config: of the generator.
          entities: size of the pool that the people of each story are drawn from.
          layout: of the arrays.
        """
        banks = split_bank(load_bank(config), config)
        self.config, self.entities, self.layout = config, entities, layout
        self.bank, self.tellable = banks.train, banks.expressible()
        texts = _named(self.bank)
        number = Vocabulary(words_of(texts), entities).numbers()
        people = {f"[\0{i}]": -1 - i for i in range(MAX_PARAPHRASE_FACTS + 1)}
        templates = [tokens_of(text, number, people) for text in texts]
        # Of all templates one after the other; -1 - i stands for person i of the template.
        self.tokens = np.array([token for template in templates for token in template])
        self.size = np.array([len(template) for template in templates])
        self.names = np.array([sum(token < 0 for token in template) for template in templates])

    def __call__(self, number: int) -> dict[str, np.ndarray]:
        """The arrays of `clutrr_jax.data.stories.Stories`, int32.

        They are of S + 1 stories: those of the epoch, in order of their tasks or, where they have
        text, of their lengths; and one that owns what is left of the flat arrays. A story too long
        for the limits of the layout, which are ample, or with too many names, is told in other
        words.
        """
        parts: list[Part] = []
        pieces: list[_Pieces] = []
        count = 0
        for task in self.config.train:
            rows = self.config.rows("train", task)
            for index in range(-(-rows // BLOCK)):
                part, rng = block(self.config, "train", task, index, self.tellable, number)
                parts.append(part.select(slice(rows - index * BLOCK)))
                if self.layout.limits is not None:
                    pieces.append(
                        self._tell(parts[-1], np.arange(count, count + len(parts[-1])), rng)
                    )
                count += len(parts[-1])
        n_node = np.concatenate([(part.gender >= 0).sum(axis=1) for part in parts])
        entity = draw_entities(n_node, self.entities, [self.config.seed, number])
        if self.layout.limits is None:
            order, n_token, tokens = np.arange(count), np.zeros(count, np.int64), np.zeros(0)
        else:
            told, n_token = self._fitted(parts, pieces, number)
            order = np.argsort(n_token, kind="stable")
            tokens = self._written(told, entity, np.cumsum(n_node) - n_node)
        stated = [part.edge_relations() >= 0 for part in parts]
        edges = np.concatenate([p.edges()[has] for p, has in zip(parts, stated, strict=True)])
        relation = [p.edge_relations()[has] for p, has in zip(parts, stated, strict=True)]

        nodes = _Moved(n_node, order, self.layout.people)
        facts = _Moved(
            np.concatenate([has.sum(axis=1) for has in stated]), order, self.layout.facts
        )
        words = _Moved(n_token, order, self.layout.tokens)
        each = np.append(order, -1)  # the last story has nothing but zeros
        arrays = {
            "node_start": nodes.start,
            "n_node": nodes.size,
            "entity": nodes.move(entity),
            "edge_start": facts.start,
            "n_edge": facts.size,
            "senders": facts.move(edges[:, 0]),
            "receivers": facts.move(edges[:, 1]),
            "relation": facts.move(np.concatenate(relation)),
            "token_start": words.start,
            "n_token": words.size,
            "tokens": words.move(tokens),
            "query": _with_zero([part.query() for part in parts])[each],
            "target": _with_zero([part.target for part in parts])[each],
            "clause_length": _with_zero([np.full(len(p), p.task.k) for p in parts])[each],
        }
        return {name: np.ascontiguousarray(array, np.int32) for name, array in arrays.items()}

    def _tell(self, part: Part, numbers: np.ndarray, rng: np.random.Generator) -> _Pieces:
        """The paraphrases of some stories of one task, which have these numbers in the epoch."""
        told = choose_templates(part, self.bank, rng)
        story = np.repeat(numbers, np.diff(told.start))
        return _Pieces(story, told.template[told.order], told.people[told.order])

    def _fitted(
        self, parts: list[Part], pieces: list[_Pieces], number: int
    ) -> tuple[_Pieces, np.ndarray]:
        """The paraphrases of all stories, such that all fit into the limits, and the tokens of each
        story [S]."""
        limits = np.array(self.layout.limits)
        first = np.cumsum([0, *map(len, parts)])
        told = _joined(pieces)
        for attempt in range(_ATTEMPTS):
            n_token = np.bincount(told.story, self.size[told.template], len(limits)).astype(int)
            order = np.argsort(n_token, kind="stable")
            n_name = np.bincount(told.story, self.names[told.template], len(limits))
            too_many = np.flatnonzero(n_name > self.layout.names)
            late = np.union1d(order[n_token[order] > limits], too_many)
            if not len(late):
                return told, n_token
            rng = np.random.default_rng([self.config.seed, number, attempt])
            keep = ~np.isin(told.story, late)
            again = [_Pieces(*(array[keep] for array in told))]
            for begin, part in zip(first, parts, strict=False):
                own = late[(late >= begin) & (late < begin + len(part))]
                if len(own):
                    again.append(self._tell(part.select(own - begin), own, rng))
            told = _joined(again)
        raise InputError(
            f"epoch {number}: {len(late)} stories are longer, or name people more often, than any "
            "of the first draw; expected more --config.generate.train_rows, which it is measured by"
        )

    def _written(self, told: _Pieces, entity: np.ndarray, node_start: np.ndarray) -> np.ndarray:
        """The tokens of all stories, [M]."""
        start = np.cumsum(self.size) - self.size
        piece = np.repeat(np.arange(len(told.story)), self.size[told.template])
        index, _ = _spans(start[told.template], self.size[told.template])
        tokens = self.tokens[index]
        place = np.flatnonzero(tokens < 0)
        piece = piece[place]
        person = told.people[piece, -1 - tokens[place]] + node_start[told.story[piece]]
        tokens[place] = entity[person] + FIRST_ENTITY
        return tokens


def _joined(parts: list[_Pieces]) -> _Pieces:
    """All pieces, story by story."""
    pieces = _Pieces(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    order = np.argsort(pieces.story, kind="stable")
    return _Pieces(*(array[order] for array in pieces))


def _spans(start: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The indices start[i] ... start[i] + size[i] - 1 of all i, and where each i ends in them."""
    ends = np.cumsum(size)
    return np.arange(ends[-1]) + np.repeat(start - (ends - size), size), ends


class _Moved:
    """Flat arrays of stories of the given sizes [S], brought into another order of the stories, and
    filled up with zeros to `room`, which belong to one more story."""

    def __init__(self, size: np.ndarray, order: np.ndarray, room: int):
        index, ends = _spans((np.cumsum(size) - size)[order], size[order])
        self.index = np.append(index, np.full(room - len(index), -1))
        self.start = np.append(ends - size[order], ends[-1])  # [S + 1]
        self.size = np.append(size[order], room - ends[-1])  # [S + 1]

    def move(self, array: np.ndarray) -> np.ndarray:
        return np.append(array, 0)[self.index]


def _with_zero(parts: list[np.ndarray]) -> np.ndarray:
    """All rows, and one of zeros."""
    return np.concatenate([*parts, np.zeros_like(parts[0][:1])])


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """What the process does: reads its settings, then numbers of epochs, one in a line, and writes
    the arrays of each, until nobody asks any more.

    An answer is a line of JSON, the shapes of the arrays or an error, and the arrays' bytes.
    """
    try:
        settings = json.loads(requests.readline())
        layout = Layout(**settings["layout"])
        make = Epochs(Config.from_json(settings["config"]), settings["entities"], layout)
        for line in requests:
            arrays = make(int(line))
            shapes = {name: array.shape for name, array in arrays.items()}
            answers.write(json.dumps(shapes).encode() + b"\n")
            for array in arrays.values():
                answers.write(array.tobytes())
            answers.flush()
    except (BrokenPipeError, KeyboardInterrupt):  # the one that asks has ended
        os._exit(0)
    except Exception as error:  # it is for the one that asks to tell of it
        reason = str(error) if isinstance(error, InputError) else repr(error)
        answers.write(json.dumps({"error": reason}).encode() + b"\n")
        answers.flush()
