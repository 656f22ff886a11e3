"""Published accuracies that a report shows next to the measured ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clutrr_jax.evaluation.statistics import t_quantile

RUNS = 10  # behind each published error (Sinha et al. 2019, section 4.2)
ROUNDING = 0.005  # published accuracies have two decimals


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


class DataSet(NamedTuple):
    """Data on which accuracies were measured."""

    name: str  # id of a released data set, else a description
    train: str  # train stories; "" if not known
    tests: str  # test stories; "" if not known


@dataclass(frozen=True)
class PublishedRow:
    """Published accuracies of one model.

    Attributes:
      name: of the model.
      source: where the accuracies were published.
      data: what it was trained and tested on (language models that were not trained: tested on).
      reads: "facts" or "story".
      given: as in `clutrr_jax.models.Spec.given`.
      differs: what keeps the accuracies from being compared with those measured on released data;
        empty if nothing does.
      by_k: accuracy on the tests of length k.
      overall: accuracy on all test stories.
      model: the same model in `clutrr_jax.models.MODELS`; empty if there is none.
    """

    name: str
    source: Source
    data: DataSet
    reads: str
    given: str
    differs: str
    by_k: Mapping[int, Accuracy] = field(default_factory=dict)
    overall: Accuracy | None = None
    model: str = ""

    @property
    def label(self) -> str:
        """Name in tables and plots."""
        return f"{self.model}, published ({self.source.short})" if self.model else self.name


class Reference(NamedTuple):
    """Published accuracies of other work, shown with the measured ones.

    Attributes:
      panel: the panel that it belongs to.
      row: the accuracies by x. The table shows it below the series of the same model.
      shown: whether plots show it. On the page, the reader can change this.
    """

    panel: Any
    row: PublishedRow
    shown: bool = False


def published_interval(published: Accuracy) -> tuple[float, float]:
    """Returns the 95 % interval: Student's t over the paper's runs plus the rounding error.

    Without a published error, the rounding error alone.
    """
    half = ROUNDING + t_quantile(RUNS - 1) * (published.error or 0)
    return max(0.0, published.mean - half), min(1.0, published.mean + half)
