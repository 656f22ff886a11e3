"""`python -m generator stats [FILE...]`: table 1 of Sinha et al. 2019 for any bank or data set.

Words are lower-cased runs of letters, with inner hyphens and apostrophes (`mother-in-law`,
`don't`); the 's of a possessive name is dropped. Placeholders count as words in the overlaps, as
{0}, {1}, ..., but not in the number of unique words. The paper does not define its counts; without
placeholders the overlaps would be smaller by about 0.07. The Jaccard overlap is the mean over all
pairs of paraphrases of the same clause (gender of the first person, relations).
"""

import re
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from generator.cells import plain_text
from generator.errors import InputError, Parser
from generator.paraphrases.bank import bank as embedded_bank
from generator.paraphrases.importer import import_bank
from generator.paraphrases.load import read_bank
from generator.stories.text import MAX_PARAPHRASE_FACTS, Bank

_WORD = re.compile(r"\{\d\}|[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_LENGTHS = range(1, MAX_PARAPHRASE_FACTS + 1)


class Statistics(NamedTuple):
    """The statistics in table 1 of the paper."""

    paraphrases: tuple[int, ...]  # unique paraphrases by clause length 1, 2, 3
    clauses: tuple[int, ...]  # relation sequences by clause length, genders ignored
    words: int  # unique words
    unigrams: float  # mean Jaccard overlap
    bigrams: float

    def rows(self) -> dict[str, float]:
        """Returns the rows of table 1 by name."""
        return {
            **{f"paraphrases, k = {k}": n for k, n in enumerate(self.paraphrases, 1)},
            "paraphrases, total": sum(self.paraphrases),
            **{f"clauses, k = {k}": n for k, n in enumerate(self.clauses, 1)},
            "unique words": self.words,
            "Jaccard overlap, unigrams": self.unigrams,
            "Jaccard overlap, bigrams": self.bigrams,
        }


PAPER = Statistics((1868, 1890, 2258), (20, 58, 236), 3797, 0.201, 0.0385)


def tokens(template: str) -> list[str]:
    """Returns the words and placeholders of a template."""
    return _WORD.findall(template.lower().replace("}'s", "}"))


def overlap(templates: Sequence[str]) -> tuple[float, float, int]:
    """Returns the sum of Jaccard overlaps over all pairs (words, bigrams) and the pair count."""
    texts = [tokens(template) for template in templates]
    unigrams = _jaccard([set(text) for text in texts])
    bigrams = _jaccard([set(pairwise(text)) for text in texts])
    return unigrams, bigrams, len(texts) * (len(texts) - 1) // 2


def _jaccard(sets: Sequence[set[Any]]) -> float:
    return sum(len(a & b) / max(1, len(a | b)) for a, b in combinations(sets, 2))


def statistics(bank: Bank) -> Statistics:
    """Returns table 1 for a bank. Raises InputError if the bank is empty."""
    if not any(bank.templates.values()):
        raise InputError(f'bank "{bank.name}" is empty; expected at least one template')
    by_length = [
        {key: texts for key, texts in bank.templates.items() if len(key[1]) == length}
        for length in _LENGTHS
    ]
    unique = [{text for texts in part.values() for text in texts} for part in by_length]
    overlaps = [overlap(texts) for texts in bank.templates.values()]
    words = {word for texts in unique for text in texts for word in tokens(text)}
    unigrams, bigrams, pairs = (sum(column) for column in zip(*overlaps, strict=True))
    return Statistics(
        tuple(map(len, unique)),
        tuple(len({relations for _, relations in part}) for part in by_length),
        sum(not word.startswith("{") for word in words),
        unigrams / max(1, pairs),
        bigrams / max(1, pairs),
    )


def table(banks: Sequence[Bank]) -> str:
    """Returns table 1 as text, with a column per bank and one for the paper."""
    columns = [found.rows() for found in (*map(statistics, banks), PAPER)]
    header = ["", *(bank.name for bank in banks), "paper"]
    lines = [[name, *(_format(column[name]) for column in columns)] for name in columns[0]]
    return plain_text([header, *lines])


def _format(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:#.3g}"


def main(argv: list[str]) -> int:
    """Runs `stats [FILE...]`."""
    parser = Parser(
        prog="python -m generator stats",
        description="Prints table 1 of the paper for banks and data sets. For a data set, the "
        "paraphrases are first extracted from its stories.",
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE",
                        help="bank.json, .zip, .csv or folder [the embedded bank]")  # fmt: skip
    files = parser.parse_args(argv).files
    banks = [read_bank(f) if f.suffix == ".json" else import_bank([f], f.stem)[0] for f in files]
    print(table(banks or [embedded_bank()]))
    return 0
