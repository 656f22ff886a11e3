"""Table 1 of Sinha et al. 2019 for any bank or data set.

The paraphrases of a data set are first extracted from its stories.

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
from typing import Any

from generator.errors import InputError, Parser, plain_text
from generator.paraphrases.bank import bank as embedded_bank
from generator.paraphrases.importer import import_bank
from generator.paraphrases.load import read_bank
from generator.stories.text import MAX_PARAPHRASE_FACTS, Bank

_WORD = re.compile(r"\{\d\}|[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_LENGTHS = range(1, MAX_PARAPHRASE_FACTS + 1)


PAPER = {
    "paraphrases, k = 1": 1868,
    "paraphrases, k = 2": 1890,
    "paraphrases, k = 3": 2258,
    "paraphrases, total": 6016,
    "clauses, k = 1": 20,  # relation sequences, genders ignored
    "clauses, k = 2": 58,
    "clauses, k = 3": 236,
    "unique words": 3797,
    "Jaccard overlap, unigrams": 0.201,
    "Jaccard overlap, bigrams": 0.0385,
}


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


def statistics(bank: Bank) -> dict[str, float]:
    """Returns the rows of table 1 for a bank."""
    if not any(bank.templates.values()):
        raise InputError(f'bank "{bank.name}" is empty; expected at least one template')
    texts: dict[int, set[str]] = {length: set() for length in _LENGTHS}
    clauses: dict[int, set[tuple[int, ...]]] = {length: set() for length in _LENGTHS}
    for (_, relations), pool in bank.templates.items():
        if len(relations) in _LENGTHS:
            texts[len(relations)].update(pool)
            clauses[len(relations)].add(relations)
    words = {word for unique in texts.values() for text in unique for word in tokens(text)}
    overlaps = [overlap(pool) for pool in bank.templates.values()]
    unigrams, bigrams, pairs = (sum(column) for column in zip(*overlaps, strict=True))
    return {
        **{f"paraphrases, k = {k}": len(unique) for k, unique in texts.items()},
        "paraphrases, total": sum(map(len, texts.values())),
        **{f"clauses, k = {k}": len(unique) for k, unique in clauses.items()},
        "unique words": sum(not word.startswith("{") for word in words),
        "Jaccard overlap, unigrams": unigrams / max(1, pairs),
        "Jaccard overlap, bigrams": bigrams / max(1, pairs),
    }


def table(banks: Sequence[Bank]) -> str:
    """Returns table 1 as text, with a column per bank and one for the paper."""
    columns = [*map(statistics, banks), PAPER]
    header = ["", *(bank.name for bank in banks), "paper"]
    lines = [[name, *(_format(column[name]) for column in columns)] for name in columns[0]]
    return plain_text([header, *lines])


def _format(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:#.3g}"


def main(argv: list[str]) -> int:
    """Runs `stats [FILE...]`."""
    parser = Parser(prog="python -m generator stats", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE",
                        help="bank.json, .zip, .csv or folder [the embedded bank]")  # fmt: skip
    files = parser.parse_args(argv).files
    banks = [read_bank(f) if f.suffix == ".json" else import_bank([f], f.stem)[0] for f in files]
    print(table(banks or [embedded_bank()]))
    return 0
