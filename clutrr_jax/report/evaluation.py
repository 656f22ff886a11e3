"""Accuracies as an object that notebooks display: what `evaluate` and `train` return."""

from html import escape
from typing import Any

from clutrr_jax.report import scoring
from clutrr_jax.report.plots import Figure, plot_results
from clutrr_jax.report.tables import html_table
from generator.errors import plain_text

# Columns of `AccuracyTable`, before those of further metrics.
COLUMNS = ("model", "task", "k", "accuracy", "stderr", "low", "high", "count", "replicas",
           "ceiling")  # fmt: skip


class AccuracyTable(list[dict[str, Any]]):
    """Accuracy of each model on each test set: dictionaries with the keys `COLUMNS`, and the mean
    of each further metric that it has."""

    def _columns(self) -> list[str]:
        return list(dict.fromkeys([*COLUMNS, *(name for row in self for name in row)]))

    def _table(self) -> list[list[str]]:
        columns = self._columns()
        return [columns, *([_cell(row.get(c)) for c in columns] for row in self)]

    def __repr__(self) -> str:
        return plain_text(self._table())

    def _repr_html_(self) -> str:
        return html_table(self._table())

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame."""
        import pandas as pd

        return pd.DataFrame(self, columns=self._columns())


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "" if value is None else str(value)


class Evaluation:
    """Accuracy of predictions next to the baselines.

    Attributes:
      results: everything as a JSON object; `rows` has one row per model and test set.
    """

    def __init__(self, results: dict[str, Any]):
        self.results = results

    @property
    def accuracy(self) -> AccuracyTable:
        """Accuracy of each model and baseline on each test set."""
        return AccuracyTable(
            {column: row[column] for column in COLUMNS}
            | {name: values["mean"] for name, values in row["metrics"].items()}
            for row in self.results["rows"]
            if row["accuracy"] is not None
        )

    def plot(self) -> Figure:
        """Plots accuracy against clause length; `.savefig(FILE)` writes the figure."""
        return plot_results(self.results)

    def tables(self) -> list[list[list[str]]]:
        """Returns the tables that are printed, as rows of text cells."""
        return scoring.tables(self.results)

    def notes(self) -> list[str]:
        """Returns how many stories have a prediction and how many answers were not mapped, as
        sentences; none if these are all and none."""
        return scoring.notes(self.results)

    def __repr__(self) -> str:
        tables = map(plain_text, self.tables())
        return "\n\n".join(filter(None, [*tables, "\n".join(self.notes())]))

    def _repr_html_(self) -> str:
        notes = (f"<p>{escape(note)}</p>" for note in self.notes())
        return "\n".join([*map(html_table, self.tables()), *notes])
