"""Assembly of the report page: one HTML file that needs no other file and no network.

`template/` holds the style, the body and the scripts of the page. The scripts show one JSON object.
"""

import html
import json
from importlib.resources import files
from string import Template
from typing import Any

# Scripts of the page, in the order of their definitions.
SCRIPTS = (
    "common.js", "chart.js", "accuracy.js", "set.js", "training.js", "groups.js", "graph.js",
    "stories.js", "extraction.js", "page.js",
)  # fmt: skip


def render(content: dict[str, Any]) -> str:
    """Returns the HTML of the page. No text in the content can become markup.

    Args:
      content: JSON object for the scripts, with a "title".
    """
    template = files("clutrr_jax.report") / "template"

    def read(name: str) -> str:
        return (template / name).read_text(encoding="utf-8")

    return Template(read("page.html")).substitute(
        title=html.escape(content["title"]),
        style=read("page.css"),
        script="\n".join(map(read, SCRIPTS)),
        data=json.dumps(content, separators=(",", ":")).replace("<", "\\u003c"),
    )
