"""Copies of stories within a data set, and test stories that are train stories."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence

from clutrr_jax.data.records import Records

_LISTED = 3  # pairs of files that are printed, each with its number


def report_copies(files: Sequence[str], records: Records) -> None:
    """Prints on stderr how many stories of a split are copies of earlier ones.

    Args:
      files: file of each story, [S].
      records: of the train or the test stories, S.
    """
    first: dict[object, str] = {}
    copies: Counter[tuple[str, str]] = Counter()
    seen: set[object] = set()
    for file, question in zip(files, records.contents, strict=True):
        copies[file, first.setdefault(question, file)] += question in seen
        seen.add(question)
    found = {pair: count for pair, count in copies.items() if count}
    if len(found) > _LISTED:
        first_file, *others = dict.fromkeys(file for file, _ in found)
        print(
            f"{sum(found.values()):,} stories of {first_file} and {len(others)} other files are "
            "copies of others, and count twice",
            file=sys.stderr,
        )
        return
    for (file, other), count in found.items():
        where = "copies of others in it" if file == other else f"also in {other}"
        print(f"{file}: {count:,} stories are {where}, and count twice", file=sys.stderr)


def count_copies(train: Records | None, test: Records | None) -> dict[str, int]:
    """Returns how many stories of each split are copies of others of it (`train`, `test`), and how
    many test stories are train stories, whatever they ask (`shared`)."""
    counts = {
        split: len(records) - len(set(records.contents)) if records is not None else 0
        for split, records in (("train", train), ("test", test))
    }
    if train is None or test is None:
        return counts | {"shared": 0}
    return counts | {"shared": int(test.are_among(train).sum())}


def copy_notes(counts: Mapping[str, int]) -> list[str]:
    """Returns the counts of `count_copies` as sentences for a report; none if all are 0."""
    notes = [
        f"{counts[split]:,} {split} stories are copies of others, and count twice."
        for split in ("train", "test")
        if counts.get(split)
    ]
    return [shared_note(counts["shared"]), *notes] if counts.get("shared") else notes


def shared_note(count: int) -> str:
    """Returns how many test stories are train stories, as a sentence."""
    return f"{count:,} test stories are also train stories, whose text or facts models have seen."
