"""Train stories that are resampled for every epoch, as arrays, and the process that makes them.

This module and its imports do not import JAX, which belongs to the training process. No sentences
are written: each paraphrase is tokenized once, and the tokens of a story are put together from
those of its paraphrases.
"""

import signal
from multiprocessing.connection import Connection
from typing import NamedTuple

import numpy as np

from clutrr_jax.data.vocabulary import FIRST_ENTITY, Vocabulary, draw_entities, tokens_of, words_of
from generator.blocks import BLOCK, block
from generator.config import Config
from generator.errors import InputError
from generator.hold_out import split_bank
from generator.paraphrases.load import load_bank
from generator.stories import Stories
from generator.text import MAX_PARAPHRASE_FACTS, Bank, choose_templates

_MAX_ATTEMPTS = 1000  # to find paraphrases that fit the layout


class Layout(NamedTuple):
    """Sizes of the arrays, the same in every epoch."""

    people: int  # length of the flat array of people
    facts: int
    tokens: int
    max_tokens: list[int] | None  # [S] of the shortest story, of the next, ...; None: no text
    max_names: int  # tokens of a story that name people


class _Paraphrases(NamedTuple):
    """P paraphrases of some stories, ordered by story and position in the text."""

    story: np.ndarray  # [P] index of the story in the epoch
    template: np.ndarray  # [P] index of the paraphrase in the bank
    people: np.ndarray  # [P, 4] people of the story that fill the template


def bank_words(config: Config) -> tuple[str, ...]:
    """Returns all words that train stories may contain."""
    return words_of(_template_texts(split_bank(load_bank(config), config).train))


def _template_texts(bank: Bank) -> list[str]:
    """Returns the paraphrases by index. Their people are named [\\0 0], [\\0 1], ..., since a
    paraphrase contains no null character."""
    return [
        text.format(*(f"[\0{i}]" for i in range(MAX_PARAPHRASE_FACTS + 1)))
        for text in bank.pools.texts
    ]


class EpochSampler:
    """Samples the train stories of an epoch. They depend on the settings and the epoch only."""

    def __init__(self, config: Config, entities: int, layout: Layout):
        """
        Args:
          config: generator settings.
          entities: size of the pool of entities.
          layout: sizes of the arrays.
        """
        banks = split_bank(load_bank(config), config)
        self.config, self.entities, self.layout = config, entities, layout
        self.bank, self.expressible = banks.train, banks.expressible()
        texts = _template_texts(self.bank)
        word_ids = Vocabulary(words_of(texts), entities).token_ids()
        people = {f"[\0{i}]": -1 - i for i in range(MAX_PARAPHRASE_FACTS + 1)}
        templates = [tokens_of(text, word_ids, people) for text in texts]
        # Flat tokens of all templates; -1 - i stands for person i of the template.
        self.tokens = np.array([token for template in templates for token in template])
        self.n_token = np.array([len(template) for template in templates])
        self.n_name = np.array([sum(token < 0 for token in template) for template in templates])

    def __call__(self, epoch: int) -> dict[str, np.ndarray]:
        """Returns the fields of `clutrr_jax.data.arrays.StoryArrays`, int32.

        There are S + 1 stories: those of the epoch, ordered by length, or by task if they have no
        text, and one that owns the padding of the flat arrays.

        Raises:
          InputError: the settings allow no such stories, or they do not fit the layout.
        """
        blocks, parts = self._sample(epoch)
        n_node = np.concatenate([(part.gender >= 0).sum(axis=1) for part in blocks])
        entity = draw_entities(n_node, self.entities, [self.config.seed, epoch])
        if self.layout.max_tokens is None:
            n_token, tokens = np.zeros(len(n_node), np.int64), np.zeros(0)
        else:
            told, n_token = self._fit(blocks, parts, epoch)
            tokens = self._tokens(told, entity, np.cumsum(n_node) - n_node)
        is_stated = [part.edge_relations() >= 0 for part in blocks]
        edges, relations = (
            np.concatenate([a[stated] for a, stated in zip(arrays, is_stated, strict=True)])
            for arrays in (
                [part.edges() for part in blocks],
                [part.edge_relations() for part in blocks],
            )
        )
        n_edge = np.concatenate([stated.sum(axis=1) for stated in is_stated])

        order = np.argsort(n_token, kind="stable")
        people = _Reordered(n_node, order, self.layout.people)
        facts = _Reordered(n_edge, order, self.layout.facts)
        words = _Reordered(n_token, order, self.layout.tokens)

        def by_story(arrays: list[np.ndarray]) -> np.ndarray:
            padding = np.zeros_like(arrays[0][:1])
            return np.concatenate([*arrays, padding])[np.append(order, -1)]

        arrays = {
            "node_start": people.start,
            "n_node": people.size,
            "entity": people.reorder(entity),
            "edge_start": facts.start,
            "n_edge": facts.size,
            "senders": facts.reorder(edges[:, 0]),
            "receivers": facts.reorder(edges[:, 1]),
            "relation": facts.reorder(relations),
            "token_start": words.start,
            "n_token": words.size,
            "tokens": words.reorder(tokens),
            "query": by_story([part.query() for part in blocks]),
            "target": by_story([part.target for part in blocks]),
            "clause_length": by_story([np.full(len(part), part.task.k) for part in blocks]),
        }
        return {name: np.ascontiguousarray(array, np.int32) for name, array in arrays.items()}

    def _sample(self, epoch: int) -> tuple[list[Stories], list[_Paraphrases]]:
        """Samples the stories of all tasks, and their paraphrases if they have text."""
        blocks: list[Stories] = []
        paraphrases: list[_Paraphrases] = []
        count = 0
        for task in self.config.train:
            rows = self.config.rows("train", task)
            for index in range(-(-rows // BLOCK)):
                part, rng = block(self.config, "train", task, index, self.expressible, epoch)
                part = part.select(slice(rows - index * BLOCK))
                blocks.append(part)
                if self.layout.max_tokens is not None:
                    stories = np.arange(count, count + len(part))
                    paraphrases.append(self._paraphrase(part, stories, rng))
                count += len(part)
        return blocks, paraphrases

    def _paraphrase(
        self, part: Stories, stories: np.ndarray, rng: np.random.Generator
    ) -> _Paraphrases:
        """Samples paraphrases of stories of one task, which have these indices in the epoch."""
        chosen = choose_templates(part, self.bank, rng)
        story = np.repeat(stories, np.diff(chosen.start))
        return _Paraphrases(story, chosen.template[chosen.order], chosen.people[chosen.order])

    def _fit(
        self, blocks: list[Stories], parts: list[_Paraphrases], epoch: int
    ) -> tuple[_Paraphrases, np.ndarray]:
        """Samples paraphrases again for stories that are too long or name people too often.

        Returns:
          The paraphrases of all stories, and the number of tokens of each story [S].
        """
        max_tokens = np.array(self.layout.max_tokens)
        first = np.cumsum([0, *map(len, blocks)])
        told = _join(parts)
        for attempt in range(_MAX_ATTEMPTS):
            n_token = np.bincount(told.story, self.n_token[told.template], len(max_tokens))
            n_name = np.bincount(told.story, self.n_name[told.template], len(max_tokens))
            order = np.argsort(n_token, kind="stable")
            too_long = order[n_token[order] > max_tokens]
            rejected = np.union1d(too_long, np.flatnonzero(n_name > self.layout.max_names))
            if not len(rejected):
                return told, n_token.astype(int)
            rng = np.random.default_rng([self.config.seed, epoch, attempt])
            keep = ~np.isin(told.story, rejected)
            parts = [_Paraphrases(*(array[keep] for array in told))]
            for begin, part in zip(first, blocks, strict=False):
                own = rejected[(rejected >= begin) & (rejected < begin + len(part))]
                if len(own):
                    parts.append(self._paraphrase(part.select(own - begin), own, rng))
            told = _join(parts)
        raise InputError(
            f"epoch {epoch}: {len(rejected)} stories are longer, or name people more often, than "
            "those of the files, which the arrays are sized by; expected a larger "
            "--config.generate.train_rows"
        )

    def _tokens(self, told: _Paraphrases, entity: np.ndarray, node_start: np.ndarray) -> np.ndarray:
        """Returns the tokens of all stories, flat [M]."""
        sizes = self.n_token[told.template]
        index, _ = _ranges((np.cumsum(self.n_token) - self.n_token)[told.template], sizes)
        tokens = self.tokens[index]
        names = np.flatnonzero(tokens < 0)
        paraphrase = np.repeat(np.arange(len(sizes)), sizes)[names]
        person = told.people[paraphrase, -1 - tokens[names]] + node_start[told.story[paraphrase]]
        tokens[names] = entity[person] + FIRST_ENTITY
        return tokens


def _join(parts: list[_Paraphrases]) -> _Paraphrases:
    """Joins paraphrases and orders them by story."""
    joined = _Paraphrases(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    order = np.argsort(joined.story, kind="stable")
    return _Paraphrases(*(array[order] for array in joined))


def _ranges(start: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Concatenates the ranges start[i] ... start[i] + size[i] - 1. Also returns their ends."""
    ends = np.cumsum(size)
    return np.arange(ends[-1]) + np.repeat(start - (ends - size), size), ends


class _Reordered:
    """Flat arrays with the stories in another order, padded to a length.

    Args:
      size: [S] number of elements of each story.
      order: [S] story indices.
      length: of the padded arrays. The padding belongs to one more story.
    """

    def __init__(self, size: np.ndarray, order: np.ndarray, length: int):
        index, ends = _ranges((np.cumsum(size) - size)[order], size[order])
        self.index = np.append(index, np.full(length - len(index), -1))
        self.start = np.append(ends - size[order], ends[-1])  # [S + 1]
        self.size = np.append(size[order], length - ends[-1])  # [S + 1]

    def reorder(self, array: np.ndarray) -> np.ndarray:
        return np.append(array, 0)[self.index]


def serve(connection: Connection) -> None:
    """Main loop of the process: receives the arguments of `EpochSampler`, then epochs.

    Answers each epoch by its arrays, or by an error message. It ends when the other end of the
    connection is closed, which happens however the training process ends.
    """
    # Both are handled by the training process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        try:
            sampler = EpochSampler(*connection.recv())
            while True:
                connection.send(sampler(connection.recv()))
        except InputError as error:
            connection.send(str(error))
    except (EOFError, OSError):
        pass
