"""Train stories that are resampled for every epoch, as arrays.

No sentences are written: each paraphrase is tokenized once, and the tokens of a story are put
together from those of its paraphrases.
"""

from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.data.vocabulary import (
    FIRST_ENTITY,
    PAD,
    Vocabulary,
    draw_entities,
    tokens_of,
    words_of,
)
from clutrr_jax.streams import Stream, numpy_rng
from generator.config import Config
from generator.errors import InputError
from generator.paraphrases.load import load_bank
from generator.stories.blocks import block
from generator.stories.hold_out import split_bank
from generator.stories.render import pieces
from generator.stories.sample import Stories
from generator.stories.text import MAX_PARAPHRASE_FACTS, Bank, choose_templates

_MAX_ATTEMPTS = 1000  # to find paraphrases that fit the layout


class Layout(NamedTuple):
    """Sizes of the arrays, the same in every epoch."""

    people: int  # length of the flat array of people
    facts: int
    tokens: int
    max_tokens: list[int] | None  # [S] of the shortest story, of the next, ...; None: no text
    max_names: int  # tokens of a story that name people


class _Paraphrases(NamedTuple):
    """P paraphrases of some stories; those of a story are in the order of the text."""

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
        # Tokens of each template, padded with PAD; -1 - i stands for person i of the template.
        self.tokens = np.array([*zip_longest(*templates, fillvalue=PAD)], np.int32).T
        self.n_token, self.n_name = (self.tokens != PAD).sum(axis=1), (self.tokens < 0).sum(axis=1)

    def __call__(self, epoch: int) -> StoryArrays:
        """Returns S + 1 stories as NumPy arrays, int32.

        They are those of the epoch, ordered by length or, if they have no text, by task, and one
        that owns the padding of the flat arrays.

        Raises:
          InputError: the settings allow no such stories, or they do not fit the layout.
        """
        blocks, parts = self._sample(epoch)
        people = _stack([part.gender for part in blocks])  # [S, N], -1 where there is no person
        is_person = people >= 0
        rng = numpy_rng(Stream.ENTITIES, self.config.seed, epoch)
        # From here on their entities, instead of their genders.
        people[is_person] = draw_entities(
            is_person.sum(axis=1), rng.random((len(is_person), self.entities))
        )
        n_token, order = np.zeros(len(people), int), np.arange(len(people))
        tokens = np.zeros(0)
        if self.layout.max_tokens is not None:
            told, n_token = self._fit(blocks, parts, epoch)
            order = np.argsort(n_token, kind="stable")
            tokens = self._tokens(told, people, np.argsort(order))
        people = people[order]
        relations = _stack([b.edge_relations() for b in blocks])[order]
        edges = _stack([b.edges() for b in blocks])[order]
        is_person, is_fact = people >= 0, relations >= 0
        arrays = {}
        for kind, size, length, flat in (
            ("node", is_person.sum(axis=1), self.layout.people, {"entity": people[is_person]}),
            ("edge", is_fact.sum(axis=1), self.layout.facts, {
                "senders": edges[is_fact][:, 0],
                "receivers": edges[is_fact][:, 1],
                "relation": relations[is_fact],
            }),
            ("token", n_token[order], self.layout.tokens, {"tokens": tokens}),
        ):  # fmt: skip
            arrays[f"{kind}_start"] = np.append(0, np.cumsum(size))
            arrays[f"n_{kind}"] = np.append(size, length - size.sum())
            arrays |= {name: np.pad(x, (0, length - len(x))) for name, x in flat.items()}
        for name, values in (
            ("query", [b.query() for b in blocks]),
            ("target", [b.target for b in blocks]),
        ):
            story_values = np.concatenate(values)[order]
            # The story that owns the padding has zeros.
            arrays[name] = np.concatenate([story_values, np.zeros_like(story_values[:1])])
        found: dict[str, Any] = {name: array.astype(np.int32) for name, array in arrays.items()}
        return StoryArrays(**found)

    def _sample(self, epoch: int) -> tuple[list[Stories], list[_Paraphrases]]:
        """Samples the stories of all tasks, and their paraphrases if they have text."""
        blocks: list[Stories] = []
        paraphrases: list[_Paraphrases] = []
        for piece in pieces(self.config, "train", self.config.train):
            part, rng = block(
                self.config, "train", piece.task, piece.block, self.expressible, epoch
            )
            blocks.append(part.select(slice(piece.size)))
            if self.layout.max_tokens is not None:
                stories = np.arange(piece.first, piece.first + piece.size)
                paraphrases.append(self._paraphrase(blocks[-1], stories, rng))
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
        for attempt in range(_MAX_ATTEMPTS):
            told = _Paraphrases(*map(np.concatenate, zip(*parts, strict=True)))
            n_token = np.bincount(told.story, self.n_token[told.template], len(max_tokens))
            n_name = np.bincount(told.story, self.n_name[told.template], len(max_tokens))
            order = np.argsort(n_token, kind="stable")
            too_long = order[n_token[order] > max_tokens]
            rejected = np.union1d(too_long, np.flatnonzero(n_name > self.layout.max_names))
            if not len(rejected):
                return told, n_token.astype(int)
            rng = numpy_rng(Stream.PARAPHRASES, self.config.seed, epoch, attempt)
            keep = ~np.isin(told.story, rejected)
            parts = [_Paraphrases(*(array[keep] for array in told))]
            for begin, part in zip(first, blocks, strict=False):
                own = rejected[(rejected >= begin) & (rejected < begin + len(part))]
                if len(own):
                    parts.append(self._paraphrase(part.select(own - begin), own, rng))
        raise InputError(
            f"epoch {epoch}: {len(rejected)} stories are longer, or name people more often, than "
            "those of the files, which the arrays are sized by; expected a larger "
            "--config.generate.train_rows"
        )

    def _tokens(self, told: _Paraphrases, people: np.ndarray, rank: np.ndarray) -> np.ndarray:
        """Returns the tokens of all stories, flat [M].

        Args:
          told: the paraphrases of all stories.
          people: [S, N] entity of each person.
          rank: [S] place of each story in the result.
        """
        order = np.argsort(rank[told.story], kind="stable")
        tokens = self.tokens[told.template[order]]
        paraphrase, place = np.nonzero(tokens < 0)
        person = told.people[order[paraphrase], -1 - tokens[paraphrase, place]]
        tokens[paraphrase, place] = people[told.story[order[paraphrase]], person] + FIRST_ENTITY
        return tokens[tokens != PAD]


def _stack(parts: list[np.ndarray]) -> np.ndarray:
    """Concatenates arrays [B, n, ...], padded with -1 to the same n."""
    width = max(part.shape[1] for part in parts)
    return np.concatenate([
        np.pad(part, [(0, 0), (0, width - part.shape[1])] + [(0, 0)] * (part.ndim - 2),
               constant_values=-1)
        for part in parts
    ])  # fmt: skip
