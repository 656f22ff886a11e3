"""Writes the tables and figures of README.md and docs/ from the data in `results/`.

    python -m experiments.render            # writes the pages
    python -m experiments.render --check    # only says which pages differ, with exit code 1

A page has blocks between `<!-- rendered: VIEW PARTS ARGUMENTS -->` and `<!-- end -->`, whose text
is replaced. The views are the functions of `experiments/views.py`; PARTS are joined by "+". The
view `ledger`, of the published rows, has none.
"""

import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from clutrr_jax.report.plots import plot_results, save_figure
from experiments import views
from experiments.paper import ROOT, recorded
from generator.errors import Parser, one_of, run_command
from generator.files import write_text

BLOCK = re.compile(
    r"(<!-- rendered: (\w+)([^\n]*?) -->\n)(?:(?!<!-- rendered).)*?(<!-- end -->)", re.DOTALL
)
PAGES = (
    "README.md",
    "docs/performance.md",
    "docs/published.md",
    "docs/results.md",
    "docs/robustness.md",
    "docs/studies.md",
    "docs/workshop.md",
)
FIGURES = ("demo", "figure5", "star", "scaling")  # with a figure docs/PART.png
VIEWS: dict[str, Callable[..., list[str]]] = {
    view.__name__: view
    for view in (
        views.by_k, views.by_test, views.claims, views.counts, views.derived, views.grid,
        views.made, views.published, views.speed, views.text,
    )
}  # fmt: skip


def render(page: str, found: Mapping[str, views.Recorded]) -> str:
    """Returns the text of a page with its blocks replaced, from the recorded parts."""

    def block(match: re.Match[str]) -> str:
        start, view, arguments, end = match.groups()
        one_of("view", view, [*VIEWS, "ledger"])
        lines = views.ledger() if view == "ledger" else of_parts(view, arguments)
        return "".join([start, *(f"{line}\n" for line in lines), end])

    def of_parts(view: str, arguments: str) -> list[str]:
        parts, *words = shlex.split(arguments) or [""]
        names = parts.split("+")
        for name in names:
            one_of("part", name, found)
        return VIEWS[view]([found[name] for name in names], *words)

    return BLOCK.sub(block, page)


def write_figures(found: Mapping[str, views.Recorded], folder: Path) -> None:
    """Writes the figures of the parts that have been measured, with the panels of three tests or
    more, and without variants of models."""
    for part in FIGURES:
        if part in found:
            panel, x, _ = found[part]["columns"]
            rows = found[part]["rows"]
            tests = Counter(p for p, _ in {(row[panel], row[x]) for row in rows})
            curves = [row for row in rows if tests[row[panel]] >= 3 and row["kind"] != "variant"]
            save_figure(plot_results({**found[part], "rows": curves}), folder / f"{part}.png")


def main(argv: Sequence[str]) -> int:
    """Writes or checks the pages; returns 1 if a checked page differs, else 0."""
    parser = Parser(prog="python -m experiments.render", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check, found, different = parser.parse_args(argv).check, recorded(), []
    for page in PAGES:
        before = (ROOT / page).read_text()
        after = render(before, found)
        if before != after:
            different.append(page)
            if not check:
                write_text(ROOT / page, after)
    if not check:
        write_figures(found, ROOT / "docs")
    for page in different:
        print(f"{page}: {'differs from results/' if check else 'written'}")
    return int(check and bool(different))


if __name__ == "__main__":
    sys.exit(run_command(main, sys.argv[1:]))
