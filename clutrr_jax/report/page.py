"""Assembly of a report page: one HTML file that needs no other file and no network.

`template/` holds the style, the body and the scripts of each kind of page. The scripts show one
JSON object: see `clutrr_jax.report.run_page` and `experiments.grid.report`.
"""

import base64
import hashlib
import html
import json
from importlib.resources import files
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
    style = (template / "page.css").read_text(encoding="utf-8")
    scripts = "\n".join((template / name).read_text(encoding="utf-8") for name in SCRIPTS[kind])
    script = f'"use strict";\n(() => {{\n{scripts}}})();\n'
    # The browser runs only this script and style, and makes no request.
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src "
    parts = {
        "title": html.escape(content["title"]),
        "policy": policy + _hash(script),
        "style": style,
        "body": (template / f"{kind}.html").read_text(encoding="utf-8"),
        "script": script,
        "data": json.dumps(content, separators=(",", ":")).replace("<", "\\u003c"),
    }
    pieces = (template / "page.html").read_text(encoding="utf-8").split("@")
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def _hash(text: str) -> str:
    """Source expression of a Content-Security-Policy that allows this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
