"""Assembly of a report page: one HTML file that needs no other file and no network.

`template/` holds the style, the body and the scripts of each kind of page. The scripts show one
JSON object: see `clutrr_jax.report.run_page` and `experiments.grid.report`.
"""

import html
import json
from importlib.resources import files
from string import Template
from typing import Any

# Scripts of each kind of page, in the order of their definitions. The body is KIND.html.
SCRIPTS = {
    "run": (
        "common.js", "data.js", "chart.js", "curves.js", "tables.js", "graph.js", "stories.js",
        "extraction.js", "run.js",
    ),
    "grid": ("common.js", "chart.js", "grid.js"),
}  # fmt: skip


def render(kind: str, content: dict[str, Any]) -> str:
    """Returns the HTML of a page. No text in the content can become markup.

    Args:
      kind: "run" or "grid".
      content: JSON object for the scripts, with a "title".
    """
    template = files("clutrr_jax.report") / "template"

    def read(name: str) -> str:
        return (template / name).read_text(encoding="utf-8")

    return Template(read("page.html")).substitute(
        title=html.escape(content["title"]),
        style=read("page.css"),
        body=read(f"{kind}.html"),
        script="\n".join(map(read, SCRIPTS[kind])),
        data=json.dumps(content, separators=(",", ":")).replace("<", "\\u003c"),
    )
