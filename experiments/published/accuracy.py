"""A published accuracy and its source."""

from typing import NamedTuple


class Accuracy(NamedTuple):
    """A published accuracy, as a fraction."""

    mean: float
    error: float | None  # standard error over runs; None if not published


class Source(NamedTuple):
    """Publication of an accuracy."""

    short: str  # name in tables
    authors: str
    year: int
    title: str  # of the paper; empty if there is none
    place: str = ""  # table or row, with k of the train stories, and remarks

    def __str__(self) -> str:
        title = self.title and f"“{self.title}”"
        return ", ".join(filter(None, (f"{self.authors} {self.year}", title, self.place)))
