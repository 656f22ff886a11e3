"""Tables of numbers that need no training, next to the published ones."""

import json
from collections.abc import Sequence
from pathlib import Path

from clutrr_jax.report.tables import markdown_table
from clutrr_jax.runs import check_folder
from generator.errors import plain_text
from generator.files import write_text


def write_counts(name: str, rows: Sequence[tuple[str, float, float]], workdir: Path) -> str:
    """Writes `results.json` and `results.md` of a table of (name, measured value, published value).

    Returns the table as text.
    """
    check_folder(workdir, name)
    table = counts_table(rows)
    found = [{"name": label, "measured": a, "published": b} for label, a, b in rows]
    write_text(workdir / "results.json", json.dumps({"name": name, "rows": found}, indent=1))
    write_text(workdir / "results.md", "\n".join([f"# {name}", "", *markdown_table(table), ""]))
    return plain_text(table)


def counts_table(rows: Sequence[tuple[str, float, float]]) -> list[list[str]]:
    """Returns the rows (name, measured value, published value) as a table."""
    table = [["", "measured", "paper", "difference"]]
    return table + [[label, _count(a), _count(b), _count(a - b)] for label, a, b in rows]


def _count(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:z.4f}"
